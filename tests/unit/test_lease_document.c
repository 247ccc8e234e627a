/* SPDX-License-Identifier: MIT */
#include "bucket.h"

#define NOON ((int64_t)1786276800000000) /* 2026-08-09T12:00:00Z */

static void test_lease_document_is_read_leniently(void **state)
{
	static const struct {
		const char *text;
		int64_t epoch;
		bool held;
		const char *holder;
		int64_t deadline;
		const char *state;
	} cases[] = {
		{ "{\"deadline_at\":\"2026-08-09T12:00:00.000000Z\",\"epoch\":1,\"holder\":\"h\","
		  "\"state\":null}",
		  1, true, "h", NOON, "null" },
		{ " {\"state\": {\"b\": 1, \"a\": [ ]}, \"holder\": null, \"epoch\": 7,\n"
		  "\"deadline_at\": \"2026-08-09T12:00:00+00:00\"} ",
		  7, false, "", NOON, "{\"a\":[],\"b\":1}" },
		{ "{\"deadline_at\":\"2026-08-09T14:00:00.5+02:00\",\"epoch\":2,\"holder\":\"\"}",
		  2, true, "", NOON + 500000, "null" },
		{ "{\"deadline_at\":\"2026-08-09T12:00:00.1234567\",\"epoch\":9223372036854775807,"
		  "\"holder\":\"\\u00e9\\n\",\"more\":1,\"state\":NaN}",
		  INT64_MAX, true, "\xc3\xa9\n", NOON + 123456, "NaN" },
		{ "{\"deadline_at\":\"2026-08-09\",\"epoch\":\"x\",\"epoch\":3,\"holder\":5,"
		  "\"holder\":\"last\",\"state\":123456789012345678901234567890}",
		  3, true, "last", NOON - 43200000000, "123456789012345678901234567890" },
		{ "{\"deadline_at\":\"2026-W32-7\",\"epoch\":3,\"holder\":null,"
		  "\"state\":\"\\uD800\"}",
		  3, false, "", NOON - 43200000000, "\"\\ud800\"" },
	};
	struct cairn_error error = { 0 };
	struct cairn_lease_document document;
	cairn_lease_document_init(&document);
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status =
			cairn_lease_parse("k", cairn_slice_of(cases[i].text), &document, &error);
		if (status)
			fail_msg("case %zu: %s", i, error.text);
		assert_int_equal(document.epoch, cases[i].epoch);
		assert_int_equal(document.held, cases[i].held);
		assert_int_equal(document.deadline, cases[i].deadline);
		assert_true(cairn_slice_equal(cairn_buffer_slice(&document.holder),
					      cairn_slice_of(cases[i].holder)));
		assert_string_equal(document.state.data, cases[i].state);
	}
	cairn_lease_document_release(&document);
}

/* A deadline, a holder and an epoch that are right, to be put beside ones that are not. */
#define DEADLINE "\"deadline_at\":\"2026-08-09T12:00:00Z\""
#define HOLDER	 "\"holder\":\"h\""
#define EPOCH	 "\"epoch\":1"

static const struct {
	const char *text;
	const char *word; /* of the message */
} absurd[] = {
	{ "", "" },
	{ "not json", "" },
	{ "{" DEADLINE "," HOLDER "," EPOCH, "" },
	{ "[1,2]", "object" },
	{ "null", "object" },
	{ "\"text\"", "object" },
	{ "{}", "missing" },
	{ "{" DEADLINE "," HOLDER "}", "epoch" },
	{ "{" DEADLINE "," HOLDER ",\"epoch\":\"x\"}", "epoch" },
	{ "{" DEADLINE "," HOLDER ",\"epoch\":0}", "epoch" },
	{ "{" DEADLINE "," HOLDER ",\"epoch\":-1}", "epoch" },
	{ "{" DEADLINE "," HOLDER ",\"epoch\":1.5}", "epoch" },
	{ "{" DEADLINE "," HOLDER ",\"epoch\":1.0}", "epoch" },
	{ "{" DEADLINE "," HOLDER ",\"epoch\":1e3}", "epoch" },
	{ "{" DEADLINE "," HOLDER ",\"epoch\":true}", "epoch" },
	{ "{" DEADLINE "," HOLDER ",\"epoch\":null}", "epoch" },
	{ "{" DEADLINE "," HOLDER ",\"epoch\":NaN}", "epoch" },
	{ "{" DEADLINE "," HOLDER ",\"epoch\":9223372036854775808}", "64 bits" },
	{ "{" DEADLINE "," EPOCH "}", "holder" },
	{ "{" DEADLINE "," EPOCH ",\"holder\":5}", "holder" },
	{ "{" DEADLINE "," EPOCH ",\"holder\":[\"h\"]}", "holder" },
	{ "{" DEADLINE "," EPOCH ",\"holder\":false}", "holder" },
	{ "{" DEADLINE "," EPOCH ",\"holder\":NaN}", "holder" },
	{ "{" EPOCH "," HOLDER "}", "deadline_at" },
	{ "{" EPOCH "," HOLDER ",\"deadline_at\":\"soon\"}", "deadline_at" },
	{ "{" EPOCH "," HOLDER ",\"deadline_at\":5}", "deadline_at" },
	{ "{" EPOCH "," HOLDER ",\"deadline_at\":null}", "deadline_at" },
	{ "{" EPOCH "," HOLDER ",\"deadline_at\":\"\"}", "deadline_at" },
	{ "{" EPOCH "," HOLDER ",\"deadline_at\":\"2026-13-01\"}", "deadline_at" },
	{ "{" EPOCH "," HOLDER ",\"deadline_at\":\"\\ud800\"}", "deadline_at" },
};

static void test_lease_document_that_is_absurd_is_corrupt(void **state)
{
	struct cairn_error error = { 0 };
	struct cairn_lease_document document;
	cairn_lease_document_init(&document);
	(void)state;

	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		int status = cairn_lease_parse("some/key", cairn_slice_of(absurd[i].text),
					       &document, &error);
		if (status != CAIRN_CORRUPT || !strstr(error.text, absurd[i].word) ||
		    !strstr(error.text, "some/key"))
			fail_msg("%s: %d %s", absurd[i].text, status, error.text);
	}
	assert_int_equal(cairn_lease_parse("k", cairn_slice_of("{}"), &document, NULL),
			 CAIRN_CORRUPT);
	assert_int_equal(document.state.size, 0);
}

/* Nothing is done to an object that is no lease document, by any call. */
static void test_lease_document_that_is_absurd_is_left_alone(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_call *call = &bucket->call;
	const struct cairn_lease_options options = { .ttl = 1000000 };
	struct cairn_lease *lease = NULL;
	struct cairn_lease_document document;
	cairn_lease_document_init(&document);

	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		bucket_put(bucket, "k", absurd[i].text);
		assert_status(call, cairn_lease_read(bucket->store, call, "k", &document),
			      CAIRN_CORRUPT);
		assert_status(call, cairn_lease_acquire(bucket->store, call, "k", &options, &lease),
			      CAIRN_CORRUPT);
		assert_status(call, cairn_lease_attach(bucket->store, call, "k", "h", 1, &lease),
			      CAIRN_CORRUPT);
		assert_status(call,
			      cairn_lease_cooperative_write(bucket->store, call, "k",
							    transform_increment, NULL, NULL),
			      CAIRN_CORRUPT);
		bucket_assert(bucket, "k", absurd[i].text);
	}
	assert_null(lease);
}

static void test_lease_document_is_read_with_its_version(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_call *call = &bucket->call;
	struct cairn_lease_document document;
	cairn_lease_document_init(&document);
	char etag[CAIRN_ETAG_SIZE];

	assert_status(call, cairn_lease_read(bucket->store, call, "k", &document), CAIRN_NOT_FOUND);
	assert_status(call, cairn_lease_read(bucket->store, call, "log/k", &document),
		      CAIRN_INVALID);
	bucket_put(bucket, "k", "{" DEADLINE "," HOLDER "," EPOCH "}");
	assert_status(call, cairn_lease_read(bucket->store, call, "k", &document), CAIRN_OK);
	bucket_etag(bucket, "k", etag);
	assert_string_equal(document.version.etag, etag);
	assert_int_equal(document.deadline, NOON);
	cairn_lease_document_release(&document);
}

/* A holder that is no text for us is refused to readers, and kept exactly by writers. */
static void test_lease_document_keeps_a_holder_with_a_lone_surrogate(void **state)
{
	struct bucket *bucket = *state;
	struct cairn_call *call = &bucket->call;
	struct cairn_lease_document document;
	cairn_lease_document_init(&document);
	char next[] = "{\"cancel\": true}";
	bucket_put(bucket, "k", "{" DEADLINE "," EPOCH ",\"holder\":\"\\ud800\"}");

	assert_status(call, cairn_lease_read(bucket->store, call, "k", &document), CAIRN_CORRUPT);
	assert_status(call,
		      cairn_lease_cooperative_write(bucket->store, call, "k", transform_constant,
						    next, NULL),
		      CAIRN_OK);
	bucket_assert(bucket, "k",
		      "{\"deadline_at\":\"2026-08-09T12:00:00.000000Z\",\"epoch\":1,"
		      "\"holder\":\"\\ud800\",\"state\":{\"cancel\":true}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lease_document_is_read_leniently),
		cmocka_unit_test(test_lease_document_that_is_absurd_is_corrupt),
		BUCKET_TESTS(test_lease_document_that_is_absurd_is_left_alone),
		BUCKET_TESTS(test_lease_document_is_read_with_its_version),
		BUCKET_TESTS(test_lease_document_keeps_a_holder_with_a_lone_surrogate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
