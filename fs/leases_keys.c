/* SPDX-License-Identifier: MIT */
#include "leases_private.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tree.h"

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct lease_key *)a)->name, ((const struct lease_key *)b)->name);
}

struct leases *leases_new(void)
{
	struct leases *leases = calloc(1, sizeof(*leases));
	if (leases)
		pthread_mutex_init(&leases->mutex, NULL);
	return leases;
}

static struct lease_key *key_new(struct leases *leases, struct filesystem *fs, const char *name)
{
	size_t size = strlen(name) + 1;
	struct lease_key *key = calloc(1, sizeof(*key) + size);
	if (!key)
		return NULL;
	memcpy(key->name, name, size);
	key->leases = leases;
	key->fs = fs;
	pthread_mutex_init(&key->mutex, NULL);
	TAILQ_INIT(&key->opens);
	TAILQ_INIT(&key->grants);
	TAILQ_INIT(&key->waiters);
	lease_poll_init(key);
	return key;
}

static void key_free(struct lease_key *key)
{
	pthread_mutex_destroy(&key->mutex);
	free(key);
}

struct lease_key *lease_key_get(struct filesystem *fs, const char *name, bool make)
{
	struct leases *leases = fs->leases;
	struct lease_key *wanted = key_new(leases, fs, name), *key = NULL;
	if (!wanted)
		return NULL;
	pthread_mutex_lock(&leases->mutex);
	void *found = make ? tsearch(wanted, &leases->keys, compare)
			   : tfind(wanted, &leases->keys, compare);
	if (found) {
		key = *(struct lease_key **)found;
		key->users++;
	}
	pthread_mutex_unlock(&leases->mutex);
	if (key != wanted)
		key_free(wanted);
	return key;
}

struct lease_key *lease_key_ref(struct lease_key *key)
{
	pthread_mutex_lock(&key->leases->mutex);
	key->users++;
	pthread_mutex_unlock(&key->leases->mutex);
	return key;
}

void lease_key_put(struct lease_key *key)
{
	struct leases *leases = key->leases;
	pthread_mutex_lock(&leases->mutex);
	bool last = --key->users == 0 && !leases->ending;
	if (last)
		(void)tdelete(key, &leases->keys, compare);
	pthread_mutex_unlock(&leases->mutex);
	if (last)
		key_free(key);
}

/* The descriptors that the kernel did not close before the session ended. */
static void free_opens(struct lease_key *key)
{
	struct lease_open *open;
	struct lease_grant *grant;
	while ((grant = TAILQ_FIRST(&key->grants))) {
		TAILQ_REMOVE(&key->grants, grant, next);
		lease_period_quiet(grant->period);
		lease_period_unref(grant->period);
		free(grant);
	}
	while ((open = TAILQ_FIRST(&key->opens))) {
		struct handle *handle = open->handle;
		lease_open_free(open);
		handle_unref(key->fs, handle);
	}
}

void leases_free(struct leases *leases)
{
	leases->ending = true;
	while (leases->keys) {
		struct lease_key *key = *(struct lease_key **)leases->keys;
		lease_waiters_free(key);
		free_opens(key);
		(void)tdelete(key, &leases->keys, compare);
		key_free(key);
	}
	pthread_mutex_destroy(&leases->mutex);
	free(leases);
}

void leases_count(struct leases *leases, unsigned *ret_held, unsigned *ret_waiting)
{
	*ret_held = leases->held;
	*ret_waiting = leases->waiting;
}

int lease_settings_copy(const struct lease_settings *settings, struct lease_settings *ret_copy)
{
	*ret_copy = *settings;
	ret_copy->holder = settings->holder ? strdup(settings->holder) : NULL;
	ret_copy->attach = settings->attach ? strdup(settings->attach) : NULL;
	if (!ret_copy->holder == !settings->holder && !ret_copy->attach == !settings->attach)
		return 0;
	lease_settings_release(ret_copy);
	return ENOMEM;
}

void lease_settings_release(struct lease_settings *settings)
{
	free(settings->holder);
	free(settings->attach);
	settings->holder = settings->attach = NULL;
}

int lease_open_new(struct request *request, struct handle *handle, bool created)
{
	struct filesystem *fs = request->fs;
	struct lease_open *open = calloc(1, sizeof(*open));
	struct lease_key *key = open ? lease_key_get(fs, handle->node->key, true) : NULL;
	if (!key) {
		free(open);
		return ENOMEM;
	}
	open->key = key;
	open->handle = handle;
	open->opener = *request_lineage(request);
	open->created = created;
	open->settings.ttl = fs->options.lease_ttl;
	handle->lease = open;
	pthread_mutex_lock(&key->mutex);
	TAILQ_INSERT_TAIL(&key->opens, open, next);
	pthread_mutex_unlock(&key->mutex);
	return 0;
}

void lease_open_free(struct lease_open *open)
{
	struct lease_key *key = open->key;
	pthread_mutex_lock(&key->mutex);
	TAILQ_REMOVE(&key->opens, open, next);
	pthread_mutex_unlock(&key->mutex);
	lease_period_unref(open->period);
	lease_settings_release(&open->settings);
	open->handle->lease = NULL;
	free(open);
	lease_key_put(key);
}

int leases_look_up_unmade(struct request *request, const char *name,
			  struct fuse_entry_param *ret_entry)
{
	struct lease_key *key = lease_key_get(request->fs, name, false);
	if (!key)
		return ENOENT;
	const struct lineage *asker = request_lineage(request);
	const struct lease_open *open;
	bool known = false;
	unsigned at, depth;
	pthread_mutex_lock(&key->mutex);
	TAILQ_FOREACH(open, &key->opens, next)
	known = known || (open->created && lineage_common(&open->opener, asker, &at, &depth));
	pthread_mutex_unlock(&key->mutex);
	lease_key_put(key);
	if (!known)
		return ENOENT;
	struct node *node = inodes_look_up(request->fs->inodes, NODE_LEASE, VIEW_LEASES, name, "",
					   &(struct node_facts){ 0 });
	if (!node)
		return ENOMEM;
	tree_entry(request, node, ret_entry);
	return 0;
}

struct lease_grant *lease_grant_through(struct lease_key *key, const struct lease_open *open)
{
	struct lease_grant *grant, *found = NULL;
	TAILQ_FOREACH(grant, &key->grants, next)
	if (grant->open == open)
		found = grant;
	return found;
}

struct lease_period *lease_period_of(struct lease_key *key, const struct lineage *asker,
				     const struct lease_open *through)
{
	struct lease_grant *grant = through ? lease_grant_through(key, through) : NULL;
	if (grant)
		return grant->period;
	struct lease_period *nearest = NULL;
	unsigned nearest_at = LINEAGE_MAX;
	struct lease_open *open;
	TAILQ_FOREACH(open, &key->opens, next)
	{
		if (!open->period || !open->opener.count)
			continue;
		for (unsigned at = 0; at < asker->count && at <= nearest_at; at++) {
			if (asker->chain[at].pid != open->opener.chain[0].pid ||
			    asker->chain[at].start != open->opener.chain[0].start)
				continue;
			/* Of two descriptors of one process, the one that holds counts. */
			if (at < nearest_at || lease_period_ended(nearest) != LEASE_RUNS)
				nearest = open->period;
			nearest_at = at;
		}
	}
	return nearest;
}

bool lease_period_holds(struct lease_period *period, int64_t *ret_until)
{
	struct timespec boot;
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	int64_t left = cairn_lease_own_deadline(period->lease) -
		       ((int64_t)boot.tv_sec * 1000000 + boot.tv_nsec / 1000);
	if (ret_until)
		*ret_until = cairn_clock() + left;
	return lease_period_ended(period) == LEASE_RUNS && left > 0;
}
