/* SPDX-License-Identifier: MIT */
#include "bucket.h"

#include <pthread.h>

/* A transform with something that happens in the bucket behind its back, on its first runs. */
struct interference {
	struct bucket *bucket;
	unsigned runs;		  /* of the transform so far */
	unsigned spoiled;	  /* so many first runs are interfered with */
	const char *const *texts; /* what is put then, one after the other; NULL at the end */
	bool delete;		  /* then the document is deleted */
};

static int transform_interfered(void *context, struct cairn_slice current,
				struct cairn_buffer *ret_next, struct cairn_error *error)
{
	struct interference *interference = context;
	if (interference->runs++ < interference->spoiled) {
		for (const char *const *text = interference->texts; text && *text; text++)
			bucket_put(interference->bucket, "k", *text);
		if (interference->delete)
			bucket_delete(interference->bucket, "k");
	}
	return transform_increment(NULL, current, ret_next, error);
}

/* A check that refuses negative numbers, counting its runs. */
static int check_positive(void *context, struct cairn_slice value, struct cairn_error *error)
{
	unsigned *runs = context;
	++*runs;
	if (value.size && value.data[0] == '-')
		return cairn_error_set(error, CAIRN_INVALID, "negative");
	return CAIRN_OK;
}

static int update(struct bucket *bucket, const struct cairn_doc_options *options,
		  cairn_transform transform, void *context)
{
	return cairn_doc_update(bucket->store, &bucket->call, "k", options, transform, context,
				NULL);
}

static void test_doc_replace_is_a_compare_and_swap(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_call *call = &bucket->call;
	struct cairn_version version = { 0 };
	const struct cairn_slice one = cairn_slice_of("{\"b\":1, \"a\":2}");
	const struct cairn_slice two = cairn_slice_of("2");

	assert_status(call, cairn_doc_replace(bucket->store, call, "k", NULL, one, NULL, &version),
		      CAIRN_OK);
	bucket_assert(bucket, "k", "{\"a\":2,\"b\":1}");
	assert_status(call, cairn_doc_replace(bucket->store, call, "k", NULL, two, NULL, NULL),
		      CAIRN_EXISTS);
	assert_status(call, cairn_doc_replace(bucket->store, call, "k", "other", two, NULL, NULL),
		      CAIRN_CONFLICT);
	assert_status(call,
		      cairn_doc_replace(bucket->store, call, "k", version.etag, two, NULL, NULL),
		      CAIRN_OK);
	bucket_assert(bucket, "k", "2");
	assert_status(call, cairn_doc_delete(bucket->store, call, "k"), CAIRN_OK);
	assert_status(call, cairn_doc_delete(bucket->store, call, "k"), CAIRN_OK);
	assert_status(call,
		      cairn_doc_replace(bucket->store, call, "k", version.etag, two, NULL, NULL),
		      CAIRN_CONFLICT);
	assert_status(
		call,
		cairn_doc_replace(bucket->store, call, "k", NULL, cairn_slice_of("{"), NULL, NULL),
		CAIRN_INVALID);
	bucket_assert(bucket, "k", NULL);
}

static void test_doc_get_shows_the_text_as_stored(void **state)
{
	static const char *const texts[] = {
		"{\"z\":1,\"a\": \"\xc3\xa9\"}", /* a peer's model: own order, raw UTF-8 */
		"{\"a\": \"\\ud800\", \"n\": NaN, \"i\": -Infinity, \"\\u0000\": 1e400}",
		"123456789012345678901234567890",
		" null\n",
	};
	struct bucket *bucket = *state;
	struct cairn_object object;
	cairn_object_init(&object);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		bucket_put(bucket, "k", texts[i]);
		assert_status(&bucket->call,
			      cairn_doc_get(bucket->store, &bucket->call, "k", NULL, &object),
			      CAIRN_OK);
		assert_string_equal(object.data.data, texts[i]);
	}
	cairn_object_release(&object);
	bucket_delete(bucket, "k");
	assert_status(&bucket->call,
		      cairn_doc_get(bucket->store, &bucket->call, "k", NULL, &object),
		      CAIRN_NOT_FOUND);
}

static void test_doc_that_is_no_json_is_corrupt(void **state)
{
	static const char *const texts[] = { "", "{\"a\":", "{} x", "\xef\xbb\xbf{}", "\"\xff\"" };
	struct bucket *bucket = *state;
	struct cairn_object object;
	cairn_object_init(&object);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		bucket_put(bucket, "k", texts[i]);
		assert_status(&bucket->call,
			      cairn_doc_get(bucket->store, &bucket->call, "k", NULL, &object),
			      CAIRN_CORRUPT);
		assert_non_null(strstr(bucket->call.error.text, "read document k"));
		assert_status(&bucket->call, update(bucket, NULL, transform_increment, NULL),
			      CAIRN_CORRUPT);
		bucket_assert(bucket, "k", texts[i]);
	}
	assert_int_equal(object.data.size, 0);
}

static int transform_copy(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
			  struct cairn_error *error)
{
	(void)context;
	(void)error;
	return cairn_buffer_append(ret_next, current.data, current.size);
}

static void test_doc_update_writes_canonically_and_keeps_odd_values(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_object written;
	cairn_object_init(&written);
	bucket_put(bucket, "k",
		   "{\"z\": 123456789012345678901234567890, \"n\": NaN, \"s\": \"\\uD800\", "
		   "\"e\": \"\xc3\xa9\", \"\\u0000\": 1.0}");
	const char *canonical = "{\"\\u0000\":1.0,\"e\":\"\\u00e9\",\"n\":NaN,\"s\":\"\\ud800\","
				"\"z\":123456789012345678901234567890}";

	assert_status(&bucket->call,
		      cairn_doc_update(bucket->store, &bucket->call, "k", NULL, transform_copy,
				       NULL, &written),
		      CAIRN_OK);
	bucket_assert(bucket, "k", canonical);
	assert_string_equal(written.data.data, canonical);
	char etag[CAIRN_ETAG_SIZE];
	bucket_etag(bucket, "k", etag);
	assert_string_equal(written.version.etag, etag);
	cairn_object_release(&written);
}

static void test_doc_update_of_an_absent_document_needs_create(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_doc_options options = { .create = cairn_slice_of("41") };

	assert_status(&bucket->call, update(bucket, NULL, transform_increment, NULL),
		      CAIRN_NOT_FOUND);
	bucket_assert(bucket, "k", NULL);
	assert_status(&bucket->call, update(bucket, &options, transform_increment, NULL), CAIRN_OK);
	bucket_assert(bucket, "k", "42");
	assert_status(&bucket->call, update(bucket, &options, transform_increment, NULL), CAIRN_OK);
	bucket_assert(bucket, "k", "43");
}

static void test_doc_update_repeats_after_a_conflict(void **state)
{
	static const char *const texts[] = { "10", NULL };
	struct bucket *bucket = *state;
	bucket_put(bucket, "k", "1");
	struct interference interference = { .bucket = bucket, .spoiled = 1, .texts = texts };

	assert_status(&bucket->call, update(bucket, NULL, transform_interfered, &interference),
		      CAIRN_OK);
	assert_int_equal(interference.runs, 2);
	bucket_assert(bucket, "k", "11");
}

static void test_doc_update_meets_a_deletion(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_doc_options create = { .create = cairn_slice_of("100") };
	struct interference interference = { .bucket = bucket, .spoiled = 1, .delete = true };

	bucket_put(bucket, "k", "1");
	assert_status(&bucket->call, update(bucket, NULL, transform_interfered, &interference),
		      CAIRN_NOT_FOUND);
	interference.runs = 0;
	bucket_put(bucket, "k", "1");
	assert_status(&bucket->call, update(bucket, &create, transform_interfered, &interference),
		      CAIRN_OK);
	bucket_assert(bucket, "k", "101");
}

static void test_doc_update_gives_up_after_its_attempts(void **state)
{
	/* Never the content that was read: its etag would come back. */
	static const char *const texts[] = { "10", "20", "30", NULL };
	struct bucket *bucket = *state;
	const struct cairn_doc_options three = { .max_attempts = 3 };
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 0, CAIRN_CONFLICT, false);
	bucket_put(bucket, "k", "1");
	struct interference interference = { .bucket = bucket, .spoiled = 100, .texts = texts };

	assert_status(&bucket->call, update(bucket, &three, transform_interfered, &interference),
		      CAIRN_BUSY);
	assert_int_equal(interference.runs, 3);
	interference.runs = 0;
	assert_status(&bucket->call, update(bucket, NULL, transform_interfered, &interference),
		      CAIRN_BUSY);
	assert_int_equal(interference.runs, 10);
	bucket_assert(bucket, "k", "30");
}

/* FORMAT hazard 5: the same etag is the same content, so the swap is right, whoever wrote it. */
static void test_doc_update_over_content_that_came_back(void **state)
{
	static const char *const texts[] = { "2", "3", "1", NULL };
	struct bucket *bucket = *state;
	bucket_put(bucket, "k", "1");
	struct interference interference = { .bucket = bucket, .spoiled = 1, .texts = texts };

	assert_status(&bucket->call, update(bucket, NULL, transform_interfered, &interference),
		      CAIRN_OK);
	bucket_assert(bucket, "k", "2");
}

static void test_doc_update_ends_with_what_the_transform_says(void **state)
{
	static const int statuses[] = { CAIRN_ABORTED, CAIRN_INVALID, CAIRN_CONFLICT, CAIRN_BUSY,
					CAIRN_NOT_FOUND };
	struct bucket *bucket = *state;
	bucket_put(bucket, "k", "1");

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		int status = statuses[i];
		assert_status(&bucket->call, update(bucket, NULL, transform_refuse, &status),
			      statuses[i]);
		assert_int_equal(bucket->call.error.status, statuses[i]);
		assert_non_null(strstr(bucket->call.error.text, "update document k"));
	}
	char garbage[] = "no json";
	assert_status(&bucket->call, update(bucket, NULL, transform_constant, garbage),
		      CAIRN_INVALID);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 0);
	bucket_assert(bucket, "k", "1");
}

static void test_doc_check_runs_on_read_and_before_write(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_call *call = &bucket->call;
	unsigned runs = 0;
	const struct cairn_check check = { .check = check_positive, .context = &runs };
	const struct cairn_doc_options options = { .check = &check };
	struct cairn_object object;
	cairn_object_init(&object);
	char negative[] = "-1";

	bucket_put(bucket, "k", "1");
	assert_status(call, cairn_doc_get(bucket->store, call, "k", &check, &object), CAIRN_OK);
	assert_int_equal(runs, 1);
	assert_int_equal(call->error.status, CAIRN_OK);
	assert_status(call, update(bucket, &options, transform_increment, NULL), CAIRN_OK);
	assert_int_equal(runs, 3);
	assert_status(call, update(bucket, &options, transform_constant, negative), CAIRN_INVALID);
	assert_string_equal(call->error.text, "negative");
	assert_status(call,
		      cairn_doc_replace(bucket->store, call, "n", NULL, cairn_slice_of("-5"),
					&check, NULL),
		      CAIRN_INVALID);
	bucket_assert(bucket, "k", "2");
	bucket_assert(bucket, "n", NULL);
	bucket_put(bucket, "k", "-1");
	assert_status(call, cairn_doc_get(bucket->store, call, "k", &check, &object),
		      CAIRN_INVALID);
	assert_string_equal(object.data.data, "1");
	assert_status(call, update(bucket, &options, transform_increment, NULL), CAIRN_INVALID);
	bucket_assert(bucket, "k", "-1");
	cairn_object_release(&object);
}

static void test_doc_reserved_keys_are_refused(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_call *call = &bucket->call;
	struct cairn_object object;
	cairn_object_init(&object);
	const struct cairn_slice one = cairn_slice_of("1");

	assert_status(call, cairn_doc_get(bucket->store, call, "log/x", NULL, &object),
		      CAIRN_INVALID);
	assert_status(call, cairn_doc_replace(bucket->store, call, "log/x", NULL, one, NULL, NULL),
		      CAIRN_INVALID);
	assert_status(call,
		      cairn_doc_update(bucket->store, call, "log/x", NULL, transform_increment,
				       NULL, NULL),
		      CAIRN_INVALID);
	assert_status(call, cairn_doc_delete(bucket->store, call, "log/x"), CAIRN_INVALID);
}

/* FORMAT hazard 1: a counter is counted once. */
static void test_doc_update_whose_answer_was_lost_counts_once(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_doc_options create = { .create = cairn_slice_of("0") };

	bucket_fail(bucket, CAIRN_OPERATION_PUT, 2, CAIRN_UNKNOWN, true);
	assert_status(&bucket->call, update(bucket, &create, transform_increment, NULL), CAIRN_OK);
	bucket_assert(bucket, "k", "1");
	bucket_heal(bucket);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 2, CAIRN_UNKNOWN, true);
	assert_status(&bucket->call, update(bucket, &create, transform_increment, NULL), CAIRN_OK);
	bucket_assert(bucket, "k", "2");
	bucket_heal(bucket);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 2, CAIRN_UNKNOWN, false);
	assert_status(&bucket->call, update(bucket, &create, transform_increment, NULL), CAIRN_OK);
	bucket_assert(bucket, "k", "3");
}

static void test_doc_update_of_unknown_outcome_is_not_repeated(void **state)
{
	struct bucket *bucket = *state;
	unsigned runs = 0;
	bucket_put(bucket, "k", "1");
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 0, CAIRN_UNKNOWN, true);

	assert_status(&bucket->call,
		      cairn_doc_update(bucket->bare, &bucket->call, "k", NULL, transform_increment,
				       &runs, NULL),
		      CAIRN_UNKNOWN);
	assert_int_equal(runs, 1);
	bucket_assert(bucket, "k", "2");
}

#define WRITERS 4
#define WRITES	50

struct writer {
	struct bucket *bucket;
	pthread_t thread;
	unsigned successes;
	int failure;
};

static void *count_up(void *context)
{
	struct writer *writer = context;
	const struct cairn_doc_options options = { .create = cairn_slice_of("0"),
						   .max_attempts = 1000 };
	for (int i = 0; i < WRITES; i++) {
		struct cairn_call call = { 0 };
		int status = cairn_doc_update(writer->bucket->store, &call, "k", &options,
					      transform_increment, NULL, NULL);
		if (status)
			writer->failure = status;
		else
			writer->successes++;
	}
	return NULL;
}

static void test_doc_updates_of_many_threads_are_all_kept(void **state)
{
	struct bucket *bucket = *state;
	struct writer writers[WRITERS];
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .bucket = bucket };
		assert_int_equal(pthread_create(&writers[i].thread, NULL, count_up, &writers[i]),
				 0);
	}
	unsigned successes = 0;
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		assert_int_equal(writers[i].failure, CAIRN_OK);
		successes += writers[i].successes;
	}
	assert_int_equal(successes, WRITERS * WRITES);
	bucket_assert(bucket, "k", "200");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BUCKET_TESTS(test_doc_replace_is_a_compare_and_swap),
		BUCKET_TESTS(test_doc_get_shows_the_text_as_stored),
		BUCKET_TESTS(test_doc_that_is_no_json_is_corrupt),
		BUCKET_TESTS(test_doc_update_writes_canonically_and_keeps_odd_values),
		BUCKET_TESTS(test_doc_update_of_an_absent_document_needs_create),
		BUCKET_TESTS(test_doc_update_repeats_after_a_conflict),
		BUCKET_TESTS(test_doc_update_meets_a_deletion),
		BUCKET_TESTS(test_doc_update_gives_up_after_its_attempts),
		BUCKET_TESTS(test_doc_update_over_content_that_came_back),
		BUCKET_TESTS(test_doc_update_ends_with_what_the_transform_says),
		BUCKET_TESTS(test_doc_check_runs_on_read_and_before_write),
		BUCKET_TESTS(test_doc_reserved_keys_are_refused),
		BUCKET_TESTS(test_doc_update_whose_answer_was_lost_counts_once),
		BUCKET_TESTS(test_doc_update_of_unknown_outcome_is_not_repeated),
		BUCKET_TESTS(test_doc_updates_of_many_threads_are_all_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
