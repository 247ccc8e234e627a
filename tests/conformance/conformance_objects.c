/* SPDX-License-Identifier: MIT */
#include "conformance.h"

#include <time.h>

#define MEBIBYTE ((size_t)1024 * 1024)

static int get(struct bucket *bucket, const char *key, const struct cairn_get_options *options,
	       struct cairn_object *object)
{
	return cairn_store_get(bucket->store, &bucket->call, key, options, object);
}

static int delete (struct bucket *bucket, const char *key, const char *if_match)
{
	const struct cairn_delete_options options = { .if_match = if_match };
	return cairn_store_delete(bucket->store, &bucket->call, key, &options);
}

static void test_store_put_then_get(void **state)
{
	struct bucket *bucket = *state;
	static const char bytes[] = "nul \0 high \xff\xfe line\r\n";
	struct cairn_version put;
	struct cairn_object object;
	cairn_object_init(&object);
	int64_t now = (int64_t)time(NULL) * 1000000;

	int status = cairn_store_put(bucket->store, &bucket->call, "dir/key",
				     (struct cairn_slice){ bytes, sizeof(bytes) }, NULL, &put);
	expect_status(bucket, status, CAIRN_OK, "put");
	expect_status(bucket, get(bucket, "dir/key", NULL, &object), CAIRN_OK, "get");

	assert_int_equal(object.data.size, sizeof(bytes));
	assert_memory_equal(object.data.data, bytes, sizeof(bytes));
	assert_string_equal(object.version.etag, put.etag);
	assert_string_equal(object.version.nonce, put.nonce);
	assert_true(*put.etag && *put.nonce);
	assert_int_equal(put.size, sizeof(bytes));
	assert_int_equal(put.age, 0);
	expect_time(bucket, object.version.modified, put.modified);
	assert_in_range(object.version.modified, now - 3600000000, now + 3600000000);
	assert_in_range(object.version.age, 0, 60000000);
	cairn_object_release(&object);
}

static void test_store_put_empty_object(void **state)
{
	struct bucket *bucket = *state;

	must_put(bucket, "empty", "");

	expect_text(bucket, "empty", "");
}

static void test_store_get_absent(void **state)
{
	struct bucket *bucket = *state;
	must_put(bucket, "a/b", "1");

	expect_text(bucket, "absent", NULL);
	expect_text(bucket, "absent/below", NULL);
	expect_text(bucket, "a", NULL);
	expect_text(bucket, "a/b/c", NULL);
	expect_text(bucket, "a/bb", NULL);
}

static void test_store_put_replaces(void **state)
{
	struct bucket *bucket = *state;
	must_put(bucket, "k", "one");

	must_put(bucket, "k", "two, longer");
	expect_text(bucket, "k", "two, longer");
	must_put(bucket, "k", "3");
	expect_text(bucket, "k", "3");
}

static void test_store_put_if_absent(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_put_options absent = { .if_absent = true };

	expect_status(bucket, put_text(bucket, "k", "first", &absent, NULL), CAIRN_OK, "first");
	expect_status(bucket, put_text(bucket, "k", "second", &absent, NULL), CAIRN_EXISTS,
		      "second");
	expect_status(bucket, put_text(bucket, "k", "first", &absent, NULL), CAIRN_EXISTS,
		      "equal content");
	expect_text(bucket, "k", "first");
}

static void test_store_put_if_match(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_version first, second;
	expect_status(bucket, put_text(bucket, "k", "1", NULL, &first), CAIRN_OK, "put");
	struct cairn_put_options match = { .if_match = first.etag };

	expect_status(bucket, put_text(bucket, "k", "2", &match, &second), CAIRN_OK, "right etag");
	expect_status(bucket, put_text(bucket, "k", "3", &match, NULL), CAIRN_CONFLICT, "old etag");
	expect_text(bucket, "k", "2");
	match.if_match = second.etag;
	expect_status(bucket, put_text(bucket, "other", "3", &match, NULL), CAIRN_CONFLICT,
		      "absent key");
	expect_text(bucket, "other", NULL);
	expect_status(bucket, delete (bucket, "k", NULL), CAIRN_OK, "delete");
	expect_status(bucket, put_text(bucket, "k", "3", &match, NULL), CAIRN_CONFLICT,
		      "deleted key");
	expect_text(bucket, "k", NULL);
}

static void test_store_put_refuses_wrong_conditions(void **state)
{
	struct bucket *bucket = *state;
	const struct cairn_put_options empty = { .if_match = "" };
	const struct cairn_put_options both = { .if_match = "x", .if_absent = true };
	must_put(bucket, "k", "1");

	expect_status(bucket, put_text(bucket, "k", "2", &empty, NULL), CAIRN_INVALID, "empty");
	expect_status(bucket, put_text(bucket, "k", "2", &both, NULL), CAIRN_INVALID, "both");
	expect_status(bucket, delete (bucket, "k", ""), CAIRN_INVALID, "delete");
	expect_text(bucket, "k", "1");
}

static void test_store_put_has_a_nonce_of_its_own(void **state)
{
	struct bucket *bucket = *state;
	char first[CAIRN_NONCE_SIZE] = "", second[CAIRN_NONCE_SIZE] = "";
	struct cairn_version version;
	struct cairn_object object;
	cairn_object_init(&object);

	expect_status(bucket,
		      put_text(bucket, "k", "same", &(struct cairn_put_options){ .nonce = first },
			       &version),
		      CAIRN_OK, "first");
	assert_string_equal(version.nonce, first);
	expect_status(bucket,
		      put_text(bucket, "k", "same", &(struct cairn_put_options){ .nonce = second },
			       &version),
		      CAIRN_OK, "second");
	expect_status(bucket, get(bucket, "k", NULL, &object), CAIRN_OK, "get");

	assert_true(*first && *second);
	assert_string_not_equal(first, second);
	assert_string_equal(object.version.nonce, second);
	cairn_object_release(&object);
}

/* FORMAT hazard 5. */
static void test_store_content_etags_repeat(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_version a, b, again;
	if (!bucket->store->capabilities.content_etags)
		skip();

	expect_status(bucket, put_text(bucket, "k", "A", NULL, &a), CAIRN_OK, "A");
	expect_status(bucket, put_text(bucket, "k", "B", NULL, &b), CAIRN_OK, "B");
	expect_status(bucket, put_text(bucket, "k", "A", NULL, &again), CAIRN_OK, "A again");

	assert_string_equal(a.etag, again.etag);
	assert_string_not_equal(a.etag, b.etag);
	assert_string_not_equal(a.nonce, again.nonce);
	const struct cairn_put_options match = { .if_match = a.etag };
	expect_status(bucket, put_text(bucket, "k", "C", &match, NULL), CAIRN_OK, "C");
}

static void test_store_get_conditions(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_version version;
	struct cairn_object object;
	cairn_object_init(&object);
	expect_status(bucket, put_text(bucket, "k", "text", NULL, &version), CAIRN_OK, "put");
	struct cairn_get_options none = { .if_none_match = version.etag };
	struct cairn_get_options match = { .if_match = version.etag };

	expect_status(bucket, get(bucket, "k", &none, &object), CAIRN_UNCHANGED, "none match");
	expect_status(bucket, get(bucket, "k", &match, &object), CAIRN_OK, "match");
	assert_string_equal(object.data.data, "text");
	must_put(bucket, "k", "other");
	expect_status(bucket, get(bucket, "k", &match, &object), CAIRN_CONFLICT, "match, changed");
	expect_status(bucket, get(bucket, "k", &none, &object), CAIRN_OK, "none match, changed");
	assert_string_equal(object.data.data, "other");
	expect_status(bucket, get(bucket, "absent", &none, &object), CAIRN_NOT_FOUND, "absent");
	cairn_object_release(&object);
}

static void test_store_get_ranges(void **state)
{
	static const struct {
		uint64_t offset, length;
		const char *expected;
	} ranges[] = {
		{ 0, 0, "0123456789" },	 { 0, 4, "0123" },	  { 3, 4, "3456" },
		{ 3, 0, "3456789" },	 { 8, 5, "89" },	  { 10, 0, "" },
		{ 10, 3, "" },		 { 1000, 0, "" },	  { 9, 1, "9" },
		{ 0, 10, "0123456789" }, { 0, 99, "0123456789" },
	};
	struct bucket *bucket = *state;
	struct cairn_object object;
	cairn_object_init(&object);
	must_put(bucket, "k", "0123456789");

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct cairn_get_options options = { .offset = ranges[i].offset,
							   .length = ranges[i].length };
		expect_status(bucket, get(bucket, "k", &options, &object), CAIRN_OK, "range");
		assert_int_equal(object.data.size, strlen(ranges[i].expected));
		assert_memory_equal(object.data.data ? object.data.data : "", ranges[i].expected,
				    object.data.size);
		assert_int_equal(object.version.size, 10);
	}
	cairn_object_release(&object);
}

static void test_store_get_without_data(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_version version;
	struct cairn_object object;
	cairn_object_init(&object);
	expect_status(bucket, put_text(bucket, "k", "0123456789", NULL, &version), CAIRN_OK, "put");

	const struct cairn_get_options version_only = { .no_data = true };
	expect_status(bucket, get(bucket, "k", &version_only, &object), CAIRN_OK, "no data");
	assert_int_equal(object.data.size, 0);
	assert_string_equal(object.version.etag, version.etag);
	const struct cairn_get_options too_small = { .max_size = 9 };
	expect_status(bucket, get(bucket, "k", &too_small, &object), CAIRN_OK, "max_size 9");
	assert_int_equal(object.data.size, 0);
	assert_int_equal(object.version.size, 10);
	const struct cairn_get_options enough = { .max_size = 10 };
	expect_status(bucket, get(bucket, "k", &enough, &object), CAIRN_OK, "max_size 10");
	assert_int_equal(object.data.size, 10);
	cairn_object_release(&object);
}

static char *big_content(size_t size, uint32_t seed)
{
	char *data = malloc(size);
	assert_non_null(data);
	for (size_t i = 0; i < size; i++) {
		seed = seed * 1664525u + 1013904223u;
		data[i] = (char)(seed >> 24);
	}
	return data;
}

static void test_store_big_object(void **state)
{
	struct bucket *bucket = *state;
	const size_t size = 20 * MEBIBYTE + 7;
	char *data = big_content(size, 1);
	struct cairn_version version;
	struct cairn_object object;
	cairn_object_init(&object);

	int status = cairn_store_put(bucket->store, &bucket->call, "big",
				     (struct cairn_slice){ data, size }, NULL, &version);
	expect_status(bucket, status, CAIRN_OK, "put");
	expect_status(bucket, get(bucket, "big", NULL, &object), CAIRN_OK, "get");
	assert_int_equal(object.data.size, size);
	assert_memory_equal(object.data.data, data, size);
	assert_string_equal(object.version.etag, version.etag);
	for (size_t offset = 0; offset < size; offset += 3 * MEBIBYTE + 1) {
		const struct cairn_get_options range = { .if_match = version.etag,
							 .offset = offset,
							 .length = MEBIBYTE };
		size_t expected = size - offset < MEBIBYTE ? size - offset : MEBIBYTE;
		expect_status(bucket, get(bucket, "big", &range, &object), CAIRN_OK, "range");
		assert_int_equal(object.data.size, expected);
		assert_memory_equal(object.data.data, data + offset, expected);
	}
	cairn_object_release(&object);
	free(data);
}

static void test_store_big_object_range_of_another_version(void **state)
{
	struct bucket *bucket = *state;
	const size_t size = MEBIBYTE;
	char *data = big_content(size, 2);
	struct cairn_version version;
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_put(bucket->store, &bucket->call, "big",
				     (struct cairn_slice){ data, size }, NULL, &version);
	expect_status(bucket, status, CAIRN_OK, "put");
	const struct cairn_get_options range = { .if_match = version.etag,
						 .offset = 9,
						 .length = 9 };
	expect_status(bucket, get(bucket, "big", &range, &object), CAIRN_OK, "before");

	data[500000] ^= 1;
	status = cairn_store_put(bucket->store, &bucket->call, "big",
				 (struct cairn_slice){ data, size }, NULL, NULL);
	expect_status(bucket, status, CAIRN_OK, "put again");

	expect_status(bucket, get(bucket, "big", &range, &object), CAIRN_CONFLICT, "after");
	cairn_object_release(&object);
	free(data);
}

static void test_store_delete(void **state)
{
	struct bucket *bucket = *state;
	must_put(bucket, "a/k", "1");
	must_put(bucket, "a/l", "2");

	expect_status(bucket, delete (bucket, "a/k", NULL), CAIRN_OK, "present");
	expect_text(bucket, "a/k", NULL);
	expect_status(bucket, delete (bucket, "a/k", NULL), CAIRN_OK, "absent");
	expect_status(bucket, delete (bucket, "no/such/prefix", NULL), CAIRN_OK, "no prefix");
	expect_status(bucket, delete (bucket, "a", NULL), CAIRN_OK, "a prefix");
	expect_status(bucket, delete (bucket, "a/l/below", NULL), CAIRN_OK, "below an object");
	expect_text(bucket, "a/l", "2");
	must_put(bucket, "a/k", "3");
	expect_text(bucket, "a/k", "3");
}

static void test_store_delete_if_match(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_version first, second;
	expect_status(bucket, put_text(bucket, "k", "1", NULL, &first), CAIRN_OK, "put");
	expect_status(bucket, put_text(bucket, "k", "2", NULL, &second), CAIRN_OK, "put");

	if (!bucket->store->capabilities.delete_if_match) {
		expect_status(bucket, delete (bucket, "k", second.etag), CAIRN_UNSUPPORTED, "k");
		expect_text(bucket, "k", "2");
		return;
	}
	expect_status(bucket, delete (bucket, "k", first.etag), CAIRN_CONFLICT, "old etag");
	expect_text(bucket, "k", "2");
	expect_status(bucket, delete (bucket, "k", second.etag), CAIRN_OK, "right etag");
	expect_text(bucket, "k", NULL);
	/* versitygw says of an absent key that it is deleted. */
	int absent = bucket->target->folder ? CAIRN_OK : CAIRN_CONFLICT;
	expect_status(bucket, delete (bucket, "k", second.etag), absent, "absent");
	expect_status(bucket, delete (bucket, "x/y", second.etag), absent, "no prefix");
}

static void test_store_space(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_space space;

	int status = cairn_store_space(bucket->store, &bucket->call, &space);

	expect_status(bucket, status, CAIRN_OK, "space");
	assert_true(space.total > 0 && space.available <= space.total);
}

const struct CMUnitTest object_cases[] = {
	cmocka_unit_test(test_store_put_then_get),
	cmocka_unit_test(test_store_put_empty_object),
	cmocka_unit_test(test_store_get_absent),
	cmocka_unit_test(test_store_put_replaces),
	cmocka_unit_test(test_store_put_if_absent),
	cmocka_unit_test(test_store_put_if_match),
	cmocka_unit_test(test_store_put_refuses_wrong_conditions),
	cmocka_unit_test(test_store_put_has_a_nonce_of_its_own),
	cmocka_unit_test(test_store_content_etags_repeat),
	cmocka_unit_test(test_store_get_conditions),
	cmocka_unit_test(test_store_get_ranges),
	cmocka_unit_test(test_store_get_without_data),
	cmocka_unit_test(test_store_big_object),
	cmocka_unit_test(test_store_big_object_range_of_another_version),
	cmocka_unit_test(test_store_delete),
	cmocka_unit_test(test_store_delete_if_match),
	cmocka_unit_test(test_store_space),
	{ 0 },
};
