/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_COORDINATION_ATTEMPTS_H
#define CAIRN_COORDINATION_ATTEMPTS_H

#include <stdbool.h>
#include <stdint.h>

#include <cairn/store.h>

/*
 * A bounded loop of attempts against other writers. All its requests and pauses share one
 * deadline: the caller's, or the store's timeout counted from the beginning.
 *
 *	cairn_attempts_begin(&attempts, store, call, "claim", key, 8);
 *	do {
 *		status = cairn_attempts_next(&attempts);
 *		if (!status)
 *			status = one_attempt(…, &attempts);
 *	} while (attempts.again);
 *	cairn_attempts_end(&attempts);
 */
struct cairn_attempts {
	struct cairn_call *call;
	const char *what; /* for messages: what is being done */
	const char *key;
	int64_t outer_deadline; /* call->deadline as the caller had it */
	int64_t started;	/* cairn_clock of the attempt under way */
	unsigned made;
	unsigned max;
	bool again; /* the attempt lost a race: make another */
};

void cairn_attempts_begin(struct cairn_attempts *attempts, struct cairn_store *store,
			  struct cairn_call *call, const char *what, const char *key, unsigned max);

/*
 * Start the next attempt: the second at once, later ones after a pause that grows and is jittered.
 * 0, CAIRN_CANCELLED, or CAIRN_BUSY when the attempts or the time are used up.
 */
int cairn_attempts_next(struct cairn_attempts *attempts) CAIRN_MUST_USE;

/* Note what a conditional put answered: a lost race asks for another attempt. Returns `status`. */
int cairn_attempts_answer(struct cairn_attempts *attempts, int status);

/* Give the call its own deadline back. */
void cairn_attempts_end(struct cairn_attempts *attempts);

#endif
