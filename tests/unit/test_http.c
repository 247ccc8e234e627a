/* SPDX-License-Identifier: MIT */
#include "scripted_server.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "storage/http.h"

#define SECOND ((int64_t)1000000)
#define OK     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

struct world {
	struct scripted_server *server;
	struct cairn_http *http;
	struct cairn_http_response response;
	struct cairn_call call;
	char url[200];
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	world->server = scripted_server_start();
	assert_int_equal(cairn_http_new(NULL, &world->http, NULL), 0);
	cairn_http_response_init(&world->response);
	(void)snprintf(world->url, sizeof(world->url), "%s/a/../%%2e%%2E/./b?c",
		       scripted_server_url(world->server));
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	cairn_http_response_release(&world->response);
	cairn_http_free(world->http);
	scripted_server_stop(world->server);
	free(world);
	return 0;
}

static struct cairn_http_request get_of(struct world *world)
{
	return (struct cairn_http_request){
		.what = "the test", .method = "GET", .url = world->url, .max_body = 1000
	};
}

static struct cairn_http_request put_of(struct world *world, const char *body)
{
	return (struct cairn_http_request){
		.what = "the test",
		.method = "PUT",
		.url = world->url,
		.body = cairn_slice_of(body),
		.max_body = 1000,
		.write = true,
	};
}

static int perform(struct world *world, struct cairn_http_request request)
{
	world->call.deadline = cairn_clock() + 20 * SECOND;
	return cairn_http_perform(world->http, &world->call, &request, &world->response);
}

static void expect_text(struct world *world, int status, int expected, const char *word)
{
	assert_int_equal(status, expected);
	assert_non_null(strstr(world->call.error.text, "the test: "));
	if (!strstr(world->call.error.text, word))
		fail_msg("'%s' does not say '%s'", world->call.error.text, word);
}

static void test_http_reads_an_answer(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = {
		"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n"
		"HTTP/1.1 206 Partial\r\nETag:  \"e\" \r\nX-Empty:\r\nx-two: 1\r\nX-Two: 2\r\n"
		"Content-Length: 4\r\n\r\nbody"
	};
	scripted_server_say(world->server, answers, 1);

	assert_int_equal(perform(world, get_of(world)), 0);

	assert_int_equal(world->response.status, 206);
	assert_string_equal(world->response.body.data, "body");
	assert_string_equal(cairn_http_header(&world->response, "etag"), "\"e\"");
	assert_string_equal(cairn_http_header(&world->response, "x-empty"), "");
	assert_string_equal(cairn_http_header(&world->response, "x-two"), "1");
	assert_null(cairn_http_header(&world->response, "x-early"));
	assert_null(cairn_http_header(&world->response, "x"));
}

static void test_http_sends_as_told(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = { OK };
	const struct cairn_header headers[] = { { "x-one", "1" }, { "x-empty", "" } };
	struct cairn_http_request request = put_of(world, "text");
	scripted_server_say(world->server, answers, 1);
	request.headers = headers;
	request.header_count = 2;

	assert_int_equal(perform(world, request), 0);

	const char *sent = scripted_server_request(world->server, 0);
	assert_memory_equal(sent, "PUT /a/../%2e%2E/./b?c HTTP/1.1\r\n", 33);
	assert_non_null(strstr(sent, "\r\nx-one: 1\r\n"));
	assert_non_null(strstr(sent, "\r\nx-empty:\r\n"));
	assert_non_null(strstr(sent, "\r\nContent-Length: 4\r\n"));
	assert_null(strcasestr(sent, "\r\nexpect"));
	assert_non_null(strstr(sent, "\r\n\r\ntext"));
}

/* Reused connections die; libcurl then sends again by itself, which a write must not do. */
static void test_http_writes_go_out_once(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = { OK, "", OK };
	static const char *const bodies[] = { "body", "" };
	for (size_t i = 0; i < 2; i++) {
		scripted_server_say(world->server, answers, 3);
		assert_int_equal(perform(world, get_of(world)), 0);

		expect_text(world, perform(world, put_of(world, bodies[i])), CAIRN_UNKNOWN, "");

		assert_int_equal(scripted_server_count(world->server), 2);
	}
	scripted_server_say(world->server, answers, 3);
	assert_int_equal(perform(world, get_of(world)), 0);
	assert_int_equal(perform(world, get_of(world)), 0);
	assert_int_equal(scripted_server_count(world->server), 3);
}

static void test_http_answers_that_break_off(void **state)
{
	struct world *world = *state;
	static const char *const broken[] = {
		"",
		"!HTTP/1.1 200",
		"!HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
		"!HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
		"!HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"!SSH-2.0-OpenSSH\r\n",
	};
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		scripted_server_say(world->server, &broken[i], 1);
		expect_text(world, perform(world, get_of(world)), CAIRN_TIMEOUT, "");
		expect_text(world, perform(world, put_of(world, "x")), CAIRN_UNKNOWN, "");
	}
}

static void test_http_bounds_bodies(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\nab",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n",
		OK,
	};
	struct cairn_http_request request = get_of(world);
	request.max_body = 5;
	scripted_server_say(world->server, answers, 3);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(perform(world, request), 0);
		assert_true(world->response.cut);
		assert_int_equal(world->response.status, 200);
		assert_int_equal(world->response.body.size, 0);
	}
	assert_int_equal(perform(world, request), 0);
	assert_false(world->response.cut);
	assert_string_equal(world->response.body.data, "ok");
}

static void test_http_bounds_heads(void **state)
{
	struct world *world = *state;
	static struct cairn_buffer answer; /* still being sent when the client has seen enough */
	cairn_buffer_init(&answer, 1 << 20);
	assert_int_equal(cairn_buffer_printf(&answer, "!HTTP/1.1 200 OK\r\n"), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(cairn_buffer_printf(&answer, "X-%d: %0100d\r\n", i, i), 0);
	assert_int_equal(cairn_buffer_printf(&answer, "\r\n"), 0);
	const char *const answers[] = { answer.data };
	scripted_server_say(world->server, answers, 1);

	expect_text(world, perform(world, get_of(world)), CAIRN_TIMEOUT, "too long");
	scripted_server_say(world->server, NULL, 0);
}

static void test_http_follows_nothing(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = {
		"HTTP/1.1 307 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
	};
	scripted_server_say(world->server, answers, 1);

	assert_int_equal(perform(world, get_of(world)), 0);

	assert_int_equal(world->response.status, 307);
	assert_int_equal(scripted_server_count(world->server), 1);
}

static bool after_three_looks(void *context)
{
	return ++*(int *)context > 3;
}

static void test_http_ends_with_its_call(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = { NULL };
	int looks = 0;
	int64_t begun = cairn_clock();
	struct cairn_http_request get = get_of(world), put = put_of(world, "x");
	scripted_server_say(world->server, answers, 1);

	world->call.deadline = begun + SECOND / 5;
	expect_text(world, cairn_http_perform(world->http, &world->call, &get, &world->response),
		    CAIRN_TIMEOUT, "deadline");
	world->call.deadline = cairn_clock() + SECOND / 5;
	expect_text(world, cairn_http_perform(world->http, &world->call, &put, &world->response),
		    CAIRN_UNKNOWN, "deadline");
	world->call.cancelled = after_three_looks;
	world->call.context = &looks;
	expect_text(world, perform(world, put), CAIRN_CANCELLED, "cancelled");
	assert_true(cairn_clock() - begun < 10 * SECOND);
}

/* A port of which nobody listens any more. */
static void closed_port(char *url, size_t size)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	(void)snprintf(url, size, "http://127.0.0.1:%d/", ntohs(address.sin_port));
	(void)close(fd);
}

/* What never answered is misspelt; what did, is being restarted. */
static void test_http_nobody_there(void **state)
{
	struct world *world = *state;
	static const char *const answers[] = { OK };
	char url[64];
	closed_port(url, sizeof(url));
	struct cairn_http_request request = put_of(world, "x");
	request.url = url;
	scripted_server_say(world->server, answers, 1);

	expect_text(world, perform(world, request), CAIRN_IO, "connect");
	assert_int_equal(perform(world, get_of(world)), 0);
	expect_text(world, perform(world, request), CAIRN_TIMEOUT, "connect");
	request.url = "http://no-such-host.invalid/";
	assert_int_not_equal(perform(world, request), CAIRN_UNKNOWN);
	request.url = "file:///etc/passwd";
	expect_text(world, perform(world, request), CAIRN_IO, "");
}

static void test_http_dates(void **state)
{
	(void)state;
	assert_int_equal(cairn_http_date("Sun, 30 Aug 2015 12:36:00 GMT"), 1440938160 * SECOND);
	assert_int_equal(cairn_http_date("yesterday"), -1);
	assert_int_equal(cairn_http_date(NULL), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_http_reads_an_answer),    TEST(test_http_sends_as_told),
		TEST(test_http_writes_go_out_once), TEST(test_http_answers_that_break_off),
		TEST(test_http_bounds_bodies),	    TEST(test_http_bounds_heads),
		TEST(test_http_follows_nothing),    TEST(test_http_ends_with_its_call),
		TEST(test_http_nobody_there),	    TEST(test_http_dates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
