/* SPDX-License-Identifier: MIT */
#include "leases_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

#define PREFIX	"user.cairn."
#define TTL_MAX 1e9 /* seconds */

static int append(struct cairn_buffer *out, int64_t epoch, int64_t deadline, bool held,
		  const char *holder, const char *name)
{
	char time[CAIRN_TIMESTAMP_SIZE];
	int status;
	if (strcmp(name, "epoch") == 0)
		status = cairn_buffer_printf(out, "%" PRId64, epoch);
	else if (strcmp(name, "held") == 0)
		status = cairn_buffer_printf(out, "%d", held);
	else if (strcmp(name, "holder") == 0 && holder)
		status = cairn_buffer_append(out, holder, strlen(holder));
	else if (strcmp(name, "deadline") == 0)
		status = (status = cairn_timestamp_format(deadline, time))
				 ? status
				 : cairn_buffer_append(out, time, strlen(time));
	else
		return ENODATA;
	return cairn_status_errno(status);
}

/* The period of the asker's own, counted, or NULL. */
static struct lease_period *own_period(struct request *request, const char *name)
{
	struct lease_key *key = lease_key_get(request->fs, name, false);
	if (!key)
		return NULL;
	const struct lineage *asker = request_lineage(request);
	pthread_mutex_lock(&key->mutex);
	struct lease_period *period = lease_period_of(key, asker, NULL);
	if (period)
		(void)lease_period_ref(period);
	pthread_mutex_unlock(&key->mutex);
	lease_key_put(key);
	return period;
}

int leases_getxattr(struct request *request, struct node *node, const char *name,
		    struct cairn_buffer *ret_value)
{
	static const char *const names[] = { "epoch", "deadline", "held", "holder" };
	const char *short_name = name + strlen(PREFIX);
	bool known = false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		known = known || strcmp(short_name, names[i]) == 0;
	if (!known)
		return ENODATA;
	struct lease_period *period = own_period(request, node->key);
	int error;
	if (period) {
		pthread_mutex_lock(&period->key->mutex);
		bool held = lease_period_holds(period, NULL);
		pthread_mutex_unlock(&period->key->mutex);
		error = append(ret_value, cairn_lease_epoch(period->lease),
			       cairn_lease_deadline(period->lease), held,
			       cairn_lease_holder(period->lease), short_name);
		lease_period_unref(period);
		return error;
	}
	if (strcmp(short_name, "holder") == 0)
		return ENODATA;
	struct cairn_lease_document document;
	error = lease_document(request, node->key, &document);
	if (!error)
		error = append(ret_value, document.epoch, document.deadline,
			       lease_document_holds(&document), NULL, short_name);
	else if (error == ENOENT)
		error = ENODATA;
	cairn_lease_document_release(&document);
	return error;
}

/* For the next lock */

static int parse_ttl(const char *text, int64_t *ret_ttl)
{
	char *end;
	double seconds = strtod(text, &end);
	if (end == text || *end || !isfinite(seconds) || seconds < 1e-3 || seconds > TTL_MAX)
		return EINVAL;
	*ret_ttl = (int64_t)(seconds * 1e6);
	return 0;
}

static int replace_string(char **at, const char *text)
{
	char *copy = strdup(text);
	if (!copy)
		return ENOMEM;
	free(*at);
	*at = copy;
	return 0;
}

static int change(struct lease_settings *settings, const char *name, const char *text)
{
	if (strcmp(name, "ttl") == 0)
		return parse_ttl(text, &settings->ttl);
	if (strcmp(name, "holder") == 0)
		return replace_string(&settings->holder, text);
	if (strcmp(name, "attach") == 0)
		return replace_string(&settings->attach, text);
	if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		return EINVAL;
	settings->no_steal = text[0] == '0';
	return 0;
}

/* Change the settings of the descriptors that the asker or its nearest such ancestor opened. */
static int change_nearest(struct request *request, const char *key_name, const char *name,
			  const char *text)
{
	struct lease_key *key = lease_key_get(request->fs, key_name, false);
	if (!key)
		return EPERM;
	const struct lineage *asker = request_lineage(request);
	int error = EPERM;
	pthread_mutex_lock(&key->mutex);
	for (unsigned at = 0; at < asker->count && error == EPERM; at++) {
		struct lease_open *open;
		TAILQ_FOREACH(open, &key->opens, next)
		{
			if (open->opener.count &&
			    open->opener.chain[0].pid == asker->chain[at].pid &&
			    open->opener.chain[0].start == asker->chain[at].start)
				error = change(&open->settings, name, text);
			if (error && error != EPERM)
				break;
		}
	}
	pthread_mutex_unlock(&key->mutex);
	lease_key_put(key);
	return error;
}

static int set_setting(struct request *request, struct node *node, const char *name,
		       struct cairn_slice value)
{
	if (memchr(value.data ? value.data : "", '\0', value.size) || !cairn_utf8_valid(value))
		return request_refused(request, VIEW_LEASES, node->key, EINVAL,
				       "set %s%s: it is not UTF-8", PREFIX, name);
	char *text = strndup(value.data ? value.data : "", value.size);
	if (!text)
		return ENOMEM;
	int error = change_nearest(request, node->key, name, text);
	if (error == EINVAL)
		(void)request_refused(request, VIEW_LEASES, node->key, EINVAL, "set %s%s to %s: %s",
				      PREFIX, name, text,
				      strcmp(name, "ttl") == 0 ? "not 0.001 to 1e9 seconds"
							       : "neither 0 nor 1");
	free(text);
	return error;
}

/* Of the period that runs */

static int release(struct request *request, struct lease_period *period, struct cairn_slice value)
{
	struct lease_key *key = period->key;
	int status = cairn_lease_release(period->lease, &request->call, value.size ? &value : NULL);
	if (!status) {
		pthread_mutex_lock(&key->mutex);
		period->end = period->end == LEASE_LOST ? LEASE_RELEASED : period->end;
		(void)lease_period_end(period, LEASE_RELEASED);
		lease_poll_hurry(key);
		pthread_mutex_unlock(&key->mutex);
	}
	return status;
}

static int act(struct request *request, struct node *node, bool renews, struct cairn_slice value)
{
	struct lease_period *period = own_period(request, node->key);
	if (!period)
		return EPERM;
	struct lease_key *key = period->key;
	pthread_mutex_lock(&key->mutex);
	enum lease_end end = lease_period_ended(period);
	pthread_mutex_unlock(&key->mutex);
	int error = 0;
	if (end == LEASE_UNLOCKED) {
		error = EPERM;
	} else if (end != LEASE_RUNS) {
		error = request_refused(request, VIEW_LEASES, node->key, ESTALE,
					"epoch %" PRId64 " %s", cairn_lease_epoch(period->lease),
					end == LEASE_LOST ? "was lost" : "was released");
	} else {
		int status = renews ? lease_period_renew(period, &request->call, false)
				    : release(request, period, value);
		if (status)
			error = request_failed(request, node->key, status, 0);
	}
	lease_period_unref(period);
	return error;
}

int leases_setxattr(struct request *request, struct node *node, const char *name,
		    struct cairn_slice value)
{
	static const char *const settings[] = { "ttl", "steal", "holder", "attach" };
	const char *short_name = name + strlen(PREFIX);
	if (strcmp(short_name, "renew") == 0 || strcmp(short_name, "release") == 0)
		return act(request, node, short_name[2] == 'n', value);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (strcmp(short_name, settings[i]) == 0)
			return set_setting(request, node, short_name, value);
	return EPERM;
}
