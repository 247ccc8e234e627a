/* SPDX-License-Identifier: MIT */
#ifndef TEST_BUCKET_H
#define TEST_BUCKET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cairn/cairn.h>

/* A bucket for a test: what is under test goes through `store`, the other side through `backend`.
 */
struct bucket {
	struct cairn_store *store; /* retry over trace over fault over the backend; owned */
	struct cairn_store *bare;  /* the trace store: no retries */
	struct cairn_store *fault;
	struct cairn_store *backend; /* memory or a directory */
	struct cairn_call call;
	char directory[64]; /* "" in memory */

	unsigned runs; /* of the hooks so far */

	/* Private: bucket_hook_puts. */
	void (*before_put)(struct bucket *bucket);
	void (*after_put)(struct bucket *bucket);
	unsigned hooked;
	struct cairn_store_ops ops;
	const struct cairn_store_ops *hooked_ops;
};

int bucket_setup_memory(void **state);
int bucket_setup_directory(void **state);
int bucket_teardown(void **state);

/* The test on both kinds of bucket, in a table of tests. */
#define BUCKET_TESTS(test)                                                                         \
	{ #test " (memory)", test, bucket_setup_memory, bucket_teardown, NULL },                   \
	{                                                                                          \
#test " (directory)", test, bucket_setup_directory, bucket_teardown, NULL          \
	}

/* What somebody else does to the bucket, past all faults. */
void bucket_put(struct bucket *bucket, const char *key, const char *text);
void bucket_delete(struct bucket *bucket, const char *key);
void bucket_etag(struct bucket *bucket, const char *key, char ret_etag[CAIRN_ETAG_SIZE]);

/* The object is there with exactly these bytes; or is absent (text NULL). */
void bucket_assert(struct bucket *bucket, const char *key, const char *text);

/* `times` (0: all) calls of `operation` are answered with `status`; `act`: and happen all the same.
 */
void bucket_fail(struct bucket *bucket, enum cairn_operation operation, unsigned times, int status,
		 bool act);

/* Forget all faults. */
void bucket_heal(struct bucket *bucket);

/*
 * Run `before` and `after` (either may be NULL) around the next `count` puts that reach the backend
 * from above; bucket->runs counts them. For tests with one thread.
 */
void bucket_hook_puts(struct bucket *bucket, unsigned count, void (*before)(struct bucket *),
		      void (*after)(struct bucket *));

/* How many calls of `operation` reached the trace store. */
uint64_t bucket_calls(struct bucket *bucket, enum cairn_operation operation);

/* A call with a deadline `microseconds` from now. */
struct cairn_call bucket_call_within(int64_t microseconds);

/* Fails the test, telling the call's error, unless `status` is `expected`. */
void assert_status_at(const char *file, int line, const struct cairn_call *call, int status,
		      int expected);
#define assert_status(call, status, expected)                                                      \
	assert_status_at(__FILE__, __LINE__, call, status, expected)

/* A transform: the integer `current` (absent: 0) and one more. `context` may count its calls. */
int transform_increment(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
			struct cairn_error *error);

/* A transform: what `context`, a string, says. */
int transform_constant(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		       struct cairn_error *error);

/* A transform that returns the status that `context` points at, without a word. */
int transform_refuse(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		     struct cairn_error *error);

#endif
