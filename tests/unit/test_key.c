/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cairn/json.h>
#include <cairn/key.h>

static const struct {
	const char *segment;
	const char *name;
} names[] = {
	{ "a", "a" },
	{ "etl:2026-08-09", "etl:2026-08-09" },
	{ "", "%" },
	{ "%", "%25" },
	{ "%25", "%2525" },
	{ "100%", "100%25" },
	{ ".", "%2E" },
	{ "..", "%2E." },
	{ ".x", "%2Ex" },
	{ "a.b.", "a.b." },
	{ "a~", "a%7E" },
	{ "~", "%7E" },
	{ "~a", "~a" },
	{ "a~~", "a~%7E" },
	{ "4913", "%34913" },
	{ "49130", "49130" },
	{ "44913", "44913" },
	{ "a\nb", "a%0Ab" },
	{ "\x1f\x7f", "%1F%7F" },
	{ " # + & < @ '", " # + & < @ '" },
	{ "é\xc2\x80", "é\xc2\x80" },
	{ "\xff", "%FF" },
	{ "a\xc3", "a%C3" },
	{ "\xed\xa0\x80", "%ED%A0%80" },
	{ "\xe2\x82", "%E2%82" },
	{ "\xe2\x82\xe2\x82\xac", "%E2%82\xe2\x82\xac" },
};

static void test_name_encode_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct cairn_buffer name, segment;
		enum cairn_name_kind kind;
		cairn_buffer_init(&name, 100);
		cairn_buffer_init(&segment, 100);
		assert_int_equal(cairn_name_encode(cairn_slice_of(names[i].segment), &name), 0);
		assert_string_equal(name.data, names[i].name);
		assert_int_equal(cairn_name_decode(name.data, &segment, &kind), 0);
		assert_int_equal(kind, CAIRN_NAME_SEGMENT);
		assert_true(cairn_slice_equal(cairn_buffer_slice(&segment),
					      cairn_slice_of(names[i].segment)));
		/* The prefix beside an object of that name. */
		assert_int_equal(cairn_buffer_append(&name, "%", 1), 0);
		cairn_buffer_clear(&segment);
		assert_int_equal(cairn_name_decode(name.data, &segment, &kind), 0);
		assert_int_equal(kind, CAIRN_NAME_PREFIX);
		assert_true(cairn_slice_equal(cairn_buffer_slice(&segment),
					      cairn_slice_of(names[i].segment)));
		cairn_buffer_release(&name);
		cairn_buffer_release(&segment);
	}
}

static void test_name_decode_refuses(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",	   ".",	   "..",    ".x",  "a~",    "~",      "4913",	"4913%",  "a~%",
		".x%",	   "%zz",  "%2",    "%2%", "a%2",   "%2e",    "%41",	"%61bc",  "%7e",
		"a%2E",	   "%7Ea", "%34",   "%2F", "a%2Fb", "%00",    "a%00",	"\xff",	  "%C3%A9",
		"%C3\xa9", "\n",   "a\x7f", "%%%", "a%%",   "%34914", "%3491%", "%2E%2E",
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct cairn_buffer out;
		enum cairn_name_kind kind;
		cairn_buffer_init(&out, 100);
		assert_int_equal(cairn_buffer_append(&out, "x", 1), 0);
		int status = cairn_name_decode(wrong[i], &out, &kind);
		if (status != CAIRN_INVALID)
			fail_msg("%s gives %d", wrong[i], status);
		assert_string_equal(out.data, "x");
		cairn_buffer_release(&out);
	}
}

/* Encode, decode, compare: no pair of bytes that can stand in a segment is lost. */
static void test_name_round_trip_of_every_byte_pair(void **state)
{
	(void)state;
	struct cairn_buffer name, segment;
	cairn_buffer_init(&name, 100);
	cairn_buffer_init(&segment, 100);
	for (unsigned pair = 0; pair < 0x10000; pair++) {
		char text[2] = { (char)(pair >> 8), (char)pair };
		struct cairn_slice given = { text, sizeof(text) };
		enum cairn_name_kind kind;
		cairn_buffer_clear(&name);
		cairn_buffer_clear(&segment);
		bool possible = text[0] && text[1] && text[0] != '/' && text[1] != '/';
		assert_int_equal(cairn_name_encode(given, &name),
				 possible ? CAIRN_OK : CAIRN_INVALID);
		if (!possible)
			continue;
		assert_true(cairn_utf8_valid(cairn_buffer_slice(&name)));
		assert_int_equal(cairn_name_decode(name.data, &segment, &kind), 0);
		assert_int_equal(kind, CAIRN_NAME_SEGMENT);
		assert_true(cairn_slice_equal(cairn_buffer_slice(&segment), given));
	}
	cairn_buffer_release(&name);
	cairn_buffer_release(&segment);
}

/* Of all names of up to four of these characters, what decodes is encoded as itself again. */
static void test_name_decode_takes_one_form_only(void **state)
{
	(void)state;
	static const char alphabet[] = "%~.4913257EeFa\xc3\xa9\x01";
	const size_t letters = sizeof(alphabet) - 1;
	struct cairn_buffer name, segment;
	const size_t all = letters * letters * letters * letters;
	size_t taken = 0;
	cairn_buffer_init(&name, 100);
	cairn_buffer_init(&segment, 100);
	for (size_t number = 0; number < all; number++) {
		char text[7] = "";
		size_t length = 0;
		enum cairn_name_kind kind;
		for (size_t rest = number; rest > 0; rest /= letters)
			text[length++] = alphabet[rest % letters];
		cairn_buffer_clear(&name);
		cairn_buffer_clear(&segment);
		if (cairn_name_decode(text, &segment, &kind) != CAIRN_OK)
			continue;
		taken++;
		assert_int_equal(cairn_name_encode(cairn_buffer_slice(&segment), &name), 0);
		if (kind == CAIRN_NAME_PREFIX)
			assert_int_equal(cairn_buffer_append(&name, "%", 1), 0);
		assert_string_equal(name.data, text);
	}
	assert_true(taken > 1000);
	cairn_buffer_release(&name);
	cairn_buffer_release(&segment);
}

static void test_name_failure_keeps_the_buffer(void **state)
{
	(void)state;
	struct cairn_buffer out;
	enum cairn_name_kind kind;
	cairn_buffer_init(&out, 6);
	assert_int_equal(cairn_buffer_append(&out, "abc", 3), 0);
	assert_int_equal(cairn_name_encode(cairn_slice_of("x%y"), &out), CAIRN_TOO_BIG);
	assert_string_equal(out.data, "abc");
	assert_int_equal(cairn_name_decode("wxyz", &out, &kind), CAIRN_TOO_BIG);
	assert_string_equal(out.data, "abc");
	cairn_buffer_release(&out);
}

static void test_key_check_table(void **state)
{
	(void)state;
	static const struct {
		const char *key;
		int status;
	} keys[] = {
		{ "a", 0 },
		{ "", CAIRN_INVALID },
		{ "log", 0 },
		{ "logs", 0 },
		{ "snapshots", 0 },
		{ "log/", CAIRN_INVALID },
		{ "log/000000000001.msgpack", CAIRN_INVALID },
		{ "logs/orders/log/000000000001.msgpack", CAIRN_INVALID },
		{ "snapshots/v1/000000000001.sqlite", CAIRN_INVALID },
		{ "txapplied/000000000001", CAIRN_INVALID },
		{ "logger/a", 0 },
		{ "a/log/b", 0 },
		{ "/log/a", 0 },
		{ "a//c", 0 },
		{ "a/", 0 },
		{ "/", 0 },
		{ "a/../b", 0 },
		{ "# % + & < @ ' é\n", 0 },
		{ "a\xff", CAIRN_INVALID },
	};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct cairn_error error = { 0 };
		int status = cairn_key_check(keys[i].key, &error);
		if (status != keys[i].status || error.status != status)
			fail_msg("%s gives %d: %s", keys[i].key, status, error.text);
		assert_int_equal(cairn_key_check(keys[i].key, NULL), status);
	}
}

static void test_key_check_length(void **state)
{
	(void)state;
	char key[CAIRN_KEY_MAX + 2];
	struct cairn_error error;
	memset(key, 'k', sizeof(key));
	key[CAIRN_KEY_MAX + 1] = '\0';
	assert_int_equal(cairn_key_check(key, &error), CAIRN_NAME_TOO_LONG);
	assert_non_null(strstr(error.text, "1025 bytes"));
	key[CAIRN_KEY_MAX] = '\0';
	assert_int_equal(cairn_key_check(key, &error), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name_encode_table),
		cmocka_unit_test(test_name_decode_refuses),
		cmocka_unit_test(test_name_round_trip_of_every_byte_pair),
		cmocka_unit_test(test_name_decode_takes_one_form_only),
		cmocka_unit_test(test_name_failure_keeps_the_buffer),
		cmocka_unit_test(test_key_check_table),
		cmocka_unit_test(test_key_check_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
