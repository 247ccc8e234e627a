/* SPDX-License-Identifier: MIT */
#include "coordination/attempts.h"

#include <stdlib.h>

/*
 * A pause is drawn from a range that starts at the time which an attempt takes and doubles with
 * each: how long another writer needs decides when it is worth to try again, be that a local file
 * or a command that makes the new value. Microseconds.
 */
#define PAUSE_RANGE_MIN ((int64_t)4000)
#define PAUSE_RANGE_MAX ((int64_t)1000000)

void cairn_attempts_begin(struct cairn_attempts *attempts, struct cairn_store *store,
			  struct cairn_call *call, const char *what, const char *key, unsigned max)
{
	*attempts = (struct cairn_attempts){
		.call = call,
		.what = what,
		.key = key,
		.outer_deadline = call->deadline,
		.max = max,
	};
	if (!call->deadline)
		call->deadline = cairn_clock() + store->timeout;
}

static int attempts_pause(struct cairn_attempts *attempts)
{
	struct cairn_call *call = attempts->call;
	int64_t range = cairn_clock() - attempts->started;
	if (range < PAUSE_RANGE_MIN)
		range = PAUSE_RANGE_MIN;
	for (unsigned i = 2; i < attempts->made && range < PAUSE_RANGE_MAX; i++)
		range *= 2;
	if (range > PAUSE_RANGE_MAX)
		range = PAUSE_RANGE_MAX;
	/* Whoever collided must not meet again. */
	int64_t pause = (int64_t)arc4random_uniform((uint32_t)range);
	int status = cairn_call_sleep(call, cairn_clock() + pause);
	if (status == CAIRN_TIMEOUT)
		return cairn_error_set(&call->error, CAIRN_BUSY,
				       "%s %s: still conflicting with other writers at the "
				       "deadline, after %u attempts; try again",
				       attempts->what, attempts->key, attempts->made);
	return status;
}

int cairn_attempts_next(struct cairn_attempts *attempts)
{
	attempts->again = false;
	if (attempts->made == attempts->max)
		return cairn_error_set(&attempts->call->error, CAIRN_BUSY,
				       "%s %s: kept conflicting with other writers for %u "
				       "attempts; try again",
				       attempts->what, attempts->key, attempts->max);
	if (attempts->made >= 2) {
		int status = attempts_pause(attempts);
		if (status)
			return status;
	}
	attempts->made++;
	attempts->started = cairn_clock();
	return CAIRN_OK;
}

int cairn_attempts_answer(struct cairn_attempts *attempts, int status)
{
	attempts->again = status == CAIRN_EXISTS || status == CAIRN_CONFLICT ||
			  status == CAIRN_BUSY;
	return status;
}

void cairn_attempts_end(struct cairn_attempts *attempts)
{
	attempts->call->deadline = attempts->outer_deadline;
}
