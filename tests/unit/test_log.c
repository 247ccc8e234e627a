/* SPDX-License-Identifier: MIT */
#include "log_steps.h"

#include <pthread.h>

static void test_log_names(void **state)
{
	struct bucket *bucket = *state;
	static const char *const wrong[] = { "", ".", "..", "a/b", "A", "a\n", "a b", "\xc3\xa9" };
	static const char *const good[] = { "orders", "_tx", "a.b-c_9" };
	struct cairn_log *log;
	struct cairn_error error;
	char longer[1100];
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(cairn_log_new(bucket->store, wrong[i], NULL, &log, &error),
				 CAIRN_INVALID);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		char key[64];
		log = log_open(bucket->store, good[i], NULL);
		assert_int_equal(append_good(log, 0), 1);
		cairn_log_free(log);
		(void)snprintf(key, sizeof(key), "logs/%s/log/000000000001.msgpack", good[i]);
		bucket_delete(bucket, key);
	}
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(cairn_log_new(bucket->store, longer, NULL, &log, &error),
			 CAIRN_NAME_TOO_LONG);
}

static void test_log_options_out_of_range_are_refused(void **state)
{
	struct bucket *bucket = *state;
	static const struct cairn_log_options wrong[] = {
		{ .max_events_per_commit = CAIRN_COMMIT_EVENTS_MAX + 1 },
		{ .max_batch_wait = -1 },
		{ .max_batch_wait = 10000001 },
		{ .tail_hint = -1 },
		{ .tail_hint = CAIRN_COMMIT_NUMBER_MAX },
	};
	struct cairn_log *log;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(cairn_log_new(bucket->store, NULL, &wrong[i], &log, NULL),
				 CAIRN_INVALID);
}

static void test_log_reads_events_in_order_with_their_places(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, "orders", NULL);
	struct test_event storage[3];
	struct cairn_event events[3];
	struct cairn_sequence sequences[3], sequence;
	const struct cairn_event *event;
	struct cairn_log_reader reader;
	for (int i = 0; i < 3; i++)
		events[i] = *event_of(&storage[i], "t", i);
	assert_status(&bucket->call,
		      cairn_log_append_many(log, &bucket->call, events, 3, sequences), CAIRN_OK);
	assert_int_equal(append_good(log, 3), 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sequences[i].commit, 1);
		assert_int_equal(sequences[i].index, i);
	}

	cairn_log_reader_init(&reader, log, 0, 0);
	for (int i = 0; i < 4; i++) {
		assert_status(&bucket->call,
			      cairn_log_reader_event(&reader, &bucket->call, &sequence, &event),
			      CAIRN_OK);
		assert_int_equal(sequence.commit, i < 3 ? 1 : 2);
		assert_int_equal(sequence.index, i < 3 ? i : 0);
		assert_memory_equal(event->event_type.data, "t", 1);
		assert_memory_equal(event->metadata.data, "{}", 2);
	}
	assert_status(&bucket->call,
		      cairn_log_reader_event(&reader, &bucket->call, &sequence, &event),
		      CAIRN_NOT_FOUND);
	/* What is appended later is found by the same reader. */
	assert_int_equal(append_good(log, 4), 3);
	assert_status(&bucket->call,
		      cairn_log_reader_event(&reader, &bucket->call, &sequence, &event), CAIRN_OK);
	assert_int_equal(sequence.commit, 3);
	cairn_log_reader_release(&reader);
	cairn_log_free(log);
}

static void test_log_reader_keeps_to_after_and_end_at(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct cairn_log_reader reader;
	fill_to(log, 5);
	cairn_log_reader_init(&reader, log, 2, 4);
	assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call), CAIRN_OK);
	assert_int_equal(reader.commit.number, 3);
	assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call), CAIRN_OK);
	assert_int_equal(reader.commit.number, 4);
	assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call),
		      CAIRN_NOT_FOUND);
	cairn_log_reader_release(&reader);
	cairn_log_free(log);
}

static void test_log_of_nothing_is_empty(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct cairn_log_reader reader;
	int64_t number = -1;
	cairn_log_reader_init(&reader, log, 0, 0);
	assert_status(&bucket->call, cairn_log_current_tail(log, &bucket->call, &number), CAIRN_OK);
	assert_int_equal(number, 0);
	assert_status(&bucket->call, cairn_log_head(log, &bucket->call, &number), CAIRN_NOT_FOUND);
	assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call),
		      CAIRN_NOT_FOUND);
	cairn_log_reader_release(&reader);
	cairn_log_free(log);
}

static void test_log_tail_and_head_see_commits_alone(void **state)
{
	struct bucket *bucket = *state;
	static const char *const strays[] = {
		"log/000000000077.msgpackx",   "log/0000000000078.msgpack",
		"log/99999999999.msgpack",     "log/nested/000000000099.msgpack",
		"log/x000000000099.msgpack",   "snapshots/v1/000000000099.sqlite-journal",
		"snapshots/v1/999999999999",   "snapshots/v1/00000000000x.sqlite",
		"log/000000000000.msgpack.gz",
	};
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	int64_t number = 0;
	fill_to(log, 3);
	for (size_t i = 0; i < sizeof(strays) / sizeof(strays[0]); i++)
		bucket_put(bucket, strays[i], "x");
	assert_status(&bucket->call, cairn_log_current_tail(log, &bucket->call, &number), CAIRN_OK);
	assert_int_equal(number, 3);
	prune_to(bucket, 1);
	assert_status(&bucket->call, cairn_log_head(log, &bucket->call, &number), CAIRN_OK);
	assert_int_equal(number, 2);
	cairn_log_free(log);
}

static void test_log_tail_is_the_newest_snapshots_after_a_prune(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	int64_t number = 0;
	fill_to(log, 4);
	bucket_put(bucket, "snapshots/v9/000000000002.sqlite", "x");
	snapshot_at(bucket, 4);
	prune_to(bucket, 4);
	uint64_t before = bucket_calls(bucket, CAIRN_OPERATION_LIST);
	assert_status(&bucket->call, cairn_log_current_tail(log, &bucket->call, &number), CAIRN_OK);
	assert_int_equal(number, 4);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_LIST) - before, 2);
	cairn_log_free(log);
	/* A cold start goes on behind it. */
	log = log_open(bucket->store, NULL, NULL);
	assert_int_equal(append_good(log, 0), 5);
	cairn_log_free(log);
}

static void test_log_corrupt_in_the_middle_is_read_up_to_there(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct cairn_log_reader reader;
	fill_to(log, 4);
	bucket_put(bucket, "log/000000000003.msgpack", "\x83\xa6number");
	cairn_log_reader_init(&reader, log, 0, 0);
	assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call), CAIRN_OK);
	assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call), CAIRN_OK);
	/* Nothing skips it. */
	for (int i = 0; i < 2; i++) {
		assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call),
			      CAIRN_CORRUPT);
		assert_non_null(strstr(bucket->call.error.text, "log/000000000003.msgpack"));
		assert_int_equal(reader.after, 2);
	}
	cairn_log_reader_release(&reader);
	cairn_log_free(log);
}

static void test_log_commit_under_another_number_is_corrupt(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct cairn_object object;
	struct cairn_commit commit;
	cairn_object_init(&object);
	cairn_commit_init(&commit);
	fill_to(log, 1);
	assert_status(&bucket->call,
		      cairn_store_get(bucket->store, &bucket->call, "log/000000000001.msgpack",
				      NULL, &object),
		      CAIRN_OK);
	assert_status(&bucket->call,
		      cairn_store_put(bucket->store, &bucket->call, "log/000000000002.msgpack",
				      cairn_buffer_slice(&object.data), NULL, NULL),
		      CAIRN_OK);
	assert_status(&bucket->call, cairn_log_read_commit(log, &bucket->call, 2, &commit),
		      CAIRN_CORRUPT);
	cairn_object_release(&object);
	cairn_commit_release(&commit);
	cairn_log_free(log);
}

static void test_log_reader_after_a_prune(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *writer = log_open(bucket->store, NULL, NULL);
	fill_to(writer, 6);
	prune_to(bucket, 4);
	static const struct {
		int64_t after;
		int status;
		int64_t number;
	} cases[] = { { 0, CAIRN_OK, 5 },
		      { 4, CAIRN_OK, 5 },
		      { 2, CAIRN_LOST, 0 },
		      { 6, CAIRN_NOT_FOUND, 0 } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cairn_log *log = log_open(bucket->store, NULL, NULL);
		struct cairn_log_reader reader;
		cairn_log_reader_init(&reader, log, cases[i].after, 0);
		assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call),
			      cases[i].status);
		if (cases[i].number)
			assert_int_equal(reader.commit.number, cases[i].number);
		cairn_log_reader_release(&reader);
		cairn_log_free(log);
	}
	cairn_log_free(writer);
}

static void test_log_reader_tells_a_missing_commit_from_the_tail(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct cairn_log_reader reader;
	fill_to(log, 4);
	bucket_delete(bucket, "log/000000000003.msgpack");
	cairn_log_reader_init(&reader, log, 0, 0);
	assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call), CAIRN_OK);
	assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call), CAIRN_OK);
	assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call), CAIRN_LOST);
	assert_non_null(strstr(bucket->call.error.text, "3 to 3"));
	cairn_log_reader_release(&reader);
	cairn_log_free(log);
}

struct late_writer {
	struct cairn_log *log;
	int64_t number;
};

static void *write_late(void *context)
{
	struct late_writer *late = context;
	late->number = append_good(late->log, 7);
	return NULL;
}

static void test_log_tail_waits_for_what_another_appends(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct late_writer late = { .log = log_open(bucket->store, NULL, NULL) };
	struct cairn_log_reader reader;
	struct cairn_call call = bucket_call_within(60 * 1000000);
	pthread_t thread;
	cairn_log_reader_init(&reader, log, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, write_late, &late), 0);
	assert_status(&call, cairn_log_reader_wait(&reader, &call, 1000), CAIRN_OK);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(reader.commit.number, late.number);
	cairn_log_reader_release(&reader);
	cairn_log_free(late.log);
	cairn_log_free(log);
}

static bool say_cancelled(void *context)
{
	(void)context;
	return true;
}

static void test_log_tail_ends_at_deadline_end_and_cancel(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct cairn_log_reader reader;
	fill_to(log, 1);
	cairn_log_reader_init(&reader, log, 1, 0);
	struct cairn_call call = bucket_call_within(20000);
	int64_t deadline = call.deadline;
	assert_status(&call, cairn_log_reader_wait(&reader, &call, 5000), CAIRN_TIMEOUT);
	assert_int_equal(call.deadline, deadline);
	/* In the steady state a look is one request: no listing but the first. */
	assert_int_equal(reader.started, false);
	call = (struct cairn_call){ .cancelled = say_cancelled };
	assert_int_equal(cairn_log_reader_wait(&reader, &call, 5000), CAIRN_CANCELLED);
	cairn_log_reader_release(&reader);
	cairn_log_reader_init(&reader, log, 0, 1);
	call = (struct cairn_call){ 0 };
	assert_status(&call, cairn_log_reader_wait(&reader, &call, 5000), CAIRN_OK);
	assert_status(&call, cairn_log_reader_wait(&reader, &call, 5000), CAIRN_NOT_FOUND);
	cairn_log_reader_release(&reader);
	cairn_log_free(log);
}

static void test_log_tail_looks_once_a_poll(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_log *log = log_open(bucket->store, NULL, NULL);
	struct cairn_log_reader reader;
	fill_to(log, 1);
	cairn_log_reader_init(&reader, log, 0, 0);
	assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call), CAIRN_OK);
	uint64_t lists = bucket_calls(bucket, CAIRN_OPERATION_LIST);
	uint64_t looks = bucket_calls(bucket, CAIRN_OPERATION_GET);
	for (int i = 0; i < 10; i++)
		assert_status(&bucket->call, cairn_log_reader_commit(&reader, &bucket->call),
			      CAIRN_NOT_FOUND);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_LIST), lists);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), looks + 10);
	cairn_log_reader_release(&reader);
	cairn_log_free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BUCKET_TESTS(test_log_names),
		BUCKET_TESTS(test_log_options_out_of_range_are_refused),
		BUCKET_TESTS(test_log_reads_events_in_order_with_their_places),
		BUCKET_TESTS(test_log_reader_keeps_to_after_and_end_at),
		BUCKET_TESTS(test_log_of_nothing_is_empty),
		BUCKET_TESTS(test_log_tail_and_head_see_commits_alone),
		BUCKET_TESTS(test_log_tail_is_the_newest_snapshots_after_a_prune),
		BUCKET_TESTS(test_log_corrupt_in_the_middle_is_read_up_to_there),
		BUCKET_TESTS(test_log_commit_under_another_number_is_corrupt),
		BUCKET_TESTS(test_log_reader_after_a_prune),
		BUCKET_TESTS(test_log_reader_tells_a_missing_commit_from_the_tail),
		BUCKET_TESTS(test_log_tail_waits_for_what_another_appends),
		BUCKET_TESTS(test_log_tail_ends_at_deadline_end_and_cancel),
		BUCKET_TESTS(test_log_tail_looks_once_a_poll),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
