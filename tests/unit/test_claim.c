/* SPDX-License-Identifier: MIT */
#include "bucket.h"

#include <pthread.h>

static int claim(struct cairn_store *store, struct cairn_call *call, const char *key,
		 const char *value, struct cairn_claim *ret_claim)
{
	return cairn_claim(store, call, key, cairn_slice_of(value), ret_claim);
}

static void test_claim_has_one_winner_whose_value_all_read(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim won, lost;
	cairn_claim_init(&won);
	cairn_claim_init(&lost);
	char etag[CAIRN_ETAG_SIZE];

	assert_status(&bucket->call,
		      claim(bucket->store, &bucket->call, "k",
			    "{ \"b\": 1, \"a\": \"\xc3\xa9\" }\n", &won),
		      CAIRN_OK);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 1);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), 0);
	assert_status(&bucket->call, claim(bucket->store, &bucket->call, "k", "2", &lost),
		      CAIRN_OK);

	assert_true(won.won);
	assert_string_equal(won.value.data, "{\"a\":\"\\u00e9\",\"b\":1}");
	assert_false(lost.won);
	assert_string_equal(lost.value.data, won.value.data);
	bucket_etag(bucket, "k", etag);
	assert_string_equal(won.version.etag, etag);
	assert_string_equal(lost.version.etag, etag);
	bucket_assert(bucket, "k", won.value.data);
	cairn_claim_release(&won);
	cairn_claim_release(&lost);
}

static void test_claim_shows_a_peers_value_as_stored(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim lost;
	cairn_claim_init(&lost);
	bucket_put(bucket, "k", " {\"n\": NaN, \"big\": 123456789012345678901234567890} ");

	assert_status(&bucket->call, claim(bucket->store, &bucket->call, "k", "1", &lost),
		      CAIRN_OK);
	assert_false(lost.won);
	assert_string_equal(lost.value.data,
			    " {\"n\": NaN, \"big\": 123456789012345678901234567890} ");
	cairn_claim_release(&lost);
}

static void test_claim_refuses_what_is_no_json_or_no_key(void **state)
{
	static const struct {
		const char *key;
		const char *value;
		int status;
	} cases[] = {
		{ "k", "", CAIRN_INVALID },	    { "k", "{\"a\":", CAIRN_INVALID },
		{ "k", "{} {}", CAIRN_INVALID },    { "k", "word", CAIRN_INVALID },
		{ "k", "\"\xff\"", CAIRN_INVALID }, { "", "1", CAIRN_INVALID },
		{ "log/k", "1", CAIRN_INVALID },
	};
	struct bucket *bucket = *state;
	struct cairn_claim result;
	cairn_claim_init(&result);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_status(
			&bucket->call,
			claim(bucket->store, &bucket->call, cases[i].key, cases[i].value, &result),
			cases[i].status);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 0);
	assert_int_equal(result.value.size, 0);
}

static void test_claim_refuses_too_deep_and_too_big(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim result;
	cairn_claim_init(&result);
	size_t size = (size_t)65 << 20;
	char *text = malloc(size);
	assert_non_null(text);
	memset(text, '[', 501);
	memset(text + 501, ']', 501);

	assert_status(&bucket->call,
		      cairn_claim(bucket->store, &bucket->call, "k",
				  (struct cairn_slice){ text, 1002 }, &result),
		      CAIRN_INVALID);
	assert_status(&bucket->call,
		      cairn_claim(bucket->store, &bucket->call, "k",
				  (struct cairn_slice){ text + 1, 1000 }, &result),
		      CAIRN_OK);
	cairn_claim_release(&result);
	memset(text, 'x', size);
	text[0] = text[size - 1] = '"';
	assert_status(&bucket->call,
		      cairn_claim(bucket->store, &bucket->call, "big",
				  (struct cairn_slice){ text, size }, &result),
		      CAIRN_TOO_BIG);
	assert_non_null(strstr(bucket->call.error.text, "big"));
	bucket_assert(bucket, "big", NULL);
	free(text);
}

static void test_claim_on_a_value_that_is_no_json_is_corrupt(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim result;
	cairn_claim_init(&result);
	bucket_put(bucket, "k", "no json");

	assert_status(&bucket->call, claim(bucket->store, &bucket->call, "k", "1", &result),
		      CAIRN_CORRUPT);
	assert_non_null(strstr(bucket->call.error.text, "claim k"));
	bucket_assert(bucket, "k", "no json");
}

/* FORMAT hazard 1. */
static void test_claim_whose_answer_was_lost_knows_that_it_won(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim won, lost;
	cairn_claim_init(&won);
	cairn_claim_init(&lost);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 2, CAIRN_UNKNOWN, true);

	assert_status(&bucket->call, claim(bucket->store, &bucket->call, "k", "1", &won), CAIRN_OK);
	assert_status(&bucket->call, claim(bucket->store, &bucket->call, "k", "2", &lost),
		      CAIRN_OK);
	assert_true(won.won);
	assert_false(lost.won);
	assert_string_equal(lost.value.data, "1");
	cairn_claim_release(&won);
	cairn_claim_release(&lost);
}

static void test_claim_whose_answers_were_lost_can_have_lost(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim lost;
	cairn_claim_init(&lost);
	bucket_put(bucket, "k", "\"first\"");
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 2, CAIRN_UNKNOWN, true);

	assert_status(&bucket->call, claim(bucket->store, &bucket->call, "k", "1", &lost),
		      CAIRN_OK);
	assert_false(lost.won);
	assert_string_equal(lost.value.data, "\"first\"");
	cairn_claim_release(&lost);
}

static void test_claim_that_cannot_be_read_back_is_unknown_not_lost(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim result;
	cairn_claim_init(&result);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 0, CAIRN_UNKNOWN, true);
	bucket_fail(bucket, CAIRN_OPERATION_GET, 0, CAIRN_IO, false);
	struct cairn_call call = bucket_call_within(200000);

	assert_status(&call, claim(bucket->store, &call, "k", "1", &result), CAIRN_UNKNOWN);
	assert_int_equal(result.value.size, 0);
	bucket_assert(bucket, "k", "1");
}

/* FORMAT hazard 2: a collision is no loss, with the retry store and without. */
static void test_claim_that_collided_tries_again(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim won;
	cairn_claim_init(&won);

	bucket_fail(bucket, CAIRN_OPERATION_PUT, 3, CAIRN_BUSY, false);
	assert_status(&bucket->call, claim(bucket->store, &bucket->call, "k", "1", &won), CAIRN_OK);
	assert_true(won.won);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 3, CAIRN_BUSY, false);
	assert_status(&bucket->call, claim(bucket->bare, &bucket->call, "l", "1", &won), CAIRN_OK);
	assert_true(won.won);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 8);
	cairn_claim_release(&won);
}

static void test_claim_gives_up_after_eight_collisions(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim result;
	cairn_claim_init(&result);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 0, CAIRN_BUSY, false);

	assert_status(&bucket->call, claim(bucket->bare, &bucket->call, "k", "1", &result),
		      CAIRN_BUSY);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 8);
	assert_non_null(strstr(bucket->call.error.text, "claim k"));
}

static void test_claim_that_was_deleted_in_between_is_tried_again(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim won;
	cairn_claim_init(&won);

	bucket_fail(bucket, CAIRN_OPERATION_PUT, 7, CAIRN_EXISTS, false);
	assert_status(&bucket->call, claim(bucket->store, &bucket->call, "k", "1", &won), CAIRN_OK);
	assert_true(won.won);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 0, CAIRN_EXISTS, false);
	assert_status(&bucket->call, claim(bucket->store, &bucket->call, "l", "1", &won),
		      CAIRN_BUSY);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 16);
	cairn_claim_release(&won);
}

static bool cancelled_at_once(void *context)
{
	(void)context;
	return true;
}

static void test_claim_ends_at_its_deadline_or_when_cancelled(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_claim result;
	cairn_claim_init(&result);
	const struct cairn_fault_rule collide = {
		.operations = 1u << CAIRN_OPERATION_PUT,
		.status = CAIRN_BUSY,
		.delay_before = 2000,
	};
	assert_int_equal(cairn_fault_rule_add(bucket->fault, &collide), CAIRN_OK);
	struct cairn_call call = bucket_call_within(5000);
	int64_t deadline = call.deadline;

	int status = claim(bucket->bare, &call, "k", "1", &result);
	assert_true(status == CAIRN_BUSY || status == CAIRN_TIMEOUT);
	assert_int_equal(call.deadline, deadline);
	struct cairn_call cancelled = { .cancelled = cancelled_at_once };
	assert_status(&cancelled, claim(bucket->store, &cancelled, "k", "1", &result),
		      CAIRN_CANCELLED);
}

/* Eight threads claim the same keys through a store that loses answers and requests. */
#define RACERS 8
#define RACES  10

struct racer {
	struct bucket *bucket;
	int number;
	pthread_t thread;
	struct cairn_claim results[RACES];
	int statuses[RACES];
};

static void *race(void *context)
{
	struct racer *racer = context;
	for (int i = 0; i < RACES; i++) {
		struct cairn_call call = { 0 };
		char key[32], value[32];
		(void)snprintf(key, sizeof(key), "race/%d", i);
		(void)snprintf(value, sizeof(value), "{\"racer\":%d}", racer->number);
		cairn_claim_init(&racer->results[i]);
		racer->statuses[i] =
			claim(racer->bucket->store, &call, key, value, &racer->results[i]);
	}
	return NULL;
}

static void test_claim_race_has_one_winner_each(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_fault_rule rules[] = {
		{ .operations = 1u << CAIRN_OPERATION_PUT,
		  .permille = 100,
		  .status = CAIRN_UNKNOWN,
		  .act = true },
		{ .operations = 1u << CAIRN_OPERATION_PUT,
		  .permille = 100,
		  .status = CAIRN_UNKNOWN,
		  .act = false },
		{ .operations = 1u << CAIRN_OPERATION_PUT, .permille = 100, .status = CAIRN_BUSY },
	};
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		assert_int_equal(cairn_fault_rule_add(bucket->fault, &rules[i]), CAIRN_OK);
	static struct racer racers[RACERS];
	for (int i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){ .bucket = bucket, .number = i };
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < RACERS; i++)
		assert_int_equal(pthread_join(racers[i].thread, NULL), 0);

	for (int i = 0; i < RACES; i++) {
		int winners = 0;
		char key[32];
		(void)snprintf(key, sizeof(key), "race/%d", i);
		for (int j = 0; j < RACERS; j++) {
			assert_int_equal(racers[j].statuses[i], CAIRN_OK);
			winners += racers[j].results[i].won;
			bucket_assert(bucket, key, racers[j].results[i].value.data);
		}
		assert_int_equal(winners, 1);
	}
	for (int j = 0; j < RACERS; j++) {
		for (int i = 0; i < RACES; i++)
			cairn_claim_release(&racers[j].results[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BUCKET_TESTS(test_claim_has_one_winner_whose_value_all_read),
		BUCKET_TESTS(test_claim_shows_a_peers_value_as_stored),
		BUCKET_TESTS(test_claim_refuses_what_is_no_json_or_no_key),
		BUCKET_TESTS(test_claim_refuses_too_deep_and_too_big),
		BUCKET_TESTS(test_claim_on_a_value_that_is_no_json_is_corrupt),
		BUCKET_TESTS(test_claim_whose_answer_was_lost_knows_that_it_won),
		BUCKET_TESTS(test_claim_whose_answers_were_lost_can_have_lost),
		BUCKET_TESTS(test_claim_that_cannot_be_read_back_is_unknown_not_lost),
		BUCKET_TESTS(test_claim_that_collided_tries_again),
		BUCKET_TESTS(test_claim_gives_up_after_eight_collisions),
		BUCKET_TESTS(test_claim_that_was_deleted_in_between_is_tried_again),
		BUCKET_TESTS(test_claim_ends_at_its_deadline_or_when_cancelled),
		BUCKET_TESTS(test_claim_race_has_one_winner_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
