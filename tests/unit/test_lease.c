/* SPDX-License-Identifier: MIT */
#include "bucket.h"

#include <pthread.h>
#include <time.h>

#define HOUR   ((int64_t)3600 * 1000000)
#define PAST   "\"2001-01-01T00:00:00.000000Z\""
#define FUTURE "\"2999-01-01T00:00:00.000000Z\""

/* A lease document with these members, as JSON texts. */
#define DOCUMENT(deadline, epoch, holder, state)                                                   \
	"{\"deadline_at\":" deadline ",\"epoch\":" epoch ",\"holder\":" holder ",\"state\":" state \
	"}"

static struct cairn_lease *acquire(struct bucket *bucket, const char *holder)
{
	const struct cairn_lease_options options = { .ttl = HOUR, .holder = holder };
	struct cairn_lease *lease = NULL;
	assert_status(&bucket->call,
		      cairn_lease_acquire(bucket->store, &bucket->call, "k", &options, &lease),
		      CAIRN_OK);
	assert_non_null(lease);
	return lease;
}

static int try_acquire(struct bucket *bucket, const struct cairn_lease_options *options,
		       struct cairn_lease **ret_lease)
{
	return cairn_lease_acquire(bucket->store, &bucket->call, "k", options, ret_lease);
}

/* The document is what `lease` says, with the state `state`. */
static void assert_document(struct bucket *bucket, struct cairn_lease *lease, const char *state)
{
	char deadline[CAIRN_TIMESTAMP_SIZE], text[1000];
	assert_int_equal(cairn_timestamp_format(cairn_lease_deadline(lease), deadline), CAIRN_OK);
	(void)snprintf(text, sizeof(text), DOCUMENT("\"%s\"", "%lld", "\"%s\"", "%s"), deadline,
		       (long long)cairn_lease_epoch(lease), cairn_lease_holder(lease), state);
	bucket_assert(bucket, "k", text);
	struct cairn_buffer seen;
	cairn_buffer_init(&seen, CAIRN_JSON_MAX);
	assert_int_equal(cairn_lease_state(lease, &seen), CAIRN_OK);
	assert_string_equal(seen.data, state);
	cairn_buffer_release(&seen);
	assert_false(cairn_lease_ended(lease));
}

static int64_t boot_clock(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void test_lease_acquire_fresh_costs_one_request(void **state)
{
	struct bucket *bucket = *state;
	int64_t now = cairn_timestamp_now(), boot = boot_clock();
	struct cairn_lease *lease = acquire(bucket, NULL);

	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 1);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), 0);
	assert_int_equal(cairn_lease_epoch(lease), 1);
	assert_int_equal(strlen(cairn_lease_holder(lease)), 32);
	assert_int_equal(strspn(cairn_lease_holder(lease), "0123456789abcdef"), 32);
	assert_in_range(cairn_lease_deadline(lease), now + HOUR, cairn_timestamp_now() + HOUR);
	assert_in_range(cairn_lease_own_deadline(lease), boot + HOUR, boot_clock() + HOUR);
	assert_document(bucket, lease, "null");
	cairn_lease_free(lease);
	cairn_lease_free(NULL);
}

static void test_lease_holders_are_random_or_given(void **state)
{
	struct bucket *bucket = *state;
	const char *given = "wörker \"7\"\n";
	struct cairn_lease *first = acquire(bucket, NULL);
	bucket_delete(bucket, "k");
	struct cairn_lease *second = acquire(bucket, NULL);
	bucket_delete(bucket, "k");
	struct cairn_lease *third = acquire(bucket, given);

	assert_string_not_equal(cairn_lease_holder(first), cairn_lease_holder(second));
	assert_string_equal(cairn_lease_holder(third), given);
	struct cairn_lease_document document;
	cairn_lease_document_init(&document);
	assert_status(&bucket->call, cairn_lease_read(bucket->store, &bucket->call, "k", &document),
		      CAIRN_OK);
	assert_string_equal(document.holder.data, given);
	cairn_lease_document_release(&document);
	cairn_lease_free(first);
	cairn_lease_free(second);
	cairn_lease_free(third);
}

static void test_lease_held_is_refused_without_telling_the_holder(void **state)
{
	static const char *const documents[] = {
		DOCUMENT(FUTURE, "3", "\"secret-string\"", "1"),
		DOCUMENT(FUTURE, "3", "\"\"", "1"), /* "" is held too */
	};
	struct bucket *bucket = *state;
	const struct cairn_lease_options options = { .ttl = HOUR };
	struct cairn_lease *lease = NULL;

	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		bucket_put(bucket, "k", documents[i]);
		assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_HELD);
		assert_null(strstr(bucket->call.error.text, "secret-string"));
		assert_non_null(strstr(bucket->call.error.text, "lease k"));
		assert_non_null(strstr(bucket->call.error.text, "2999-01-01T00:00:00.000000Z"));
		assert_non_null(strstr(bucket->call.error.text, "epoch 3"));
		bucket_assert(bucket, "k", documents[i]);
	}
	assert_null(lease);
}

static void test_lease_that_may_be_taken_gets_the_next_epoch(void **state)
{
	static const struct {
		const char *document;
		bool no_steal;
		int64_t epoch; /* 0: held */
		const char *state;
	} cases[] = {
		{ DOCUMENT(PAST, "41", "null", "[1]"), false, 42, "[1]" }, /* released */
		{ DOCUMENT(PAST, "41", "null", "[1]"), true, 42, "[1]" },
		{ DOCUMENT(FUTURE, "2", "null", "1"), true, 3, "1" }, /* anonymous */
		{ DOCUMENT(PAST, "2", "\"h\"", "{\"a\":1}"), false, 3, "{\"a\":1}" }, /* expired */
		{ DOCUMENT(PAST, "2", "\"h\"", "1"), true, 0, NULL },
		{ DOCUMENT(PAST, "2", "\"\"", "1"), true, 0, NULL },
		{ DOCUMENT("\"2001-01-01T00:00:00+00:00\"", "2", "\"h\"", "1"), false, 3, "1" },
		{ "{\"epoch\":2,\"holder\":\"h\",\"deadline_at\":" PAST ",\"more\":1}", false, 3,
		  "null" },
		{ DOCUMENT(PAST, "9223372036854775806", "\"h\"", "1"), false, INT64_MAX, "1" },
		{ DOCUMENT(PAST, "2", "\"\\ud800\"", "NaN"), false, 3, "NaN" },
	};
	struct bucket *bucket = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct cairn_lease_options options = { .ttl = HOUR,
							     .no_steal = cases[i].no_steal };
		struct cairn_lease *lease = NULL;
		bucket_put(bucket, "k", cases[i].document);
		assert_status(&bucket->call, try_acquire(bucket, &options, &lease),
			      cases[i].epoch ? CAIRN_OK : CAIRN_HELD);
		if (!cases[i].epoch) {
			bucket_assert(bucket, "k", cases[i].document);
			continue;
		}
		assert_int_equal(cairn_lease_epoch(lease), cases[i].epoch);
		assert_document(bucket, lease, cases[i].state);
		cairn_lease_free(lease);
	}
}

static void test_lease_after_the_last_epoch_is_refused(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_lease_options options = { .ttl = HOUR };
	struct cairn_lease *lease = NULL;
	const char *document = DOCUMENT(PAST, "9223372036854775807", "null", "1");
	bucket_put(bucket, "k", document);

	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_CORRUPT);
	bucket_assert(bucket, "k", document);
}

static void test_lease_acquire_refuses_bad_arguments(void **state)
{
	static const struct {
		const char *key;
		struct cairn_lease_options options;
	} cases[] = {
		{ "k", { .ttl = 0 } },
		{ "k", { .ttl = -1 } },
		{ "k", { .ttl = INT64_MAX } },
		{ "k", { .ttl = INT64_MAX / 2 } }, /* after the year 9999 */
		{ "k", { .ttl = HOUR, .holder = "bad\xff" } },
		{ "", { .ttl = HOUR } },
		{ "snapshots/k", { .ttl = HOUR } },
	};
	struct bucket *bucket = *state;
	struct cairn_lease *lease = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_status(&bucket->call,
			      cairn_lease_acquire(bucket->store, &bucket->call, cases[i].key,
						  &cases[i].options, &lease),
			      CAIRN_INVALID);
	assert_status(&bucket->call,
		      cairn_lease_attach(bucket->store, &bucket->call, "k", NULL, HOUR, &lease),
		      CAIRN_INVALID);
	assert_null(lease);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 0);
}

static void test_lease_acquire_goes_by_what_was_seen(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease_document seen;
	struct cairn_lease *lease = NULL;
	cairn_lease_document_init(&seen);
	bucket_put(bucket, "k", DOCUMENT(PAST, "4", "\"old\"", "[1]"));
	assert_status(&bucket->call, cairn_lease_read(bucket->store, &bucket->call, "k", &seen),
		      CAIRN_OK);
	const struct cairn_lease_options options = { .ttl = HOUR, .holder = "h", .seen = &seen };
	uint64_t reads = bucket_calls(bucket, CAIRN_OPERATION_GET);

	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_OK);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 1);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), reads);
	assert_int_equal(cairn_lease_epoch(lease), 5);
	assert_document(bucket, lease, "[1]");
	cairn_lease_free(lease);

	/* It is another version by now, and held. */
	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_HELD);
	cairn_lease_document_release(&seen);
}

/* A transition that notes what it was asked about. */
struct asked {
	unsigned times;
	bool absent; /* was `current` without data? */
	char text[100];
	int refuse;
};

static int transition(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		      struct cairn_error *error)
{
	struct asked *asked = context;
	asked->times++;
	asked->absent = !current.data;
	(void)snprintf(asked->text, sizeof(asked->text), "%.*s", (int)current.size,
		       current.data ? current.data : "");
	if (asked->refuse)
		return cairn_error_set(error, asked->refuse, "already done");
	return cairn_buffer_printf(ret_next, " {\"run\": \"new\"} ");
}

static void test_lease_transition_is_written_with_the_acquisition(void **state)
{
	struct bucket *bucket = *state;
	struct asked asked = { 0 };
	const struct cairn_lease_options options = { .ttl = HOUR,
						     .transition = transition,
						     .context = &asked };
	struct cairn_lease *lease = NULL;

	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_OK);
	assert_true(asked.absent);
	assert_document(bucket, lease, "{\"run\":\"new\"}");
	cairn_lease_free(lease);

	bucket_put(bucket, "k", "{\"epoch\":2,\"holder\":null,\"deadline_at\":" PAST "}");
	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_OK);
	assert_int_equal(asked.times, 2); /* never about a document that is not there */
	assert_false(asked.absent);
	assert_string_equal(asked.text, "null");
	assert_document(bucket, lease, "{\"run\":\"new\"}");
	cairn_lease_free(lease);
}

static void test_lease_transition_that_refuses_writes_nothing(void **state)
{
	struct bucket *bucket = *state;
	struct asked asked = { .refuse = CAIRN_ABORTED };
	const struct cairn_lease_options options = { .ttl = HOUR,
						     .transition = transition,
						     .context = &asked };
	struct cairn_lease *lease = NULL;

	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_ABORTED);
	assert_string_equal(bucket->call.error.text, "already done");
	bucket_assert(bucket, "k", NULL);
	bucket_put(bucket, "k", DOCUMENT(PAST, "2", "\"h\"", "1"));
	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_ABORTED);
	bucket_assert(bucket, "k", DOCUMENT(PAST, "2", "\"h\"", "1"));
	/* Held: not even asked. */
	bucket_put(bucket, "k", DOCUMENT(FUTURE, "2", "\"h\"", "1"));
	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_HELD);
	assert_int_equal(asked.times, 2);
	assert_null(lease);
}

static void somebody_acquires(struct bucket *bucket)
{
	bucket_put(bucket, "k", DOCUMENT(FUTURE, "9", "\"other\"", "1"));
}

static void test_lease_acquire_that_lost_the_race_is_held(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_lease_options options = { .ttl = HOUR };
	struct cairn_lease *lease = NULL;

	bucket_hook_puts(bucket, 1, somebody_acquires, NULL);
	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_HELD);
	/* The first put finds a document; the second is the compare-and-swap. */
	bucket_put(bucket, "k", DOCUMENT(PAST, "2", "\"h\"", "1"));
	const struct cairn_lease_options looks_first = { .ttl = HOUR,
							 .transition = transition,
							 .context = &(struct asked){ 0 } };
	bucket_hook_puts(bucket, 1, somebody_acquires, NULL);
	assert_status(&bucket->call, try_acquire(bucket, &looks_first, &lease), CAIRN_HELD);
	assert_int_equal(bucket->runs, 1);
	bucket_assert(bucket, "k", DOCUMENT(FUTURE, "9", "\"other\"", "1"));
	assert_null(lease);
}

static void somebody_comes_and_goes(struct bucket *bucket)
{
	char text[200];
	(void)snprintf(text, sizeof(text), DOCUMENT(PAST, "%u", "null", "1"), bucket->runs + 10);
	bucket_put(bucket, "k", text);
}

static void test_lease_acquire_gives_up_after_eight_races(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_lease_options options = { .ttl = HOUR };
	struct cairn_lease *lease = NULL;

	bucket_hook_puts(bucket, 100, somebody_comes_and_goes, NULL);
	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_BUSY);
	assert_int_equal(bucket->runs, 9); /* the hopeful first put and eight */
	assert_null(lease);
}

/* FORMAT hazard 2. */
static void test_lease_acquire_that_collided_tries_again(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_lease_options options = { .ttl = HOUR };
	struct cairn_lease *lease = NULL;
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 3, CAIRN_BUSY, false);

	assert_status(&bucket->call,
		      cairn_lease_acquire(bucket->bare, &bucket->call, "k", &options, &lease),
		      CAIRN_OK);
	assert_document(bucket, lease, "null");
	cairn_lease_free(lease);
}

/* FORMAT hazard 1. */
static void test_lease_acquire_whose_answer_was_lost_holds(void **state)
{
	static const char *const before[] = { NULL, DOCUMENT(PAST, "2", "\"h\"", "null") };
	struct bucket *bucket = *state;
	const struct cairn_lease_options options = { .ttl = HOUR };

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		for (int retries = 0; retries <= 1; retries++) {
			struct cairn_lease *lease = NULL;
			if (before[i])
				bucket_put(bucket, "k", before[i]);
			else
				bucket_delete(bucket, "k");
			bucket_heal(bucket);
			/* The hopeful first put is refused where there is a document. */
			const struct cairn_fault_rule lose = {
				.operations = 1u << CAIRN_OPERATION_PUT,
				.skip = before[i] ? 1 : 0,
				.times = 1,
				.status = CAIRN_UNKNOWN,
				.act = true,
			};
			assert_int_equal(cairn_fault_rule_add(bucket->fault, &lose), CAIRN_OK);
			struct cairn_store *store = retries ? bucket->store : bucket->bare;
			assert_status(
				&bucket->call,
				cairn_lease_acquire(store, &bucket->call, "k", &options, &lease),
				CAIRN_OK);
			assert_int_equal(cairn_lease_epoch(lease), before[i] ? 3 : 1);
			assert_document(bucket, lease, "null");
			assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call),
				      CAIRN_OK);
			cairn_lease_free(lease);
		}
	}
}

static int cancel(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		  struct cairn_error *error)
{
	(void)context;
	(void)current;
	(void)error;
	return cairn_buffer_append(ret_next, "\"cancel\"", 8);
}

static void somebody_writes_into_it(struct bucket *bucket)
{
	struct cairn_call call = { 0 };
	assert_status(
		&call,
		cairn_lease_cooperative_write(bucket->backend, &call, "k", cancel, NULL, NULL),
		CAIRN_OK);
}

/* Our version was there and has been replaced: epoch, holder and deadline decide. */
static void test_lease_acquire_whose_answer_was_lost_heals_over_a_cooperative_write(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_lease_options options = { .ttl = HOUR };
	struct cairn_lease *lease = NULL;
	bucket_hook_puts(bucket, 1, NULL, somebody_writes_into_it);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, true);

	assert_status(&bucket->call, try_acquire(bucket, &options, &lease), CAIRN_OK);
	assert_document(bucket, lease, "\"cancel\"");
	cairn_lease_free(lease);
}

static void test_lease_acquire_of_unknown_outcome_is_no_loss(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_lease_options options = { .ttl = HOUR };
	struct cairn_lease *lease = NULL;
	/* It did not land, but may yet. */
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, false);
	assert_status(&bucket->call,
		      cairn_lease_acquire(bucket->bare, &bucket->call, "k", &options, &lease),
		      CAIRN_UNKNOWN);
	/* It landed, and cannot be read back. */
	bucket_heal(bucket);
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, true);
	bucket_fail(bucket, CAIRN_OPERATION_GET, 0, CAIRN_IO, false);
	assert_status(&bucket->call,
		      cairn_lease_acquire(bucket->bare, &bucket->call, "k", &options, &lease),
		      CAIRN_UNKNOWN);
	/* It did not land, and somebody else's did: that is an answer. */
	bucket_heal(bucket);
	bucket_delete(bucket, "k");
	bucket_put(bucket, "k", DOCUMENT(PAST, "8", "null", "1"));
	const struct cairn_fault_rule lose = { .operations = 1u << CAIRN_OPERATION_PUT,
					       .skip = 1,
					       .times = 1,
					       .status = CAIRN_UNKNOWN,
					       .act = true };
	assert_int_equal(cairn_fault_rule_add(bucket->fault, &lose), CAIRN_OK);
	bucket_hook_puts(bucket, 2, NULL, somebody_acquires);
	assert_status(&bucket->call,
		      cairn_lease_acquire(bucket->bare, &bucket->call, "k", &options, &lease),
		      CAIRN_HELD);
	assert_null(lease);
}

static void test_lease_attach_enters_the_period_of_its_holder(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_lease *lease = acquire(bucket, "h");
	struct cairn_lease *attached = NULL;
	int64_t left = cairn_lease_deadline(lease) - cairn_timestamp_now();
	int64_t boot = boot_clock();

	assert_status(
		&bucket->call,
		cairn_lease_attach(bucket->store, &bucket->call, "k", "h", 2 * HOUR, &attached),
		CAIRN_OK);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 1);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), 1);
	assert_int_equal(cairn_lease_epoch(attached), 1);
	assert_int_equal(cairn_lease_deadline(attached), cairn_lease_deadline(lease));
	assert_true(cairn_lease_own_deadline(attached) <= boot + left);
	assert_true(cairn_lease_own_deadline(attached) > boot);
	assert_document(bucket, attached, "null");

	/* Two handles of one period converge. */
	assert_status(&bucket->call,
		      cairn_lease_write(attached, &bucket->call, cairn_slice_of("1")), CAIRN_OK);
	assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_OK);
	assert_document(bucket, lease, "1");
	assert_status(&bucket->call, cairn_lease_renew(attached, &bucket->call), CAIRN_OK);
	assert_true(cairn_lease_deadline(attached) > cairn_lease_deadline(lease) + HOUR / 2);
	assert_status(&bucket->call, cairn_lease_release(attached, &bucket->call, NULL), CAIRN_OK);
	assert_status(&bucket->call, cairn_lease_renew(lease, &bucket->call), CAIRN_LOST);
	cairn_lease_free(lease);
	cairn_lease_free(attached);
}

static void test_lease_attach_refuses_what_is_not_the_holders(void **state)
{
	static const struct {
		const char *document;
		const char *holder;
		int status;
	} cases[] = {
		{ NULL, "h", CAIRN_NOT_FOUND },
		{ DOCUMENT(FUTURE, "1", "\"secret\"", "1"), "h", CAIRN_HELD },
		{ DOCUMENT(FUTURE, "1", "\"h2\"", "1"), "h", CAIRN_HELD },
		{ DOCUMENT(FUTURE, "1", "\"h\\u0000x\"", "1"), "h", CAIRN_HELD },
		{ DOCUMENT(FUTURE, "1", "null", "1"), "h", CAIRN_HELD },
		{ DOCUMENT(FUTURE, "1", "null", "1"), "", CAIRN_HELD },
		{ DOCUMENT(FUTURE, "1", "null", "1"), "null", CAIRN_HELD },
		{ DOCUMENT(PAST, "1", "\"h\"", "1"), "h", CAIRN_HELD },
		{ DOCUMENT(FUTURE, "1", "\"\"", "1"), "", CAIRN_OK },
		{ DOCUMENT(FUTURE, "1", "\"\\u0068\"", "1"), "h", CAIRN_OK },
	};
	struct bucket *bucket = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cairn_lease *lease = NULL;
		if (cases[i].document)
			bucket_put(bucket, "k", cases[i].document);
		assert_status(&bucket->call,
			      cairn_lease_attach(bucket->store, &bucket->call, "k", cases[i].holder,
						 HOUR, &lease),
			      cases[i].status);
		assert_null(strstr(bucket->call.error.text, "secret"));
		cairn_lease_free(lease);
		if (cases[i].document)
			bucket_assert(bucket, "k", cases[i].document);
	}
}

static void test_lease_cooperative_write_changes_the_state_alone(void **state)
{
	static const struct {
		const char *before;
		const char *after;
	} cases[] = {
		{ DOCUMENT(FUTURE, "7", "\"h\"", "1"), DOCUMENT(FUTURE, "7", "\"h\"", "2") },
		{ DOCUMENT(PAST, "7", "null", "1"), DOCUMENT(PAST, "7", "null", "2") },
		{ "{\"epoch\": 7, \"holder\": \"h\", \"more\": [1],"
		  " \"deadline_at\": \"2999-01-01T02:00:00+02:00\"}",
		  DOCUMENT(FUTURE, "7", "\"h\"", "1") },
	};
	struct bucket *bucket = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bucket_put(bucket, "k", cases[i].before);
		assert_status(&bucket->call,
			      cairn_lease_cooperative_write(bucket->store, &bucket->call, "k",
							    transform_increment, NULL, NULL),
			      CAIRN_OK);
		bucket_assert(bucket, "k", cases[i].after);
	}
}

static void test_lease_cooperative_write_tells_what_it_wrote_or_why_not(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_call *call = &bucket->call;
	struct cairn_buffer written;
	cairn_buffer_init(&written, 100);
	int refusal = CAIRN_CONFLICT;

	assert_status(call,
		      cairn_lease_cooperative_write(bucket->store, call, "k", transform_increment,
						    NULL, &written),
		      CAIRN_NOT_FOUND);
	assert_status(call,
		      cairn_lease_cooperative_write(bucket->store, call, "log/k",
						    transform_increment, NULL, &written),
		      CAIRN_INVALID);
	bucket_put(bucket, "k", DOCUMENT(FUTURE, "7", "\"h\"", "1"));
	assert_status(call,
		      cairn_lease_cooperative_write(bucket->store, call, "k", transform_refuse,
						    &refusal, &written),
		      CAIRN_CONFLICT);
	assert_int_equal(written.size, 0);
	bucket_assert(bucket, "k", DOCUMENT(FUTURE, "7", "\"h\"", "1"));
	bucket_fail(bucket, CAIRN_OPERATION_PUT, 1, CAIRN_UNKNOWN, true); /* counted once */
	assert_status(call,
		      cairn_lease_cooperative_write(bucket->store, call, "k", transform_increment,
						    NULL, &written),
		      CAIRN_OK);
	assert_string_equal(written.data, "2");
	bucket_assert(bucket, "k", DOCUMENT(FUTURE, "7", "\"h\"", "2"));
	cairn_buffer_release(&written);
}

static void somebody_renews(struct bucket *bucket)
{
	char text[200];
	(void)snprintf(text, sizeof(text),
		       DOCUMENT("\"2999-01-01T00:00:%02u.000000Z\"", "7", "\"h\"", "%u"),
		       bucket->runs, 10 * bucket->runs);
	bucket_put(bucket, "k", text);
}

static void test_lease_cooperative_write_follows_the_fresh_document(void **state)
{
	struct bucket *bucket = *state;
	unsigned times = 0;
	bucket_put(bucket, "k", DOCUMENT(FUTURE, "7", "\"h\"", "1"));

	bucket_hook_puts(bucket, 9, somebody_renews, NULL);
	assert_status(&bucket->call,
		      cairn_lease_cooperative_write(bucket->store, &bucket->call, "k",
						    transform_increment, &times, NULL),
		      CAIRN_OK);
	assert_int_equal(times, 10);
	bucket_assert(bucket, "k", DOCUMENT("\"2999-01-01T00:00:09.000000Z\"", "7", "\"h\"", "91"));
	bucket_hook_puts(bucket, 10, somebody_renews, NULL);
	assert_status(&bucket->call,
		      cairn_lease_cooperative_write(bucket->store, &bucket->call, "k",
						    transform_increment, &times, NULL),
		      CAIRN_BUSY);
	assert_int_equal(times, 20);
}

/* Threads race for one lease through a store that loses answers and requests: one has it. */
#define RACERS 8

struct racer {
	struct bucket *bucket;
	pthread_t thread;
	struct cairn_lease *lease;
	int status;
};

static void *race(void *context)
{
	struct racer *racer = context;
	const struct cairn_lease_options options = { .ttl = HOUR };
	struct cairn_call call = { 0 };
	racer->lease = NULL;
	racer->status =
		cairn_lease_acquire(racer->bucket->store, &call, "k", &options, &racer->lease);
	return NULL;
}

static void test_lease_race_has_one_winner(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_fault_rule rules[] = {
		{ .operations = 1u << CAIRN_OPERATION_PUT,
		  .permille = 250,
		  .status = CAIRN_UNKNOWN,
		  .act = true },
		{ .operations = 1u << CAIRN_OPERATION_PUT,
		  .permille = 250,
		  .status = CAIRN_UNKNOWN },
		{ .operations = 1u << CAIRN_OPERATION_PUT, .permille = 250, .status = CAIRN_BUSY },
	};
	for (int round = 0; round < 4; round++) {
		struct racer racers[RACERS];
		bucket_heal(bucket);
		bucket_put(bucket, "k", DOCUMENT(PAST, "5", "\"h\"", "1"));
		if (round % 2)
			bucket_delete(bucket, "k");
		for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
			assert_int_equal(cairn_fault_rule_add(bucket->fault, &rules[i]), CAIRN_OK);
		for (int i = 0; i < RACERS; i++) {
			racers[i] = (struct racer){ .bucket = bucket };
			assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]),
					 0);
		}
		int winners = 0;
		for (int i = 0; i < RACERS; i++)
			assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
		for (int i = 0; i < RACERS; i++) {
			if (racers[i].status == CAIRN_OK) {
				winners++;
				assert_document(bucket, racers[i].lease, round % 2 ? "null" : "1");
			} else {
				assert_int_equal(racers[i].status, CAIRN_HELD);
			}
			cairn_lease_free(racers[i].lease);
		}
		assert_int_equal(winners, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BUCKET_TESTS(test_lease_acquire_fresh_costs_one_request),
		BUCKET_TESTS(test_lease_holders_are_random_or_given),
		BUCKET_TESTS(test_lease_held_is_refused_without_telling_the_holder),
		BUCKET_TESTS(test_lease_that_may_be_taken_gets_the_next_epoch),
		BUCKET_TESTS(test_lease_after_the_last_epoch_is_refused),
		BUCKET_TESTS(test_lease_acquire_refuses_bad_arguments),
		BUCKET_TESTS(test_lease_acquire_goes_by_what_was_seen),
		BUCKET_TESTS(test_lease_transition_is_written_with_the_acquisition),
		BUCKET_TESTS(test_lease_transition_that_refuses_writes_nothing),
		BUCKET_TESTS(test_lease_acquire_that_lost_the_race_is_held),
		BUCKET_TESTS(test_lease_acquire_gives_up_after_eight_races),
		BUCKET_TESTS(test_lease_acquire_that_collided_tries_again),
		BUCKET_TESTS(test_lease_acquire_whose_answer_was_lost_holds),
		BUCKET_TESTS(
			test_lease_acquire_whose_answer_was_lost_heals_over_a_cooperative_write),
		BUCKET_TESTS(test_lease_acquire_of_unknown_outcome_is_no_loss),
		BUCKET_TESTS(test_lease_attach_enters_the_period_of_its_holder),
		BUCKET_TESTS(test_lease_attach_refuses_what_is_not_the_holders),
		BUCKET_TESTS(test_lease_cooperative_write_changes_the_state_alone),
		BUCKET_TESTS(test_lease_cooperative_write_tells_what_it_wrote_or_why_not),
		BUCKET_TESTS(test_lease_cooperative_write_follows_the_fresh_document),
		BUCKET_TESTS(test_lease_race_has_one_winner),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
