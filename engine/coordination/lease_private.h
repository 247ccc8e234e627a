/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_COORDINATION_LEASE_PRIVATE_H
#define CAIRN_COORDINATION_LEASE_PRIVATE_H

#include <pthread.h>

#include <cairn/lease.h>

struct cairn_lease {
	struct cairn_store *store;
	char *key;			 /* owned */
	char *holder;			 /* owned; UTF-8 */
	struct cairn_buffer holder_json; /* owned; as the document has it */
	int64_t ttl;
	int64_t epoch;

	/*
	 * Calls take turns: `busy` stands for the length of one, its requests included. `lock` is
	 * held for moments only, so that no accessor waits for the network. What follows it is
	 * changed under the lock by whoever has the turn, who may read it without.
	 */
	pthread_mutex_t lock;
	pthread_cond_t turn_over;
	bool busy;
	bool ended;
	int64_t deadline;	   /* microseconds since 1970 */
	int64_t own_deadline;	   /* CLOCK_BOOTTIME microseconds */
	struct cairn_buffer state; /* owned; canonical */

	/* Of whoever has the turn, without the lock. */
	char etag[CAIRN_ETAG_SIZE]; /* ""; not known for sure, read before writing */
	int64_t release_sent;	    /* deadline_at of a release whose outcome is open, or 0 */
};

/* A handle that stands for no period yet, for its caller alone. `holder` NULL: a random one. */
int cairn_lease_new(struct cairn_store *store, struct cairn_call *call, const char *key,
		    const char *holder, int64_t ttl, struct cairn_lease **ret_lease) CAIRN_MUST_USE;

/* Make the handle's state a copy of `state`. 0 or CAIRN_NO_MEMORY, described. */
int cairn_lease_take_state(struct cairn_lease *lease, struct cairn_call *call,
			   struct cairn_slice state) CAIRN_MUST_USE;

/* CLOCK_BOOTTIME in microseconds: it counts on while the machine sleeps, as the others' clocks do.
 */
int64_t cairn_clock_boot(void);

#endif
