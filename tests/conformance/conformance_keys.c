/* SPDX-License-Identifier: MIT */
#include "conformance.h"

#include <cairn/key.h>

/* FORMAT hazard 8: all are legal on S3; those marked cannot lie in a directory. */
static const struct {
	const char *key;
	bool directory_cannot;
} odd_keys[] = {
	{ "# % + & < @ space ' \xc3\xa9", false },
	{ "line\nbreak\ttab\r\x01", false },
	{ "%2F%2e%2E", false },
	{ "back\\slash", false },
	{ "e\xcc\x81", false },
	{ "\xc3\xa9", false },
	{ "tilde~", false },
	{ "a?b=c;d*e[f]", false },
	{ "dots.in.name", false },
	{ "trailing.", false },
	{ "x/y/z/w", false },
	{ "\xf0\x9f\x90\x91", false },
	{ "a//c", true },
	{ "/leading", true },
	{ "trailing/", true },
	{ ".", true },
	{ "..", true },
	{ "./a", true },
	{ "a/../b", true },
	{ "a/./b", true },
	{ ".hidden", true },
	{ "a/.k.lock", true },
	{ "...", true },
};

#define ODD_COUNT (sizeof(odd_keys) / sizeof(odd_keys[0]))

static bool listed(struct bucket *bucket, const char *key)
{
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	int status = cairn_store_list(bucket->store, &bucket->call, "", NULL, &listing);
	expect_status(bucket, status, CAIRN_OK, "list");
	bool found = false;
	for (size_t i = 0; i < listing.count; i++)
		found = found || strcmp(listing.entries[i].key, key) == 0;
	cairn_listing_release(&listing);
	return found;
}

static void test_store_odd_keys(void **state)
{
	struct bucket *bucket = *state;
	bool directories = bucket->store->capabilities.real_directories;
	for (size_t i = 0; i < ODD_COUNT; i++) {
		const char *key = odd_keys[i].key;
		if (folder_cannot(bucket, key))
			continue;
		if (directories && odd_keys[i].directory_cannot) {
			expect_status(bucket, put_text(bucket, key, key, NULL, NULL), CAIRN_INVALID,
				      key);
			struct cairn_object object;
			cairn_object_init(&object);
			expect_status(
				bucket,
				cairn_store_get(bucket->store, &bucket->call, key, NULL, &object),
				CAIRN_INVALID, key);
			expect_status(bucket,
				      cairn_store_delete(bucket->store, &bucket->call, key, NULL),
				      CAIRN_INVALID, key);
			assert_false(listed(bucket, key));
		} else {
			must_put(bucket, key, key);
		}
	}
	/* Each is itself: none was another under a different name. */
	for (size_t i = 0; i < ODD_COUNT; i++) {
		if ((directories && odd_keys[i].directory_cannot) ||
		    folder_cannot(bucket, odd_keys[i].key))
			continue;
		expect_text(bucket, odd_keys[i].key, odd_keys[i].key);
		assert_true(listed(bucket, odd_keys[i].key));
	}
}

static void test_store_object_beside_its_prefix(void **state)
{
	struct bucket *bucket = *state;
	bool directories = bucket->store->capabilities.real_directories || bucket->target->folder;
	int expected = directories ? CAIRN_INVALID : CAIRN_OK;
	must_put(bucket, "a", "object");
	must_put(bucket, "p/q", "below");

	expect_status(bucket, put_text(bucket, "a/b", "1", NULL, NULL), expected, "a/b");
	expect_status(bucket, put_text(bucket, "a/b/c", "1", NULL, NULL), expected, "a/b/c");
	expect_status(bucket, put_text(bucket, "p", "1", NULL, NULL), expected, "p");
	const struct cairn_put_options absent = { .if_absent = true };
	expect_status(bucket, put_text(bucket, "p", "2", &absent, NULL),
		      directories ? CAIRN_INVALID : CAIRN_EXISTS, "p if absent");

	expect_text(bucket, "a", "object");
	expect_text(bucket, "p/q", "below");
	expect_text(bucket, "a/b", directories ? NULL : "1");
}

/* A key of `size` bytes in segments that a directory can hold. */
static void long_key(char *key, size_t size)
{
	for (size_t i = 0; i < size; i++)
		key[i] = i % 200 == 199 && i + 1 < size ? '/' : 'k';
	key[size] = '\0';
}

static void test_store_key_lengths(void **state)
{
	struct bucket *bucket = *state;
	char key[CAIRN_KEY_MAX + 2];

	long_key(key, CAIRN_KEY_MAX);
	must_put(bucket, key, "longest");
	expect_text(bucket, key, "longest");
	assert_true(listed(bucket, key));
	long_key(key, CAIRN_KEY_MAX + 1);
	expect_status(bucket, put_text(bucket, key, "1", NULL, NULL), CAIRN_NAME_TOO_LONG, "1025");
	struct cairn_object object;
	cairn_object_init(&object);
	expect_status(bucket, cairn_store_get(bucket->store, &bucket->call, key, NULL, &object),
		      CAIRN_NAME_TOO_LONG, "1025");
	expect_status(bucket, put_text(bucket, "", "1", NULL, NULL), CAIRN_INVALID, "empty");
}

static void test_store_long_segment(void **state)
{
	struct bucket *bucket = *state;
	char name[300];
	memset(name, 'n', sizeof(name));
	name[249] = '\0';
	must_put(bucket, name, "249");
	expect_text(bucket, name, "249");

	name[249] = 'n';
	name[250] = '\0';
	expect_status(bucket, put_text(bucket, name, "250", NULL, NULL),
		      bucket->store->capabilities.real_directories ? CAIRN_NAME_TOO_LONG : CAIRN_OK,
		      "250");
}

const struct CMUnitTest key_cases[] = {
	cmocka_unit_test(test_store_odd_keys),
	cmocka_unit_test(test_store_object_beside_its_prefix),
	cmocka_unit_test(test_store_key_lengths),
	cmocka_unit_test(test_store_long_segment),
	{ 0 },
};
