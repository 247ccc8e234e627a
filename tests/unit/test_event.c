/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cairn/cairn.h>

#include <string.h>

static int parse(const char *text, struct cairn_buffer *work, struct cairn_event *event,
		 struct cairn_error *error)
{
	cairn_buffer_init(work, 1000);
	return cairn_event_parse(cairn_slice_of(text), work, event, error);
}

static void assert_text(struct cairn_slice slice, const char *text)
{
	assert_int_equal(slice.size, strlen(text));
	assert_memory_equal(slice.data, text, slice.size);
}

static void test_event_parse_fills_in_what_may_be_left_out(void **state)
{
	(void)state;
	struct cairn_buffer work;
	struct cairn_event event;
	struct cairn_error error;
	assert_int_equal(parse(" {\"event_type\":\"a\\u00e9\", \"payload\": {\"x\":1} }\n", &work,
			       &event, &error),
			 0);
	assert_text(event.event_type, "a\xc3\xa9");
	assert_text(event.payload, "{\"x\":1}");
	assert_true(event.timestamp == CAIRN_TIMESTAMP_NOW);
	assert_null(event.schema_version.data);
	assert_null(event.metadata.data);
	cairn_buffer_release(&work);
}

static void test_event_prints_what_it_parses(void **state)
{
	(void)state;
	static const char text[] =
		"{\"event_type\":\"t\",\"timestamp\":\"1970-01-01T00:00:00.000000Z\","
		"\"schema_version\":\"2\",\"payload\":{\"x\":[1]},\"metadata\":{\"y\":2}}";
	struct cairn_buffer work, out;
	struct cairn_event event;
	struct cairn_error error;
	const struct cairn_sequence sequence = { .commit = 42, .index = 3 };
	cairn_buffer_init(&out, 1000);
	assert_int_equal(parse(text, &work, &event, &error), 0);
	assert_int_equal(event.timestamp, 0);
	assert_int_equal(cairn_event_print(sequence, &event, &out), 0);
	static const char start[] = "{\"sequence\":\"000000000042:000003\",";
	assert_memory_equal(out.data, start, strlen(start));
	assert_string_equal(out.data + strlen(start), text + 1);
	cairn_buffer_release(&work);
	cairn_buffer_release(&out);
}

static void test_event_parse_refuses_and_says_why(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *reason;
	} cases[] = {
		{ "", "object" },
		{ "[]", "object" },
		{ "{\"event_type\":\"t\"", "object" },
		{ "{\"payload\":{}}", "event_type is missing" },
		{ "{\"event_type\":\"t\"}", "payload is missing" },
		{ "{\"event_type\":1,\"payload\":{}}", "event_type is no string" },
		{ "{\"event_type\":\"\\ud800\",\"payload\":{}}", "event_type is no string" },
		{ "{\"event_type\":\"t\",\"payload\":[]}", "payload is not an object" },
		{ "{\"event_type\":\"t\",\"payload\":{},\"metadata\":null}", "metadata" },
		{ "{\"event_type\":\"t\",\"payload\":{},\"timestamp\":\"soon\"}", "timestamp" },
		{ "{\"event_type\":\"t\",\"payload\":{},\"timestamp\":5}", "timestamp" },
		{ "{\"event_type\":\"t\",\"payload\":{},\"schema_version\":1}", "schema_version" },
		{ "{\"event_type\":\"t\",\"payload\":{},\"sequence\":\"1\"}", "sequence" },
		{ "{\"event_type\":\"t\",\"payload\":{},\"paylaod\":1}", "\"paylaod\"" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cairn_buffer work;
		struct cairn_event event;
		struct cairn_error error;
		assert_int_equal(parse(cases[i].text, &work, &event, &error), CAIRN_INVALID);
		if (!strstr(error.text, cases[i].reason))
			fail_msg("%s: %s", cases[i].text, error.text);
		cairn_buffer_release(&work);
	}
}

static void test_sequence_text_both_ways(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",
		"1:2",
		"000000000000:000000",
		"000000000042:00000",
		"000000000042:0000030",
		"000000000042-000003",
		"00000000004x:000003",
		"+00000000042:000003",
	};
	struct cairn_sequence sequence = { .commit = CAIRN_COMMIT_NUMBER_MAX, .index = 999999 };
	char text[CAIRN_SEQUENCE_SIZE];
	assert_int_equal(cairn_sequence_format(sequence, text), 0);
	assert_string_equal(text, "999999999999:999999");
	assert_int_equal(cairn_sequence_parse(cairn_slice_of("000000000042:000003"), &sequence), 0);
	assert_int_equal(sequence.commit, 42);
	assert_int_equal(sequence.index, 3);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(cairn_sequence_parse(cairn_slice_of(wrong[i]), &sequence),
				 CAIRN_INVALID);
	sequence.commit = CAIRN_COMMIT_NUMBER_MAX + 1;
	assert_int_equal(cairn_sequence_format(sequence, text), CAIRN_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event_parse_fills_in_what_may_be_left_out),
		cmocka_unit_test(test_event_prints_what_it_parses),
		cmocka_unit_test(test_event_parse_refuses_and_says_why),
		cmocka_unit_test(test_sequence_text_both_ways),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
