/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cairn/timestamp.h>

/* NULL: refused. What Python 3.14 answers, converted to UTC. */
static const struct {
	const char *text;
	const char *time;
} times[] = {
	{ "2026-08-09T12:34:56.123456Z", "2026-08-09T12:34:56.123456Z" },
	{ "2026-08-09T12:34:56.123456+00:00", "2026-08-09T12:34:56.123456Z" },
	{ "2026-08-09T12:34:56Z", "2026-08-09T12:34:56.000000Z" },
	{ "2026-08-09T12:34:56", "2026-08-09T12:34:56.000000Z" },
	{ "2026-08-09T12:34", "2026-08-09T12:34:00.000000Z" },
	{ "2026-08-09T12", "2026-08-09T12:00:00.000000Z" },
	{ "2026-08-09", "2026-08-09T00:00:00.000000Z" },
	{ "20260809", "2026-08-09T00:00:00.000000Z" },
	{ "20260809T123456", "2026-08-09T12:34:56.000000Z" },
	{ "20260809T123456.5+0530", "2026-08-09T07:04:56.500000Z" },
	{ "20260809T12:34:56", "2026-08-09T12:34:56.000000Z" },
	{ "2026-08-09T123456", "2026-08-09T12:34:56.000000Z" },
	{ "2026-08-09 12:34:56", "2026-08-09T12:34:56.000000Z" },
	{ "2026-08-09é12:34:56", "2026-08-09T12:34:56.000000Z" },
	{ "2026-08-09\xf0\x9f\x98\x80"
	  "12:34",
	  "2026-08-09T12:34:00.000000Z" },
	{ "2026-08-09T12:34:56.1", "2026-08-09T12:34:56.100000Z" },
	{ "2026-08-09T12:34:56,12", "2026-08-09T12:34:56.120000Z" },
	{ "2026-08-09T12:34:56.1234569999999", "2026-08-09T12:34:56.123456Z" },
	{ "2026-08-09T12.5", "2026-08-09T12:00:00.500000Z" },
	{ "2026-08-09T12:34:56+05", "2026-08-09T07:34:56.000000Z" },
	{ "2026-08-09T12:34:56-05:30", "2026-08-09T18:04:56.000000Z" },
	{ "2026-08-09T12:34:56+00:00:01", "2026-08-09T12:34:55.000000Z" },
	{ "2026-08-09T12:34:56-00:00:00.000001", "2026-08-09T12:34:56.000000Z" },
	{ "2026-08-09T12:34:56-00:00:01.000001", "2026-08-09T12:34:57.000001Z" },
	{ "2026-08-09T12:34:56+23:59:59.999999", "2026-08-08T12:34:56.000001Z" },
	{ "2026-08-09T00:00+00:99", "2026-08-08T22:21:00.000000Z" },
	{ "2026-08-09T24:00:00Z", "2026-08-10T00:00:00.000000Z" },
	{ "2026-12-31T24:00", "2027-01-01T00:00:00.000000Z" },
	{ "2024-02-29", "2024-02-29T00:00:00.000000Z" },
	{ "2000-02-29", "2000-02-29T00:00:00.000000Z" },
	{ "2026-W32", "2026-08-03T00:00:00.000000Z" },
	{ "2026W32", "2026-08-03T00:00:00.000000Z" },
	{ "2026-W32-7", "2026-08-09T00:00:00.000000Z" },
	{ "2026W327", "2026-08-09T00:00:00.000000Z" },
	{ "2026-W32-7T12:34", "2026-08-09T12:34:00.000000Z" },
	{ "2026W327T1234", "2026-08-09T12:34:00.000000Z" },
	{ "2026-W32T12:34", "2026-08-03T12:34:00.000000Z" },
	{ "2026-W32-12:34", "2026-08-03T12:34:00.000000Z" },
	{ "2026W32712", "2026-08-03T12:00:00.000000Z" },
	{ "2026W327012", "2026-08-09T12:00:00.000000Z" },
	{ "2026-W53-5", "2027-01-01T00:00:00.000000Z" },
	{ "0001-W01-1", "0001-01-01T00:00:00.000000Z" },
	{ "0001-01-01T00:00:00", "0001-01-01T00:00:00.000000Z" },
	{ "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z" },
	{ "", NULL },
	{ "soon", NULL },
	{ "2026", NULL },
	{ "2026-08", NULL },
	{ "2026-8-9", NULL },
	{ "2026-0809", NULL },
	{ "202608-09", NULL },
	{ "0000-01-01", NULL },
	{ "2026-00-01", NULL },
	{ "2026-13-01", NULL },
	{ "2026-02-29", NULL },
	{ "1900-02-29", NULL },
	{ "2026-08-00", NULL },
	{ "2026-08-09T", NULL },
	{ "2026-08-09T1", NULL },
	{ "2026-08-09T12:", NULL },
	{ "2026-08-09T12:3", NULL },
	{ "2026-08-09T12:34:", NULL },
	{ "2026-08-09T12:3456", NULL },
	{ "2026-08-09T1234:56", NULL },
	{ "2026-08-09T12:34:56.", NULL },
	{ "2026-08-09T12:34:56.1234567x", NULL },
	{ "2026-08-09T12:34:56:123", NULL },
	{ "2026-08-09T12:34:56 Z", NULL },
	{ "2026-08-09T12:34:56Z ", NULL },
	{ "2026-08-09T12:34:56z", NULL },
	{ "2026-08-09T12:34:56ZZ", NULL },
	{ "2026-08-09T12:34:56Z00:00", NULL },
	{ "2026-08-09T12:34:56+", NULL },
	{ "2026-08-09T12:34:56+1", NULL },
	{ "2026-08-09T12:34:56+100", NULL },
	{ "2026-08-09T12:34:56+24:00", NULL },
	{ "2026-08-09T12:34:56+23:60", NULL },
	{ "2026-08-09T25:00", NULL },
	{ "2026-08-09T24:00:01", NULL },
	{ "2026-08-09T24:00:00.000001", NULL },
	{ "2026-08-09T12:60", NULL },
	{ "2026-08-09T12:34:60", NULL },
	{ " 2026-08-09", NULL },
	{ "+026-08-09", NULL },
	{ "2026-08-09\xff"
	  "12:34",
	  NULL },
	{ "2026-W00", NULL },
	{ "2025-W53", NULL },
	{ "2026-W54", NULL },
	{ "2026-W32-0", NULL },
	{ "2026-W32-8", NULL },
	{ "2026-W32-", NULL },
	{ "9999-12-31T24:00", NULL },
	{ "9999-W52-6", NULL },
	{ "9999-12-31T23:00-01:00", NULL },
	{ "0001-01-01T00:59:59+01:00", NULL },
};

static void test_timestamp_parse_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		char text[CAIRN_TIMESTAMP_SIZE];
		int64_t time;
		int status = cairn_timestamp_parse(cairn_slice_of(times[i].text), &time);
		if (status != (times[i].time ? CAIRN_OK : CAIRN_INVALID))
			fail_msg("%s gives %d", times[i].text, status);
		if (status)
			continue;
		assert_int_equal(cairn_timestamp_format(time, text), 0);
		assert_string_equal(text, times[i].time);
	}
}

static void test_timestamp_parse_reads_no_further_than_its_slice(void **state)
{
	(void)state;
	static const char text[] = "2026-08-09T12:34:56.123456+05:30:15.5";
	for (size_t size = 0; size < sizeof(text); size++) {
		char *copy = size ? malloc(size) : NULL;
		int64_t time = -1;
		assert_true(size == 0 || copy);
		if (size)
			memcpy(copy, text, size);
		struct cairn_slice slice = { copy, size };
		assert_true((cairn_timestamp_parse(slice, &time) == CAIRN_OK) == (time != -1));
		free(copy);
	}
	int64_t time;
	assert_int_equal(
		cairn_timestamp_parse((struct cairn_slice){ "2026-08-09T12\0", 14 }, &time),
		CAIRN_INVALID);
	assert_int_equal(cairn_timestamp_parse((struct cairn_slice){ "2026-08-09T12\0"
								     "05:00",
								     19 },
					       &time),
			 CAIRN_INVALID);
}

static void test_timestamp_format_round_trip(void **state)
{
	(void)state;
	/* Steps of a prime number of microseconds, a little under a week. */
	for (int64_t time = INT64_C(-62135596800000000); time < INT64_C(253402300800000000);
	     time += INT64_C(604799999993)) {
		char text[CAIRN_TIMESTAMP_SIZE];
		int64_t again;
		assert_int_equal(cairn_timestamp_format(time, text), 0);
		assert_int_equal(strlen(text), CAIRN_TIMESTAMP_SIZE - 1);
		assert_int_equal(cairn_timestamp_parse(cairn_slice_of(text), &again), 0);
		assert_int_equal(again, time);
	}
}

static void test_timestamp_format_bounds(void **state)
{
	(void)state;
	static const struct {
		int64_t time;
		const char *text;
	} bounds[] = {
		{ 0, "1970-01-01T00:00:00.000000Z" },
		{ -1, "1969-12-31T23:59:59.999999Z" },
		{ INT64_C(-62135596800000000), "0001-01-01T00:00:00.000000Z" },
		{ INT64_C(253402300799999999), "9999-12-31T23:59:59.999999Z" },
		{ INT64_C(-62135596800000001), NULL },
		{ INT64_C(253402300800000000), NULL },
		{ INT64_MIN, NULL },
		{ INT64_MAX, NULL },
	};
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		char text[CAIRN_TIMESTAMP_SIZE];
		assert_int_equal(cairn_timestamp_format(bounds[i].time, text),
				 bounds[i].text ? CAIRN_OK : CAIRN_INVALID);
		if (bounds[i].text)
			assert_string_equal(text, bounds[i].text);
	}
}

static void test_timestamp_now_is_the_clock(void **state)
{
	(void)state;
	int64_t before = (int64_t)time(NULL) - 1;
	int64_t now = cairn_timestamp_now();
	int64_t after = (int64_t)time(NULL) + 1;
	assert_true(now >= before * 1000000 && now <= after * 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timestamp_parse_table),
		cmocka_unit_test(test_timestamp_parse_reads_no_further_than_its_slice),
		cmocka_unit_test(test_timestamp_format_round_trip),
		cmocka_unit_test(test_timestamp_format_bounds),
		cmocka_unit_test(test_timestamp_now_is_the_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
