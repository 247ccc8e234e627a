/* SPDX-License-Identifier: MIT */
#include "conformance.h"

#define MODEL_MAX 400

static void list(struct bucket *bucket, const char *prefix,
		 const struct cairn_list_options *options, struct cairn_listing *listing)
{
	int status = cairn_store_list(bucket->store, &bucket->call, prefix, options, listing);
	expect_status(bucket, status, CAIRN_OK, prefix);
}

static void test_store_list_nothing(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	must_put(bucket, "a/b", "1");

	list(bucket, "c/", NULL, &listing);
	assert_int_equal(listing.count, 0);
	assert_null(listing.token);
	list(bucket, "a/b/", NULL, &listing);
	assert_int_equal(listing.count, 0);
	list(bucket, "a//", NULL, &listing);
	assert_int_equal(listing.count, 0);
	list(bucket, "/", NULL, &listing);
	assert_int_equal(listing.count, 0);
	cairn_listing_release(&listing);
}

static void test_store_list_tells_objects(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_version version;
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	expect_status(bucket, put_text(bucket, "d/k", "12345", NULL, &version), CAIRN_OK, "put");
	must_put(bucket, "d/s/k", "1");

	const struct cairn_list_options options = { .delimited = true };
	list(bucket, "d/", &options, &listing);

	expect_keys(&listing, "d/k d/s/ ");
	assert_false(listing.entries[0].is_prefix);
	assert_int_equal(listing.entries[0].size, 5);
	expect_time(bucket, listing.entries[0].modified, version.modified);
	assert_true(listing.entries[1].is_prefix);
	if (bucket->store->capabilities.listing_etags)
		assert_string_equal(listing.entries[0].etag, version.etag);
	else
		assert_null(listing.entries[0].etag);
	cairn_listing_release(&listing);
}

static void test_store_list_orders_by_bytes(void **state)
{
	static const char *const keys[] = { "a/z", "a-b", "a.b", "a0", "A", "\xc3\xa9", "a/\x01" };
	static const char control[] = "A a-b a.b a/\x01 a/z a0 \xc3\xa9 ";
	static const char plain[] = "A a-b a.b a/z a0 \xc3\xa9 ";
	struct bucket *bucket = *state;
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!folder_cannot(bucket, keys[i]))
			must_put(bucket, keys[i], "1");

	list(bucket, "", NULL, &listing);
	expect_keys(&listing, bucket->target->folder ? plain : control);
	const struct cairn_list_options options = { .delimited = true };
	list(bucket, "", &options, &listing);
	/* A directory bucket has directories of its own. */
	size_t own = 0;
	for (size_t i = 0; i < listing.count; i++) {
		const char *key = listing.entries[i].key;
		if (strcmp(key, "log/") != 0 && strcmp(key, "snapshots/") != 0)
			listing.entries[own++] = listing.entries[i];
	}
	listing.count = own;
	expect_keys(&listing, "A a-b a.b a/ a0 \xc3\xa9 ");
	cairn_listing_release(&listing);
}

static void test_store_list_prefix_need_not_end_in_slash(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	must_put(bucket, "abc", "1");
	must_put(bucket, "ab/x/y", "1");
	must_put(bucket, "ac", "1");
	must_put(bucket, "d/abc", "1");

	list(bucket, "ab", NULL, &listing);
	expect_keys(&listing, "ab/x/y abc ");
	const struct cairn_list_options options = { .delimited = true };
	list(bucket, "ab", &options, &listing);
	expect_keys(&listing, "ab/ abc ");
	list(bucket, "ab/x", &options, &listing);
	expect_keys(&listing, "ab/x/ ");
	list(bucket, "abc", NULL, &listing);
	expect_keys(&listing, "abc ");
	cairn_listing_release(&listing);
}

/* What a listing should say, computed from all keys. */
struct model {
	char *keys[MODEL_MAX]; /* sorted */
	size_t count;
};

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Random short keys over few letters; what the store cannot hold beside the others is left out. */
static void fill(struct bucket *bucket, struct model *model)
{
	static const char letters[] = "aab-//z";
	uint32_t seed = 7;
	model->count = 0;
	for (size_t i = 0; i < MODEL_MAX; i++) {
		char key[12];
		size_t size = 0;
		do {
			seed = seed * 1664525u + 1013904223u;
			key[size++] = letters[(seed >> 24) % (sizeof(letters) - 1)];
		} while (size < sizeof(key) - 1 && (seed >> 16) % 8 != 0);
		key[size] = '\0';
		const struct cairn_put_options absent = { .if_absent = true };
		if (folder_cannot(bucket, key))
			continue;
		if (put_text(bucket, key, "", &absent, NULL) == CAIRN_OK)
			model->keys[model->count++] = strdup(key);
	}
	qsort(model->keys, model->count, sizeof(model->keys[0]), compare);
}

static void expect_model(const struct model *model, const char *prefix,
			 const struct cairn_list_options *options, struct cairn_buffer *expected)
{
	char last[64] = "";
	cairn_buffer_clear(expected);
	assert_int_equal(cairn_buffer_append(expected, "", 0), 0);
	for (size_t i = 0; i < model->count; i++) {
		char key[64];
		(void)snprintf(key, sizeof(key), "%s", model->keys[i]);
		if (strncmp(key, prefix, strlen(prefix)) != 0)
			continue;
		char *slash = options->delimited ? strchr(key + strlen(prefix), '/') : NULL;
		if (slash)
			slash[1] = '\0';
		if (strcmp(key, last) == 0 ||
		    (options->start_after && strcmp(key, options->start_after) <= 0))
			continue;
		(void)snprintf(last, sizeof(last), "%s", key);
		assert_int_equal(cairn_buffer_printf(expected, "%s ", key), 0);
	}
}

/* All pages of a listing as one. */
static void list_pages(struct bucket *bucket, const char *prefix, struct cairn_list_options options,
		       struct cairn_listing *all)
{
	struct cairn_listing page;
	cairn_listing_init(&page);
	cairn_listing_release(all);
	do {
		options.token = all->token;
		list(bucket, prefix, &options, &page);
		if (options.max)
			assert_in_range(page.count, page.token ? 1 : 0, options.max);
		assert_int_equal(cairn_listing_append(all, &page), CAIRN_OK);
	} while (all->token);
}

static void test_store_list_agrees_with_model(void **state)
{
	static const char *const prefixes[] = { "a", "a/", "aa", "a/a", "z/", "b/-", "a-" };
	static const char *const afters[] = { NULL, "a", "a/", "a/a", "aa/b", "b", "zzz" };
	static const size_t limits[] = { 0, 1, 3, 1000 };
	struct bucket *bucket = *state;
	struct model model;
	struct cairn_listing listing;
	struct cairn_buffer expected;
	cairn_listing_init(&listing);
	cairn_buffer_init(&expected, 1 << 20);
	fill(bucket, &model);
	assert_true(model.count > 50);

	/* Every combination, the prefix varying slowest. */
	const size_t after_count = sizeof(afters) / sizeof(afters[0]);
	const size_t total = sizeof(prefixes) / sizeof(prefixes[0]) * after_count * 4 * 2;
	for (size_t i = 0; i < total; i++) {
		const struct cairn_list_options options = {
			.delimited = i % 2,
			.max = limits[i / 2 % 4],
			.start_after = afters[i / 8 % after_count],
			.names_only = i % 3 == 0,
		};
		const char *prefix = prefixes[i / 8 / after_count];
		expect_model(&model, prefix, &options, &expected);
		list_pages(bucket, prefix, options, &listing);
		expect_keys(&listing, expected.data);
	}
	cairn_listing_release(&listing);
	cairn_buffer_release(&expected);
	for (size_t i = 0; i < model.count; i++)
		free(model.keys[i]);
}

static void test_store_list_does_not_show_deleted(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	must_put(bucket, "a/1", "1");
	must_put(bucket, "a/2", "1");

	expect_status(bucket, cairn_store_delete(bucket->store, &bucket->call, "a/1", NULL),
		      CAIRN_OK, "delete");

	list(bucket, "a/", NULL, &listing);
	expect_keys(&listing, "a/2 ");
	cairn_listing_release(&listing);
}

const struct CMUnitTest listing_cases[] = {
	cmocka_unit_test(test_store_list_nothing),
	cmocka_unit_test(test_store_list_tells_objects),
	cmocka_unit_test(test_store_list_orders_by_bytes),
	cmocka_unit_test(test_store_list_prefix_need_not_end_in_slash),
	cmocka_unit_test(test_store_list_agrees_with_model),
	cmocka_unit_test(test_store_list_does_not_show_deleted),
	{ 0 },
};
