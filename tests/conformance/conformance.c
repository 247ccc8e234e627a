/* SPDX-License-Identifier: MIT */
#include "conformance.h"

#define CASES_MAX 200

static void open_bucket(struct bucket *bucket)
{
	struct cairn_store *store = NULL;
	assert_int_equal(bucket->target->make(bucket->target->context, &store), CAIRN_OK);
	bucket->bare = bucket->store = store;
	bucket->fault = NULL;
	bucket->call = (struct cairn_call){ 0 };
}

void bucket_stack(struct bucket *bucket, bool local)
{
	struct cairn_store *traced, *faulty, *retried;
	open_bucket(bucket);
	/* The stacked stores take it over: a network store is one that is not local. */
	bucket->bare->capabilities.local = local;
	assert_int_equal(cairn_trace_store_new(bucket->bare, &traced), CAIRN_OK);
	assert_int_equal(cairn_fault_store_new(traced, 1, &faulty), CAIRN_OK);
	assert_int_equal(cairn_retry_store_new(faulty, &retried), CAIRN_OK);
	bucket->fault = faulty;
	bucket->store = retried;
}

void bucket_close(struct bucket *bucket)
{
	cairn_store_free(bucket->store);
	bucket->store = bucket->bare = bucket->fault = NULL;
	if (bucket->target->discard)
		bucket->target->discard(bucket->target->context);
}

static int set_up(void **state)
{
	struct bucket *bucket = *state;
	open_bucket(bucket);
	if (bucket->stacked) {
		bool local = bucket->bare->capabilities.local;
		bucket_close(bucket);
		bucket_stack(bucket, local);
	}
	return 0;
}

static int tear_down(void **state)
{
	bucket_close(*state);
	return 0;
}

int put_text(struct bucket *bucket, const char *key, const char *text,
	     const struct cairn_put_options *options, struct cairn_version *version)
{
	return cairn_store_put(bucket->store, &bucket->call, key, cairn_slice_of(text), options,
			       version);
}

void expect_status(const struct bucket *bucket, int status, int expected, const char *what)
{
	if (status == expected) {
		/* Every failure is described. */
		if (status && !*bucket->call.error.text)
			fail_msg("%s: %s without a text", what, cairn_status_name(status));
		return;
	}
	fail_msg("%s: %s instead of %s (%s)", what, cairn_status_name(status),
		 cairn_status_name(expected), bucket->call.error.text);
}

void must_put(struct bucket *bucket, const char *key, const char *text)
{
	expect_status(bucket, put_text(bucket, key, text, NULL, NULL), CAIRN_OK, key);
}

void expect_text(struct bucket *bucket, const char *key, const char *text)
{
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_get(bucket->store, &bucket->call, key, NULL, &object);
	expect_status(bucket, status, text ? CAIRN_OK : CAIRN_NOT_FOUND, key);
	if (text) {
		assert_int_equal(object.data.size, strlen(text));
		assert_int_equal(object.version.size, strlen(text));
		if (*text)
			assert_string_equal(object.data.data, text);
	}
	cairn_object_release(&object);
}

void expect_time(const struct bucket *bucket, int64_t one, int64_t other)
{
	int64_t slack = bucket->target->clock_slack;
	if (one - other > slack || other - one > slack)
		fail_msg("times differ by %lld µs", (long long)(one - other));
}

bool folder_cannot(const struct bucket *bucket, const char *key)
{
	if (!bucket->target->folder)
		return false;
	bool begins = true;
	for (const char *at = key; *at; at++) {
		/* A segment that is empty or begins with a dot, and what XML cannot hold. */
		if ((begins && (*at == '/' || *at == '.')) || (unsigned char)*at < ' ')
			return true;
		begins = *at == '/';
	}
	return begins;
}

void expect_keys(const struct cairn_listing *listing, const char *expected)
{
	struct cairn_buffer keys;
	cairn_buffer_init(&keys, 1 << 20);
	for (size_t i = 0; i < listing->count; i++)
		assert_int_equal(cairn_buffer_printf(&keys, "%s ", listing->entries[i].key), 0);
	assert_string_equal(keys.data ? keys.data : "", expected);
	cairn_buffer_release(&keys);
}

static size_t add_cases(struct CMUnitTest *all, size_t count, const struct CMUnitTest *cases,
			struct bucket *bucket)
{
	for (; cases->test_func; cases++) {
		assert_true(count < CASES_MAX);
		all[count] = *cases;
		all[count].setup_func = set_up;
		all[count].teardown_func = tear_down;
		all[count].initial_state = bucket;
		count++;
	}
	return count;
}

static int run(const struct conformance_target *target, bool stacked)
{
	static struct CMUnitTest all[CASES_MAX];
	struct bucket bucket = { .target = target, .stacked = stacked };
	char name[100];
	size_t count = 0;
	count = add_cases(all, count, object_cases, &bucket);
	count = add_cases(all, count, key_cases, &bucket);
	count = add_cases(all, count, listing_cases, &bucket);
	count = add_cases(all, count, prefix_cases, &bucket);
	count = add_cases(all, count, race_cases, &bucket);
	/* These stack their stores themselves. */
	if (stacked)
		count = add_cases(all, count, fault_cases, &bucket);
	(void)snprintf(name, sizeof(name), "%s, %s", target->name, stacked ? "stacked" : "bare");
	return _cmocka_run_group_tests(name, all, count, NULL, NULL);
}

int conformance_run(const struct conformance_target *target)
{
	int failed = run(target, false);
	return failed + run(target, true);
}
