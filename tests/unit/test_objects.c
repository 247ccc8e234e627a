/* SPDX-License-Identifier: MIT */
#include "bucket.h"

static int put(struct bucket *bucket, const char *key, const char *text,
	       const struct cairn_put_options *options)
{
	return cairn_object_put(bucket->store, &bucket->call, key, cairn_slice_of(text), options,
				NULL);
}

static void test_objects_conditions_are_kept(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_put_options absent = { .if_absent = true };
	char etag[CAIRN_ETAG_SIZE];

	assert_status(&bucket->call, put(bucket, "a/b", "one", &absent), CAIRN_OK);
	bucket_etag(bucket, "a/b", etag);
	const struct cairn_put_options match = { .if_match = etag };
	assert_status(&bucket->call, put(bucket, "a/b", "x", &absent), CAIRN_EXISTS);
	assert_status(&bucket->call, put(bucket, "a/b", "two", &match), CAIRN_OK);
	assert_status(&bucket->call, put(bucket, "a/b", "x", &match), CAIRN_CONFLICT);
	bucket_assert(bucket, "a/b", "two");

	const struct cairn_delete_options old = { .if_match = etag };
	assert_status(&bucket->call, cairn_object_delete(bucket->store, &bucket->call, "a/b", &old),
		      CAIRN_CONFLICT);
	assert_status(&bucket->call, cairn_object_delete(bucket->store, &bucket->call, "a/b", NULL),
		      CAIRN_OK);
	bucket_assert(bucket, "a/b", NULL);
}

static void test_objects_reserved_and_bad_keys_are_refused(void **state)
{
	static const struct {
		const char *key;
		int status;
	} cases[] = {
		{ "", CAIRN_INVALID },
		{ "log/000000000001.msgpack", CAIRN_INVALID },
		{ "logs/x/log/1", CAIRN_INVALID },
		{ "snapshots/v1/x", CAIRN_INVALID },
		{ "txapplied/000000000007", CAIRN_INVALID },
		{ "bad\xff", CAIRN_INVALID },
	};
	struct bucket *bucket = *state;
	struct cairn_object object;
	cairn_object_init(&object);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *key = cases[i].key;
		int expected = cases[i].status;
		struct cairn_call *call = &bucket->call;
		assert_status(call, put(bucket, key, "x", NULL), expected);
		assert_status(call, cairn_object_get(bucket->store, call, key, NULL, &object),
			      expected);
		assert_status(call, cairn_object_delete(bucket->store, call, key, NULL), expected);
		assert_status(call, cairn_object_wait_for(bucket->store, call, key, NULL, &object),
			      expected);
	}
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_PUT), 0);
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), 0);
}

/* FORMAT hazard 8: every key that S3 can hold; a directory holds it or refuses it, and no other. */
static void test_objects_odd_keys_are_kept_or_refused(void **state)
{
	static const struct {
		const char *key;
		bool in_directory;
	} cases[] = {
		{ "plain", true },	 { "# %+&<@>'\"\\", true },
		{ "space in it", true }, { "\xc3\xa9t\xc3\xa9", true },
		{ "new\nline", true },	 { "dir/sub/leaf", true },
		{ "end.", true },	 { "logs", true },
		{ "a//c", false },	 { "/leading", false },
		{ "../up", false },	 { "x/./y", false },
		{ "x/../y", false },	 { ".hidden", false },
		{ "x/.hidden", false },	 { "plain/below", false },
	};
	struct bucket *bucket = *state;
	struct cairn_call *call = &bucket->call;
	struct cairn_object object;
	cairn_object_init(&object);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *key = cases[i].key;
		bool kept = cases[i].in_directory || !bucket->directory[0];
		assert_status(call, put(bucket, key, key, NULL), kept ? CAIRN_OK : CAIRN_INVALID);
		if (kept)
			bucket_assert(bucket, key, key);
	}
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	assert_status(call, cairn_object_list(bucket->store, call, "", &listing), CAIRN_OK);
	assert_int_equal(listing.count,
			 bucket->directory[0] ? 8 : sizeof(cases) / sizeof(cases[0]));
	for (size_t i = 1; i < listing.count; i++)
		assert_true(strcmp(listing.entries[i - 1].key, listing.entries[i].key) < 0);
	cairn_listing_release(&listing);
	cairn_object_release(&object);
}

static void test_objects_keys_have_at_most_1024_bytes(void **state)
{
	struct bucket *bucket = *state;
	char key[CAIRN_KEY_MAX + 2];
	for (size_t i = 0; i <= CAIRN_KEY_MAX; i++)
		key[i] = i % 128 == 127 ? '/' : 'k';
	key[CAIRN_KEY_MAX + 1] = '\0';

	assert_status(&bucket->call, put(bucket, key, "x", NULL), CAIRN_NAME_TOO_LONG);
	key[CAIRN_KEY_MAX] = '\0';
	key[CAIRN_KEY_MAX - 1] = 'k';
	assert_status(&bucket->call, put(bucket, key, "x", NULL), CAIRN_OK);
	bucket_assert(bucket, key, "x");
}

/* A store whose pages have two entries. */
static const struct cairn_store_ops *paged_below;

static int list_paged(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		      const struct cairn_list_options *options, struct cairn_listing *ret_listing)
{
	struct cairn_list_options two = *options;
	two.max = 2;
	return paged_below->list(store, call, prefix, &two, ret_listing);
}

static void test_objects_list_has_all_pages_without_reserved_keys(void **state)
{
	static const char *const keys[] = {
		"a",	"b/1",		"b/2", "log/000000000001.msgpack", "log2",
		"logs", "logs/n/log/x", "m",   "snapshots/v1/x",	   "txapplied/1",
		"z"
	};
	static const char *const shown[] = { "a", "b/1", "b/2", "log2", "m", "z" };
	struct bucket *bucket = *state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i], "logs") != 0)
			bucket_put(bucket, keys[i], "x");
	}
	paged_below = bucket->backend->ops;
	struct cairn_store_ops ops = *paged_below;
	ops.list = list_paged;
	bucket->backend->ops = &ops;
	struct cairn_listing listing;
	cairn_listing_init(&listing);

	assert_status(&bucket->call, cairn_object_list(bucket->store, &bucket->call, "", &listing),
		      CAIRN_OK);
	assert_int_equal(listing.count, sizeof(shown) / sizeof(shown[0]));
	for (size_t i = 0; i < listing.count; i++)
		assert_string_equal(listing.entries[i].key, shown[i]);
	assert_null(listing.token);
	assert_true(bucket_calls(bucket, CAIRN_OPERATION_LIST) >= 5);

	assert_status(&bucket->call,
		      cairn_object_list(bucket->store, &bucket->call, "b/", &listing), CAIRN_OK);
	assert_int_equal(listing.count, 2);
	assert_string_equal(listing.entries[0].key, "b/1");
	cairn_listing_release(&listing);
	bucket->backend->ops = paged_below;
}

static void test_objects_list_failure_leaves_the_result_alone(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	bucket_put(bucket, "a", "x");
	assert_status(&bucket->call, cairn_object_list(bucket->store, &bucket->call, "", &listing),
		      CAIRN_OK);

	bucket_fail(bucket, CAIRN_OPERATION_LIST, 0, CAIRN_ACCESS, false);
	assert_status(&bucket->call, cairn_object_list(bucket->store, &bucket->call, "", &listing),
		      CAIRN_ACCESS);
	assert_int_equal(listing.count, 1);
	cairn_listing_release(&listing);
}

/* Something that happens in the bucket while a call waits: the call's cancelled() does it. */
struct meanwhile {
	struct bucket *bucket;
	unsigned step;
	uint64_t looks; /* at the last step */
	bool give_up;
};

static bool meanwhile_put(void *context)
{
	struct meanwhile *meanwhile = context;
	if (meanwhile->step++ == 0)
		bucket_put(meanwhile->bucket, "k", "new");
	return false;
}

static bool meanwhile_delete_and_put_again(void *context)
{
	struct meanwhile *meanwhile = context;
	uint64_t looks = bucket_calls(meanwhile->bucket, CAIRN_OPERATION_GET);
	if (meanwhile->step == 0) {
		bucket_delete(meanwhile->bucket, "k");
		meanwhile->step++;
		meanwhile->looks = looks;
	} else if (meanwhile->step == 1 && looks > meanwhile->looks + 1) {
		bucket_put(meanwhile->bucket, "k", "old");
		meanwhile->step++;
	}
	return false;
}

static bool meanwhile_cancel(void *context)
{
	struct meanwhile *meanwhile = context;
	return meanwhile->step++ > 2;
}

static void test_objects_wait_for_returns_what_is_there(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_object object;
	cairn_object_init(&object);
	bucket_put(bucket, "k", "here");

	assert_status(&bucket->call,
		      cairn_object_wait_for(bucket->store, &bucket->call, "k", NULL, &object),
		      CAIRN_OK);
	assert_string_equal(object.data.data, "here");
	assert_int_equal(bucket_calls(bucket, CAIRN_OPERATION_GET), 1);
	cairn_object_release(&object);
}

static void test_objects_wait_for_sees_an_object_appear(void **state)
{
	struct bucket *bucket = *state;
	struct meanwhile meanwhile = { .bucket = bucket };
	struct cairn_call call = { .cancelled = meanwhile_put, .context = &meanwhile };
	const struct cairn_wait_options options = { .poll = 1000 };
	struct cairn_object object;
	cairn_object_init(&object);

	/* The caller's own deadline has passed: the wait has its own. */
	call.deadline = 1;
	assert_status(&call, cairn_object_wait_for(bucket->store, &call, "k", &options, &object),
		      CAIRN_OK);
	assert_string_equal(object.data.data, "new");
	assert_int_equal(call.deadline, 1);
	cairn_object_release(&object);
}

static void test_objects_wait_for_sees_a_change(void **state)
{
	struct bucket *bucket = *state;
	char etag[CAIRN_ETAG_SIZE];
	bucket_put(bucket, "k", "old");
	bucket_etag(bucket, "k", etag);
	struct meanwhile meanwhile = { .bucket = bucket };
	struct cairn_call call = { .cancelled = meanwhile_put, .context = &meanwhile };
	const struct cairn_wait_options options = { .poll = 1000, .changed_from = etag };
	struct cairn_object object;
	cairn_object_init(&object);

	assert_status(&call, cairn_object_wait_for(bucket->store, &call, "k", &options, &object),
		      CAIRN_OK);
	assert_string_equal(object.data.data, "new");
	cairn_object_release(&object);
}

/* FORMAT hazard 5: the etag that comes back is no proof that nothing happened. */
static void test_objects_wait_for_counts_a_deletion_as_change(void **state)
{
	struct bucket *bucket = *state;
	char etag[CAIRN_ETAG_SIZE];
	bucket_put(bucket, "k", "old");
	bucket_etag(bucket, "k", etag);
	struct meanwhile meanwhile = { .bucket = bucket };
	struct cairn_call call = { .cancelled = meanwhile_delete_and_put_again,
				   .context = &meanwhile };
	const struct cairn_wait_options options = { .timeout = 20000000,
						    .poll = 1000,
						    .changed_from = etag };
	struct cairn_object object;
	cairn_object_init(&object);

	assert_status(&call, cairn_object_wait_for(bucket->store, &call, "k", &options, &object),
		      CAIRN_OK);
	assert_string_equal(object.data.data, "old");
	assert_int_equal(meanwhile.step, 2);
	cairn_object_release(&object);
}

static void test_objects_wait_for_transfers_nothing_while_unchanged(void **state)
{
	struct bucket *bucket = *state;
	char etag[CAIRN_ETAG_SIZE];
	bucket_put(bucket, "k", "old");
	bucket_etag(bucket, "k", etag);
	const struct cairn_wait_options options = { .timeout = 20000,
						    .poll = 1000,
						    .changed_from = etag };
	struct cairn_object object;
	cairn_object_init(&object);

	assert_status(&bucket->call,
		      cairn_object_wait_for(bucket->store, &bucket->call, "k", &options, &object),
		      CAIRN_TIMEOUT);
	struct cairn_trace_count counts[CAIRN_OPERATION_COUNT];
	cairn_trace_read(bucket->store, counts);
	assert_true(counts[CAIRN_OPERATION_GET].calls >= 2);
	assert_int_equal(counts[CAIRN_OPERATION_GET].bytes, 0);
	assert_non_null(strstr(bucket->call.error.text, "wait for k"));
}

static void test_objects_wait_for_can_be_cancelled(void **state)
{
	struct bucket *bucket = *state;
	struct meanwhile meanwhile = { .bucket = bucket };
	struct cairn_call call = { .cancelled = meanwhile_cancel, .context = &meanwhile };
	const struct cairn_wait_options options = { .timeout = -1 };
	struct cairn_object object;
	cairn_object_init(&object);

	assert_status(&call, cairn_object_wait_for(bucket->store, &call, "k", &options, &object),
		      CAIRN_CANCELLED);
}

static void test_objects_wait_for_passes_failures_on(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_object object;
	cairn_object_init(&object);
	bucket_fail(bucket, CAIRN_OPERATION_GET, 0, CAIRN_ACCESS, false);

	assert_status(&bucket->call,
		      cairn_object_wait_for(bucket->store, &bucket->call, "k", NULL, &object),
		      CAIRN_ACCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BUCKET_TESTS(test_objects_conditions_are_kept),
		BUCKET_TESTS(test_objects_reserved_and_bad_keys_are_refused),
		BUCKET_TESTS(test_objects_odd_keys_are_kept_or_refused),
		BUCKET_TESTS(test_objects_keys_have_at_most_1024_bytes),
		BUCKET_TESTS(test_objects_list_has_all_pages_without_reserved_keys),
		BUCKET_TESTS(test_objects_list_failure_leaves_the_result_alone),
		BUCKET_TESTS(test_objects_wait_for_returns_what_is_there),
		BUCKET_TESTS(test_objects_wait_for_sees_an_object_appear),
		BUCKET_TESTS(test_objects_wait_for_sees_a_change),
		BUCKET_TESTS(test_objects_wait_for_counts_a_deletion_as_change),
		BUCKET_TESTS(test_objects_wait_for_transfers_nothing_while_unchanged),
		BUCKET_TESTS(test_objects_wait_for_can_be_cancelled),
		BUCKET_TESTS(test_objects_wait_for_passes_failures_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
