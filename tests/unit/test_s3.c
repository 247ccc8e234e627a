/* SPDX-License-Identifier: MIT */
#include "scripted_server.h"

#include <unistd.h>

#include "storage/s3.h"

#define SECOND ((int64_t)1000000)

/* A whole answer without a body, and one with a body that ends with the connection. */
#define EMPTY(status, headers) "HTTP/1.1 " status "\r\n" headers "Content-Length: 0\r\n\r\n"
#define CLOSING(status, headers, body)                                                             \
	"!HTTP/1.1 " status "\r\n" headers "Connection: close\r\n\r\n" body
#define ERROR(code)                                                                                \
	"<?xml version='1.0'?><Error><Code>" code "</Code><Message>Why.</Message></Error>"
#define STORED EMPTY("200 OK", "ETag: \"e1\"\r\n")
#define OBJECT                                                                                     \
	"HTTP/1.1 200 OK\r\nETag: \"e1\"\r\nLast-Modified: Sun, 30 Aug 2015 12:36:00 GMT\r\n"      \
	"Date: Sun, 30 Aug 2015 12:36:05 GMT\r\nx-amz-meta-cairn-nonce: n1\r\n"                    \
	"Content-Length: 4\r\n\r\ntext"

struct world {
	struct scripted_server *server;
	struct cairn_store *bare;
	struct cairn_store *store; /* retries over bare */
	struct cairn_call call;
};

static void open_store(struct world *world, const char *query)
{
	char url[300];
	struct cairn_error error;
	(void)snprintf(url, sizeof(url), "s3://bucket/pre%%20fix/?endpoint_url=%s%s",
		       scripted_server_url(world->server), query);
	cairn_store_free(world->store);
	if (cairn_store_open(url, NULL, &world->store, &error))
		fail_msg("%s", error.text);
	world->bare = world->store;
	while (world->bare->below)
		world->bare = world->bare->below;
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	(void)setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
	(void)setenv("AWS_SECRET_ACCESS_KEY", "hush", 1);
	(void)setenv("AWS_SESSION_TOKEN", "hushtoken", 1);
	(void)setenv("AWS_CONFIG_FILE", "/dev/null", 1);
	(void)unsetenv("AWS_REGION");
	(void)unsetenv("AWS_DEFAULT_REGION");
	world->server = scripted_server_start();
	open_store(world, "");
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	cairn_store_free(world->store);
	scripted_server_stop(world->server);
	free(world);
	return 0;
}

static void say(struct world *world, const char *const *answers, size_t count)
{
	scripted_server_say(world->server, answers, count);
	world->call = (struct cairn_call){ .deadline = cairn_clock() + 20 * SECOND };
}

static int get(struct world *world, struct cairn_store *store)
{
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_get(store, &world->call, "k", NULL, &object);
	cairn_object_release(&object);
	return status;
}

static int put(struct world *world, struct cairn_store *store, const char *if_match)
{
	const struct cairn_put_options options = { .if_match = if_match, .if_absent = !if_match };
	return cairn_store_put(store, &world->call, "k", cairn_slice_of("text"), &options, NULL);
}

static void expect_header(struct world *world, size_t index, const char *name, const char *value)
{
	char *header = scripted_server_header(world->server, index, name);
	if (!header || strcmp(header, value) != 0)
		fail_msg("%s: %s", name, header ? header : "missing");
	free(header);
}

static void test_s3_requests(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = { STORED };
	char nonce[CAIRN_NONCE_SIZE] = "";
	const struct cairn_put_options absent = { .if_absent = true, .nonce = nonce };
	const char key[] = "a/../b//# %+&<\n\xc3\xa9";
	struct cairn_version version;
	say(world, answers, 1);

	assert_int_equal(cairn_store_put(world->bare, &world->call, key, cairn_slice_of("text"),
					 &absent, &version),
			 0);

	const char *sent = scripted_server_request(world->server, 0);
	static const char line[] =
		"PUT /bucket/pre%20fix/a/../b//%23%20%25%2B%26%3C%0A%C3%A9 HTTP/";
	assert_memory_equal(sent, line, sizeof(line) - 1);
	expect_header(world, 0, "if-none-match", "*");
	expect_header(world, 0, "x-amz-meta-cairn-nonce", nonce);
	expect_header(world, 0, "x-amz-security-token", "hushtoken");
	expect_header(world, 0, "x-amz-content-sha256",
		      "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1");
	char *authorization = scripted_server_header(world->server, 0, "authorization");
	assert_non_null(strstr(authorization, "AWS4-HMAC-SHA256 Credential=AKID/"));
	assert_non_null(strstr(authorization, "/us-east-1/s3/aws4_request, SignedHeaders=host;"
					      "if-none-match;x-amz-content-sha256;x-amz-date;"
					      "x-amz-meta-cairn-nonce;x-amz-security-token, "));
	free(authorization);
	assert_null(strstr(sent, "hush\r"));
	assert_string_equal(version.etag, "e1");
	assert_string_equal(version.nonce, nonce);
}

static void test_s3_conditions_on_etags(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = { STORED };
	say(world, answers, 1);

	assert_int_equal(put(world, world->bare, "e0"), 0);
	expect_header(world, 0, "if-match", "e0");
	assert_int_equal(put(world, world->bare, ""), CAIRN_INVALID);
	assert_int_equal(scripted_server_count(world->server), 1);
}

static void test_s3_reads_versions(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = { OBJECT };
	struct cairn_object object;
	cairn_object_init(&object);
	say(world, answers, 1);

	assert_int_equal(cairn_store_get(world->bare, &world->call, "k", NULL, &object), 0);

	assert_string_equal(object.data.data, "text");
	assert_string_equal(object.version.etag, "e1");
	assert_string_equal(object.version.nonce, "n1");
	assert_int_equal(object.version.modified, 1440938160 * SECOND);
	assert_int_equal(object.version.age, 5 * SECOND);
	cairn_object_release(&object);
}

/* What each answer amounts to, of a read and of a conditional write. */
static const struct {
	const char *answer;
	int read;
	int absent;
	int match;
	const char *word;
} outcomes[] = {
	{ CLOSING("404 No", "", ERROR("NoSuchKey")), CAIRN_NOT_FOUND, CAIRN_BUSY, CAIRN_CONFLICT,
	  "k: " },
	{ CLOSING("404 No", "", ERROR("NoSuchBucket")), CAIRN_IO, CAIRN_IO, CAIRN_IO,
	  "404 NoSuchBucket, Why." },
	{ CLOSING("404 No", "", "<html>nginx</html>"), CAIRN_IO, CAIRN_IO, CAIRN_IO,
	  "no answer of S3" },
	{ EMPTY("404 No", ""), CAIRN_IO, CAIRN_IO, CAIRN_IO, "404" },
	{ CLOSING("412 No", "", ERROR("PreconditionFailed")), CAIRN_CONFLICT, CAIRN_EXISTS,
	  CAIRN_CONFLICT, "k: " },
	{ EMPTY("412 No", ""), CAIRN_CONFLICT, CAIRN_EXISTS, CAIRN_CONFLICT, "k: " },
	{ CLOSING("409 No", "", ERROR("ConditionalRequestConflict")), CAIRN_BUSY, CAIRN_BUSY,
	  CAIRN_BUSY, "409" },
	{ CLOSING("403 No", "", ERROR("AccessDenied")), CAIRN_ACCESS, CAIRN_ACCESS, CAIRN_ACCESS,
	  "403 AccessDenied" },
	{ CLOSING("403 No", "", ERROR("SignatureDoesNotMatch")), CAIRN_ACCESS, CAIRN_ACCESS,
	  CAIRN_ACCESS, "SignatureDoesNotMatch" },
	{ CLOSING("403 No", "", ERROR("ExpiredToken")), CAIRN_ACCESS, CAIRN_ACCESS, CAIRN_ACCESS,
	  "ExpiredToken" },
	{ CLOSING("400 No", "", ERROR("ExpiredToken")), CAIRN_ACCESS, CAIRN_ACCESS, CAIRN_ACCESS,
	  "ExpiredToken" },
	{ CLOSING("400 No", "", ERROR("InvalidToken")), CAIRN_ACCESS, CAIRN_ACCESS, CAIRN_ACCESS,
	  "InvalidToken" },
	{ CLOSING("404 No", "", ERROR("XAdminUserNotFound")), CAIRN_ACCESS, CAIRN_ACCESS,
	  CAIRN_ACCESS, "XAdminUserNotFound" },
	{ CLOSING("400 No", "", ERROR("InvalidRequest")), CAIRN_INVALID, CAIRN_INVALID,
	  CAIRN_INVALID, "400" },
	{ CLOSING("400 No", "", ERROR("RequestTimeout")), CAIRN_TIMEOUT, CAIRN_UNKNOWN,
	  CAIRN_UNKNOWN, "RequestTimeout" },
	{ EMPTY("411 No", ""), CAIRN_INVALID, CAIRN_INVALID, CAIRN_INVALID, "411" },
	{ CLOSING("500 No", "", ERROR("UnknownError")), CAIRN_TIMEOUT, CAIRN_UNKNOWN, CAIRN_UNKNOWN,
	  "500 UnknownError" },
	{ CLOSING("502 No", "", "<html>bad gateway"), CAIRN_TIMEOUT, CAIRN_UNKNOWN, CAIRN_UNKNOWN,
	  "no answer of S3" },
	{ CLOSING("503 No", "", ERROR("SlowDown")), CAIRN_TIMEOUT, CAIRN_UNKNOWN, CAIRN_UNKNOWN,
	  "SlowDown" },
	{ EMPTY("429 No", ""), CAIRN_TIMEOUT, CAIRN_UNKNOWN, CAIRN_UNKNOWN, "429" },
	{ CLOSING("501 No", "", ERROR("NotImplemented")), CAIRN_UNSUPPORTED, CAIRN_UNSUPPORTED,
	  CAIRN_UNSUPPORTED, "NotImplemented" },
	{ EMPTY("301 Moved", ""), CAIRN_IO, CAIRN_IO, CAIRN_IO, "region" },
	{ EMPTY("307 Moved", "Location: http://127.0.0.1:1/\r\n"), CAIRN_IO, CAIRN_IO, CAIRN_IO,
	  "307" },
	{ EMPTY("507 Full", ""), CAIRN_NO_SPACE, CAIRN_NO_SPACE, CAIRN_NO_SPACE, "507" },
	{ EMPTY("200 OK", ""), CAIRN_IO, CAIRN_UNKNOWN, CAIRN_UNKNOWN, "ETag" },
	{ "!HTTP/1.1 200 OK\r\nETag: e", CAIRN_TIMEOUT, CAIRN_UNKNOWN, CAIRN_UNKNOWN, "k: " },
	{ "", CAIRN_TIMEOUT, CAIRN_UNKNOWN, CAIRN_UNKNOWN, "k: " },
};

static void expect_outcome(struct world *world, size_t i, int status, int expected)
{
	const char *text = world->call.error.text;
	if (status != expected)
		fail_msg("%s: %s instead of %s (%s)", outcomes[i].answer, cairn_status_name(status),
			 cairn_status_name(expected), text);
	assert_null(strstr(text, "hush"));
	assert_null(strchr(text, '\n'));
}

static void test_s3_outcomes(void **state)
{
	struct world *world = *state;
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		say(world, &outcomes[i].answer, 1);
		expect_outcome(world, i, put(world, world->bare, NULL), outcomes[i].absent);
		expect_outcome(world, i, put(world, world->bare, "e0"), outcomes[i].match);
		expect_outcome(world, i, get(world, world->bare), outcomes[i].read);
		if (!strstr(world->call.error.text, outcomes[i].word))
			fail_msg("'%s' does not say '%s'", world->call.error.text,
				 outcomes[i].word);
	}
}

#define LIST(inside)                                                                               \
	CLOSING("200 OK", "",                                                                      \
		"<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>" inside        \
		"</ListBucketResult>")
#define CONTENTS(key)                                                                              \
	"<Contents><Key>" key "</Key><LastModified>2015-08-30T12:36:00.000Z</LastModified>"        \
	"<ETag>&quot;e1&#34;</ETag><Size>4</Size></Contents>"

static int list(struct world *world, struct cairn_listing *listing)
{
	const struct cairn_list_options options = { .delimited = true };
	return cairn_store_list(world->bare, &world->call, "d/", &options, listing);
}

static void test_s3_listing(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = {
		LIST(CONTENTS(
			"pre%20fix/d/z%0A") "<CommonPrefixes><Prefix>pre+fix/d/a%2Bb/</Prefix>"
					    "</CommonPrefixes><EncodingType>url</EncodingType>"
					    "<IsTruncated>true</IsTruncated>"
					    "<NextContinuationToken>t%20+=</"
					    "NextContinuationToken>"),
		LIST(CONTENTS("pre fix/d/1%41+") "<IsTruncated>false</IsTruncated>"),
	};
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	say(world, answers, 2);

	assert_int_equal(list(world, &listing), 0);

	const char *sent = scripted_server_request(world->server, 0);
	static const char line[] = "GET /bucket?delimiter=%2F&encoding-type=url&list-type=2"
				   "&max-keys=1000&prefix=pre%20fix%2Fd%2F HTTP/";
	assert_memory_equal(sent, line, sizeof(line) - 1);
	assert_int_equal(listing.count, 2);
	assert_string_equal(listing.entries[0].key, "d/a+b/");
	assert_true(listing.entries[0].is_prefix);
	assert_string_equal(listing.entries[1].key, "d/z\n");
	assert_string_equal(listing.entries[1].etag, "e1");
	assert_int_equal(listing.entries[1].size, 4);
	assert_int_equal(listing.entries[1].modified, 1440938160 * SECOND);
	assert_string_equal(listing.token, "t%20+=");
	const struct cairn_list_options next = { .token = listing.token };
	assert_int_equal(cairn_store_list(world->bare, &world->call, "d/", &next, &listing), 0);
	assert_non_null(strstr(scripted_server_request(world->server, 1),
			       "continuation-token=t%2520%2B%3D&"));
	/* A server that ignores encoding-type. */
	assert_string_equal(listing.entries[0].key, "d/1%41+");
	assert_null(listing.token);
	cairn_listing_release(&listing);
}

static void test_s3_listings_that_are_wrong(void **state)
{
	struct world *world = *state;
	static const struct {
		const char *answer;
		int status;
		size_t requests;
		const char *word;
	} wrong[] = {
		{ LIST("<IsTruncated>true</IsTruncated>"), CAIRN_CORRUPT, 1, "from where" },
		{ LIST("<IsTruncated>true</IsTruncated><NextContinuationToken>t"
		       "</NextContinuationToken>"),
		  CAIRN_CORRUPT, 2, "from where it was" },
		{ LIST(CONTENTS("other/k")), CAIRN_CORRUPT, 1, "outside" },
		{ CLOSING("200 OK", "", "<html><body>hi</body></html>"), CAIRN_IO, 1,
		  "it is none" },
		{ CLOSING("200 OK", "", ""), CAIRN_IO, 1, "it is empty" },
		{ CLOSING("200 OK", "", "<ListBucketResult><Contents><Key>pre"), CAIRN_IO, 1,
		  "XML" },
		{ CLOSING("200 OK", "",
			  "<!DOCTYPE x [<!ENTITY a "
			  "'aa'>]><ListBucketResult>&a;</ListBucketResult>"),
		  CAIRN_IO, 1, "document type" },
		{ CLOSING("404 No", "", ERROR("NoSuchBucket")), CAIRN_IO, 1, "NoSuchBucket" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n<L", CAIRN_IO, 1,
		  "too long" },
	};
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		say(world, &wrong[i].answer, 1);
		assert_int_equal(list(world, &listing), wrong[i].status);
		if (!strstr(world->call.error.text, wrong[i].word))
			fail_msg("'%s' does not say '%s'", world->call.error.text, wrong[i].word);
		assert_int_equal(scripted_server_count(world->server), wrong[i].requests);
	}
}

static void test_s3_listing_nests_too_deep(void **state)
{
	struct world *world = *state;
	static struct cairn_buffer answer; /* still being sent when the client has seen enough */
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	cairn_buffer_init(&answer, 4 << 20);
	assert_int_equal(cairn_buffer_printf(&answer, CLOSING("200 OK", "", "")), 0);
	while (answer.size < 1 << 20)
		assert_int_equal(cairn_buffer_append(&answer, "<a>", 3), 0);
	const char *const answers[] = { answer.data };
	say(world, answers, 1);

	assert_int_equal(list(world, &listing), CAIRN_IO);

	assert_non_null(strstr(world->call.error.text, "too deep"));
	scripted_server_say(world->server, NULL, 0);
}

static void test_s3_learns_the_region(void **state)
{
	struct world *world = *state;
	static const char *const by_header[] = {
		EMPTY("301 Moved", "x-amz-bucket-region: eu-west-3\r\n"), OBJECT
	};
	static const char *const by_document[] = {
		CLOSING("400 No", "",
			"<Error><Code>AuthorizationHeaderMalformed</Code><Region>ap-2</Region></"
			"Error>"),
		OBJECT
	};
	static const char *const nonsense[] = { EMPTY("301 Moved",
						      "x-amz-bucket-region: evil.example/\r\n") };
	say(world, by_header, 2);
	assert_int_equal(get(world, world->store), 0);
	char *authorization = scripted_server_header(world->server, 1, "authorization");
	assert_non_null(strstr(authorization, "/eu-west-3/s3/"));
	free(authorization);
	say(world, by_document, 2);
	assert_int_equal(get(world, world->store), 0);
	authorization = scripted_server_header(world->server, 1, "authorization");
	assert_non_null(strstr(authorization, "/ap-2/s3/"));
	free(authorization);
	say(world, nonsense, 1);
	assert_int_equal(get(world, world->store), CAIRN_IO);
}

static void test_s3_learns_the_clock(void **state)
{
	struct world *world = *state;
	char refusal[400];
	time_t then = time(NULL) + 20 * 60;
	struct tm parts;
	char date[64], expected[16];
	(void)gmtime_r(&then, &parts);
	assert_true(strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0);
	assert_true(strftime(expected, sizeof(expected), "%Y%m%dT%H", &parts) > 0);
	(void)snprintf(refusal, sizeof(refusal), CLOSING("403 No", "Date: %s\r\n", "%s"), date,
		       ERROR("RequestTimeTooSkewed"));
	const char *const answers[] = { refusal, OBJECT };
	say(world, answers, 2);

	assert_int_equal(get(world, world->store), 0);

	char *sent = scripted_server_header(world->server, 1, "x-amz-date");
	assert_memory_equal(sent, expected, strlen(expected));
	free(sent);
	/* The same refusal with the right clock is one. */
	const char *const again[] = { refusal };
	say(world, again, 1);
	assert_int_equal(get(world, world->store), CAIRN_ACCESS);
	assert_int_equal(scripted_server_count(world->server), 1);
	scripted_server_say(world->server, NULL, 0);
}

static void test_s3_takes_new_credentials(void **state)
{
	struct world *world = *state;
	char path[] = "/tmp/cairn-test-XXXXXX";
	static const char old[] = "[default]\naws_access_key_id = OLD\naws_secret_access_key = h\n";
	static const char new[] = "[default]\naws_access_key_id = NEW\naws_secret_access_key = h\n";
	static const char *const first[] = { OBJECT };
	static const char *const answers[] = { CLOSING("400 No", "", ERROR("ExpiredToken")),
					       OBJECT };
	int fd = mkstemp(path);
	(void)unsetenv("AWS_ACCESS_KEY_ID");
	(void)setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
	assert_int_equal(pwrite(fd, old, sizeof(old) - 1, 0), sizeof(old) - 1);
	open_store(world, "");
	say(world, first, 1);
	assert_int_equal(get(world, world->store), 0);
	assert_int_equal(pwrite(fd, new, sizeof(new) - 1, 0), sizeof(new) - 1);
	say(world, answers, 2);

	assert_int_equal(get(world, world->store), 0);

	char *authorization = scripted_server_header(world->server, 1, "authorization");
	assert_non_null(strstr(authorization, "Credential=NEW/"));
	free(authorization);
	(void)close(fd);
	(void)unlink(path);
	(void)unsetenv("AWS_SHARED_CREDENTIALS_FILE");
}

static void test_s3_is_patient_when_asked(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = {
		CLOSING("503 No", "Retry-After: 1\r\n", ERROR("SlowDown")), OBJECT
	};
	int64_t begun = cairn_clock();
	say(world, answers, 2);

	assert_int_equal(get(world, world->store), 0);

	assert_in_range(cairn_clock() - begun, SECOND, 15 * SECOND);
}

/* FORMAT hazard 7: a server that takes every condition for granted. */
static void test_s3_probe_refuses_a_careless_server(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = { STORED };
	say(world, answers, 1);

	assert_int_equal(cairn_store_probe(world->store, &world->call), CAIRN_UNSUPPORTED);

	assert_non_null(strstr(world->call.error.text, "put-if-absent overwrote"));
	assert_non_null(strstr(world->call.error.text, scripted_server_url(world->server)));
}

/* A server that wants an etag in quotes, and one that takes it in neither form. */
static void test_s3_probe_finds_the_etag_form(void **state)
{
	struct world *world = *state;
	static const char refused[] = EMPTY("412 No", "");
	static const char *const quotes[] = {
		STORED, refused, STORED, EMPTY("204 OK", ""), EMPTY("204 OK", ""),
	};
	static const char *const neither[] = { STORED, refused, refused, EMPTY("204 OK", "") };
	say(world, quotes, 5);
	assert_int_equal(cairn_s3_probe(world->store, &world->call), 0);
	expect_header(world, 1, "if-match", "e1");
	expect_header(world, 2, "if-match", "\"e1\"");
	assert_false(world->store->capabilities.delete_if_match);
	say(world, neither, 4);

	assert_int_equal(cairn_s3_probe(world->store, &world->call), CAIRN_UNSUPPORTED);

	assert_non_null(strstr(world->call.error.text, "right etag was refused"));
}

static void test_s3_marker_is_deleted_once(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = { LIST(CONTENTS("pre fix/d/")), "" };
	say(world, answers, 2);

	assert_int_equal(cairn_store_prefix_remove(world->store, &world->call, "d/"),
			 CAIRN_UNKNOWN);

	assert_int_equal(scripted_server_count(world->server), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_s3_requests),
		TEST(test_s3_conditions_on_etags),
		TEST(test_s3_reads_versions),
		TEST(test_s3_outcomes),
		TEST(test_s3_listing),
		TEST(test_s3_listings_that_are_wrong),
		TEST(test_s3_listing_nests_too_deep),
		TEST(test_s3_learns_the_region),
		TEST(test_s3_learns_the_clock),
		TEST(test_s3_takes_new_credentials),
		TEST(test_s3_is_patient_when_asked),
		TEST(test_s3_probe_refuses_a_careless_server),
		TEST(test_s3_probe_finds_the_etag_form),
		TEST(test_s3_marker_is_deleted_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
