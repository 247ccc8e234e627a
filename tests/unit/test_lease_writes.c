/* SPDX-License-Identifier: MIT */
#include "lease_steps.h"

#include <pthread.h>
#include <stdatomic.h>

static int64_t put_at; /* CLOCK_BOOTTIME of the hooked put */

static void note_time(struct bucket *bucket)
{
	(void)bucket;
	put_at = boot_clock();
}

static void test_lease_renew_moves_both_deadlines(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);
	int64_t acquired = cairn_lease_deadline(lease);
	const struct cairn_fault_rule slow = { .operations = 1u << CAIRN_OPERATION_PUT,
					       .delay_before = 5000,
					       .delay_after = 5000 };
	assert_int_equal(cairn_fault_rule_add(bucket->fault, &slow), CAIRN_OK);
	bucket_hook_puts(bucket, 1, note_time, NULL);
	int64_t now = cairn_timestamp_now(), boot = boot_clock();

	assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
	assert_true(cairn_lease_deadline(lease) > acquired);
	assert_true(cairn_lease_deadline(lease) >= now + HOUR);
	/* Counted from before the request was sent, however long it took. */
	assert_true(cairn_lease_own_deadline(lease) >= boot + HOUR);
	assert_true(cairn_lease_own_deadline(lease) <= put_at - 5000 + HOUR);
	struct cairn_lease_document document;
	read_document(bucket, &document);
	assert_int_equal(document.deadline, cairn_lease_deadline(lease));
	assert_int_equal(document.epoch, 1);
	cairn_lease_document_release(&document);
	cairn_lease_free(lease);
}

static void test_lease_writes_leave_the_deadlines(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);
	int64_t deadline = cairn_lease_deadline(lease), own = cairn_lease_own_deadline(lease);

	assert_status(&bucket->call, write_state(bucket, lease, " { \"b\": 1.0, \"a\": [] } "),
		      CAIRN_OK);
	assert_state(bucket, "{\"a\":[],\"b\":1.0}");
	assert_known_state(lease, "{\"a\":[],\"b\":1.0}");
	assert_status(&bucket->call, write_state(bucket, lease, "41"), CAIRN_OK);
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_OK);
	assert_state(bucket, "42");
	assert_int_equal(cairn_lease_deadline(lease), deadline);
	assert_int_equal(cairn_lease_own_deadline(lease), own);
	/* Each was one request. */
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 4);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), 0);
	cairn_lease_free(lease);
}

static void test_lease_release_keeps_or_sets_the_state_and_ends(void **state)
{
	struct bucket *bucket = *state;

	for (int i = 0; i < 2; i++) {
		struct cairn_lease *lease = acquire(bucket, bucket->store, NULL, HOUR);
		assert_int_equal(cairn_lease_epoch(lease), i + 1);
		assert_status(&bucket->call, write_state(bucket, lease, "\"work\""), CAIRN_OK);
		int64_t now = cairn_timestamp_now();
		assert_status(&bucket->call, release(bucket, lease, i ? "\"done\"" : NULL),
			      CAIRN_OK);
		struct cairn_lease_document document;
		read_document(bucket, &document);
		assert_false(document.held);
		assert_int_equal(document.epoch, i + 1);
		assert_in_range(document.deadline, now, cairn_timestamp_now());
		assert_string_equal(document.state.data, i ? "\"done\"" : "\"work\"");
		cairn_lease_document_release(&document);
		assert_lost(bucket, lease);
		cairn_lease_free(lease);
	}
}

static void test_lease_writes_meet_a_cooperative_write(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);

	write_into(bucket, "10");
	assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
	assert_known_state(lease, "10"); /* renew takes it over */
	write_into(bucket, "20");
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_OK);
	assert_state(bucket, "21"); /* update_state has it inside its input */
	write_into(bucket, "30");
	assert_status(&bucket->call, write_state(bucket, lease, "1"), CAIRN_OK);
	assert_state(bucket, "1"); /* write discards it unread */
	write_into(bucket, "40");
	assert_status(&bucket->call, release(bucket, lease, NULL), CAIRN_OK);
	assert_state(bucket, "40");
	cairn_lease_free(lease);
}

/* What the handle remembers is not the freshest state: a refusal of it settles nothing. */
static void test_lease_update_is_refused_by_the_freshest_state_alone(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);

	assert_status(&bucket->call, write_state(bucket, lease, "\"no number\""), CAIRN_OK);
	write_into(bucket, "7");
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_OK);
	assert_state(bucket, "8");
	write_into(bucket, "\"again none\"");
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_INVALID);
	assert_non_null(strstr(bucket->call.error.text, "again none"));
	assert_state(bucket, "\"again none\"");
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_INVALID);
	bucket_put(bucket, "k", DOCUMENT(FUTURE, "2", "\"thief\"", "1"));
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_LOST);
	cairn_lease_free(lease);
}

static void somebody_writes_into_it(struct bucket *bucket)
{
	char text[20];
	(void)snprintf(text, sizeof(text), "%u", 100 * bucket->runs);
	write_into(bucket, text);
}

/* FORMAT hazard 6. */
static void test_lease_is_not_lost_by_conflicts_in_a_row(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);

	bucket_hook_puts(bucket, 9, somebody_writes_into_it, NULL);
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_OK);
	assert_state(bucket, "901");
	bucket_hook_puts(bucket, 10, somebody_writes_into_it, NULL);
	assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_BUSY);
	assert_false(cairn_lease_ended(lease));
	assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
	assert_known_state(lease, "1000");
	cairn_lease_free(lease);
}

/* A peer's handle that did not see our renewal writes the deadline that it knows. */
static void test_lease_keeps_the_later_deadline(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);
	int64_t deadline = cairn_lease_deadline(lease);
	struct cairn_lease_document document;

	bucket_put(bucket, "k", DOCUMENT("\"2026-01-01T00:00:00+00:00\"", "1", "\"h\"", "5"));
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_OK);
	read_document(bucket, &document);
	assert_int_equal(document.deadline, deadline);
	assert_string_equal(document.state.data, "6");
	cairn_lease_document_release(&document);

	bucket_put(bucket, "k", DOCUMENT(FUTURE, "1", "\"h\"", "7"));
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_OK);
	bucket_assert(bucket, "k", DOCUMENT(FUTURE, "1", "\"h\"", "8"));
	/* What another handle renewed is not our own renewal. */
	assert_true(cairn_lease_own_deadline(lease) <= boot_clock() + HOUR);
	cairn_lease_free(lease);
}

static void test_lease_that_expired_untaken_goes_on(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", 1);
	while (cairn_timestamp_now() <= cairn_lease_deadline(lease))
		;

	assert_status(&bucket->call, write_state(bucket, lease, "1"), CAIRN_OK);
	int64_t now = cairn_timestamp_now();
	assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
	assert_true(cairn_lease_deadline(lease) > now);
	assert_false(cairn_lease_ended(lease));
	assert_int_equal(cairn_lease_epoch(lease), 1);
	cairn_lease_free(lease);
}

static void test_lease_that_was_stolen_is_fenced_for_good(void **state)
{
	struct bucket *bucket = *state;
	/* The thief may even use the same holder string: the epoch differs. */
	static const char *const thieves[] = { NULL, "h" };

	for (size_t i = 0; i < sizeof(thieves) / sizeof(thieves[0]); i++) {
		bucket_delete(bucket, "k");
		struct cairn_lease *lease = acquire(bucket, bucket->store, "h", 1);
		while (cairn_timestamp_now() <= cairn_lease_deadline(lease))
			;
		struct cairn_lease *thief = acquire(bucket, bucket->store, thieves[i], HOUR);
		assert_int_equal(cairn_lease_epoch(thief), 2);

		assert_status(&bucket->call, write_state(bucket, lease, "\"late\""), CAIRN_LOST);
		assert_lost(bucket, lease);
		assert_state(bucket, "null");
		assert_status(&bucket->call, cairn_lease_renew(thief, &bucket->call), CAIRN_OK);
		cairn_lease_free(lease);
		cairn_lease_free(thief);
	}
}

/* Anything but our epoch and our holder is a loss, and stays one when ours comes back. */
static void test_lease_is_lost_to_another_epoch_or_holder(void **state)
{
	static const char *const documents[] = {
		DOCUMENT(FUTURE, "2", "\"other\"", "1"), /* stolen */
		DOCUMENT(FUTURE, "2", "\"h\"", "1"),	 /* by our own name */
		DOCUMENT(FUTURE, "1", "\"other\"", "1"), /* deleted, and taken anew */
		DOCUMENT(PAST, "1", "\"\"", "1"),
		DOCUMENT(PAST, "1", "null", "1"), /* released by another handle */
		DOCUMENT(PAST, "2", "null", "1"),
		NULL, /* deleted */
		"no lease document",
		"{\"epoch\":1,\"holder\":\"h\",\"state\":1}",
	};
	struct bucket *bucket = *state;

	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		bucket_delete(bucket, "k");
		struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);
		struct cairn_object ours;
		cairn_object_init(&ours);
		assert_status(&bucket->call,
			      cairn_store_get(bucket->backend, &bucket->call, "k", NULL, &ours),
			      CAIRN_OK);
		if (documents[i])
			bucket_put(bucket, "k", documents[i]);
		else
			bucket_delete(bucket, "k");
		assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_LOST);
		bucket_assert(bucket, "k", documents[i]);

		bucket_put(bucket, "k", ours.data.data); /* with the etag that it had */
		assert_lost(bucket, lease);
		bucket_assert(bucket, "k", ours.data.data);
		cairn_object_release(&ours);
		cairn_lease_free(lease);
	}
}

/* FORMAT hazard 5: an old etag that came back is the old content, epoch and holder included. */
static void test_lease_write_over_content_that_came_back(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);

	assert_status(&bucket->call, write_state(bucket, lease, "1"), CAIRN_OK);
	write_into(bucket, "2");
	write_into(bucket, "1");
	assert_status(&bucket->call, increment(bucket, lease), CAIRN_OK);
	assert_state(bucket, "2");
	/* Ours comes back while a thief has it: the thief's next write finds out. */
	char stale[300];
	struct cairn_object object;
	cairn_object_init(&object);
	assert_status(&bucket->call,
		      cairn_store_get(bucket->backend, &bucket->call, "k", NULL, &object),
		      CAIRN_OK);
	(void)snprintf(stale, sizeof(stale), "%s", object.data.data);
	cairn_object_release(&object);
	bucket_put(bucket, "k", DOCUMENT(PAST, "1", "null", "2"));
	struct cairn_lease *thief = acquire(bucket, bucket->store, "t", HOUR);
	bucket_put(bucket, "k", stale);
	assert_status(&bucket->call, cairn_lease_renew(thief, &bucket->call), CAIRN_LOST);
	bucket_assert(bucket, "k", stale);
	cairn_lease_free(thief);
	cairn_lease_free(lease);
}

static void test_lease_state_is_kept_exactly(void **state)
{
	static const char *const states[] = {
		"123456789012345678901234567890",
		"{\"\\u0000\":NaN,\"a\":[Infinity,-Infinity],\"s\":\"\\ud800\\u007f\",\"t\":1e-05}",
		"\"\\ud83d\\ude00\"",
		"-0.0",
	};
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		write_into(bucket, states[i]);
		assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
		assert_state(bucket, states[i]);
		assert_known_state(lease, states[i]);
		assert_status(&bucket->call, write_state(bucket, lease, states[i]), CAIRN_OK);
		assert_state(bucket, states[i]);
	}
	cairn_lease_free(lease);
}

static void test_lease_refuses_a_bad_state_and_stays(void **state)
{
	static const char *const bad[] = { "", "{", "1 2", "\"\xff\"", "1,\"epoch\":9" };
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);
	int refusals[] = { CAIRN_LOST, CAIRN_CONFLICT, CAIRN_ABORTED };
	char deep[1001];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_status(&bucket->call, write_state(bucket, lease, bad[i]), CAIRN_INVALID);
		assert_status(&bucket->call, release(bucket, lease, bad[i]), CAIRN_INVALID);
	}
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		assert_status(&bucket->call,
			      cairn_lease_update_state(lease, &bucket->call, transform_refuse,
						       &refusals[i]),
			      refusals[i]);
	/* 500 levels are JSON, but could not be read back one level down in the document. */
	memset(deep, '[', 500);
	memset(deep + 500, ']', 500);
	deep[1000] = '\0';
	assert_status(&bucket->call, write_state(bucket, lease, deep), CAIRN_INVALID);
	assert_false(cairn_lease_ended(lease));
	assert_state(bucket, "null");
	deep[999] = '\0';
	assert_status(&bucket->call, write_state(bucket, lease, deep + 1), CAIRN_OK);
	assert_state(bucket, deep + 1);
	assert_status(&bucket->call, release(bucket, lease, NULL), CAIRN_OK);
	cairn_lease_free(lease);
}

/* Threads */

#define WRITERS 4
#define WRITES	50

struct writer {
	struct cairn_lease *lease;
	pthread_t thread;
	int failure;
	struct cairn_call call;
	atomic_bool entered; /* it has the turn and waits for the store */
	atomic_bool stop;
};

static void *count_up(void *context)
{
	struct writer *writer = context;
	for (int i = 0; i < WRITES; i++) {
		struct cairn_call call = { 0 };
		int status = i % 5 ? cairn_lease_update_state(writer->lease, &call,
							      transform_increment, NULL)
				   : cairn_lease_renew(writer->lease, &call);
		if (status)
			writer->failure = status;
	}
	return NULL;
}

static void test_lease_calls_of_many_threads_take_turns(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);
	struct writer writers[WRITERS];

	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .lease = lease };
		assert_int_equal(pthread_create(&writers[i].thread, NULL, count_up, &writers[i]),
				 0);
	}
	struct cairn_buffer seen;
	cairn_buffer_init(&seen, CAIRN_JSON_MAX);
	assert_int_equal(cairn_lease_state(lease, &seen), CAIRN_OK);
	assert_true(cairn_lease_own_deadline(lease) <= boot_clock() + HOUR);
	assert_true(cairn_lease_deadline(lease) <= cairn_timestamp_now() + HOUR);
	assert_false(cairn_lease_ended(lease));
	cairn_buffer_release(&seen);
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		assert_int_equal(writers[i].failure, CAIRN_OK);
	}
	assert_known_state(lease, "160");
	assert_state(bucket, "160");
	/* No write of a turn met another's. */
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), 0);
	cairn_lease_free(lease);
}

/* Polled while the store is slow, by the thread that has the turn: every accessor answers. */
static bool look_around(void *context)
{
	struct writer *writer = context;
	struct cairn_buffer seen;
	cairn_buffer_init(&seen, CAIRN_JSON_MAX);
	if (cairn_lease_state(writer->lease, &seen) || cairn_lease_ended(writer->lease) ||
	    !cairn_lease_deadline(writer->lease) || !cairn_lease_own_deadline(writer->lease))
		writer->failure = CAIRN_INVALID;
	cairn_buffer_release(&seen);
	atomic_store(&writer->entered, true);
	return atomic_load(&writer->stop);
}

static void *renew(void *context)
{
	struct writer *writer = context;
	writer->call = (struct cairn_call){ .cancelled = look_around, .context = writer };
	writer->failure = cairn_lease_renew(writer->lease, &writer->call);
	return NULL;
}

static bool always(void *context)
{
	(void)context;
	return true;
}

static void test_lease_waits_for_its_turn_no_longer_than_it_may(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);
	const struct cairn_fault_rule stuck = { .operations = 1u << CAIRN_OPERATION_PUT,
						.times = 1,
						.delay_before = 20000000 };
	assert_int_equal(cairn_fault_rule_add(bucket->fault, &stuck), CAIRN_OK);
	struct writer writer = { .lease = lease };
	assert_int_equal(pthread_create(&writer.thread, NULL, renew, &writer), 0);
	while (!atomic_load(&writer.entered))
		;

	struct cairn_call hurried = bucket_call_within(1000);
	assert_status(&hurried, cairn_lease_renew(lease, &hurried), CAIRN_TIMEOUT);
	struct cairn_call cancelled = { .cancelled = always };
	assert_status(&cancelled, cairn_lease_renew(lease, &cancelled), CAIRN_CANCELLED);
	atomic_store(&writer.stop, true);
	assert_int_equal(pthread_join(writer.thread, NULL), 0);
	assert_int_equal(writer.failure, CAIRN_CANCELLED);
	assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
	cairn_lease_free(lease);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BUCKET_TESTS(test_lease_renew_moves_both_deadlines),
		BUCKET_TESTS(test_lease_writes_leave_the_deadlines),
		BUCKET_TESTS(test_lease_release_keeps_or_sets_the_state_and_ends),
		BUCKET_TESTS(test_lease_writes_meet_a_cooperative_write),
		BUCKET_TESTS(test_lease_update_is_refused_by_the_freshest_state_alone),
		BUCKET_TESTS(test_lease_is_not_lost_by_conflicts_in_a_row),
		BUCKET_TESTS(test_lease_keeps_the_later_deadline),
		BUCKET_TESTS(test_lease_that_expired_untaken_goes_on),
		BUCKET_TESTS(test_lease_that_was_stolen_is_fenced_for_good),
		BUCKET_TESTS(test_lease_is_lost_to_another_epoch_or_holder),
		BUCKET_TESTS(test_lease_write_over_content_that_came_back),
		BUCKET_TESTS(test_lease_state_is_kept_exactly),
		BUCKET_TESTS(test_lease_refuses_a_bad_state_and_stays),
		BUCKET_TESTS(test_lease_calls_of_many_threads_take_turns),
		BUCKET_TESTS(test_lease_waits_for_its_turn_no_longer_than_it_may),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
