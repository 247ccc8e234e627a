/* SPDX-License-Identifier: MIT */
#ifndef TEST_LOG_STEPS_H
#define TEST_LOG_STEPS_H

#include "bucket.h"

#include "log/log_private.h"

/* A log of the bucket, over `store`. */
struct cairn_log *log_open(struct cairn_store *store, const char *name,
			   const struct cairn_log_options *options);

/* The event {"id":ID} of a type, as an appender writes it; good until its storage goes. */
struct test_event {
	char payload[64];
	struct cairn_event event;
};
struct cairn_event *event_of(struct test_event *storage, const char *type, int id);

/* Append the event; returns the status. */
int append_id(struct cairn_log *log, struct cairn_call *call, const char *type, int id,
	      struct cairn_sequence *ret_sequence);

/* Append the event, which must work; its commit. */
int64_t append_good(struct cairn_log *log, int id);

/* Append commits of one event until the tail is `tail`. */
void fill_to(struct cairn_log *log, int64_t tail);

/* Read the whole log past all faults: dense, ids each once from 0 to count - 1. */
void assert_each_once(struct bucket *bucket, const char *name, int count);

/* The ids of a commit, as "1 2 3"; "" when it is absent. */
void commit_ids(struct bucket *bucket, const char *name, int64_t number, char ret_text[256]);
#define assert_commit(bucket, name, number, text)                                                  \
	do {                                                                                       \
		char ids[256];                                                                     \
		commit_ids(bucket, name, number, ids);                                             \
		assert_string_equal(ids, text);                                                    \
	} while (0)

/* Snapshot and prune the root log through `number`, as a peer does. */
void snapshot_at(struct bucket *bucket, int64_t number);
void prune_to(struct bucket *bucket, int64_t number);

/* As if the log had last been used 3 s ago. */
void sleep_long(struct cairn_log *log);

#endif
