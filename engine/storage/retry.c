/* SPDX-License-Identifier: MIT */
#include "storage/store_private.h"

#include <stdlib.h>

/* Pauses in microseconds: decorrelated jitter between these two. */
#define PAUSE_MIN ((int64_t)20 * 1000)
#define PAUSE_MAX ((int64_t)2 * 1000 * 1000)

/* A store that says "failed, nothing written" this often in a row means it. */
#define IO_ATTEMPTS 4

/* Less than this is not divided among attempts. */
#define ATTEMPT_MIN ((int64_t)2 * 1000 * 1000)

struct retry_store {
	struct cairn_store store;
};

/* The attempts of one call. */
struct attempts {
	struct cairn_store *below;
	struct cairn_call *call;
	const char *key;
	int64_t deadline; /* the whole call's */
	int64_t pause;
	int failures;	/* CAIRN_IO so far */
	bool first;	/* no conditional put was answered yet */
	bool ambiguous; /* an attempt may have been carried out though it said otherwise */
	bool unknown;	/* … and a failure of the call must say so */
};

static void attempts_begin(struct attempts *attempts, struct cairn_store *store,
			   struct cairn_call *call, const char *key)
{
	*attempts = (struct attempts){
		.below = store->below,
		.call = call,
		.key = key,
		.deadline = call->deadline,
		.pause = PAUSE_MIN,
		.first = true,
	};
}

/* Before each attempt: an answer that never comes must leave time to ask again. */
static void attempt_begin(struct attempts *attempts)
{
	int64_t left = attempts->deadline - cairn_clock();
	attempts->call->deadline = attempts->deadline;
	attempts->call->retry_after = 0;
	if (!attempts->below->capabilities.local && left > ATTEMPT_MIN)
		attempts->call->deadline -= left / 2;
}

static int attempt_end(struct attempts *attempts, int status)
{
	attempts->call->deadline = attempts->deadline;
	return status;
}

/* The call ends without an answer; call->error tells how the last attempt ended. */
static int give_up(struct attempts *attempts, int status)
{
	struct cairn_error *error = &attempts->call->error;
	if (attempts->unknown && status != CAIRN_CANCELLED)
		return cairn_error_set(error, CAIRN_UNKNOWN,
				       "%s: it is not known whether it was written, read it "
				       "before writing again; last: %s",
				       attempts->key, error->text);
	return status;
}

/*
 * An attempt ended with `status`. 0: try again, after a pause that has been made; else how the
 * call ends.
 */
static int pause_after(struct attempts *attempts, int status)
{
	bool local = attempts->below->capabilities.local;
	if (status == CAIRN_UNKNOWN)
		attempts->ambiguous = attempts->unknown = true;
	/* Nothing was written, it says; but what a timeout left on its way may still arrive. */
	if (status == CAIRN_TIMEOUT)
		attempts->ambiguous = true;
	if (status == CAIRN_IO && (local || ++attempts->failures >= IO_ATTEMPTS))
		return give_up(attempts, status);
	if (status != CAIRN_UNKNOWN && status != CAIRN_TIMEOUT && status != CAIRN_IO &&
	    status != CAIRN_BUSY)
		return give_up(attempts, status);
	int64_t spread = attempts->pause * 3 - PAUSE_MIN;
	attempts->pause = PAUSE_MIN + (int64_t)arc4random_uniform((uint32_t)spread + 1);
	if (attempts->pause > PAUSE_MAX)
		attempts->pause = PAUSE_MAX;
	/* A server that asks for patience gets it. */
	int64_t asked = attempts->call->retry_after;
	int64_t until = cairn_clock() + (asked > attempts->pause ? asked : attempts->pause);
	if (until >= attempts->deadline)
		return give_up(attempts, status);
	if (cairn_call_sleep(attempts->call, until)) {
		int ended = attempts->call->error.status;
		return give_up(attempts, ended == CAIRN_TIMEOUT ? status : ended);
	}
	return CAIRN_OK;
}

/* Statuses that answer a read for good. */
static bool is_answer(int status)
{
	return status == CAIRN_OK || status == CAIRN_NOT_FOUND || status == CAIRN_UNCHANGED ||
	       status == CAIRN_CONFLICT;
}

static int retry_get(struct cairn_store *store, struct cairn_call *call, const char *key,
		     const struct cairn_get_options *options, struct cairn_object *ret_object)
{
	struct attempts attempts;
	attempts_begin(&attempts, store, call, key);
	for (;;) {
		attempt_begin(&attempts);
		int status = attempt_end(
			&attempts, cairn_store_get(store->below, call, key, options, ret_object));
		if (is_answer(status))
			return status;
		/* A read has no outcome that could be unknown. */
		if (status == CAIRN_UNKNOWN)
			status = CAIRN_TIMEOUT;
		status = pause_after(&attempts, status);
		if (status)
			return status;
	}
}

/* Read the present version back, for as long as it takes. As a get. */
static int read_back(struct attempts *attempts, struct cairn_version *ret_version)
{
	const struct cairn_get_options options = { .no_data = true };
	struct cairn_object object;
	struct attempts reads = *attempts;
	reads.failures = 0;
	reads.pause = PAUSE_MIN;
	reads.unknown = false;
	cairn_object_init(&object);
	int status;
	for (;;) {
		attempt_begin(&reads);
		status = attempt_end(&reads, cairn_store_get(reads.below, reads.call, reads.key,
							     &options, &object));
		if (is_answer(status))
			break;
		status = pause_after(&reads, status == CAIRN_UNKNOWN ? CAIRN_TIMEOUT : status);
		if (status)
			break;
	}
	if (!status)
		*ret_version = object.version;
	cairn_object_release(&object);
	return status;
}

/* What is to be made of a conditional put's answer. */
enum verdict {
	VERDICT_WON,
	VERDICT_LOST,
	VERDICT_AGAIN,
	VERDICT_UNKNOWN,
};

/*
 * The put was refused, or collided. What is there now tells whose it is (S3.md "Outcomes of a
 * conditional PUT").
 */
static enum verdict judge(struct attempts *attempts, const struct cairn_put_options *options,
			  struct cairn_version *ret_version)
{
	struct cairn_version present;
	int status = read_back(attempts, &present);
	if (status == CAIRN_NOT_FOUND)
		/* Deleted since. A compare-and-swap can not be won any more; but ours may have been
		 * there. */
		return !options->if_match    ? VERDICT_AGAIN
		       : attempts->ambiguous ? VERDICT_UNKNOWN
					     : VERDICT_LOST;
	if (status)
		return VERDICT_UNKNOWN;
	if (*options->nonce && strcmp(options->nonce, present.nonce) == 0) {
		*ret_version = present;
		return VERDICT_WON;
	}
	if (options->if_match && strcmp(options->if_match, present.etag) == 0)
		return VERDICT_AGAIN;
	if (!attempts->ambiguous || (options->if_absent && options->immutable))
		return VERDICT_LOST;
	(void)cairn_error_set(&attempts->call->error, CAIRN_UNKNOWN,
			      "another version is there now, ours may have been before it");
	return VERDICT_UNKNOWN;
}

static int lost(struct attempts *attempts, const struct cairn_put_options *options)
{
	if (options->if_absent)
		return cairn_error_set(&attempts->call->error, CAIRN_EXISTS, "%s: exists",
				       attempts->key);
	return cairn_error_set(&attempts->call->error, CAIRN_CONFLICT, "%s: is another version now",
			       attempts->key);
}

/*
 * A conditional put ended with `status`, which is not 0. Returns whether the call ends, with
 * ret_status; else the same put goes out again.
 */
static bool settle(struct attempts *attempts, const struct cairn_put_options *options, int status,
		   struct cairn_version *ret_version, int *ret_status)
{
	bool refused = status == CAIRN_EXISTS || status == CAIRN_CONFLICT ||
		       status == CAIRN_NOT_FOUND;
	bool local = attempts->below->capabilities.local;
	bool first = attempts->first;
	attempts->first = false;
	/* What a local store says at once is so; on a network the answer may be to a resent put. */
	if (refused && local && first) {
		*ret_status = status;
		return true;
	}
	if (refused || (status == CAIRN_BUSY && !local)) {
		switch (judge(attempts, options, ret_version)) {
		case VERDICT_WON:
			*ret_status = CAIRN_OK;
			return true;
		case VERDICT_LOST:
			*ret_status = lost(attempts, options);
			return true;
		case VERDICT_UNKNOWN:
			attempts->unknown = true;
			*ret_status = give_up(attempts, CAIRN_UNKNOWN);
			return true;
		case VERDICT_AGAIN:
			status = CAIRN_BUSY;
		}
	}
	*ret_status = pause_after(attempts, status);
	return *ret_status != CAIRN_OK;
}

static int retry_put(struct cairn_store *store, struct cairn_call *call, const char *key,
		     struct cairn_slice data, const struct cairn_put_options *options,
		     struct cairn_version *ret_version)
{
	char nonce[CAIRN_NONCE_SIZE] = "";
	struct cairn_put_options sent = *options;
	if (!sent.nonce)
		sent.nonce = nonce;
	bool conditional = sent.if_absent || sent.if_match;
	struct attempts attempts;
	attempts_begin(&attempts, store, call, key);
	for (;;) {
		attempt_begin(&attempts);
		int status = attempt_end(&attempts, cairn_store_put(store->below, call, key, data,
								    &sent, ret_version));
		if (!status)
			return CAIRN_OK;
		if (conditional) {
			if (settle(&attempts, &sent, status, ret_version, &status))
				return status;
		} else {
			status = pause_after(&attempts, status);
			if (status)
				return status;
		}
	}
}

/*
 * A conditional delete was refused after an attempt that may have deleted. A version that is still
 * there was not; what is gone, or another, may have been deleted by us or by somebody else.
 */
static int settle_delete(struct attempts *attempts, const char *if_match)
{
	struct cairn_version present;
	int status = read_back(attempts, &present);
	if (!status && strcmp(present.etag, if_match) == 0)
		return pause_after(attempts, CAIRN_BUSY);
	if (!status || status == CAIRN_NOT_FOUND)
		(void)cairn_error_set(&attempts->call->error, CAIRN_UNKNOWN,
				      "it was deleted or replaced, by this call or another");
	attempts->unknown = true;
	return give_up(attempts, CAIRN_UNKNOWN);
}

static int retry_remove(struct cairn_store *store, struct cairn_call *call, const char *key,
			const struct cairn_delete_options *options)
{
	struct attempts attempts;
	attempts_begin(&attempts, store, call, key);
	for (;;) {
		attempt_begin(&attempts);
		int status = attempt_end(&attempts,
					 cairn_store_delete(store->below, call, key, options));
		if (!status)
			return CAIRN_OK;
		if (status == CAIRN_CONFLICT && attempts.ambiguous)
			status = settle_delete(&attempts, options->if_match);
		else
			status = pause_after(&attempts, status);
		if (status)
			return status;
	}
}

static int retry_list(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		      const struct cairn_list_options *options, struct cairn_listing *ret_listing)
{
	struct attempts attempts;
	attempts_begin(&attempts, store, call, *prefix ? prefix : "the bucket");
	for (;;) {
		attempt_begin(&attempts);
		int status = attempt_end(&attempts, cairn_store_list(store->below, call, prefix,
								     options, ret_listing));
		if (!status)
			return CAIRN_OK;
		status = pause_after(&attempts, status == CAIRN_UNKNOWN ? CAIRN_TIMEOUT : status);
		if (status)
			return status;
	}
}

static int retry_prefix_exists(struct cairn_store *store, struct cairn_call *call,
			       const char *prefix)
{
	struct attempts attempts;
	attempts_begin(&attempts, store, call, *prefix ? prefix : "the bucket");
	for (;;) {
		attempt_begin(&attempts);
		int status = attempt_end(&attempts,
					 cairn_store_prefix_exists(store->below, call, prefix));
		if (is_answer(status))
			return status;
		status = pause_after(&attempts, status == CAIRN_UNKNOWN ? CAIRN_TIMEOUT : status);
		if (status)
			return status;
	}
}

static int retry_prefix_make(struct cairn_store *store, struct cairn_call *call, const char *prefix)
{
	/* Two mkdir(2) of one name cannot be told apart afterwards; two marker objects can. */
	if (store->capabilities.real_directories)
		return cairn_store_prefix_make(store->below, call, prefix);
	const struct cairn_put_options options = { .if_absent = true };
	struct cairn_version version;
	return retry_put(store, call, prefix, (struct cairn_slice){ 0 }, &options, &version);
}

static int retry_prefix_remove(struct cairn_store *store, struct cairn_call *call,
			       const char *prefix)
{
	/* Once: a second one could remove another's lock (DESIGN "The tree"). */
	return cairn_store_prefix_remove(store->below, call, prefix);
}

static int retry_space(struct cairn_store *store, struct cairn_call *call,
		       struct cairn_space *ret_space)
{
	return cairn_store_space(store->below, call, ret_space);
}

static void retry_free(struct cairn_store *store)
{
	free(store);
}

static const struct cairn_store_ops retry_ops = {
	.get = retry_get,
	.put = retry_put,
	.remove = retry_remove,
	.list = retry_list,
	.prefix_exists = retry_prefix_exists,
	.prefix_make = retry_prefix_make,
	.prefix_remove = retry_prefix_remove,
	.space = retry_space,
	.free = retry_free,
};

int cairn_retry_store_new(struct cairn_store *below, struct cairn_store **ret_store)
{
	struct retry_store *retry = calloc(1, sizeof(*retry));
	if (!retry)
		return CAIRN_NO_MEMORY;
	cairn_store_stack(&retry->store, &retry_ops, below);
	*ret_store = &retry->store;
	return CAIRN_OK;
}
