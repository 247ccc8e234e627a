/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_LOG_H
#define CAIRN_LOG_H

#include <cairn/commit.h>
#include <cairn/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A log of a bucket: the root log or a named one. Its commits are numbered from 1 without a gap;
 * whoever puts the next number first has it. Thread-safe: appends of several threads share commits.
 */
struct cairn_log;

/*
 * A function of the caller's that looks at an event again, once for each commit that others won
 * before it, in their order. It leaves *ret_event, which is `event`, as it is, or points its fields
 * at other bytes, which are copied when it returns, or rejects the event by returning a status
 * (usually CAIRN_ABORTED) with the reason in `error`. It may be called in another appender's thread.
 */
typedef int (*cairn_revalidate)(void *context, const struct cairn_event *event,
				const struct cairn_commit *interleaved,
				struct cairn_event *ret_event, struct cairn_error *error);

/* The zero value is the default. */
struct cairn_log_options {
	size_t max_events_per_commit; /* of different appends that are merged; 0: 1,000 */
	int64_t max_batch_wait;       /* microseconds to wait for more events, at most 10 s; 0: none */
	unsigned max_commit_attempts; /* 0: until the append's deadline */
	int64_t tail_hint;            /* a commit that is likely there; saves listing those before it */
	cairn_revalidate revalidate;  /* NULL: events stand whatever came before them */
	void *context;
};

/*
 * A handle of the log `name` ([a-z0-9._-]+, not . or ..; NULL: the root log); nothing is asked of
 * the store, which must outlive it. options NULL: defaults. CAIRN_INVALID, CAIRN_NAME_TOO_LONG,
 * CAIRN_NO_MEMORY.
 */
CAIRN_EXPORT int cairn_log_new(struct cairn_store *store, const char *name,
			       const struct cairn_log_options *options, struct cairn_log **ret_log,
			       struct cairn_error *error) CAIRN_MUST_USE;

/* Take no more appends, and wait until those under way have ended. */
CAIRN_EXPORT void cairn_log_close(struct cairn_log *log);

/* Close and free. No other call may be under way. NULL is fine. */
CAIRN_EXPORT void cairn_log_free(struct cairn_log *log);

/*
 * Append one event; durable on return (FORMAT "log append"; Python: log.append). The call's
 * deadline (0: the store's timeout) bounds the time that races are lost; cancelled() is looked at
 * while it waits for others, and while it is put alone.
 * Returns 0, CAIRN_INVALID for a bad event or a closed log, CAIRN_TOO_BIG, what revalidate said,
 * CAIRN_BUSY when others won until the deadline or for all attempts, CAIRN_TIMEOUT (nothing was
 * appended), CAIRN_CANCELLED, CAIRN_UNKNOWN, or the store's failure.
 */
CAIRN_EXPORT int cairn_log_append(struct cairn_log *log, struct cairn_call *call,
				  const struct cairn_event *event,
				  struct cairn_sequence *ret_sequence) CAIRN_MUST_USE;

/*
 * Append `count` events in this order, all in one commit. ret_sequences has room for `count`, or is
 * NULL. As cairn_log_append; CAIRN_INVALID names the event's index. When revalidate rejected
 * some, the others are appended, and ret_sequences is written: {0, 0} for the rejected.
 */
CAIRN_EXPORT int cairn_log_append_many(struct cairn_log *log, struct cairn_call *call,
				       const struct cairn_event *events, size_t count,
				       struct cairn_sequence *ret_sequences) CAIRN_MUST_USE;

/*
 * Append the events as the very commit `number`, without revalidation. As cairn_log_append_many;
 * CAIRN_EXISTS when that number is taken, CAIRN_INVALID when it is not the next one.
 */
CAIRN_EXPORT int cairn_log_append_at(struct cairn_log *log, struct cairn_call *call, int64_t number,
				     const struct cairn_event *events, size_t count) CAIRN_MUST_USE;

/*
 * Read the commit `number` into ret_commit (initialised; what it held is released). Returns 0,
 * CAIRN_NOT_FOUND, CAIRN_CORRUPT, CAIRN_TOO_BIG, or the store's failure.
 */
CAIRN_EXPORT int cairn_log_read_commit(struct cairn_log *log, struct cairn_call *call,
				       int64_t number, struct cairn_commit *ret_commit)
	CAIRN_MUST_USE;

/*
 * The highest commit number: from the newest snapshot and a listing behind it; 0 for an empty log.
 * Two requests, where what is new fits in a page.
 */
CAIRN_EXPORT int cairn_log_current_tail(struct cairn_log *log, struct cairn_call *call,
					int64_t *ret_number) CAIRN_MUST_USE;

/* The lowest commit number that is still there; CAIRN_NOT_FOUND when there is no commit. */
CAIRN_EXPORT int cairn_log_head(struct cairn_log *log, struct cairn_call *call,
				int64_t *ret_number) CAIRN_MUST_USE;

/*
 * A place in a log, read forward. Caller's storage; one thread at a time.
 */
struct cairn_log_reader {
	struct cairn_log *log;
	int64_t after;              /* the last commit that was read */
	int64_t end_at;             /* the last one to be read; 0: no end */
	struct cairn_commit commit; /* owned: commit `after`, once one was read */
	size_t index;               /* in it, of the next event */
	bool started;               /* private: a commit was read */
	int64_t checked;            /* private: when a miss was last looked into */
};

/* Start behind the commit `after` (0: at the oldest there is), up to `end_at` (0: no end). */
CAIRN_EXPORT void cairn_log_reader_init(struct cairn_log_reader *reader, struct cairn_log *log,
					int64_t after, int64_t end_at);
CAIRN_EXPORT void cairn_log_reader_release(struct cairn_log_reader *reader);

/*
 * Read the next commit into reader->commit; its events are then the next ones. One request; at the
 * start one more where nothing is found. Returns 0; CAIRN_NOT_FOUND at the tail, or behind end_at;
 * CAIRN_LOST when the commits behind `after` were pruned, or one is missing (start again from a
 * snapshot); CAIRN_CORRUPT, naming the object; or the store's failure. After a failure the same
 * commit is tried again.
 */
CAIRN_EXPORT int cairn_log_reader_commit(struct cairn_log_reader *reader, struct cairn_call *call)
	CAIRN_MUST_USE;

/*
 * The next event and its place; ret_event's slices are good until the next call. As
 * cairn_log_reader_commit.
 */
CAIRN_EXPORT int cairn_log_reader_event(struct cairn_log_reader *reader, struct cairn_call *call,
					struct cairn_sequence *ret_sequence,
					const struct cairn_event **ret_event) CAIRN_MUST_USE;

/*
 * As cairn_log_reader_commit, but waits for the commit, looking every `poll` microseconds (0: 1 s;
 * Python: log.tail): one request a look. Waits until the call's deadline, for ever if it has none:
 * CAIRN_TIMEOUT, CAIRN_CANCELLED.
 */
CAIRN_EXPORT int cairn_log_reader_wait(struct cairn_log_reader *reader, struct cairn_call *call,
				       int64_t poll) CAIRN_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
