/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cairn/json.h>

#include "json_scanning.h"

/* The canonical form of `size` bytes that end where their memory ends; NULL when refused. */
static char *canonical(const char *text, size_t size, struct cairn_error *error)
{
	struct cairn_buffer out;
	char *copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, text, size);
	cairn_buffer_init(&out, CAIRN_JSON_MAX);
	int status = cairn_json_canonical(copy, size, &out, error);
	free(copy);
	if (status != CAIRN_OK)
		assert_int_equal(status, CAIRN_INVALID);
	assert_true(status || out.data);
	return status ? NULL : cairn_buffer_steal(&out, NULL);
}

static void assert_canonical(const char *text, size_t size, const char *expected)
{
	struct cairn_error error = { 0 };
	char *form = canonical(text, size, &error);
	if (!form)
		fail_msg("%.*s is refused: %s", (int)size, text, error.text);
	assert_string_equal(form, expected);
	free(form);
}

static void decode_member(struct cairn_slice line, const char *name, struct cairn_buffer *ret_text)
{
	struct cairn_slice value;
	assert_int_equal(cairn_json_member(line, name, &value), 0);
	cairn_buffer_clear(ret_text);
	assert_int_equal(cairn_json_string_decode(value, ret_text), 0);
}

static void test_json_canonical_vectors(void **state)
{
	(void)state;
	FILE *file = fopen(TEST_DATA "/../vectors/canonical-json.jsonl", "r");
	char *line = NULL;
	size_t capacity = 0, count = 0;
	ssize_t size;
	struct cairn_buffer in, out;
	assert_non_null(file);
	cairn_buffer_init(&in, CAIRN_JSON_MAX);
	cairn_buffer_init(&out, CAIRN_JSON_MAX);
	for (; (size = getline(&line, &capacity, file)) > 0; count++) {
		struct cairn_slice slice = { line, (size_t)size };
		decode_member(slice, "in", &in);
		decode_member(slice, "out", &out);
		assert_canonical(in.data, in.size, out.data);
		assert_canonical(out.data, out.size, out.data);
		assert_true(scans_as_one_value(in.data, in.size, 1));
	}
	assert_int_equal(count, 469);
	cairn_buffer_release(&in);
	cairn_buffer_release(&out);
	free(line);
	(void)fclose(file);
}

static void test_json_canonical_keeps_what_others_refuse(void **state)
{
	(void)state;
	static const struct {
		const char *in;
		const char *out;
	} kept[] = {
		{ "123456789012345678901234567890", "123456789012345678901234567890" },
		{ "-123456789012345678901234567890", "-123456789012345678901234567890" },
		{ "[NaN,Infinity,-Infinity,1e400,-1e400]",
		  "[NaN,Infinity,-Infinity,Infinity,-Infinity]" },
		{ "[-0,-0.0,-0e5,0e-999999999999999999999]", "[0,-0.0,-0.0,0.0]" },
		{ "1e-999999999999999999999", "0.0" },
		{ "-1e999999999999999999999", "-Infinity" },
		{ "0.1000000000000000055511151231257827", "0.1" },
		{ "5.684341886080801486968994140625e-14", "5.684341886080802e-14" },
		{ "2.4703282292062327e-324", "0.0" },
		{ "2.4703282292062328e-324", "5e-324" },
		{ "9007199254740993.0", "9007199254740992.0" },
		{ "\"\\ud800\"", "\"\\ud800\"" },
		{ "\"\\uDC00\\uD800\"", "\"\\udc00\\ud800\"" },
		{ "\"\\uD800\\uD83D\\uDE00\"", "\"\\ud800\\ud83d\\ude00\"" },
		{ "{\"\\u0000b\":1,\"\\u0000a\":2,\"\":3}",
		  "{\"\":3,\"\\u0000a\":2,\"\\u0000b\":1}" },
		{ "{\"\\ud83d\\ude00\":1,\"\\udfff\":2,\"\\uffff\":3,\"\\ud83d\":4}",
		  "{\"\\ud83d\":4,\"\\udfff\":2,\"\\uffff\":3,\"\\ud83d\\ude00\":1}" },
		{ "{\"b\":{\"y\":1,\"x\":[{\"q\":1,\"p\":2}]},\"a\":[{\"d\":1,\"c\":2},3]}",
		  "{\"a\":[{\"c\":2,\"d\":1},3],\"b\":{\"x\":[{\"p\":2,\"q\":1}],\"y\":1}}" },
		{ "{\"a\":{\"a\":{\"b\":1,\"a\":2}},\"b\":{}}",
		  "{\"a\":{\"a\":{\"a\":2,\"b\":1}},\"b\":{}}" },
		{ "{\"a\":{\"z\":1,\"y\":2},\"a\":[],\"a\":{\"c\":1,\"c\":2}}",
		  "{\"a\":{\"c\":2}}" },
		{ "{\"a\":1,\"\\u0061\":2}", "{\"a\":2}" },
	};
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		assert_canonical(kept[i].in, strlen(kept[i].in), kept[i].out);
}

static void test_json_canonical_refuses(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t at;
	} wrong[] = {
		{ "", 0 },
		{ " \n", 2 },
		{ "\xef\xbb\xbf{}", 0 },
		{ "\xff\xfe{\0", 0 },
		{ "nul", 0 },
		{ "nulls", 4 },
		{ "True", 0 },
		{ "-NaN", 1 },
		{ "-Infinit", 0 },
		{ "+1", 0 },
		{ "01", 1 },
		{ "-", 1 },
		{ "1.", 2 },
		{ ".5", 0 },
		{ "1e", 1 },
		{ "1e+", 1 },
		{ "0x10", 1 },
		{ "1 2", 2 },
		{ "[1,]", 3 },
		{ "[,1]", 1 },
		{ "[1 2]", 3 },
		{ "[1", 2 },
		{ "[1}", 2 },
		{ "{\"a\"}", 4 },
		{ "{\"a\":}", 5 },
		{ "{\"a\":1,}", 7 },
		{ "{a:1}", 1 },
		{ "{1:1}", 1 },
		{ "{'a':1}", 1 },
		{ "{\"a\":1", 6 },
		{ "{]", 1 },
		{ "]", 0 },
		{ "{}}", 2 },
		{ "\"a", 2 },
		{ "\"\\x41\"", 1 },
		{ "\"\\u12g4\"", 1 },
		{ "\"\\u123", 1 },
		{ "\"\\", 1 },
		{ "\"\n\"", 1 },
		{ "\"\x1f\"", 1 },
		{ "\"\xff\"", 1 },
		{ "\"\xed\xa0\x80\"", 1 },
		{ "\"\xc0\x80\"", 1 },
		{ "\"\xf4\x90\x80\x80\"", 1 },
		{ "\"\xe2\x82\"", 1 },
		{ "\"\xe2\x82", 1 },
		{ "\f1", 0 },
		{ "1\xc2\xa0", 1 },
		{ "[] // no", 3 },
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct cairn_error error = { 0 };
		char expected[64];
		size_t size = strlen(wrong[i].text);
		char *form = canonical(wrong[i].text, size, &error);
		if (form)
			fail_msg("%s gives %s", wrong[i].text, form);
		(void)snprintf(expected, sizeof(expected), ", at byte %zu", wrong[i].at);
		if (!strstr(error.text, expected))
			fail_msg("%s: %s instead of%s", wrong[i].text, error.text, expected);
		assert_false(scans_as_one_value(wrong[i].text, size, 1));
	}
	assert_null(canonical("\0", 1, NULL));
	assert_null(canonical("1\0", 2, NULL));
	assert_null(canonical("\"\0\"", 3, NULL));
	assert_null(canonical("\"\\\0\"", 4, NULL));
}

/* `levels` containers around a 0, alternately [ and {"b":1,"a": (so that each must be sorted). */
static char *nested(unsigned levels)
{
	struct cairn_buffer text;
	cairn_buffer_init(&text, CAIRN_JSON_MAX);
	for (unsigned i = 0; i < levels; i++)
		assert_int_equal(cairn_buffer_printf(&text, "%s", i % 2 ? "[" : "{\"b\":1,\"a\":"),
				 0);
	assert_int_equal(cairn_buffer_append(&text, "0", 1), 0);
	for (unsigned i = levels; i > 0; i--)
		assert_int_equal(cairn_buffer_append(&text, i % 2 ? "}" : "]", 1), 0);
	return cairn_buffer_steal(&text, NULL);
}

static void test_json_depth(void **state)
{
	(void)state;
	char *good = nested(500);
	char *deep = nested(501);
	char *form = canonical(good, strlen(good), NULL);
	assert_non_null(form);
	assert_int_equal(strlen(form), strlen(good));
	assert_memory_equal(form, "{\"a\":[{\"a\":[", 12);
	assert_null(canonical(deep, strlen(deep), NULL));
	assert_true(scans_as_one_value(good, strlen(good), 3));
	assert_false(scans_as_one_value(deep, strlen(deep), 3));
	free(form);
	free(good);
	free(deep);
}

static void *canonical_thread(void *text)
{
	struct cairn_buffer out;
	cairn_buffer_init(&out, CAIRN_JSON_MAX);
	int status = cairn_json_canonical(text, strlen(text), &out, NULL);
	cairn_buffer_release(&out);
	return status ? text : NULL;
}

static void test_json_depth_on_a_small_stack(void **state)
{
	(void)state;
	char *text = nested(500);
	pthread_attr_t attributes;
	pthread_t thread;
	void *result;
	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
	assert_int_equal(pthread_create(&thread, &attributes, canonical_thread, text), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	pthread_attr_destroy(&attributes);
	free(text);
}

/* Many members in a scrambled order, each name twice. */
static void test_json_canonical_sorts_many_members(void **state)
{
	(void)state;
	struct cairn_buffer text;
	const unsigned count = 100000;
	cairn_buffer_init(&text, CAIRN_JSON_MAX);
	for (unsigned i = 0; i < 2 * count; i++)
		assert_int_equal(cairn_buffer_printf(&text, "%s\"%06u\": %u", i ? " , " : "{",
						     i * 7919U % count, i),
				 0);
	assert_int_equal(cairn_buffer_append(&text, "}", 1), 0);
	char *form = canonical(text.data, text.size, NULL);
	assert_non_null(form);
	const char *at = form + 1;
	for (unsigned i = 0; i < count; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "\"%06u\":", i);
		assert_memory_equal(at, name, strlen(name));
		char *end;
		unsigned long value = strtoul(at + strlen(name), &end, 10);
		assert_true(value >= count && value * 7919 % count == i);
		at = end + 1;
	}
	assert_string_equal(at, "");
	free(form);
	cairn_buffer_release(&text);
}

static void test_json_canonical_failure_keeps_the_buffer(void **state)
{
	(void)state;
	struct cairn_buffer out;
	struct cairn_error error;
	cairn_buffer_init(&out, 10);
	assert_int_equal(cairn_buffer_append(&out, "abc", 3), 0);
	assert_int_equal(cairn_json_canonical("[1,2,3,4]", 9, &out, &error), CAIRN_TOO_BIG);
	assert_string_equal(out.data, "abc");
	assert_int_equal(cairn_json_canonical("{\"b\":1,\"a\":}", 12, &out, &error), CAIRN_INVALID);
	assert_string_equal(out.data, "abc");
	/* The last of equal names is what counts against the limit. */
	assert_int_equal(cairn_json_canonical("{\"a\":12345,\"a\":1}", 17, &out, &error), 0);
	assert_string_equal(out.data, "abc{\"a\":1}");
	cairn_buffer_release(&out);
}

static const char *const pieces[] = {
	" {\"name\" : [1, -2.5e+3, true,false,null] , \"\\u00e9\\ud83d\\ude00\\n\\\"\":{}} ",
	"[NaN, -Infinity,Infinity, {\"a\":{\"b\":[[], {}, \"\"]}}]\n",
	"\"é € \xf0\x9f\x98\x80 \\\\ \\/\"",
	"-12.5e-10 \n",
	" true",
	"0 ",
	"-Infinity\t",
	"[1,2] {\"a\":1}\n3 null",
	"hello world",
	"{\"a\" 1}",
	"[1e5,]",
	"\"\xe2\x28\"",
	"123abc",
	"tru\n",
	"[01]",
};

/* What the scanner says of a text: where values end, and what remains at its end. */
struct outcome {
	size_t ends[8];
	size_t count;
	size_t wrong;
	enum cairn_json_progress last;
};

static void scan(const char *text, size_t size, size_t piece, struct outcome *ret_outcome)
{
	struct cairn_json_scan scan;
	struct outcome outcome = { .last = CAIRN_JSON_EMPTY };
	cairn_json_scan_init(&scan);
	for (size_t at = 0; at < size && outcome.last != CAIRN_JSON_WRONG;) {
		size_t length = size - at < piece ? size - at : piece;
		char *copy = malloc(length);
		size_t end = 99999;
		assert_non_null(copy);
		memcpy(copy, text + at, length);
		outcome.last = cairn_json_scan_feed(&scan, copy, length, &end);
		free(copy);
		assert_true(end <= length);
		at += end;
		if (outcome.last == CAIRN_JSON_COMPLETE) {
			assert_true(outcome.count < 8);
			outcome.ends[outcome.count++] = at;
		} else if (outcome.last == CAIRN_JSON_WRONG) {
			outcome.wrong = at;
		} else {
			assert_int_equal(end, length);
		}
	}
	outcome.last = cairn_json_scan_end(&scan);
	*ret_outcome = outcome;
}

static void test_json_scan_pieces_equal_the_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		for (size_t size = 0; size <= strlen(pieces[i]); size++) {
			struct outcome whole, part;
			memset(&part, 0, sizeof(part));
			scan(pieces[i], size, size + 1, &whole);
			for (size_t piece = 1; piece <= size; piece++) {
				scan(pieces[i], size, piece, &part);
				assert_int_equal(part.count, whole.count);
				assert_int_equal(part.last, whole.last);
				assert_int_equal(part.wrong, whole.wrong);
				assert_memory_equal(part.ends, whole.ends, sizeof(whole.ends));
			}
		}
	}
}

static void test_json_scan_progress_table(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum cairn_json_progress progress;
		size_t count; /* values that completed */
		size_t end;   /* of the last of them, or the first wrong byte */
	} table[] = {
		{ "", CAIRN_JSON_EMPTY, 0, 0 },
		{ " \t\r\n", CAIRN_JSON_EMPTY, 0, 0 },
		{ "{", CAIRN_JSON_PARTIAL, 0, 0 },
		{ "{\"a\":1", CAIRN_JSON_PARTIAL, 0, 0 },
		{ "{\"a\":1} \n", CAIRN_JSON_EMPTY, 1, 7 },
		{ "\"ab", CAIRN_JSON_PARTIAL, 0, 0 },
		{ "\"ab\"", CAIRN_JSON_EMPTY, 1, 4 },
		{ "12", CAIRN_JSON_OPEN_ENDED, 0, 0 },
		{ "12.", CAIRN_JSON_PARTIAL, 0, 0 },
		{ "-", CAIRN_JSON_PARTIAL, 0, 0 },
		{ "1e", CAIRN_JSON_PARTIAL, 0, 0 },
		{ "1e5", CAIRN_JSON_OPEN_ENDED, 0, 0 },
		{ "12\n", CAIRN_JSON_EMPTY, 1, 2 },
		{ "tru", CAIRN_JSON_PARTIAL, 0, 0 },
		{ "true", CAIRN_JSON_OPEN_ENDED, 0, 0 },
		{ "-Infinity", CAIRN_JSON_OPEN_ENDED, 0, 0 },
		{ "null ", CAIRN_JSON_EMPTY, 1, 4 },
		{ "truth", CAIRN_JSON_WRONG, 0, 3 },
		{ "true,", CAIRN_JSON_WRONG, 0, 4 },
		{ "12[", CAIRN_JSON_WRONG, 0, 2 },
		{ "r1", CAIRN_JSON_WRONG, 0, 0 },
		{ "00", CAIRN_JSON_WRONG, 0, 1 },
		{ "[}", CAIRN_JSON_WRONG, 0, 1 },
		{ "{\"a\":1}{\"b\"", CAIRN_JSON_PARTIAL, 1, 7 },
		{ "[1]]", CAIRN_JSON_WRONG, 1, 3 },
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct outcome outcome;
		scan(table[i].text, strlen(table[i].text), 100, &outcome);
		if (outcome.last != table[i].progress || outcome.count != table[i].count)
			fail_msg("%s gives %d and %zu values", table[i].text, outcome.last,
				 outcome.count);
		if (outcome.last == CAIRN_JSON_WRONG)
			assert_int_equal(outcome.wrong, table[i].end);
		else if (outcome.count)
			assert_int_equal(outcome.ends[outcome.count - 1], table[i].end);
	}
}

static void test_json_scan_stays_wrong(void **state)
{
	(void)state;
	struct cairn_json_scan scanner;
	size_t end;
	cairn_json_scan_init(&scanner);
	assert_int_equal(cairn_json_scan_feed(&scanner, "nope", 4, &end), CAIRN_JSON_WRONG);
	assert_int_equal(end, 1);
	assert_int_equal(cairn_json_scan_feed(&scanner, "{}", 2, &end), CAIRN_JSON_WRONG);
	assert_int_equal(end, 0);
	cairn_json_scan_init(&scanner);
	assert_int_equal(cairn_json_scan_feed(&scanner, "{}", 2, &end), CAIRN_JSON_COMPLETE);
}

static void test_json_scan_scalar_that_ended_before_the_piece(void **state)
{
	(void)state;
	struct cairn_json_scan scanner;
	size_t end;
	cairn_json_scan_init(&scanner);
	assert_int_equal(cairn_json_scan_feed(&scanner, "12", 2, &end), CAIRN_JSON_OPEN_ENDED);
	assert_int_equal(cairn_json_scan_feed(&scanner, "\n7", 2, &end), CAIRN_JSON_COMPLETE);
	assert_int_equal(end, 0);
	assert_int_equal(cairn_json_scan_feed(&scanner, "\n7", 2, &end), CAIRN_JSON_OPEN_ENDED);
}

static void test_json_member_table(void **state)
{
	(void)state;
	static const struct {
		const char *object;
		const char *name;
		int status;
		const char *value;
	} table[] = {
		{ "{\"a\":1}", "a", 0, "1" },
		{ " { \"a\" : [ 1 , {\"b\":2} ] \n, \"b\" : \"x,}]\\\"\" } \n", "a", 0,
		  "[ 1 , {\"b\":2} ]" },
		{ " { \"a\" : [ 1 , {\"b\":2} ] , \"b\" : \"x,}]\\\"\" } \n", "b", 0,
		  "\"x,}]\\\"\"" },
		{ "{\"a\":1,\"a\":2,\"b\":3}", "a", 0, "2" },
		{ "{\"\\u00e9\\n\":1}", "é\n", 0, "1" },
		{ "{\"é\":1}", "é", 0, "1" },
		{ "{\"\":1}", "", 0, "1" },
		{ "{\"ab\":1}", "a", CAIRN_NOT_FOUND, NULL },
		{ "{\"a\":1}", "ab", CAIRN_NOT_FOUND, NULL },
		{ "{\"a\\u0000\":1}", "a", CAIRN_NOT_FOUND, NULL },
		{ "{\"\\ud800\":1}", "\xed\xa0\x80", CAIRN_NOT_FOUND, NULL },
		{ "{\"b\":{\"a\":1}}", "a", CAIRN_NOT_FOUND, NULL },
		{ "{}", "a", CAIRN_NOT_FOUND, NULL },
		{ "{ }", "", CAIRN_NOT_FOUND, NULL },
		{ "", "a", CAIRN_INVALID, NULL },
		{ "[]", "a", CAIRN_INVALID, NULL },
		{ "\"a\"", "a", CAIRN_INVALID, NULL },
		{ "{\"a\":1", "a", CAIRN_INVALID, NULL },
		{ "{\"a\":1}}", "a", CAIRN_INVALID, NULL },
		{ "{\"a\":1,\"b\":}", "a", CAIRN_INVALID, NULL },
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t size = strlen(table[i].object);
		char *copy = malloc(size ? size : 1);
		assert_non_null(copy);
		memcpy(copy, table[i].object, size);
		struct cairn_slice object = { copy, size }, value = { 0 };
		assert_int_equal(cairn_json_member(object, table[i].name, &value), table[i].status);
		if (table[i].value)
			assert_true(cairn_slice_equal(value, cairn_slice_of(table[i].value)));
		free(copy);
	}
}

static void test_json_kind_table(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		char kind;
	} table[] = {
		{ "{}", '{' },	{ "[1]", '[' },	     { "\"\"", '"' },	   { "0", '0' },
		{ "-1", '0' },	{ "true", 't' },     { "false", 'f' },	   { "null", 'n' },
		{ "NaN", 'N' }, { "Infinity", 'N' }, { "-Infinity", 'N' }, { "", 0 },
		{ "x", 0 },	{ " 1", 0 },	     { "-", '0' },
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(cairn_json_kind(cairn_slice_of(table[i].value)), table[i].kind);
	assert_int_equal(cairn_json_kind((struct cairn_slice){ "", 1 }), 0);
}

static void test_json_integer_table(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		int status;
		int64_t integer;
	} table[] = {
		{ "0", 0, 0 },
		{ "-0", 0, 0 },
		{ "42", 0, 42 },
		{ "-42", 0, -42 },
		{ "9223372036854775807", 0, INT64_MAX },
		{ "-9223372036854775808", 0, INT64_MIN },
		{ "9223372036854775808", CAIRN_TOO_BIG, 0 },
		{ "-9223372036854775809", CAIRN_TOO_BIG, 0 },
		{ "123456789012345678901234567890", CAIRN_TOO_BIG, 0 },
		{ "99999999999999999999x", CAIRN_INVALID, 0 },
		{ "1.0", CAIRN_INVALID, 0 },
		{ "1e3", CAIRN_INVALID, 0 },
		{ "01", CAIRN_INVALID, 0 },
		{ "-", CAIRN_INVALID, 0 },
		{ "", CAIRN_INVALID, 0 },
		{ "\"1\"", CAIRN_INVALID, 0 },
		{ "true", CAIRN_INVALID, 0 },
		{ "+1", CAIRN_INVALID, 0 },
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int64_t integer = -77;
		int status = cairn_json_integer(cairn_slice_of(table[i].value), &integer);
		if (status != table[i].status)
			fail_msg("%s gives %d", table[i].value, status);
		assert_int_equal(integer, status ? -77 : table[i].integer);
	}
}

static void test_json_string_decode_table(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		const char *text;
		size_t size;
	} table[] = {
		{ "\"\"", "", 0 },
		{ "\"abc\"", "abc", 3 },
		{ "\"\\u0041\\n\\/\\\"\"", "A\n/\"", 4 },
		{ "\"a\\u0000b\"", "a\0b", 3 },
		{ "\"\\ud83d\\ude00é\"", "\xf0\x9f\x98\x80é", 6 },
		{ "\"\x7f\"", "\x7f", 1 },
		{ "\"\\ud800\"", NULL, 0 },
		{ "\"\\udc00\\ud800\"", NULL, 0 },
		{ "\"a\"b\"", NULL, 0 },
		{ "\"\\\"", NULL, 0 },
		{ "\"\xff\"", NULL, 0 },
		{ "\"\n\"", NULL, 0 },
		{ "\"", NULL, 0 },
		{ "", NULL, 0 },
		{ "abc", NULL, 0 },
		{ "12", NULL, 0 },
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct cairn_buffer out;
		cairn_buffer_init(&out, 100);
		assert_int_equal(cairn_buffer_append(&out, "x", 1), 0);
		assert_int_equal(cairn_json_string_decode(cairn_slice_of(table[i].value), &out),
				 table[i].text ? CAIRN_OK : CAIRN_INVALID);
		assert_int_equal(out.size, table[i].size + 1);
		if (table[i].text)
			assert_memory_equal(out.data + 1, table[i].text, table[i].size);
		cairn_buffer_release(&out);
	}
}

static void test_json_string_encode_table(void **state)
{
	(void)state;
	static const struct {
		struct cairn_slice text;
		const char *value;
	} table[] = {
		{ { "", 0 }, "\"\"" },
		{ { NULL, 0 }, "\"\"" },
		{ { "a b/", 4 }, "\"a b/\"" },
		{ { "\"\\\b\f\n\r\t", 7 }, "\"\\\"\\\\\\b\\f\\n\\r\\t\"" },
		{ { "\0\x1f\x7f", 3 }, "\"\\u0000\\u001f\\u007f\"" },
		{ { "é\xf0\x9f\x98\x80", 6 }, "\"\\u00e9\\ud83d\\ude00\"" },
		{ { "a\xff", 2 }, NULL },
		{ { "\xed\xa0\x80", 3 }, NULL },
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct cairn_buffer out;
		cairn_buffer_init(&out, 100);
		assert_int_equal(cairn_json_string_encode(table[i].text, &out),
				 table[i].value ? CAIRN_OK : CAIRN_INVALID);
		if (table[i].value)
			assert_string_equal(out.data, table[i].value);
		else
			assert_int_equal(out.size, 0);
		cairn_buffer_release(&out);
	}
}

static void test_utf8_valid_table(void **state)
{
	(void)state;
	static const char *const good[] = { "",
					    "a",
					    "é",
					    "€",
					    "\xf0\x9f\x98\x80",
					    "\xed\x9f\xbf",
					    "\xee\x80\x80",
					    "\xf4\x8f\xbf\xbf",
					    "\xc2\x80",
					    "\xe0\xa0\x80",
					    "\xf0\x90\x80\x80" };
	static const char *const bad[] = { "\x80",
					   "\xc3",
					   "\xc1\xbf",
					   "\xe0\x9f\xbf",
					   "\xed\xa0\x80",
					   "\xed\xbf\xbf",
					   "\xf0\x8f\xbf\xbf",
					   "\xf4\x90\x80\x80",
					   "\xf5\x80\x80\x80",
					   "\xff",
					   "\xe2\x82",
					   "a\xe2(\xac" };
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(cairn_utf8_valid(cairn_slice_of(good[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(cairn_utf8_valid(cairn_slice_of(bad[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_canonical_vectors),
		cmocka_unit_test(test_json_canonical_keeps_what_others_refuse),
		cmocka_unit_test(test_json_canonical_refuses),
		cmocka_unit_test(test_json_depth),
		cmocka_unit_test(test_json_depth_on_a_small_stack),
		cmocka_unit_test(test_json_canonical_sorts_many_members),
		cmocka_unit_test(test_json_canonical_failure_keeps_the_buffer),
		cmocka_unit_test(test_json_scan_pieces_equal_the_whole),
		cmocka_unit_test(test_json_scan_progress_table),
		cmocka_unit_test(test_json_scan_stays_wrong),
		cmocka_unit_test(test_json_scan_scalar_that_ended_before_the_piece),
		cmocka_unit_test(test_json_member_table),
		cmocka_unit_test(test_json_kind_table),
		cmocka_unit_test(test_json_integer_table),
		cmocka_unit_test(test_json_string_decode_table),
		cmocka_unit_test(test_json_string_encode_table),
		cmocka_unit_test(test_utf8_valid_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
