/* SPDX-License-Identifier: MIT */
#include "storage/http.h"

#include <ctype.h>
#include <curl/curl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "storage/store_private.h"

#define CONNECT_TIMEOUT_MS 10000L

/* How long a wait may last before cancelled() is looked at again. */
#define CANCEL_POLL_MS 20

/* Of an answer's head, and of an answer that reports a failure. */
#define HEAD_MAX ((size_t)64 * 1024)

/* A handle keeps its connection between requests; it serves one at a time. */
struct connection {
	struct connection *next;
	CURLM *multi;
	CURL *easy;
};

struct cairn_http {
	char *ca_bundle;
	bool direct;
	atomic_bool answered; /* some server has answered: it is there, or comes back */
	pthread_mutex_t lock;
	struct connection *idle; /* under lock; the last one used is first */
};

/* One request under way. */
struct exchange {
	const struct cairn_http_request *request;
	struct cairn_http_response *response;
	CURL *easy;
	size_t read;	/* bytes of the body that were handed over */
	unsigned goes;	/* how often the request was about to go out */
	bool head_done; /* an answer's head came whole */
	int failure;	/* our own reason to end the transfer */
	char text[CURL_ERROR_SIZE];
};

void cairn_http_response_init(struct cairn_http_response *response)
{
	*response = (struct cairn_http_response){ 0 };
	cairn_buffer_init(&response->headers, HEAD_MAX);
	/* Bounded by the request's max_body. */
	cairn_buffer_init(&response->body, SIZE_MAX / 2);
}

void cairn_http_response_release(struct cairn_http_response *response)
{
	cairn_buffer_release(&response->headers);
	cairn_buffer_release(&response->body);
	cairn_http_response_init(response);
}

/* The headers lie as name NUL value NUL. */
const char *cairn_http_header(const struct cairn_http_response *response, const char *name)
{
	const char *at = response->headers.data;
	const char *end = at ? at + response->headers.size : at;
	while (at < end) {
		const char *value = at + strlen(at) + 1;
		if (strcmp(at, name) == 0)
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}

int64_t cairn_http_date(const char *text)
{
	time_t seconds = text ? curl_getdate(text, NULL) : -1;
	return seconds < 0 || seconds > INT64_MAX / 1000000 ? -1 : (int64_t)seconds * 1000000;
}

static void initialise(void)
{
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

int cairn_http_new(const struct cairn_http_options *options, struct cairn_http **ret_http,
		   struct cairn_error *error)
{
	static const struct cairn_http_options defaults;
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, initialise);
	if (!options)
		options = &defaults;
	if (options->ca_bundle && access(options->ca_bundle, R_OK))
		return cairn_error_set(error, CAIRN_INVALID,
				       "%s: the file of trusted certificates cannot be read",
				       options->ca_bundle);
	struct cairn_http *http = calloc(1, sizeof(*http));
	if (http && options->ca_bundle) {
		http->ca_bundle = strdup(options->ca_bundle);
		if (!http->ca_bundle) {
			free(http);
			http = NULL;
		}
	}
	if (!http)
		return cairn_error_set(error, CAIRN_NO_MEMORY, "out of memory");
	http->direct = options->direct;
	(void)pthread_mutex_init(&http->lock, NULL);
	*ret_http = http;
	return CAIRN_OK;
}

static void connection_free(struct connection *connection)
{
	curl_easy_cleanup(connection->easy);
	(void)curl_multi_cleanup(connection->multi);
	free(connection);
}

void cairn_http_free(struct cairn_http *http)
{
	if (!http)
		return;
	while (http->idle) {
		struct connection *connection = http->idle;
		http->idle = connection->next;
		connection_free(connection);
	}
	(void)pthread_mutex_destroy(&http->lock);
	free(http->ca_bundle);
	free(http);
}

static struct connection *connection_take(struct cairn_http *http)
{
	(void)pthread_mutex_lock(&http->lock);
	struct connection *connection = http->idle;
	if (connection)
		http->idle = connection->next;
	(void)pthread_mutex_unlock(&http->lock);
	if (connection)
		return connection;
	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return NULL;
	connection->multi = curl_multi_init();
	connection->easy = curl_easy_init();
	if (connection->multi && connection->easy)
		return connection;
	connection_free(connection);
	return NULL;
}

static void connection_give_back(struct cairn_http *http, struct connection *connection)
{
	curl_easy_reset(connection->easy);
	(void)pthread_mutex_lock(&http->lock);
	connection->next = http->idle;
	http->idle = connection;
	(void)pthread_mutex_unlock(&http->lock);
}

/*
 * libcurl sends a request again by itself when a reused connection dies before an answer. What it
 * then answers may be to the first one (S3.md), so a write goes no second time.
 */
static int before_sending(void *context, char *to, char *from, int to_port, int from_port)
{
	struct exchange *exchange = context;
	(void)to;
	(void)from;
	(void)to_port;
	(void)from_port;
	exchange->goes++;
	return exchange->goes > 1 && exchange->request->write ? CURL_PREREQFUNC_ABORT
							      : CURL_PREREQFUNC_OK;
}

static size_t read_body(char *data, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	const struct cairn_slice *body = &exchange->request->body;
	size_t length = size * count;
	if (length > body->size - exchange->read)
		length = body->size - exchange->read;
	if (length)
		memcpy(data, body->data + exchange->read, length);
	exchange->read += length;
	return length;
}

static bool is_space(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Keep a header line as name NUL value NUL; one that is none is passed over. */
static int keep_header(struct cairn_buffer *headers, const char *line, size_t size)
{
	const char *colon = memchr(line, ':', size);
	if (!colon || memchr(line, '\0', size))
		return CAIRN_OK;
	const char *value = colon + 1, *end = line + size;
	while (value < end && is_space(*value))
		value++;
	while (end > value && is_space(end[-1]))
		end--;
	for (const char *at = line; at < colon; at++) {
		char byte = (char)tolower((unsigned char)*at);
		if (cairn_buffer_append(headers, &byte, 1))
			return CAIRN_IO;
	}
	if (cairn_buffer_append(headers, "", 1) ||
	    cairn_buffer_append(headers, value, (size_t)(end - value)) ||
	    cairn_buffer_append(headers, "", 1))
		return CAIRN_IO;
	return CAIRN_OK;
}

static size_t read_header(char *line, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	size *= count;
	if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		/* The next head: the one before was interim (100). */
		cairn_buffer_clear(&exchange->response->headers);
		exchange->head_done = false;
		return size;
	}
	/* Behind the head come trailers, which nothing here needs. */
	if (exchange->head_done)
		return size;
	if (size == 0 || *line == '\r' || *line == '\n') {
		exchange->head_done = true;
		return size;
	}
	exchange->failure = keep_header(&exchange->response->headers, line, size);
	return exchange->failure ? 0 : size;
}

static size_t write_body(char *data, size_t size, size_t count, void *context)
{
	struct exchange *exchange = context;
	struct cairn_http_response *response = exchange->response;
	long status = 0;
	curl_off_t length = -1;
	(void)curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(exchange->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	bool good = status >= 200 && status < 300;
	size_t limit = good ? exchange->request->max_body : HEAD_MAX;
	size *= count;
	if (good && length > 0 && (uint64_t)length > limit)
		limit = 0;
	if (size > limit || response->body.size > limit - size) {
		response->cut = true;
		if (good)
			cairn_buffer_release(&response->body);
		return 0;
	}
	if (cairn_buffer_append(&response->body, data, size)) {
		exchange->failure = CAIRN_NO_MEMORY;
		return 0;
	}
	return size;
}

/* The request's headers as libcurl takes them. NULL: out of memory. */
static struct curl_slist *header_list(const struct cairn_http_request *request)
{
	/* A server that is slow to say 100 would cost a second. */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");
	struct cairn_buffer line;
	cairn_buffer_init(&line, HEAD_MAX);
	for (size_t i = 0; list && i < request->header_count; i++) {
		const struct cairn_header *header = &request->headers[i];
		cairn_buffer_clear(&line);
		struct curl_slist *longer = NULL;
		/* "name;" is libcurl's way to send an empty value. */
		if (!cairn_buffer_printf(&line, *header->value ? "%s: %s" : "%s;%s", header->name,
					 header->value))
			longer = curl_slist_append(list, line.data);
		if (!longer)
			curl_slist_free_all(list);
		list = longer;
	}
	cairn_buffer_release(&line);
	return list;
}

static void set_body(CURL *easy, struct exchange *exchange)
{
	const struct cairn_http_request *request = exchange->request;
	bool takes_body = strcmp(request->method, "PUT") == 0 ||
			  strcmp(request->method, "POST") == 0;
	if (strcmp(request->method, "GET") != 0)
		(void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	if (!takes_body)
		return;
	(void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body.size);
	(void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
	(void)curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
}

static void set_up(const struct cairn_http *http, CURL *easy, struct exchange *exchange,
		   struct curl_slist *headers)
{
	(void)curl_easy_setopt(easy, CURLOPT_URL, exchange->request->url);
	(void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* A look-up that hangs must not hold the call beyond its deadline. */
	(void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	(void)curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "cairnfs/" CAIRN_VERSION);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->text);
	(void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_sending);
	(void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, read_header);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_body);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
	if (http->ca_bundle)
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, http->ca_bundle);
	if (http->direct)
		(void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
	if (exchange->request->fresh)
		(void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	set_body(easy, exchange);
}

static int poll_time(const struct cairn_call *call)
{
	int64_t left = call->deadline ? (call->deadline - cairn_clock()) / 1000 + 1 : 1000;
	int64_t most = call->cancelled ? CANCEL_POLL_MS : 1000;
	return (int)(left < 0 ? 0 : left < most ? left : most);
}

/* Until the transfer ends, or the call does: 0 with ret_code, CAIRN_TIMEOUT or CAIRN_CANCELLED. */
static int transfer(struct connection *connection, struct cairn_call *call, const char *what,
		    CURLcode *ret_code)
{
	int running = 1;
	for (;;) {
		if (curl_multi_perform(connection->multi, &running))
			break;
		if (!running)
			break;
		int status = cairn_call_check(call, what);
		if (status)
			return status;
		if (curl_multi_poll(connection->multi, NULL, 0, poll_time(call), NULL))
			break;
	}
	int left;
	const CURLMsg *message = curl_multi_info_read(connection->multi, &left);
	*ret_code = message && message->msg == CURLMSG_DONE ? message->data.result
							    : CURLE_OUT_OF_MEMORY;
	return CAIRN_OK;
}

/* What a failure before the request went out amounts to. */
static int unsent(const struct cairn_http *http, CURLcode code)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return CAIRN_TIMEOUT;
	case CURLE_OUT_OF_MEMORY:
		return CAIRN_NO_MEMORY;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
		/* A server that was there is being restarted; one that never was, is misspelt. */
		return http->answered ? CAIRN_TIMEOUT : CAIRN_IO;
	default:
		return CAIRN_IO;
	}
}

/* How the call ends when libcurl ended with `code`. */
static int outcome(struct cairn_http *http, struct cairn_call *call,
		   const struct exchange *exchange, CURLcode code)
{
	const struct cairn_http_request *request = exchange->request;
	const char *text = *exchange->text ? exchange->text : curl_easy_strerror(code);
	if (exchange->failure == CAIRN_NO_MEMORY)
		return cairn_call_no_memory(call, request->what);
	if (exchange->head_done && (code == CURLE_OK || exchange->response->cut)) {
		http->answered = true;
		return CAIRN_OK;
	}
	if (code == CURLE_OK)
		text = "the answer ended in its head";
	if (exchange->failure)
		text = "the answer's head is too long";
	if (exchange->goes > 1 && request->write)
		text = "the connection broke before an answer";
	int status = exchange->goes == 0 ? unsent(http, code)
		     : request->write	 ? CAIRN_UNKNOWN
					 : CAIRN_TIMEOUT;
	return cairn_error_set(&call->error, status, "%s: %s", request->what, text);
}

/* OpenSSL writes without MSG_NOSIGNAL: a SIGPIPE that it raises must not end the process. */
static bool block_sigpipe(sigset_t *ret_before)
{
	sigset_t pipe, pending;
	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	(void)sigpending(&pending);
	(void)pthread_sigmask(SIG_BLOCK, &pipe, ret_before);
	return sigismember(&pending, SIGPIPE) == 1;
}

static void unblock_sigpipe(bool was_pending, const sigset_t *before)
{
	static const struct timespec now;
	sigset_t pipe;
	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	if (!was_pending)
		(void)sigtimedwait(&pipe, NULL, &now);
	(void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

static int run(struct cairn_http *http, struct connection *connection, struct cairn_call *call,
	       struct exchange *exchange)
{
	CURLcode code = CURLE_OUT_OF_MEMORY;
	if (curl_multi_add_handle(connection->multi, connection->easy))
		return cairn_call_no_memory(call, exchange->request->what);
	int status = transfer(connection, call, exchange->request->what, &code);
	long answer = 0;
	(void)curl_easy_getinfo(connection->easy, CURLINFO_RESPONSE_CODE, &answer);
	exchange->response->status = (int)answer;
	/* Ends a transfer that is still under way, and its connection. */
	(void)curl_multi_remove_handle(connection->multi, connection->easy);
	if (!status)
		return outcome(http, call, exchange, code);
	if (status == CAIRN_TIMEOUT && exchange->goes && exchange->request->write)
		return cairn_error_set(&call->error, CAIRN_UNKNOWN,
				       "%s: no answer within the deadline",
				       exchange->request->what);
	return status;
}

int cairn_http_perform(struct cairn_http *http, struct cairn_call *call,
		       const struct cairn_http_request *request,
		       struct cairn_http_response *response)
{
	int status = cairn_call_check(call, request->what);
	if (status)
		return status;
	cairn_http_response_release(response);
	struct connection *connection = connection_take(http);
	struct curl_slist *headers = header_list(request);
	if (!connection || !headers) {
		if (connection)
			connection_free(connection);
		curl_slist_free_all(headers);
		return cairn_call_no_memory(call, request->what);
	}
	struct exchange exchange = {
		.request = request,
		.response = response,
		.easy = connection->easy,
	};
	sigset_t before;
	bool was_pending = block_sigpipe(&before);
	set_up(http, connection->easy, &exchange, headers);
	status = run(http, connection, call, &exchange);
	if (status)
		connection_free(connection);
	else
		connection_give_back(http, connection);
	unblock_sigpipe(was_pending, &before);
	curl_slist_free_all(headers);
	return status;
}
