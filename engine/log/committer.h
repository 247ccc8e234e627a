/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_LOG_COMMITTER_H
#define CAIRN_LOG_COMMITTER_H

#include "log/log_private.h"

/* One event of an append; kept apart only where it may have to be looked at again. */
struct item {
	struct cairn_event event;
	char *memory; /* owned: the bytes of an event that revalidation changed, or NULL */
	bool rejected;
};

/* One append that waits to be committed. It lies in its caller's stack, who waits for it. */
struct pending {
	struct pending *next;
	pthread_cond_t woken; /* it is done, or may lead */
	size_t count;	      /* events that are to be committed */
	size_t given;	      /* … and that were given */
	struct item *items;   /* owned: `given`; NULL without revalidation */
	struct cairn_buffer encoded;
	int64_t at;	  /* the only number that will do; 0: any */
	int64_t deadline; /* cairn_clock */
	struct cairn_call *call;

	/* Under the log's lock until `taken`, then the leader's until `done`. */
	bool taken;
	bool done;
	int status;
	struct cairn_error error; /* of status */
	struct cairn_sequence first;
};

/* Appends that are put as one commit, by the thread that leads. */
struct batch {
	struct pending *first;
	struct cairn_call call; /* of all its requests */
	struct pending *lone;	/* the only one, whose cancelled() counts */
	unsigned attempts;
	unsigned losses;
};

/*
 * Commit the batch or fail it: each of its members ends with its status. Only the leader calls it,
 * without the lock.
 */
void cairn_batch_commit(struct cairn_log *log, struct batch *batch);

/* End `pending`, which is in no batch any more, and wake its caller; it may be gone on return. */
void cairn_pending_end(struct cairn_log *log, struct pending *pending, int status,
		       const struct cairn_error *error);

/*
 * Let the log's hook look at the members of the batch, now that `commit` came before them. Members
 * without events left end.
 */
void cairn_batch_revalidate(struct cairn_log *log, struct batch *batch,
			    const struct cairn_commit *commit);

/* Make pending->encoded of the events that were not rejected. Sets *ret_index on failure. */
int cairn_pending_encode(struct pending *pending, const struct cairn_event *events,
			 size_t *ret_index, struct cairn_error *error) CAIRN_MUST_USE;

#endif
