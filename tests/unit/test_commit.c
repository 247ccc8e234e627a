/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cairn/cairn.h>

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was asked of the allocator, in bytes. */
static size_t allocated;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_reallocarray(void *memory, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_reallocarray(void *memory, size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
	allocated += size;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	allocated += count * size;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	allocated += size;
	return __real_realloc(memory, size);
}

void *__wrap_reallocarray(void *memory, size_t count, size_t size)
{
	allocated += count * size;
	return __real_reallocarray(memory, count, size);
}

static const char *const vectors[] = { "one", "batch", "thousand", "tx", "types" };
static const int64_t numbers[] = { 1, 42, CAIRN_COMMIT_NUMBER_MAX, 3, 7 };
#define VECTOR_COUNT (sizeof(vectors) / sizeof(vectors[0]))

static void read_vector(const char *name, const char *suffix, struct cairn_buffer *out)
{
	char path[512];
	(void)snprintf(path, sizeof(path), TEST_DATA "/../vectors/commits/%s.%s", name, suffix);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	char piece[4096];
	size_t size;
	cairn_buffer_init(out, SIZE_MAX / 4);
	while ((size = fread(piece, 1, sizeof(piece), file)) > 0)
		assert_int_equal(cairn_buffer_append(out, piece, size), 0);
	(void)fclose(file);
}

/* {"$bytes_hex": …} of the vectors becomes {"$bytes": …}, which is ours. */
static void hex_to_base64(const struct cairn_buffer *in, struct cairn_buffer *out)
{
	static const char name[] = "\"$bytes_hex\": \"";
	cairn_buffer_init(out, SIZE_MAX / 4);
	const char *at = in->data;
	const char *found;
	while ((found = strstr(at, name)) != NULL) {
		assert_int_equal(cairn_buffer_append(out, at, (size_t)(found - at)), 0);
		const char *hex = found + strlen(name);
		size_t size = strcspn(hex, "\"") / 2;
		unsigned char *bytes = malloc(size + 1);
		char *text = malloc(size * 2 + 8);
		for (size_t i = 0; i < size; i++) {
			char pair[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
			bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
		}
		(void)EVP_EncodeBlock((unsigned char *)text, bytes, (int)size);
		assert_int_equal(cairn_buffer_printf(out, "\"$bytes\": \"%s", text), 0);
		free(bytes);
		free(text);
		at = hex + 2 * size;
	}
	assert_int_equal(cairn_buffer_append(out, at, strlen(at)), 0);
}

static struct cairn_slice member(struct cairn_slice object, const char *name)
{
	struct cairn_slice value;
	assert_int_equal(cairn_json_member(object, name, &value), 0);
	return value;
}

static struct cairn_slice string_of(struct cairn_slice value)
{
	return (struct cairn_slice){ value.data + 1, value.size - 2 };
}

static int64_t time_of(struct cairn_slice value)
{
	int64_t time;
	assert_int_equal(cairn_timestamp_parse(string_of(value), &time), 0);
	return time;
}

/* The events of a vector's JSON, as slices into it. */
static size_t events_of(struct cairn_slice text, struct cairn_event *events, size_t max)
{
	struct cairn_slice list = member(text, "events");
	const char *at = list.data + 1;
	const char *end = list.data + list.size;
	size_t count = 0;
	while (at < end) {
		struct cairn_json_scan scan;
		size_t size;
		at += strspn(at, ", \n");
		if (*at == ']')
			break;
		cairn_json_scan_init(&scan);
		assert_int_equal(cairn_json_scan_feed(&scan, at, (size_t)(end - at), &size),
				 CAIRN_JSON_COMPLETE);
		assert_true(count < max);
		struct cairn_slice event = { at, size };
		events[count++] = (struct cairn_event){
			.event_type = string_of(member(event, "event_type")),
			.timestamp = time_of(member(event, "timestamp")),
			.schema_version = string_of(member(event, "schema_version")),
			.payload = member(event, "payload"),
			.metadata = member(event, "metadata"),
		};
		at += size;
	}
	return count;
}

static void assert_same_text(struct cairn_slice a, struct cairn_slice b)
{
	assert_int_equal(a.size, b.size);
	assert_memory_equal(a.data, b.data, a.size);
}

static void assert_canonical_of(struct cairn_slice canonical, struct cairn_slice text)
{
	struct cairn_buffer expected;
	cairn_buffer_init(&expected, CAIRN_JSON_MAX);
	assert_int_equal(cairn_json_canonical(text.data, text.size, &expected, NULL), 0);
	assert_same_text(canonical, cairn_buffer_slice(&expected));
	cairn_buffer_release(&expected);
}

static void check_vector(const char *name)
{
	static struct cairn_event events[1000];
	struct cairn_buffer packed, hex, json, encoded;
	struct cairn_error error;
	struct cairn_commit commit;
	int64_t number;
	read_vector(name, "msgpack", &packed);
	read_vector(name, "json", &hex);
	hex_to_base64(&hex, &json);
	struct cairn_slice text = cairn_buffer_slice(&json);
	cairn_buffer_init(&encoded, CAIRN_COMMIT_MAX);
	cairn_commit_init(&commit);
	size_t count = events_of(text, events, 1000);
	assert_int_equal(cairn_json_integer(member(text, "number"), &number), 0);
	int64_t created = time_of(member(text, "created_at"));

	assert_int_equal(cairn_commit_encode(number, created, events, count, &encoded, &error), 0);
	assert_same_text(cairn_buffer_slice(&encoded), cairn_buffer_slice(&packed));

	assert_int_equal(
		cairn_commit_decode("log/k", number, cairn_buffer_slice(&packed), &commit, &error),
		0);
	assert_int_equal(commit.number, number);
	assert_int_equal(commit.created_at, created);
	assert_int_equal(commit.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_same_text(commit.events[i].event_type, events[i].event_type);
		assert_same_text(commit.events[i].schema_version, events[i].schema_version);
		assert_int_equal(commit.events[i].timestamp, events[i].timestamp);
		assert_canonical_of(commit.events[i].payload, events[i].payload);
		assert_canonical_of(commit.events[i].metadata, events[i].metadata);
	}
	cairn_commit_release(&commit);
	cairn_buffer_release(&encoded);
	cairn_buffer_release(&packed);
	cairn_buffer_release(&hex);
	cairn_buffer_release(&json);
}

static void test_commit_vectors_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < VECTOR_COUNT; i++)
		check_vector(vectors[i]);
}

static int decode(int64_t number, const void *data, size_t size, struct cairn_error *error)
{
	struct cairn_commit commit;
	cairn_commit_init(&commit);
	/* A copy of just this size, so that a read beyond its end is seen. */
	char *copy = size ? malloc(size) : NULL;
	if (size)
		memcpy(copy, data, size);
	int status = cairn_commit_decode("log/k", number, (struct cairn_slice){ copy, size },
					 &commit, error);
	cairn_commit_release(&commit);
	free(copy);
	return status;
}

static void test_commit_cut_at_every_byte_is_corrupt(void **state)
{
	(void)state;
	struct cairn_error error;
	for (size_t i = 0; i < VECTOR_COUNT; i++) {
		struct cairn_buffer packed;
		read_vector(vectors[i], "msgpack", &packed);
		size_t step = packed.size > 10000 ? 97 : 1;
		for (size_t size = 0; size < packed.size; size += step)
			assert_int_equal(decode(numbers[i], packed.data, size, &error),
					 CAIRN_CORRUPT);
		/* And a byte too many. */
		assert_int_equal(cairn_buffer_append(&packed, "\xc0", 1), 0);
		assert_int_equal(decode(numbers[i], packed.data, packed.size, &error),
				 CAIRN_CORRUPT);
		assert_non_null(strstr(error.text, "behind"));
		cairn_buffer_release(&packed);
	}
}

static void test_commit_with_any_byte_changed_is_refused_or_read(void **state)
{
	(void)state;
	struct cairn_buffer packed;
	struct cairn_error error;
	read_vector("types", "msgpack", &packed);
	for (size_t at = 0; at < packed.size; at++) {
		for (unsigned flip = 1; flip < 256; flip += 3) {
			packed.data[at] ^= (char)flip;
			int status = decode(7, packed.data, packed.size, &error);
			assert_true(status == CAIRN_OK || status == CAIRN_CORRUPT);
			packed.data[at] ^= (char)flip;
		}
	}
	cairn_buffer_release(&packed);
}

static void test_commit_of_another_number_is_corrupt(void **state)
{
	(void)state;
	struct cairn_buffer packed;
	struct cairn_error error;
	read_vector("one", "msgpack", &packed);
	assert_int_equal(decode(2, packed.data, packed.size, &error), CAIRN_CORRUPT);
	assert_non_null(strstr(error.text, "log/k"));
	assert_non_null(strstr(error.text, "another"));
	cairn_buffer_release(&packed);
}

/* The commit 1 with one event, of whose payload only the bytes differ. */
#define HEAD                                                                                       \
	"\x83\xa6number\x01\xaa"                                                                   \
	"created_at\xaa"                                                                           \
	"2026-08-09\xa6"                                                                           \
	"events"
#define EVENT                                                                                      \
	"\xaa"                                                                                     \
	"event_type\xa1t\xa9timestamp\xaa"                                                         \
	"2026-08-09\xaeschema_version\xa1"                                                         \
	"1\xa7payload"
#define BYTES(text) text, sizeof(text) - 1

static void test_commit_hostile_bytes_are_corrupt(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t size;
		const char *reason;
	} cases[] = {
		{ BYTES("\xc0"), "not a map" },
		{ BYTES("\x80"), "missing" },
		{ BYTES("\xc1"), "begins no value" },
		{ BYTES("\xdf\xff\xff\xff\xff"), "count beyond" },
		{ BYTES("\xdd\x7f\xff\xff\xff\x01"), "count beyond" },
		{ BYTES("\xdb\xff\xff\xff\xff\x01"), "length beyond" },
		{ BYTES("\xc6\xff\xff\xff\xff\x01"), "length beyond" },
		{ BYTES("\x81\xa1x\xd6\xff\x01\x02\x03\x04"), "extension" },
		{ BYTES("\x82\x01\x02\xa1x\x03"), "no string" },
		{ BYTES("\x81\xa6number\xa1"
			"1"),
		  "none" },
		{ BYTES("\x81\xa6number\xff"), "none" },
		{ BYTES("\x81\xa6number\xcb\x3f\xf0\0\0\0\0\0\0"), "none" },
		{ BYTES("\x81\xaa"
			"created_at\x01"),
		  "no string" },
		{ BYTES("\x81\xaa"
			"created_at\xa4soon"),
		  "timestamp" },
		{ BYTES(HEAD "\x90"), "without events" },
		{ BYTES(HEAD "\x80"), "no array" },
		{ BYTES(HEAD "\x91\xc0"), "more events" },
		{ BYTES(HEAD "\x91\x84" EVENT "\xc0"), "not a map" },
		{ BYTES(HEAD "\x91\x84" EVENT "\x81\x01\x02"), "no string" },
		{ BYTES(HEAD "\x91\x84" EVENT "\x81\xc4\x01x\x02"), "no string" },
		{ BYTES(HEAD "\x91\x84" EVENT "\x81\xa1x\xa1\xff"), "UTF-8" },
		{ BYTES(HEAD "\x91\x84" EVENT "\x81\xa1\xff\x01"), "UTF-8" },
		{ BYTES(HEAD "\x91\x84" EVENT "\x81\xa1x\xc7\x00\x01"), "extension" },
		{ BYTES(HEAD "\x91\x83\xaa"
			     "event_type\xa1t\xa9timestamp\xaa"
			     "2026-08-09\xa7payload\x80"),
		  "without event_type" },
		{ BYTES(HEAD "\x91\x85" EVENT "\x80\xa8metadata\xc0"), "not a map" },
	};
	struct cairn_error error;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(decode(1, cases[i].bytes, cases[i].size, &error), CAIRN_CORRUPT);
		if (!strstr(error.text, cases[i].reason))
			fail_msg("case %zu: %s", i, error.text);
	}
	assert_int_equal(decode(1, BYTES(HEAD "\x91\x84" EVENT "\x80"), &error), CAIRN_OK);
}

static void test_commit_deep_nesting_ends_at_500_levels(void **state)
{
	(void)state;
	static const struct {
		size_t levels;
		int status;
	} cases[] = { { 499, CAIRN_OK }, { 500, CAIRN_CORRUPT }, { 1000000, CAIRN_CORRUPT } };
	struct cairn_error error;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cairn_buffer bytes;
		cairn_buffer_init(&bytes, SIZE_MAX / 4);
		assert_int_equal(
			cairn_buffer_append(&bytes, BYTES(HEAD "\x91\x84" EVENT "\x81\xa1x")), 0);
		for (size_t level = 1; level < cases[i].levels; level++)
			assert_int_equal(cairn_buffer_append(&bytes, "\x91", 1), 0);
		assert_int_equal(cairn_buffer_append(&bytes, "\x90", 1), 0);
		assert_int_equal(decode(1, bytes.data, bytes.size, &error), cases[i].status);
		cairn_buffer_release(&bytes);
	}
}

static void test_commit_passes_over_unknown_members_of_any_depth(void **state)
{
	(void)state;
	static const char rest[] = HEAD "\x91\x84" EVENT "\x80";
	struct cairn_buffer bytes;
	struct cairn_error error;
	cairn_buffer_init(&bytes, SIZE_MAX / 4);
	assert_int_equal(cairn_buffer_append(&bytes, BYTES("\x84\xa1x")), 0);
	for (int level = 0; level < 100000; level++)
		assert_int_equal(cairn_buffer_append(&bytes, "\x91", 1), 0);
	assert_int_equal(cairn_buffer_append(&bytes, "\x90", 1), 0);
	assert_int_equal(cairn_buffer_append(&bytes, rest + 1, sizeof(rest) - 2), 0);
	assert_int_equal(decode(1, bytes.data, bytes.size, &error), CAIRN_OK);
	cairn_buffer_release(&bytes);
}

static void test_commit_memory_follows_the_bytes_that_are_there(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t size;
	} cases[] = {
		{ BYTES("\xdf\xff\xff\xff\xff") },
		{ BYTES(HEAD "\xdd\xff\xff\xff\xff") },
		{ BYTES(HEAD "\xdd\x00\x0f\x00\x00") },
		{ BYTES(HEAD "\x91\x84" EVENT "\xdf\x7f\xff\xff\xff") },
		{ BYTES(HEAD "\x91\x84" EVENT "\x81\xa1x\xdb\x7f\xff\xff\xff") },
		{ BYTES(HEAD "\x91\x84" EVENT "\x81\xa1x\xc6\x7f\xff\xff\xff") },
	};
	struct cairn_error error;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		allocated = 0;
		assert_int_equal(decode(1, cases[i].bytes, cases[i].size, &error), CAIRN_CORRUPT);
		assert_true(allocated < 4096);
	}
	/* A good commit that grows most: of two bytes, {"$bytes":""} becomes. */
	struct cairn_buffer bytes;
	cairn_buffer_init(&bytes, SIZE_MAX / 4);
	assert_int_equal(cairn_buffer_append(&bytes, BYTES(HEAD "\x91\x84" EVENT
								"\x81\xa1x\xdd\x00\x01\x00\x00")),
			 0);
	for (int i = 0; i < 0x10000; i++)
		assert_int_equal(cairn_buffer_append(&bytes, "\xc4\x00", 2), 0);
	allocated = 0;
	assert_int_equal(decode(1, bytes.data, bytes.size, &error), CAIRN_OK);
	assert_true(allocated < 40 * bytes.size);
	cairn_buffer_release(&bytes);
}

/* The event {"event_type":"t","payload":PAYLOAD}, encoded and decoded again: its payload. */
static int round_trip(const char *payload, struct cairn_buffer *out, struct cairn_error *error)
{
	const struct cairn_event event = {
		.event_type = cairn_slice_of("t"),
		.payload = cairn_slice_of(payload),
	};
	struct cairn_buffer encoded;
	struct cairn_commit commit;
	cairn_buffer_init(&encoded, CAIRN_COMMIT_MAX);
	cairn_commit_init(&commit);
	cairn_buffer_clear(out);
	int status = cairn_commit_encode(1, 0, &event, 1, &encoded, error);
	if (!status) {
		assert_int_equal(cairn_commit_decode("log/k", 1, cairn_buffer_slice(&encoded),
						     &commit, error),
				 0);
		assert_int_equal(commit.events[0].timestamp, 0);
		assert_int_equal(cairn_buffer_append(out, commit.events[0].payload.data,
						     commit.events[0].payload.size),
				 0);
	} else {
		assert_int_equal(encoded.size, 0);
	}
	cairn_commit_release(&commit);
	cairn_buffer_release(&encoded);
	return status;
}

static void test_commit_payloads_come_back_canonical(void **state)
{
	(void)state;
	static const struct {
		const char *in;
		const char *out; /* NULL: as in */
	} cases[] = {
		{ "{}", NULL },
		{ " { \"b\" : 1 , \"a\" : [ ] } ", "{\"a\":[],\"b\":1}" },
		{ "{\"a\":1.0,\"b\":1,\"c\":-0,\"d\":-0.0,\"e\":1e22,\"f\":0.1}",
		  "{\"a\":1.0,\"b\":1,\"c\":0,\"d\":-0.0,\"e\":1e+22,\"f\":0.1}" },
		{ "{\"a\":18446744073709551615,\"b\":-9223372036854775808}", NULL },
		{ "{\"a\":NaN,\"b\":-Infinity,\"c\":1e999}",
		  "{\"a\":NaN,\"b\":-Infinity,\"c\":Infinity}" },
		{ "{\"a\":1,\"b\":{\"x\":[{},{}]},\"a\":{\"y\":2}}",
		  "{\"a\":{\"y\":2},\"b\":{\"x\":[{},{}]}}" },
		{ "{\"b\":{\"$bytes\":\"AP8=\"}}", NULL },
		{ "{\"b\":[{\"\\u0024bytes\" : \"\"}, 1]}", "{\"b\":[{\"$bytes\":\"\"},1]}" },
		{ "{\"b\":{\"$bytes\":1},\"c\":{\"$bytes\":\"x\",\"y\":1}}", NULL },
		{ "{\"a\":\"\\u00e9\\ud83d\\ude00\\u0000\",\"\\uff61\":1,\"\\ud83d\\ude00\":2}",
		  NULL },
		{ "{\"s\":\",]}{[:\\\"\\\\\",\"t\":[true,false,null]}", NULL },
		{ "{\"f\":5e-324,\"g\":1.7976931348623157e+308,\"h\":123456789.12345678}", NULL },
	};
	struct cairn_buffer out;
	struct cairn_error error;
	cairn_buffer_init(&out, CAIRN_JSON_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (round_trip(cases[i].in, &out, &error))
			fail_msg("%s: %s", cases[i].in, error.text);
		assert_string_equal(out.data, cases[i].out ? cases[i].out : cases[i].in);
	}
	cairn_buffer_release(&out);
}

static void test_commit_refuses_what_no_event_can_hold(void **state)
{
	(void)state;
	static const struct {
		const char *payload;
		const char *reason;
	} cases[] = {
		{ "", "not JSON" },
		{ "{\"a\":", "not JSON" },
		{ "[]", "object" },
		{ "1", "object" },
		{ "{\"a\":18446744073709551616}", "64 bits" },
		{ "{\"a\":-9223372036854775809}", "64 bits" },
		{ "{\"a\":\"\\ud800\"}", "surrogate" },
		{ "{\"\\udc00\":1}", "surrogate" },
		{ "{\"a\":{\"$bytes\":\"A\"}}", "base64" },
		{ "{\"a\":{\"$bytes\":\"AP8\"}}", "base64" },
		{ "{\"a\":{\"$bytes\":\"A*8=\"}}", "base64" },
		{ "{\"a\":{\"$bytes\":\"AP9=\"}}", "base64" },
		{ "{\"a\":{\"$bytes\":\" AP8=\\n  \"}}", "base64" },
	};
	struct cairn_buffer out;
	struct cairn_error error;
	cairn_buffer_init(&out, CAIRN_JSON_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(round_trip(cases[i].payload, &out, &error), CAIRN_INVALID);
		if (!strstr(error.text, cases[i].reason) || !strstr(error.text, "event 0"))
			fail_msg("%s: %s", cases[i].payload, error.text);
	}
	cairn_buffer_release(&out);
}

static void test_commit_encode_refuses_numbers_counts_and_times(void **state)
{
	(void)state;
	const struct cairn_event good = { .event_type = cairn_slice_of("t"),
					  .payload = cairn_slice_of("{}") };
	struct cairn_event late = good, untyped = good, bad = good;
	late.timestamp = INT64_MAX;
	untyped.event_type.size = 0;
	bad.schema_version = cairn_slice_of("\xff");
	const struct {
		int64_t number;
		int64_t created;
		const struct cairn_event *event;
		size_t count;
		size_t limit;
		int status;
	} cases[] = {
		{ 0, 0, &good, 1, 1000, CAIRN_INVALID },
		{ CAIRN_COMMIT_NUMBER_MAX + 1, 0, &good, 1, 1000, CAIRN_INVALID },
		{ 1, INT64_MIN, &good, 1, 1000, CAIRN_INVALID },
		{ 1, 0, &good, 0, 1000, CAIRN_INVALID },
		{ 1, 0, &late, 1, 1000, CAIRN_INVALID },
		{ 1, 0, &untyped, 1, 1000, CAIRN_INVALID },
		{ 1, 0, &bad, 1, 1000, CAIRN_INVALID },
		{ 1, 0, &good, 1, 60, CAIRN_TOO_BIG },
		{ CAIRN_COMMIT_NUMBER_MAX, 0, &good, 1, 1000, CAIRN_OK },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cairn_buffer out;
		struct cairn_error error;
		cairn_buffer_init(&out, cases[i].limit);
		assert_int_equal(cairn_commit_encode(cases[i].number, cases[i].created,
						     cases[i].event, cases[i].count, &out, &error),
				 cases[i].status);
		assert_true((out.size == 0) == (cases[i].status != CAIRN_OK));
		cairn_buffer_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commit_vectors_both_ways),
		cmocka_unit_test(test_commit_cut_at_every_byte_is_corrupt),
		cmocka_unit_test(test_commit_with_any_byte_changed_is_refused_or_read),
		cmocka_unit_test(test_commit_of_another_number_is_corrupt),
		cmocka_unit_test(test_commit_hostile_bytes_are_corrupt),
		cmocka_unit_test(test_commit_deep_nesting_ends_at_500_levels),
		cmocka_unit_test(test_commit_passes_over_unknown_members_of_any_depth),
		cmocka_unit_test(test_commit_memory_follows_the_bytes_that_are_there),
		cmocka_unit_test(test_commit_payloads_come_back_canonical),
		cmocka_unit_test(test_commit_refuses_what_no_event_can_hold),
		cmocka_unit_test(test_commit_encode_refuses_numbers_counts_and_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
