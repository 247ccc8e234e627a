/* SPDX-License-Identifier: MIT */
#include "conformance.h"

static int make(struct bucket *bucket, const char *prefix)
{
	return cairn_store_prefix_make(bucket->store, &bucket->call, prefix);
}

static int exists(struct bucket *bucket, const char *prefix)
{
	return cairn_store_prefix_exists(bucket->store, &bucket->call, prefix);
}

static int undo(struct bucket *bucket, const char *prefix)
{
	return cairn_store_prefix_remove(bucket->store, &bucket->call, prefix);
}

static void test_store_prefix_stands_by_its_keys(void **state)
{
	struct bucket *bucket = *state;
	must_put(bucket, "a/b/c", "1");
	must_put(bucket, "k", "1");

	expect_status(bucket, exists(bucket, ""), CAIRN_OK, "the bucket");
	expect_status(bucket, exists(bucket, "a/"), CAIRN_OK, "a/");
	expect_status(bucket, exists(bucket, "a/b/"), CAIRN_OK, "a/b/");
	expect_status(bucket, exists(bucket, "a/b/c/"), CAIRN_NOT_FOUND, "an object");
	expect_status(bucket, exists(bucket, "k/"), CAIRN_NOT_FOUND, "an object");
	expect_status(bucket, exists(bucket, "x/"), CAIRN_NOT_FOUND, "absent");
	expect_status(bucket, exists(bucket, "a"), CAIRN_INVALID, "no slash");
}

static void test_store_prefix_make_and_remove(void **state)
{
	struct bucket *bucket = *state;

	expect_status(bucket, make(bucket, "d/"), CAIRN_OK, "make");
	expect_status(bucket, make(bucket, "d/"), CAIRN_EXISTS, "make again");
	expect_status(bucket, exists(bucket, "d/"), CAIRN_OK, "exists");
	expect_status(bucket, make(bucket, "d/e/"), CAIRN_OK, "make below");
	expect_status(bucket, undo(bucket, "d/"), CAIRN_NOT_EMPTY, "not empty");
	expect_status(bucket, undo(bucket, "d/e/"), CAIRN_OK, "remove below");
	expect_status(bucket, undo(bucket, "d/"), CAIRN_OK, "remove");
	expect_status(bucket, undo(bucket, "d/"), CAIRN_NOT_FOUND, "remove again");
	expect_status(bucket, exists(bucket, "d/"), CAIRN_NOT_FOUND, "exists no more");
	expect_status(bucket, make(bucket, "d/"), CAIRN_OK, "make anew");
}

static void test_store_prefix_with_keys_stays(void **state)
{
	struct bucket *bucket = *state;
	expect_status(bucket, make(bucket, "d/"), CAIRN_OK, "make");
	must_put(bucket, "d/k", "1");

	expect_status(bucket, undo(bucket, "d/"), CAIRN_NOT_EMPTY, "remove");

	expect_text(bucket, "d/k", "1");
}

static void test_store_prefix_of_a_real_directory(void **state)
{
	struct bucket *bucket = *state;
	if (!bucket->store->capabilities.real_directories)
		skip();
	must_put(bucket, "k", "1");

	expect_status(bucket, make(bucket, "no/such/"), CAIRN_NOT_FOUND, "above is missing");
	expect_status(bucket, make(bucket, "k/"), CAIRN_EXISTS, "an object's name");
	expect_status(bucket, make(bucket, "k/d/"), CAIRN_NOT_FOUND, "below an object");
	expect_status(bucket, undo(bucket, "k/"), CAIRN_NOT_FOUND, "an object");
	expect_status(bucket, make(bucket, ".d/"), CAIRN_INVALID, "a first dot");
	expect_status(bucket, make(bucket, "../d/"), CAIRN_INVALID, "up");
	expect_status(bucket, make(bucket, "/"), CAIRN_INVALID, "an empty segment");
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	expect_status(bucket, make(bucket, "empty/"), CAIRN_OK, "make");
	const struct cairn_list_options options = { .delimited = true };
	int status = cairn_store_list(bucket->store, &bucket->call, "e", &options, &listing);
	expect_status(bucket, status, CAIRN_OK, "list");
	expect_keys(&listing, "empty/ ");
	cairn_listing_release(&listing);
}

const struct CMUnitTest prefix_cases[] = {
	cmocka_unit_test(test_store_prefix_stands_by_its_keys),
	cmocka_unit_test(test_store_prefix_make_and_remove),
	cmocka_unit_test(test_store_prefix_with_keys_stays),
	cmocka_unit_test(test_store_prefix_of_a_real_directory),
	{ 0 },
};
