/* SPDX-License-Identifier: MIT */
#include "coordination/lease_private.h"

#include <inttypes.h>

#include <cairn/json.h>
#include <cairn/timestamp.h>

#include "coordination/attempts.h"
#include "coordination/lease_document.h"
#include "coordination/text.h"

#define ACQUIRE_ATTEMPTS 8

/* One thread has the handle here, so it takes no turn. */

/* May the document `members` be taken at `now`? 0 or CAIRN_HELD. */
static int acquire_allowed(struct cairn_call *call, const char *key,
			   const struct cairn_lease_options *options,
			   const struct cairn_lease_members *members, int64_t now)
{
	bool expired = members->deadline <= now;
	if (!members->held || (expired && !options->no_steal))
		return CAIRN_OK;
	char deadline[CAIRN_TIMESTAMP_SIZE] = "";
	(void)!cairn_timestamp_format(members->deadline, deadline);
	if (expired)
		return cairn_error_set(&call->error, CAIRN_HELD,
				       "lease %s: epoch %" PRId64 " expired at %s, but still names "
				       "its holder and is not to be stolen",
				       key, members->epoch, deadline);
	return cairn_error_set(&call->error, CAIRN_HELD,
			       "lease %s: held by the holder of epoch %" PRId64 " until %s", key,
			       members->epoch, deadline);
}

/*
 * The outcome of our put is unknown. Epoch, holder and deadline decide: nobody else writes all
 * three. What is not there now may still land, unless another version stands in its way.
 */
static int acquire_settle(struct cairn_lease *lease, struct cairn_call *call, const char *if_match,
			  struct cairn_attempts *attempts)
{
	struct cairn_error unknown = call->error;
	struct cairn_lease_members now;
	cairn_lease_members_init(&now);
	int status = cairn_lease_members_read(lease->store, call, lease->key, &now);
	if (status || (if_match && strcmp(now.version.etag, if_match) == 0)) {
		call->error = unknown;
		status = CAIRN_UNKNOWN;
	} else if (now.epoch == lease->epoch && now.deadline == lease->deadline &&
		   cairn_slice_equal(now.holder, cairn_buffer_slice(&lease->holder_json))) {
		memcpy(lease->etag, now.version.etag, sizeof(lease->etag));
		status = cairn_lease_take_state(lease, call, now.state);
	} else {
		status = cairn_attempts_answer(attempts, CAIRN_CONFLICT);
	}
	cairn_lease_members_release(&now);
	return status;
}

/* Write the first version of the period that follows `old` (NULL: the first of all). */
static int acquire_put(struct cairn_lease *lease, struct cairn_call *call,
		       const struct cairn_lease_members *old, struct cairn_slice state,
		       struct cairn_attempts *attempts)
{
	struct cairn_buffer text;
	cairn_buffer_init(&text, CAIRN_JSON_MAX);
	lease->epoch = old ? old->epoch + 1 : 1;
	lease->own_deadline = cairn_clock_boot() + lease->ttl;
	lease->deadline = cairn_timestamp_now() + lease->ttl;
	struct cairn_lease_members next = {
		.epoch = lease->epoch,
		.holder = cairn_buffer_slice(&lease->holder_json),
		.deadline = lease->deadline,
		.state = state,
	};
	int status = cairn_lease_members_encode(lease->key, &next, &text, &call->error);
	if (!status)
		status = cairn_lease_take_state(lease, call, state);
	if (status)
		goto out;
	const struct cairn_put_options options = {
		.if_match = old ? old->version.etag : NULL,
		.if_absent = !old,
	};
	struct cairn_version version;
	status = cairn_store_put(lease->store, call, lease->key, cairn_buffer_slice(&text),
				 &options, &version);
	if (!status)
		memcpy(lease->etag, version.etag, sizeof(lease->etag));
	else if (status == CAIRN_UNKNOWN)
		status = acquire_settle(lease, call, options.if_match, attempts);
	else
		(void)cairn_attempts_answer(attempts, status);
out:
	cairn_buffer_release(&text);
	return status;
}

/* Take the lease from `old` (NULL: there is no document), if that is allowed. */
static int acquire_take(struct cairn_lease *lease, struct cairn_call *call,
			const struct cairn_lease_options *options,
			const struct cairn_lease_members *old, struct cairn_attempts *attempts)
{
	int status = old ? acquire_allowed(call, lease->key, options, old, cairn_timestamp_now())
			 : CAIRN_OK;
	if (status)
		return status;
	if (old && old->epoch == INT64_MAX)
		return cairn_error_set(&call->error, CAIRN_CORRUPT,
				       "lease %s: no epoch can follow its epoch %" PRId64,
				       lease->key, old->epoch);
	struct cairn_buffer state;
	cairn_buffer_init(&state, CAIRN_JSON_MAX);
	struct cairn_slice next = old ? old->state : cairn_slice_of("null");
	if (options->transition) {
		struct cairn_slice current = old ? old->state : (struct cairn_slice){ 0 };
		status = cairn_text_transform("acquire lease", lease->key, options->transition,
					      options->context, current, &state, &call->error);
		if (status)
			goto out;
		next = cairn_buffer_slice(&state);
	}
	status = acquire_put(lease, call, old, next, attempts);
out:
	cairn_buffer_release(&state);
	return status;
}

/* Look, and take the lease if that is allowed. */
static int acquire_look(struct cairn_lease *lease, struct cairn_call *call,
			const struct cairn_lease_options *options, struct cairn_attempts *attempts)
{
	struct cairn_lease_members old;
	cairn_lease_members_init(&old);
	int status = cairn_lease_members_read(lease->store, call, lease->key, &old);
	if (!status || status == CAIRN_NOT_FOUND)
		status = acquire_take(lease, call, options, status ? NULL : &old, attempts);
	cairn_lease_members_release(&old);
	return status;
}

/* The caller has looked. */
static int acquire_seen(struct cairn_lease *lease, struct cairn_call *call,
			const struct cairn_lease_options *options, struct cairn_attempts *attempts)
{
	const struct cairn_lease_document *seen = options->seen;
	const struct cairn_lease_members old = {
		.epoch = seen->epoch,
		.held = seen->held,
		.deadline = seen->deadline,
		.state = cairn_buffer_slice(&seen->state),
		.version = seen->version,
	};
	return acquire_take(lease, call, options, &old, attempts);
}

static int acquire_try(struct cairn_lease *lease, struct cairn_call *call,
		       const struct cairn_lease_options *options, struct cairn_attempts *attempts)
{
	if (attempts->made == 1 && options->seen)
		return acquire_seen(lease, call, options, attempts);
	/*
	 * A fresh document costs one request: put before looking. Not with a transition, which
	 * must not be asked about a document that does not exist while one does.
	 */
	if (attempts->made == 1 && !options->transition) {
		int status = acquire_put(lease, call, NULL, cairn_slice_of("null"), attempts);
		if (status != CAIRN_EXISTS)
			return status;
		attempts->again = false;
	}
	return acquire_look(lease, call, options, attempts);
}

int cairn_lease_acquire(struct cairn_store *store, struct cairn_call *call, const char *key,
			const struct cairn_lease_options *options, struct cairn_lease **ret_lease)
{
	struct cairn_lease *lease = NULL;
	int status = cairn_lease_new(store, call, key, options->holder, options->ttl, &lease);
	if (status)
		return status;
	struct cairn_attempts attempts;
	cairn_attempts_begin(&attempts, store, call, "acquire lease", key, ACQUIRE_ATTEMPTS);
	do {
		status = cairn_attempts_next(&attempts);
		if (!status)
			status = acquire_try(lease, call, options, &attempts);
	} while (attempts.again);
	cairn_attempts_end(&attempts);
	if (status)
		cairn_lease_free(lease);
	else
		*ret_lease = lease;
	return status;
}

/* Make `lease` a handle of the period that `members` shows. 0 or CAIRN_HELD. */
static int attach_enter(struct cairn_lease *lease, struct cairn_call *call,
			const struct cairn_lease_members *members, int64_t now, int64_t boot_now)
{
	if (!members->held)
		return cairn_error_set(&call->error, CAIRN_HELD,
				       "attach lease %s: it was released (epoch %" PRId64 ")",
				       lease->key, members->epoch);
	if (!cairn_slice_equal(members->holder, cairn_buffer_slice(&lease->holder_json)))
		return cairn_error_set(&call->error, CAIRN_HELD,
				       "attach lease %s: epoch %" PRId64 " has another holder",
				       lease->key, members->epoch);
	if (members->deadline <= now)
		return cairn_error_set(&call->error, CAIRN_HELD,
				       "attach lease %s: epoch %" PRId64 " has expired; acquire it "
				       "anew",
				       lease->key, members->epoch);
	lease->epoch = members->epoch;
	lease->deadline = members->deadline;
	lease->own_deadline = boot_now + (members->deadline - now);
	memcpy(lease->etag, members->version.etag, sizeof(lease->etag));
	return cairn_lease_take_state(lease, call, members->state);
}

int cairn_lease_attach(struct cairn_store *store, struct cairn_call *call, const char *key,
		       const char *holder, int64_t ttl, struct cairn_lease **ret_lease)
{
	if (!holder)
		return cairn_error_set(&call->error, CAIRN_INVALID,
				       "attach lease %s: a holder string is needed", key);
	struct cairn_lease *lease = NULL;
	int status = cairn_lease_new(store, call, key, holder, ttl, &lease);
	if (status)
		return status;
	struct cairn_lease_members members;
	cairn_lease_members_init(&members);
	int64_t boot_now = cairn_clock_boot();
	status = cairn_lease_members_read(store, call, key, &members);
	if (!status)
		status = attach_enter(lease, call, &members, cairn_timestamp_now(), boot_now);
	cairn_lease_members_release(&members);
	if (status)
		cairn_lease_free(lease);
	else
		*ret_lease = lease;
	return status;
}
