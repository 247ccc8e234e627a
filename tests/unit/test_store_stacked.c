/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storage/store_private.h"

static struct cairn_store *memory_new(void)
{
	struct cairn_store *store;
	assert_int_equal(cairn_memory_store_new(&store), 0);
	return store;
}

static int put(struct cairn_store *store, const char *key)
{
	struct cairn_call call = { 0 };
	return cairn_store_put(store, &call, key, cairn_slice_of("12345"), NULL, NULL);
}

static int get(struct cairn_store *store, const char *key)
{
	struct cairn_call call = { 0 };
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_get(store, &call, key, NULL, &object);
	cairn_object_release(&object);
	return status;
}

static void test_trace_counts_each_operation(void **state)
{
	(void)state;
	struct cairn_trace_count counts[CAIRN_OPERATION_COUNT];
	struct cairn_store *store;
	struct cairn_call call = { 0 };
	assert_int_equal(cairn_trace_store_new(memory_new(), &store), 0);

	assert_int_equal(put(store, "k"), 0);
	assert_int_equal(get(store, "k"), 0);
	assert_int_equal(get(store, "absent"), CAIRN_NOT_FOUND);
	assert_int_equal(put(store, ""), CAIRN_INVALID);
	assert_int_equal(cairn_store_delete(store, &call, "k", NULL), 0);
	assert_int_equal(cairn_store_prefix_exists(store, &call, "k/"), CAIRN_NOT_FOUND);

	cairn_trace_read(store, counts);
	assert_int_equal(counts[CAIRN_OPERATION_PUT].calls, 1);
	assert_int_equal(counts[CAIRN_OPERATION_PUT].bytes, 5);
	assert_int_equal(counts[CAIRN_OPERATION_GET].calls, 2);
	assert_int_equal(counts[CAIRN_OPERATION_GET].failures, 0);
	assert_int_equal(counts[CAIRN_OPERATION_GET].bytes, 5);
	assert_int_equal(counts[CAIRN_OPERATION_DELETE].calls, 1);
	assert_int_equal(counts[CAIRN_OPERATION_PREFIX].calls, 1);
	assert_int_equal(counts[CAIRN_OPERATION_LIST].calls, 0);
	cairn_store_free(store);
}

static void test_trace_without_a_trace_store(void **state)
{
	(void)state;
	struct cairn_trace_count counts[CAIRN_OPERATION_COUNT];
	struct cairn_store *store = memory_new();
	memset(counts, 1, sizeof(counts));

	cairn_trace_read(store, counts);

	for (int i = 0; i < CAIRN_OPERATION_COUNT; i++)
		assert_int_equal(counts[i].calls, 0);
	cairn_store_free(store);
}

static void test_trace_counts_failures(void **state)
{
	(void)state;
	struct cairn_trace_count counts[CAIRN_OPERATION_COUNT];
	struct cairn_store *faulty, *store;
	assert_int_equal(cairn_fault_store_new(memory_new(), 1, &faulty), 0);
	assert_int_equal(cairn_trace_store_new(faulty, &store), 0);
	const struct cairn_fault_rule rule = { .status = CAIRN_IO };
	assert_int_equal(cairn_fault_rule_add(faulty, &rule), 0);

	assert_int_equal(put(store, "k"), CAIRN_IO);

	cairn_trace_read(store, counts);
	assert_int_equal(counts[CAIRN_OPERATION_PUT].failures, 1);
	assert_int_equal(counts[CAIRN_OPERATION_PUT].bytes, 0);
	cairn_store_free(store);
}

static void test_fault_skips_and_counts(void **state)
{
	(void)state;
	struct cairn_store *store;
	assert_int_equal(cairn_fault_store_new(memory_new(), 1, &store), 0);
	const struct cairn_fault_rule rule = { .operations = 1u << CAIRN_OPERATION_PUT,
					       .key_prefix = "a/",
					       .skip = 1,
					       .times = 2,
					       .status = CAIRN_ACCESS };
	assert_int_equal(cairn_fault_rule_add(store, &rule), 0);

	assert_int_equal(put(store, "a/1"), 0);
	assert_int_equal(put(store, "b/1"), 0);
	assert_int_equal(put(store, "a/2"), CAIRN_ACCESS);
	assert_int_equal(get(store, "a/2"), CAIRN_NOT_FOUND);
	assert_int_equal(put(store, "a/3"), CAIRN_ACCESS);
	assert_int_equal(put(store, "a/4"), 0);
	cairn_store_free(store);
}

static void test_fault_acts_and_lies(void **state)
{
	(void)state;
	struct cairn_store *store;
	assert_int_equal(cairn_fault_store_new(memory_new(), 1, &store), 0);
	const struct cairn_fault_rule rule = { .status = CAIRN_UNKNOWN, .act = true, .times = 1 };
	assert_int_equal(cairn_fault_rule_add(store, &rule), 0);

	assert_int_equal(put(store, "k"), CAIRN_UNKNOWN);

	assert_int_equal(get(store, "k"), 0);
	cairn_store_free(store);
}

static void test_fault_rules_can_be_forgotten(void **state)
{
	(void)state;
	struct cairn_store *store;
	assert_int_equal(cairn_fault_store_new(memory_new(), 1, &store), 0);
	const struct cairn_fault_rule rule = { .key_prefix = "k", .status = CAIRN_IO };
	assert_int_equal(cairn_fault_rule_add(store, &rule), 0);
	assert_int_equal(put(store, "k"), CAIRN_IO);

	assert_int_equal(cairn_fault_rule_add(store, NULL), 0);

	assert_int_equal(put(store, "k"), 0);
	cairn_store_free(store);
}

/* Which of 1,000 calls are hit, by a rule with a chance, from this seed. */
static int draw(uint64_t seed, bool *hit)
{
	struct cairn_store *store;
	int count = 0;
	assert_int_equal(cairn_fault_store_new(memory_new(), seed, &store), 0);
	const struct cairn_fault_rule rule = { .permille = 250, .status = CAIRN_IO };
	assert_int_equal(cairn_fault_rule_add(store, &rule), 0);
	for (int i = 0; i < 1000; i++) {
		hit[i] = put(store, "k") == CAIRN_IO;
		count += hit[i];
	}
	cairn_store_free(store);
	return count;
}

static void test_fault_chance_follows_the_seed(void **state)
{
	(void)state;
	static bool first[1000], same[1000], other[1000];

	assert_in_range(draw(1, first), 180, 320);
	(void)draw(1, same);
	(void)draw(2, other);

	assert_memory_equal(first, same, sizeof(first));
	assert_memory_not_equal(first, other, sizeof(first));
}

static void test_listing_appends_and_cuts(void **state)
{
	(void)state;
	struct cairn_listing all, page;
	cairn_listing_init(&all);
	cairn_listing_init(&page);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 5000; i++) {
			char name[32];
			(void)snprintf(name, sizeof(name), "%d-%05d", round, i);
			assert_int_equal(cairn_listing_add(&page, cairn_slice_of("dir/"),
							   cairn_slice_of(name),
							   i % 2 ? "etag" : NULL, NULL),
					 0);
		}
		assert_int_equal(cairn_listing_append(&all, &page), 0);
		assert_int_equal(page.count, 0);
	}

	assert_int_equal(all.count, 15000);
	assert_string_equal(all.entries[0].key, "dir/0-00000");
	assert_null(all.entries[0].etag);
	assert_string_equal(all.entries[14999].key, "dir/2-04999");
	assert_string_equal(all.entries[14999].etag, "etag");
	assert_int_equal(cairn_listing_cut(&all, 5001), 0);
	assert_int_equal(all.count, 5001);
	assert_string_equal(all.token, "dir/1-00000");
	cairn_listing_release(&all);
	assert_null(all.token);
}

static void test_content_etag_in_pieces(void **state)
{
	(void)state;
	char whole[CAIRN_CONTENT_ETAG_SIZE], pieces[CAIRN_CONTENT_ETAG_SIZE];
	struct cairn_content_hash *hash = cairn_content_hash_new();
	assert_non_null(hash);

	assert_int_equal(cairn_content_etag("hello", 5, whole), 0);
	assert_int_equal(cairn_content_hash_update(hash, "he", 2), 0);
	assert_int_equal(cairn_content_hash_update(hash, "llo", 3), 0);
	assert_int_equal(cairn_content_hash_final(hash, pieces), 0);

	assert_string_equal(whole, "5d41402abc4b2a76b9719d911017c592");
	assert_string_equal(pieces, whole);
}

static void test_call_sleep_ends_at_the_deadline(void **state)
{
	(void)state;
	struct cairn_call call = { .deadline = cairn_clock() + 20000 };

	assert_int_equal(cairn_call_sleep(&call, cairn_clock() + 60 * 1000000LL), CAIRN_TIMEOUT);
	assert_int_equal(call.error.status, CAIRN_TIMEOUT);
	call.deadline = 0;
	assert_int_equal(cairn_call_sleep(&call, cairn_clock() - 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trace_counts_each_operation),
		cmocka_unit_test(test_trace_without_a_trace_store),
		cmocka_unit_test(test_trace_counts_failures),
		cmocka_unit_test(test_fault_skips_and_counts),
		cmocka_unit_test(test_fault_acts_and_lies),
		cmocka_unit_test(test_fault_rules_can_be_forgotten),
		cmocka_unit_test(test_fault_chance_follows_the_seed),
		cmocka_unit_test(test_listing_appends_and_cuts),
		cmocka_unit_test(test_content_etag_in_pieces),
		cmocka_unit_test(test_call_sleep_ends_at_the_deadline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
