/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_LOG_PRIVATE_H
#define CAIRN_LOG_PRIVATE_H

#include <cairn/key.h>
#include <cairn/log.h>

#include <pthread.h>
#include <stdatomic.h>

struct pending;

/* Behind a log's prefix stands log/000000000042.msgpack, or snapshots/v and what follows. */
#define LOG_PREFIX_SIZE (CAIRN_KEY_MAX - 64)

/* A commit's key with its NUL. */
#define LOG_KEY_SIZE (CAIRN_KEY_MAX + 1)

struct cairn_log {
	struct cairn_store *store;
	struct cairn_log_options options;
	char prefix[LOG_PREFIX_SIZE]; /* "" or "logs/NAME/" */
	_Atomic int64_t newest;	      /* the highest commit that was ever seen here */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t idle;  /* nothing is queued and nobody leads */
	pthread_cond_t more;  /* something was queued */
	struct pending *first;
	struct pending **last;
	size_t queued; /* events in the queue */
	bool leading;  /* one of the appenders commits for all */
	bool closed;

	/* The leader's alone. */
	int64_t tail;	     /* the highest commit known to be there; -1: not known */
	int64_t seen;	     /* cairn_clock when that was so */
	int64_t won;	     /* cairn_clock of the last win */
	int64_t duration;    /* of a put, on average, in microseconds */
	int64_t rivals;	     /* commits of others between two of ours, on average, times 16 */
	int64_t interleaved; /* commits of others since our last */
	struct cairn_buffer object; /* a commit, encoded */
};

void cairn_log_key(const struct cairn_log *log, int64_t number, char ret_key[LOG_KEY_SIZE]);

/* Note that the commit `number` was seen. */
void cairn_log_saw(struct cairn_log *log, int64_t number);

/* What the snapshots of all versions say about the commit `number`. */
struct cairn_log_snapshots {
	int64_t newest; /* the highest number of any; 0: none */
	int64_t older;	/* the highest of those that are no younger than `modified` */
	bool before;	/* there is one of number - 1 */
};

int cairn_log_snapshots(struct cairn_log *log, struct cairn_call *call, int64_t number,
			int64_t modified, struct cairn_log_snapshots *ret_snapshots) CAIRN_MUST_USE;

/* The highest commit that is listed behind `after`; 0: none. */
int cairn_log_list_tail(struct cairn_log *log, struct cairn_call *call, int64_t after,
			int64_t *ret_number) CAIRN_MUST_USE;

/* The lowest commit that is listed behind `after`; 0: none. */
int cairn_log_list_next(struct cairn_log *log, struct cairn_call *call, int64_t after,
			int64_t *ret_number) CAIRN_MUST_USE;

/* Is the commit `number` there? 0, CAIRN_NOT_FOUND, or a failure. One request. */
int cairn_log_look(struct cairn_log *log, struct cairn_call *call, int64_t number) CAIRN_MUST_USE;

#endif
