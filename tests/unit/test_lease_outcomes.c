/* SPDX-License-Identifier: MIT */
#include "lease_steps.h"

/* Lost answers, unknown outcomes, and handing over. */

/* FORMAT hazard 1, under the retry store. */
static void test_lease_write_whose_answer_was_lost_happened_once(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR);

	for (int act = 0; act <= 1; act++) {
		bucket_heal(bucket);
		bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, act);
		assert_status(&bucket->call, increment(bucket, lease), CAIRN_OK);
		assert_known_state(lease, act ? "2" : "1");
		assert_state(bucket, act ? "2" : "1");
		bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, act);
		assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
		bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_BUSY, false);
		assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
	}
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, true);
	assert_status(&bucket->call, release(bucket, lease, "\"done\""), CAIRN_OK);
	assert_state(bucket, "\"done\"");
	assert_lost(bucket, lease);
	cairn_lease_free(lease);
}

/* Without the retry store the outcome stays unknown, and the next call heals. */
static void test_lease_write_of_unknown_outcome_heals(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->bare, "h", HOUR);
	char expected[2] = "1";

	for (int act = 0; act <= 1; act++) {
		int64_t own = cairn_lease_own_deadline(lease);
		bucket_heal(bucket);
		bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, act);
		assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call),
			      CAIRN_UNKNOWN);
		assert_false(cairn_lease_ended(lease));
		assert_int_equal(cairn_lease_own_deadline(lease), own);
		assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
		assert_true(cairn_lease_own_deadline(lease) > own);

		bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, act);
		assert_status(&bucket->call, increment(bucket, lease), CAIRN_UNKNOWN);
		assert_status(&bucket->call, increment(bucket, lease), CAIRN_OK);
		expected[0] = (char)(act ? '3' : '1');
		assert_state(bucket, expected);
	}
	cairn_lease_free(lease);
}

static void test_lease_release_of_unknown_outcome_heals(void **state)
{
	static const struct {
		bool act;
		const char *again;
		int status;
		const char *state;
	} cases[] = {
		{ true, "\"done\"", CAIRN_OK, "\"done\"" },
		{ true, " \"done\" ", CAIRN_OK, "\"done\"" },
		{ true, NULL, CAIRN_OK, "\"done\"" },
		{ true, "\"other\"", CAIRN_LOST, "\"done\"" },
		{ false, "\"done\"", CAIRN_OK, "\"done\"" },
		{ false, "\"other\"", CAIRN_OK, "\"other\"" },
		{ false, NULL, CAIRN_OK, "null" },
	};
	struct bucket *bucket = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bucket_delete(bucket, "k");
		struct cairn_lease *lease = acquire(bucket, bucket->bare, "h", HOUR);
		bucket_heal(bucket);
		bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, cases[i].act);
		assert_status(&bucket->call, release(bucket, lease, "\"done\""), CAIRN_UNKNOWN);
		assert_false(cairn_lease_ended(lease));
		assert_status(&bucket->call, release(bucket, lease, cases[i].again),
			      cases[i].status);
		assert_state(bucket, cases[i].state);
		assert_lost(bucket, lease);
		cairn_lease_free(lease);
	}
}

static void test_lease_after_a_release_that_landed_unknown_is_lost(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->bare, "h", HOUR);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, true);

	assert_status(&bucket->call, release(bucket, lease, NULL), CAIRN_UNKNOWN);
	assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_LOST);
	assert_lost(bucket, lease);
	cairn_lease_free(lease);
}

static char late[300]; /* the version that an abandoned request writes */

static void late_version_lands(struct bucket *bucket)
{
	bucket_put(bucket, "k", late);
}

/* A release that was given up lands while the hand-over's answer is lost: nobody holds. */
static void test_lease_hand_over_that_a_late_release_overtook_is_lost(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_lease_options options = { .ttl = HOUR };
	struct cairn_lease *lease = acquire(bucket, bucket->bare, "h", HOUR);
	struct cairn_lease *successor = NULL;
	struct cairn_object held, released;
	cairn_object_init(&held);
	cairn_object_init(&released);
	struct cairn_call *call = &bucket->call;
	assert_status(call, cairn_store_get(bucket->backend, call, "k", NULL, &held), CAIRN_OK);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 2, CAIRN_UNKNOWN, true);
	assert_status(call, release(bucket, lease, NULL), CAIRN_UNKNOWN);
	assert_status(call, cairn_store_get(bucket->backend, call, "k", NULL, &released), CAIRN_OK);
	(void)snprintf(late, sizeof(late), "%s", released.data.data);
	bucket_put(bucket, "k", held.data.data);
	bucket_hook_puts(bucket, 1, NULL, late_version_lands);

	assert_status(call, cairn_lease_succeed(lease, call, &options, &successor), CAIRN_LOST);
	assert_null(successor);
	assert_lost(bucket, lease);
	bucket_assert(bucket, "k", late);
	cairn_object_release(&held);
	cairn_object_release(&released);
	cairn_lease_free(lease);
}

static void test_lease_failure_of_the_store_is_no_loss(void **state)
{
	static const int failures[] = { CAIRN_IO, CAIRN_TIMEOUT, CAIRN_ACCESS, CAIRN_NO_SPACE,
					CAIRN_READ_ONLY };
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->bare, "h", HOUR);

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, failures[i], false);
		assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), failures[i]);
		bucket_fail(bucket, CAIRN_OPERATION_GET, 1, failures[i], false);
		assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), failures[i]);
		assert_false(cairn_lease_ended(lease));
		assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
		bucket_heal(bucket);
	}
	cairn_lease_free(lease);
}

static int hand_over(struct bucket *bucket, struct cairn_lease *lease,
		     struct cairn_lease **ret_lease)
{
	const struct cairn_lease_options options = { .ttl = HOUR, .holder = "next" };
	return cairn_lease_succeed(lease, &bucket->call, &options, ret_lease);
}

/* The successor holds with the next epoch and works; the lease before it has ended. */
static void assert_handed_over(struct bucket *bucket, struct cairn_lease *lease,
			       struct cairn_lease *successor, const char *state)
{
	struct cairn_lease_document document;
	assert_true(cairn_lease_ended(lease));
	assert_false(cairn_lease_ended(successor));
	assert_int_equal(cairn_lease_epoch(successor), cairn_lease_epoch(lease) + 1);
	assert_known_state(successor, state);
	read_document(bucket, &document);
	assert_int_equal(document.epoch, cairn_lease_epoch(successor));
	assert_string_equal(document.holder.data, "next");
	assert_int_equal(document.deadline, cairn_lease_deadline(successor));
	assert_string_equal(document.state.data, state);
	cairn_lease_document_release(&document);
	assert_status(&bucket->call, write_state(bucket, lease, "9"), CAIRN_LOST);
	assert_status(&bucket->call, write_state(bucket, successor, "2"), CAIRN_OK);
	assert_state(bucket, "2");
}

static void test_lease_hand_over_is_one_write(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR), *successor = NULL;
	assert_status(&bucket->call, write_state(bucket, lease, "1"), CAIRN_OK);
	uint64_t puts = bucket_calls(bucket, CAIRN_OPERATION_PUT);
	uint64_t reads = bucket_calls(bucket, CAIRN_OPERATION_GET);

	assert_status(&bucket->call, hand_over(bucket, lease, &successor), CAIRN_OK);

	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), puts + 1);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), reads);
	assert_handed_over(bucket, lease, successor, "1");
	cairn_lease_free(successor);
	cairn_lease_free(lease);
}

static void test_lease_hand_over_keeps_a_cooperative_write(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR), *successor = NULL;
	struct cairn_call call = { 0 };
	char seven[] = "[7]";
	assert_status(&call,
		      cairn_lease_cooperative_write(bucket->backend, &call, "k", transform_constant,
						    seven, NULL),
		      CAIRN_OK);

	assert_status(&bucket->call, hand_over(bucket, lease, &successor), CAIRN_OK);

	assert_handed_over(bucket, lease, successor, "[7]");
	cairn_lease_free(successor);
	cairn_lease_free(lease);
}

static void test_lease_hand_over_whose_answer_was_lost_happened_once(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->bare, "h", HOUR), *successor = NULL;
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, true);

	assert_status(&bucket->call, hand_over(bucket, lease, &successor), CAIRN_OK);

	assert_handed_over(bucket, lease, successor, "null");
	cairn_lease_free(successor);
	cairn_lease_free(lease);
}

static void test_lease_hand_over_that_may_have_been_lost_is_unknown(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->bare, "h", HOUR), *successor = NULL;
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, false);

	assert_status(&bucket->call, hand_over(bucket, lease, &successor), CAIRN_UNKNOWN);

	assert_null(successor);
	assert_false(cairn_lease_ended(lease));
	assert_status(&bucket->call, hand_over(bucket, lease, &successor), CAIRN_OK);
	assert_handed_over(bucket, lease, successor, "null");
	cairn_lease_free(successor);
	cairn_lease_free(lease);
}

static void test_lease_that_was_stolen_is_not_handed_over(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, bucket->store, "h", HOUR), *successor = NULL;
	const char *stolen = DOCUMENT(FUTURE, "2", "\"thief\"", "5");
	bucket_put(bucket, "k", stolen);

	assert_status(&bucket->call, hand_over(bucket, lease, &successor), CAIRN_LOST);

	assert_null(successor);
	assert_true(cairn_lease_ended(lease));
	bucket_assert(bucket, "k", stolen);
	cairn_lease_free(lease);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BUCKET_TESTS(test_lease_write_whose_answer_was_lost_happened_once),
		BUCKET_TESTS(test_lease_write_of_unknown_outcome_heals),
		BUCKET_TESTS(test_lease_release_of_unknown_outcome_heals),
		BUCKET_TESTS(test_lease_after_a_release_that_landed_unknown_is_lost),
		BUCKET_TESTS(test_lease_hand_over_that_a_late_release_overtook_is_lost),
		BUCKET_TESTS(test_lease_failure_of_the_store_is_no_loss),
		BUCKET_TESTS(test_lease_hand_over_is_one_write),
		BUCKET_TESTS(test_lease_hand_over_keeps_a_cooperative_write),
		BUCKET_TESTS(test_lease_hand_over_whose_answer_was_lost_happened_once),
		BUCKET_TESTS(test_lease_hand_over_that_may_have_been_lost_is_unknown),
		BUCKET_TESTS(test_lease_that_was_stolen_is_not_handed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
