/* SPDX-License-Identifier: MIT */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

/*
 * One suite for every store. A target says how to open a bucket; what a case may expect is read
 * from the store's capabilities alone.
 */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cairn/store.h>

struct conformance_target {
	const char *name;
	void *context;
	/* Open a new, empty bucket: the bare store. */
	int (*make)(void *context, struct cairn_store **ret_store);
	/* Open the bucket of the last make once more, from any process; NULL: it cannot be. */
	int (*reopen)(void *context, struct cairn_store **ret_store);
	/* The last make's bucket is not needed any more; its stores are freed. May be NULL. */
	void (*discard)(void *context);
	/* What the answers to a put and to a get of one object may differ by, in microseconds. */
	int64_t clock_slack;
	/* The server keeps objects as files (S3.md): what no folder holds beside others is left
	 * out. */
	bool folder;
};

/* Run every case on the bare store and through retry, trace and fault. Returns what failed. */
int conformance_run(const struct conformance_target *target);

/* What each case gets as *state. */
struct bucket {
	const struct conformance_target *target;
	bool stacked;
	struct cairn_store *bare;  /* owned by `store` */
	struct cairn_store *fault; /* a fault store over trace over bare; NULL when not stacked */
	struct cairn_store *store; /* what the case calls: retry over fault, or bare */
	struct cairn_call call;
};

/* A retry store over fault over trace over a new bucket; `local` as the bare store would have it.
 */
void bucket_stack(struct bucket *bucket, bool local);
void bucket_close(struct bucket *bucket);

/* Put a text; the store's status. `version` may be NULL. */
int put_text(struct bucket *bucket, const char *key, const char *text,
	     const struct cairn_put_options *options, struct cairn_version *version);

/* Put a text that must be written. */
void must_put(struct bucket *bucket, const char *key, const char *text);

/* The object must hold this text; NULL: must be absent. */
void expect_text(struct bucket *bucket, const char *key, const char *text);

/* Fail with the call's message unless `status` is `expected`. */
void expect_status(const struct bucket *bucket, int status, int expected, const char *what);

/* The times of one object as two answers tell them. */
void expect_time(const struct bucket *bucket, int64_t one, int64_t other);

/* Can the bucket not hold this key beside others, or at all, as its server keeps files? */
bool folder_cannot(const struct bucket *bucket, const char *key);

/* The listing's keys, each followed by a space, must read as `expected`. */
void expect_keys(const struct cairn_listing *listing, const char *expected);

/* The cases, by subject. Each is ended by a case without a function. */
extern const struct CMUnitTest object_cases[];
extern const struct CMUnitTest key_cases[];
extern const struct CMUnitTest listing_cases[];
extern const struct CMUnitTest prefix_cases[];
extern const struct CMUnitTest race_cases[];
extern const struct CMUnitTest fault_cases[];

#endif
