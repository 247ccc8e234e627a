/* SPDX-License-Identifier: MIT */
#include "conformance.h"

#include <pthread.h>

#define OPERATION(name) (1u << CAIRN_OPERATION_##name)
#define SECOND		((int64_t)1000000)

static void inject(struct bucket *bucket, struct cairn_fault_rule rule)
{
	assert_int_equal(cairn_fault_rule_add(bucket->fault, &rule), CAIRN_OK);
}

static void forget(struct bucket *bucket)
{
	assert_int_equal(cairn_fault_rule_add(bucket->fault, NULL), CAIRN_OK);
}

/* These cases are about a store behind a network, whatever the bare one is. */
static void over_a_network(struct bucket *bucket)
{
	bucket_close(bucket);
	bucket_stack(bucket, false);
}

static uint64_t calls_below(struct bucket *bucket, enum cairn_operation operation)
{
	struct cairn_trace_count counts[CAIRN_OPERATION_COUNT];
	cairn_trace_read(bucket->store, counts);
	return counts[operation].calls;
}

/* How a put may be conditioned. */
enum condition { UNCONDITIONAL, IF_ABSENT, IF_MATCH, CONDITIONS };

static const char *const condition_names[] = { "unconditional", "if absent", "if match" };

/* FORMAT hazard 1: the answer to a put is lost, `times` times; the writer must learn that it won.
 */
static void lose_answers(struct bucket *bucket, enum condition condition, int status, bool act,
			 unsigned times)
{
	struct cairn_version before = { 0 }, version;
	char nonce[CAIRN_NONCE_SIZE] = "";
	struct cairn_put_options options = { .nonce = nonce };
	expect_status(bucket, cairn_store_delete(bucket->store, &bucket->call, "k", NULL), CAIRN_OK,
		      "delete");
	if (condition != IF_ABSENT)
		expect_status(bucket, put_text(bucket, "k", "old", NULL, &before), CAIRN_OK, "old");
	options.if_absent = condition == IF_ABSENT;
	options.if_match = condition == IF_MATCH ? before.etag : NULL;
	inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(PUT),
						  .times = times,
						  .status = status,
						  .act = act });

	int result = put_text(bucket, "k", "new", &options, &version);

	if (result)
		fail_msg("%s, %u × %s%s: %s (%s)", condition_names[condition], times,
			 cairn_status_name(status), act ? ", acted" : "", cairn_status_name(result),
			 bucket->call.error.text);
	struct cairn_object object;
	cairn_object_init(&object);
	expect_status(bucket, cairn_store_get(bucket->store, &bucket->call, "k", NULL, &object),
		      CAIRN_OK, "read");
	assert_string_equal(object.data.data, "new");
	assert_string_equal(object.version.etag, version.etag);
	assert_string_equal(object.version.nonce, version.nonce);
	assert_string_equal(object.version.nonce, nonce);
	cairn_object_release(&object);
	forget(bucket);
}

static void lose_every_answer(struct bucket *bucket)
{
	static const int statuses[] = { CAIRN_UNKNOWN, CAIRN_TIMEOUT, CAIRN_BUSY };
	for (unsigned times = 1; times <= 2; times++)
		for (int condition = 0; condition < CONDITIONS; condition++)
			for (int i = 0; i < 3; i++) {
				lose_answers(bucket, condition, statuses[i], true, times);
				lose_answers(bucket, condition, statuses[i], false, times);
			}
}

static void test_retry_lost_answers(void **state)
{
	struct bucket *bucket = *state;

	lose_every_answer(bucket);
}

static void test_retry_lost_answers_over_a_network(void **state)
{
	struct bucket *bucket = *state;
	over_a_network(bucket);

	lose_every_answer(bucket);
}

/* A refusal that is said of a put which was carried out: libcurl sent it twice (S3.md). */
static void test_retry_false_refusals_over_a_network(void **state)
{
	struct bucket *bucket = *state;
	over_a_network(bucket);

	lose_answers(bucket, IF_ABSENT, CAIRN_EXISTS, true, 1);
	lose_answers(bucket, IF_MATCH, CAIRN_CONFLICT, true, 1);
	/* A 404 and a spurious 412: what is there is still the version of If-Match. */
	lose_answers(bucket, IF_MATCH, CAIRN_NOT_FOUND, true, 1);
	lose_answers(bucket, IF_MATCH, CAIRN_CONFLICT, false, 2);
}

/* Called while the retry store waits for its second attempt: somebody else writes. */
struct intruder {
	struct bucket *bucket;
	const char *text; /* NULL: deletes */
	bool done;
};

static bool intrude(void *context)
{
	struct intruder *intruder = context;
	struct cairn_call call = { 0 };
	if (intruder->done)
		return false;
	intruder->done = true;
	int status;
	if (intruder->text)
		status = cairn_store_put(intruder->bucket->bare, &call, "k",
					 cairn_slice_of(intruder->text), NULL, NULL);
	else
		status = cairn_store_delete(intruder->bucket->bare, &call, "k", NULL);
	assert_int_equal(status, CAIRN_OK);
	return false;
}

/* The answer is lost and before it is sent again somebody else writes. */
static int lose_and_be_replaced(struct bucket *bucket, struct cairn_put_options options, bool act,
				const char *text)
{
	struct cairn_version before;
	struct intruder intruder = { .bucket = bucket, .text = text };
	expect_status(bucket, cairn_store_delete(bucket->store, &bucket->call, "k", NULL), CAIRN_OK,
		      "delete");
	if (!options.if_absent) {
		expect_status(bucket, put_text(bucket, "k", "old", NULL, &before), CAIRN_OK, "old");
		options.if_match = before.etag;
	}
	inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(PUT),
						  .times = 1,
						  .status = CAIRN_UNKNOWN,
						  .act = act });
	bucket->call.cancelled = intrude;
	bucket->call.context = &intruder;
	int status = put_text(bucket, "k", "ours", &options, NULL);
	bucket->call.cancelled = NULL;
	assert_true(intruder.done);
	forget(bucket);
	return status;
}

static void test_retry_replaced_after_a_lost_answer(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_put_options match = { 0 };
	const struct cairn_put_options document = { .if_absent = true };
	const struct cairn_put_options claim = { .if_absent = true, .immutable = true };

	/* Ours may have been there, and was: neither won nor lost. */
	expect_status(bucket, lose_and_be_replaced(bucket, match, true, "other"), CAIRN_UNKNOWN,
		      "compare-and-swap");
	expect_text(bucket, "k", "other");
	expect_status(bucket, lose_and_be_replaced(bucket, document, true, "other"), CAIRN_UNKNOWN,
		      "a document");
	expect_text(bucket, "k", "other");
	expect_status(bucket, lose_and_be_replaced(bucket, match, true, NULL), CAIRN_UNKNOWN,
		      "compare-and-swap, deleted");
	/* A key that is never written again was the other's from the start. */
	expect_status(bucket, lose_and_be_replaced(bucket, claim, false, "other"), CAIRN_EXISTS,
		      "a claim");
	expect_text(bucket, "k", "other");
}

static void test_retry_equal_content_is_not_ours(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_put_options claim = { .if_absent = true, .immutable = true };

	/* The other claims with the very same bytes. */
	expect_status(bucket, lose_and_be_replaced(bucket, claim, false, "ours"), CAIRN_EXISTS,
		      "a claim");
}

static void test_retry_read_back_fails(void **state)
{
	struct bucket *bucket = *state;
	over_a_network(bucket);
	const struct cairn_put_options claim = { .if_absent = true, .immutable = true };
	inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(PUT),
						  .times = 1,
						  .status = CAIRN_EXISTS,
						  .act = true });
	inject(bucket,
	       (struct cairn_fault_rule){ .operations = OPERATION(GET), .status = CAIRN_ACCESS });

	int status = put_text(bucket, "k", "ours", &claim, NULL);

	expect_status(bucket, status, CAIRN_UNKNOWN, "a claim");
	assert_non_null(strstr(bucket->call.error.text, "k: "));
}

static void test_retry_plain_losses_are_losses(void **state)
{
	struct bucket *bucket = *state;
	over_a_network(bucket);
	struct cairn_version old;
	const struct cairn_put_options absent = { .if_absent = true };
	expect_status(bucket, put_text(bucket, "k", "old", NULL, &old), CAIRN_OK, "old");
	must_put(bucket, "k", "new");
	const struct cairn_put_options match = { .if_match = old.etag };
	uint64_t puts = calls_below(bucket, CAIRN_OPERATION_PUT);

	expect_status(bucket, put_text(bucket, "k", "x", &absent, NULL), CAIRN_EXISTS, "absent");
	expect_status(bucket, put_text(bucket, "k", "x", &match, NULL), CAIRN_CONFLICT, "match");
	expect_status(bucket, put_text(bucket, "no", "x", &match, NULL), CAIRN_CONFLICT, "absent");

	assert_int_equal(calls_below(bucket, CAIRN_OPERATION_PUT) - puts, 3);
}

/* FORMAT hazard 2: the 409s of a collision that another wins are a loss, not an unknown outcome. */
static void test_retry_collision_that_another_wins(void **state)
{
	struct bucket *bucket = *state;
	over_a_network(bucket);
	struct cairn_version old;
	expect_status(bucket, put_text(bucket, "k", "old", NULL, &old), CAIRN_OK, "old");
	must_put(bucket, "k", "new");
	const struct cairn_put_options match = { .if_match = old.etag };
	inject(bucket, (struct cairn_fault_rule){
			       .operations = OPERATION(PUT), .times = 2, .status = CAIRN_BUSY });

	expect_status(bucket, put_text(bucket, "k", "x", &match, NULL), CAIRN_CONFLICT, "match");
}

static void test_retry_busy_until_the_deadline(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_put_options absent = { .if_absent = true };
	inject(bucket,
	       (struct cairn_fault_rule){ .operations = OPERATION(PUT), .status = CAIRN_BUSY });
	int64_t begun = cairn_clock();
	bucket->call.deadline = begun + SECOND / 4;

	int status = put_text(bucket, "k", "x", &absent, NULL);

	expect_status(bucket, status, CAIRN_BUSY, "busy");
	assert_true(cairn_clock() - begun < 5 * SECOND);
	bucket->call.deadline = 0;
	expect_text(bucket, "k", NULL);
}

static void test_retry_certain_failures_at_once(void **state)
{
	static const int statuses[] = { CAIRN_ACCESS,	     CAIRN_NO_SPACE, CAIRN_INVALID,
					CAIRN_READ_ONLY,     CAIRN_TOO_BIG,  CAIRN_UNSUPPORTED,
					CAIRN_NAME_TOO_LONG, CAIRN_NO_MEMORY };
	struct bucket *bucket = *state;
	over_a_network(bucket);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		inject(bucket, (struct cairn_fault_rule){ .status = statuses[i], .times = 3 });

		expect_status(bucket, put_text(bucket, "k", "x", NULL, NULL), statuses[i], "put");
		struct cairn_object object;
		cairn_object_init(&object);
		expect_status(bucket,
			      cairn_store_get(bucket->store, &bucket->call, "k", NULL, &object),
			      statuses[i], "get");
		expect_status(bucket, cairn_store_delete(bucket->store, &bucket->call, "k", NULL),
			      statuses[i], "delete");
		/* The three attempts used the rule up. */
		must_put(bucket, "other", "x");
		forget(bucket);
	}
}

static void test_retry_io_a_few_times(void **state)
{
	struct bucket *bucket = *state;
	over_a_network(bucket);
	inject(bucket, (struct cairn_fault_rule){ .status = CAIRN_IO, .times = 3 });
	must_put(bucket, "k", "x");
	forget(bucket);

	inject(bucket, (struct cairn_fault_rule){ .status = CAIRN_IO, .times = 4 });
	expect_status(bucket, put_text(bucket, "k", "y", NULL, NULL), CAIRN_IO, "put");
	expect_text(bucket, "k", "x");
}

static void test_retry_local_io_at_once(void **state)
{
	struct bucket *bucket = *state;
	if (!bucket->store->capabilities.local)
		skip();
	inject(bucket, (struct cairn_fault_rule){ .status = CAIRN_IO, .times = 1 });

	expect_status(bucket, put_text(bucket, "k", "x", NULL, NULL), CAIRN_IO, "put");
	expect_text(bucket, "k", NULL);
}

static void test_retry_reads(void **state)
{
	static const int statuses[] = { CAIRN_UNKNOWN, CAIRN_TIMEOUT, CAIRN_BUSY, CAIRN_IO };
	struct bucket *bucket = *state;
	over_a_network(bucket);
	must_put(bucket, "d/k", "x");
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(GET),
							  .status = statuses[i],
							  .times = 2 });
		inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(LIST),
							  .status = statuses[i],
							  .times = 2 });
		inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(PREFIX),
							  .status = statuses[i],
							  .times = 2 });

		expect_text(bucket, "d/k", "x");
		expect_status(bucket,
			      cairn_store_list(bucket->store, &bucket->call, "d/", NULL, &listing),
			      CAIRN_OK, "list");
		expect_keys(&listing, "d/k ");
		expect_status(bucket, cairn_store_prefix_exists(bucket->store, &bucket->call, "d/"),
			      CAIRN_OK, "prefix");
		forget(bucket);
	}
	cairn_listing_release(&listing);
}

static void test_retry_deletes(void **state)
{
	struct bucket *bucket = *state;
	over_a_network(bucket);
	struct cairn_version version;
	struct cairn_fault_rule rule = {
		.operations = OPERATION(DELETE), .status = CAIRN_UNKNOWN, .times = 1, .act = true
	};
	expect_status(bucket, put_text(bucket, "k", "x", NULL, &version), CAIRN_OK, "put");

	inject(bucket, rule);
	expect_status(bucket, cairn_store_delete(bucket->store, &bucket->call, "k", NULL), CAIRN_OK,
		      "lost answer");
	expect_text(bucket, "k", NULL);
	forget(bucket);
	if (!bucket->store->capabilities.delete_if_match)
		return;
	const struct cairn_delete_options options = { .if_match = version.etag };
	rule.act = false;
	must_put(bucket, "k", "x");
	inject(bucket, rule);
	expect_status(bucket, cairn_store_delete(bucket->store, &bucket->call, "k", &options),
		      bucket->store->capabilities.content_etags ? CAIRN_OK : CAIRN_UNKNOWN,
		      "not done");
	forget(bucket);
	/* Gone: by us, or by somebody else? */
	rule.act = true;
	expect_status(bucket, put_text(bucket, "k", "x", NULL, &version), CAIRN_OK, "put");
	inject(bucket, rule);
	expect_status(bucket, cairn_store_delete(bucket->store, &bucket->call, "k", &options),
		      bucket->target->folder ? CAIRN_OK : CAIRN_UNKNOWN, "done, answer lost");
}

static void test_retry_prefix_make_lost_answer(void **state)
{
	struct bucket *bucket = *state;
	bool directories = bucket->store->capabilities.real_directories;
	inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(PREFIX) | OPERATION(PUT),
						  .status = CAIRN_UNKNOWN,
						  .times = 1,
						  .act = true });

	int status = cairn_store_prefix_make(bucket->store, &bucket->call, "d/");

	expect_status(bucket, status, directories ? CAIRN_UNKNOWN : CAIRN_OK, "make");
	expect_status(bucket, cairn_store_prefix_make(bucket->store, &bucket->call, "d/"),
		      CAIRN_EXISTS, "make again");
}

/* The answer comes after the deadline. */
static void test_store_deadline_passes(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_object object;
	cairn_object_init(&object);
	must_put(bucket, "k", "old");
	inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(GET),
						  .delay_before = 60 * SECOND });
	inject(bucket,
	       (struct cairn_fault_rule){ .key_prefix = "before", .delay_before = 60 * SECOND });
	inject(bucket,
	       (struct cairn_fault_rule){ .key_prefix = "after", .delay_after = 60 * SECOND });
	int64_t begun = cairn_clock();

	bucket->call.deadline = begun + SECOND / 5;
	expect_status(bucket, cairn_store_get(bucket->store, &bucket->call, "k", NULL, &object),
		      CAIRN_TIMEOUT, "get");
	assert_true(bucket->call.deadline == begun + SECOND / 5);
	expect_status(bucket, put_text(bucket, "before", "x", NULL, NULL), CAIRN_TIMEOUT, "put");
	bucket->call.deadline = cairn_clock() + SECOND / 5;
	expect_status(bucket, put_text(bucket, "after", "x", NULL, NULL), CAIRN_UNKNOWN, "put");

	assert_true(cairn_clock() - begun < 10 * SECOND);
	forget(bucket);
	bucket->call.deadline = 0;
	expect_text(bucket, "before", NULL);
	expect_text(bucket, "after", "x");
	cairn_object_release(&object);
}

/* An answer that never comes must not use up the deadline of a store behind a network. */
static void test_retry_an_attempt_hangs(void **state)
{
	struct bucket *bucket = *state;
	over_a_network(bucket);
	const struct cairn_put_options absent = { .if_absent = true };
	inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(PUT),
						  .delay_after = 600 * SECOND,
						  .times = 1 });
	bucket->call.deadline = cairn_clock() + 3 * SECOND;

	int status = put_text(bucket, "k", "x", &absent, NULL);

	expect_status(bucket, status, CAIRN_OK, "put");
	bucket->call.deadline = 0;
	expect_text(bucket, "k", "x");
}

static bool after_three_looks(void *context)
{
	return ++*(int *)context > 3;
}

static void test_store_cancelled(void **state)
{
	struct bucket *bucket = *state;
	int looks = 0;
	inject(bucket, (struct cairn_fault_rule){ .delay_before = 600 * SECOND });
	bucket->call.cancelled = after_three_looks;
	bucket->call.context = &looks;
	int64_t begun = cairn_clock();

	expect_status(bucket, put_text(bucket, "k", "x", NULL, NULL), CAIRN_CANCELLED, "put");

	assert_true(cairn_clock() - begun < 10 * SECOND);
	forget(bucket);
	bucket->call.cancelled = NULL;
	expect_text(bucket, "k", NULL);
}

/* A third of all answers is lost, under a counter that four threads raise. */
struct storm {
	struct cairn_store *store;
	int wins;
	int unknown;
	int failed;
};

static void *raise_counter(void *argument)
{
	struct storm *storm = argument;
	struct cairn_call call = { 0 };
	struct cairn_object object;
	cairn_object_init(&object);
	for (int i = 0; i < 12; i++) {
		int status = cairn_store_get(storm->store, &call, "k", NULL, &object);
		if (!status) {
			char value[32];
			(void)snprintf(value, sizeof(value), "%ld",
				       strtol(object.data.data, NULL, 10) + 1);
			const struct cairn_put_options options = { .if_match =
									   object.version.etag };
			status = cairn_store_put(storm->store, &call, "k", cairn_slice_of(value),
						 &options, NULL);
		}
		if (status == CAIRN_OK)
			storm->wins++;
		else if (status == CAIRN_UNKNOWN)
			storm->unknown++;
		else if (status != CAIRN_CONFLICT)
			storm->failed = status;
	}
	cairn_object_release(&object);
	return NULL;
}

static void test_retry_storm_of_lost_answers(void **state)
{
	struct bucket *bucket = *state;
	over_a_network(bucket);
	struct storm storms[4];
	pthread_t threads[4];
	int wins = 0, unknown = 0;
	must_put(bucket, "k", "0");
	inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(PUT),
						  .permille = 200,
						  .status = CAIRN_UNKNOWN,
						  .act = true });
	inject(bucket, (struct cairn_fault_rule){ .operations = OPERATION(PUT),
						  .permille = 200,
						  .status = CAIRN_UNKNOWN });

	for (int i = 0; i < 4; i++) {
		storms[i] = (struct storm){ .store = bucket->store };
		assert_int_equal(pthread_create(&threads[i], NULL, raise_counter, &storms[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		(void)pthread_join(threads[i], NULL);
		assert_int_equal(storms[i].failed, CAIRN_OK);
		wins += storms[i].wins;
		unknown += storms[i].unknown;
	}

	forget(bucket);
	struct cairn_object object;
	cairn_object_init(&object);
	expect_status(bucket, cairn_store_get(bucket->store, &bucket->call, "k", NULL, &object),
		      CAIRN_OK, "get");
	/* Never a false win, never a false loss. */
	assert_in_range(strtol(object.data.data, NULL, 10), wins, wins + unknown);
	assert_true(wins > 0);
	cairn_object_release(&object);
}

static void test_probe_accepts(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_listing listing;
	cairn_listing_init(&listing);

	expect_status(bucket, cairn_store_probe(bucket->store, &bucket->call), CAIRN_OK, "probe");

	int status = cairn_store_list(bucket->store, &bucket->call, "", NULL, &listing);
	expect_status(bucket, status, CAIRN_OK, "list");
	assert_int_equal(listing.count, 0);
	cairn_listing_release(&listing);
}

/* A store that drops conditions: the real operations with some taken away. */
static struct cairn_store_ops careless;
static const struct cairn_store_ops *careful;
static bool drops_absent, drops_match, drops_delete;

static int careless_put(struct cairn_store *store, struct cairn_call *call, const char *key,
			struct cairn_slice data, const struct cairn_put_options *options,
			struct cairn_version *ret_version)
{
	struct cairn_put_options passed = *options;
	if (drops_absent)
		passed.if_absent = false;
	if (drops_match)
		passed.if_match = NULL;
	return careful->put(store, call, key, data, &passed, ret_version);
}

static int careless_remove(struct cairn_store *store, struct cairn_call *call, const char *key,
			   const struct cairn_delete_options *options)
{
	struct cairn_delete_options passed = *options;
	if (drops_delete)
		passed.if_match = NULL;
	return careful->remove(store, call, key, &passed);
}

/* FORMAT hazard 7. */
static void test_probe_refuses_careless_stores(void **state)
{
	struct bucket *bucket = *state;
	careful = bucket->bare->ops;
	careless = *careful;
	careless.put = careless_put;
	careless.remove = careless_remove;
	bucket->bare->ops = &careless;

	for (int fault = 0; fault < 3; fault++) {
		drops_absent = fault == 0;
		drops_match = fault == 1;
		drops_delete = fault == 2;
		if (drops_delete && !bucket->store->capabilities.delete_if_match)
			continue;
		expect_status(bucket, cairn_store_probe(bucket->store, &bucket->call),
			      CAIRN_UNSUPPORTED, "probe");
		assert_non_null(strstr(bucket->call.error.text, "preconditions"));
	}
	bucket->bare->ops = careful;
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	int status = cairn_store_list(bucket->store, &bucket->call, "", NULL, &listing);
	expect_status(bucket, status, CAIRN_OK, "list");
	assert_int_equal(listing.count, 0);
	cairn_listing_release(&listing);
}

static void test_probe_reports_failures(void **state)
{
	struct bucket *bucket = *state;
	inject(bucket,
	       (struct cairn_fault_rule){ .operations = OPERATION(PUT), .status = CAIRN_ACCESS });

	expect_status(bucket, cairn_store_probe(bucket->store, &bucket->call), CAIRN_ACCESS,
		      "probe");
}

const struct CMUnitTest fault_cases[] = {
	cmocka_unit_test(test_retry_lost_answers),
	cmocka_unit_test(test_retry_lost_answers_over_a_network),
	cmocka_unit_test(test_retry_false_refusals_over_a_network),
	cmocka_unit_test(test_retry_replaced_after_a_lost_answer),
	cmocka_unit_test(test_retry_equal_content_is_not_ours),
	cmocka_unit_test(test_retry_read_back_fails),
	cmocka_unit_test(test_retry_plain_losses_are_losses),
	cmocka_unit_test(test_retry_collision_that_another_wins),
	cmocka_unit_test(test_retry_busy_until_the_deadline),
	cmocka_unit_test(test_retry_certain_failures_at_once),
	cmocka_unit_test(test_retry_io_a_few_times),
	cmocka_unit_test(test_retry_local_io_at_once),
	cmocka_unit_test(test_retry_reads),
	cmocka_unit_test(test_retry_deletes),
	cmocka_unit_test(test_retry_prefix_make_lost_answer),
	cmocka_unit_test(test_store_deadline_passes),
	cmocka_unit_test(test_retry_an_attempt_hangs),
	cmocka_unit_test(test_store_cancelled),
	cmocka_unit_test(test_retry_storm_of_lost_answers),
	cmocka_unit_test(test_probe_accepts),
	cmocka_unit_test(test_probe_refuses_careless_stores),
	cmocka_unit_test(test_probe_reports_failures),
	{ 0 },
};
