/* SPDX-License-Identifier: MIT */
#include "storage/s3_private.h"

#include "storage/sigv4.h"
#include "storage/store_private.h"
#include "storage/xml.h"

#define URL_MAX ((size_t)64 * 1024)

/* A clock further off than this is the reason of a refusal; servers allow 15 minutes. */
#define CLOCK_TOLERANCE ((int64_t)5 * 60 * 1000 * 1000)

/* A server that asks for more patience than this gets no more. */
#define RETRY_AFTER_MAX 30

void cairn_s3_answer_init(struct cairn_s3_answer *answer)
{
	*answer = (struct cairn_s3_answer){ 0 };
	cairn_http_response_init(&answer->response);
}

void cairn_s3_answer_release(struct cairn_s3_answer *answer)
{
	cairn_http_response_release(&answer->response);
	cairn_credentials_unref(answer->credentials);
	cairn_s3_answer_init(answer);
}

void cairn_s3_add_query(struct cairn_s3_request *request, const char *name, const char *value)
{
	request->query[request->query_count++] = (struct cairn_header){ name, value };
}

void cairn_s3_add_header(struct cairn_s3_request *request, const char *name, const char *value)
{
	request->headers[request->header_count++] = (struct cairn_header){ name, value };
}

void cairn_s3_add_etag(const struct cairn_s3_store *s3, struct cairn_s3_request *request,
		       const char *name, const char *etag, char room[CAIRN_S3_ETAG_SIZE])
{
	(void)snprintf(room, CAIRN_S3_ETAG_SIZE, s3->quoted ? "\"%s\"" : "%s", etag);
	cairn_s3_add_header(request, name, room);
}

bool cairn_s3_read_etag(const char *text, char ret_etag[CAIRN_ETAG_SIZE])
{
	if (!text)
		return false;
	if (strncmp(text, "W/", 2) == 0)
		text += 2;
	size_t size = strlen(text);
	if (size >= 2 && text[0] == '"' && text[size - 1] == '"') {
		text++;
		size -= 2;
	}
	if (size == 0 || size >= CAIRN_ETAG_SIZE)
		return false;
	memcpy(ret_etag, text, size);
	ret_etag[size] = '\0';
	return true;
}

/* The parts of a request as they are signed and sent. */
struct signing {
	char region[CAIRN_S3_REGION_SIZE];
	char host[512];
	char time[CAIRN_SIGV4_TIME_SIZE];
	char hash[CAIRN_SIGV4_HASH_SIZE];
	struct cairn_buffer path;
	struct cairn_buffer query;
	struct cairn_buffer url;
	struct cairn_buffer authorization;
	/* Host is the first, which libcurl adds by itself; then ours, then the request's. */
	struct cairn_header headers[CAIRN_S3_FIELDS + 6];
	size_t header_count;
};

static void signing_release(struct signing *signing)
{
	cairn_buffer_release(&signing->path);
	cairn_buffer_release(&signing->query);
	cairn_buffer_release(&signing->url);
	cairn_buffer_release(&signing->authorization);
}

static void name_host(const struct cairn_s3_store *s3, struct signing *signing)
{
	const char *bucket = s3->virtual_host ? s3->bucket : "";
	const char *dot = s3->virtual_host ? "." : "";
	if (s3->host)
		(void)snprintf(signing->host, sizeof(signing->host), "%s%s%s", bucket, dot,
			       s3->host);
	else
		(void)snprintf(signing->host, sizeof(signing->host), "%s%ss3.%s.amazonaws.com%s",
			       bucket, dot, signing->region,
			       strncmp(signing->region, "cn-", 3) == 0 ? ".cn" : "");
}

static int name_url(const struct cairn_s3_store *s3, const struct cairn_s3_request *request,
		    struct signing *signing)
{
	int status = cairn_buffer_append(&signing->path, "/", 1);
	if (!status && !s3->virtual_host)
		status = cairn_buffer_append(&signing->path, s3->bucket, strlen(s3->bucket));
	if (!status && !s3->virtual_host && request->key)
		status = cairn_buffer_append(&signing->path, "/", 1);
	if (!status && request->key)
		status = cairn_sigv4_encode(cairn_slice_of(s3->prefix), true, &signing->path);
	if (!status && request->key)
		status = cairn_sigv4_encode(cairn_slice_of(request->key), true, &signing->path);
	if (!status)
		status = cairn_buffer_append(&signing->query, "", 0);
	if (!status)
		status = cairn_sigv4_query(request->query, request->query_count, &signing->query);
	if (!status)
		status = cairn_buffer_printf(&signing->url, "%s%s%s%s%s", s3->scheme, signing->host,
					     signing->path.data, signing->query.size ? "?" : "",
					     signing->query.data);
	return status;
}

static void add(struct signing *signing, const char *name, const char *value)
{
	signing->headers[signing->header_count++] = (struct cairn_header){ name, value };
}

static int sign(struct cairn_s3_store *s3, const struct cairn_s3_request *request,
		const struct cairn_credentials *credentials, struct signing *signing)
{
	(void)pthread_mutex_lock(&s3->lock);
	memcpy(signing->region, s3->region, sizeof(signing->region));
	int64_t now = cairn_clock_real() + s3->clock_offset;
	(void)pthread_mutex_unlock(&s3->lock);
	cairn_sigv4_time(now, signing->time);
	name_host(s3, signing);
	int status = name_url(s3, request, signing);
	if (!status)
		status = cairn_sigv4_hash(request->body, signing->hash);
	if (status)
		return status;
	add(signing, "host", signing->host);
	add(signing, "x-amz-content-sha256", signing->hash);
	add(signing, "x-amz-date", signing->time);
	if (*credentials->token)
		add(signing, "x-amz-security-token", credentials->token);
	for (size_t i = 0; i < request->header_count; i++)
		add(signing, request->headers[i].name, request->headers[i].value);
	const struct cairn_sigv4_request sigv4 = {
		.method = request->method,
		.path = signing->path.data,
		.query = signing->query.data,
		.headers = signing->headers,
		.header_count = signing->header_count,
		.payload_hash = signing->hash,
		.time = signing->time,
		.region = signing->region,
		.service = "s3",
		.access_key = credentials->access_key,
		.secret_key = credentials->secret_key,
	};
	status = cairn_sigv4_authorization(&sigv4, &signing->authorization);
	if (!status)
		add(signing, "authorization", signing->authorization.data);
	return status;
}

static int read_error(void *context, const char *path, struct cairn_slice text)
{
	struct cairn_s3_answer *answer = context;
	struct {
		const char *path;
		char *field;
		size_t size;
	} fields[] = {
		{ "Error/Code", answer->code, sizeof(answer->code) },
		{ "Error/Message", answer->message, sizeof(answer->message) },
		{ "Error/Region", answer->region, sizeof(answer->region) },
	};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strcmp(path, fields[i].path) == 0)
			(void)snprintf(fields[i].field, fields[i].size, "%.*s", (int)text.size,
				       text.size ? text.data : "");
	return CAIRN_OK;
}

bool cairn_s3_is_good(const struct cairn_s3_answer *answer)
{
	int status = answer->response.status;
	return (status >= 200 && status < 300) || status == 304;
}

/* What an answer that is not good says about itself. One that is no XML says nothing. */
static void read_failure(struct cairn_s3_answer *answer)
{
	const struct cairn_xml_handler handler = { .end = read_error, .context = answer };
	const char *region = cairn_http_header(&answer->response, "x-amz-bucket-region");
	if (cairn_xml_read(cairn_buffer_slice(&answer->response.body), &handler, NULL)) {
		answer->code[0] = '\0';
		answer->message[0] = '\0';
		answer->region[0] = '\0';
	}
	if (region && strlen(region) < sizeof(answer->region))
		(void)snprintf(answer->region, sizeof(answer->region), "%s", region);
}

int cairn_s3_send(struct cairn_s3_store *s3, struct cairn_call *call,
		  const struct cairn_s3_request *request, struct cairn_s3_answer *answer)
{
	cairn_s3_answer_release(answer);
	int status = cairn_credentials_get(s3->credentials, call, &answer->credentials);
	if (status)
		return status;
	struct signing signing = { 0 };
	cairn_buffer_init(&signing.path, URL_MAX);
	cairn_buffer_init(&signing.query, URL_MAX);
	cairn_buffer_init(&signing.url, URL_MAX);
	cairn_buffer_init(&signing.authorization, URL_MAX);
	if (sign(s3, request, answer->credentials, &signing)) {
		signing_release(&signing);
		return cairn_call_no_memory(call, request->what);
	}
	const struct cairn_http_request http = {
		.what = request->what,
		.method = request->method,
		.url = signing.url.data,
		.headers = signing.headers + 1,
		.header_count = signing.header_count - 1,
		.body = request->body,
		.max_body = request->max_body,
		.write = request->write,
		.fresh = request->fresh,
	};
	status = cairn_http_perform(s3->http, call, &http, &answer->response);
	signing_release(&signing);
	if (!status && !cairn_s3_is_good(answer))
		read_failure(answer);
	return status;
}

int64_t cairn_s3_date(struct cairn_s3_store *s3, const struct cairn_s3_answer *answer)
{
	int64_t date = cairn_http_date(cairn_http_header(&answer->response, "date"));
	if (date >= 0)
		return date;
	(void)pthread_mutex_lock(&s3->lock);
	int64_t now = cairn_clock_real() + s3->clock_offset;
	(void)pthread_mutex_unlock(&s3->lock);
	return now;
}

/*
 * The codes that say more than their HTTP status. Those of files and directories are versitygw's,
 * whose bucket is a directory.
 */
static const struct {
	const char *code;
	int status;
} codes[] = {
	{ "NoSuchKey", CAIRN_NOT_FOUND },
	{ "PreconditionFailed", CAIRN_CONFLICT },
	{ "ConditionalRequestConflict", CAIRN_BUSY },
	{ "OperationAborted", CAIRN_BUSY },
	{ "RequestTimeout", CAIRN_UNKNOWN },
	{ "SlowDown", CAIRN_UNKNOWN },
	{ "NotImplemented", CAIRN_UNSUPPORTED },
	{ "KeyTooLongError", CAIRN_NAME_TOO_LONG },
	{ "KeyTooLong", CAIRN_NAME_TOO_LONG },
	{ "EntityTooLarge", CAIRN_TOO_BIG },
	{ "QuotaExceeded", CAIRN_NO_SPACE },
	{ "InvalidAccessKeyId", CAIRN_ACCESS },
	{ "InvalidToken", CAIRN_ACCESS },
	{ "ExpiredToken", CAIRN_ACCESS },
	{ "TokenRefreshRequired", CAIRN_ACCESS },
	{ "XAdminUserNotFound", CAIRN_ACCESS },
	{ "NoSuchBucket", CAIRN_IO },
	{ "BadDigest", CAIRN_IO },
	{ "XAmzContentSHA256Mismatch", CAIRN_IO },
	{ "IncompleteBody", CAIRN_IO },
	{ "ObjectParentIsFile", CAIRN_INVALID },
	{ "ExistingObjectIsDirectory", CAIRN_INVALID },
	{ "ObjectExistsAsDirectory", CAIRN_INVALID },
	{ "DirectoryNotEmpty", CAIRN_NOT_EMPTY },
};

static int translate(const struct cairn_s3_answer *answer)
{
	int status = answer->response.status;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(answer->code, codes[i].code) == 0 &&
		    (status < 500 || codes[i].status == CAIRN_UNSUPPORTED))
			return codes[i].status;
	switch (status) {
	case 401:
	case 403:
	case 407:
		return CAIRN_ACCESS;
	case 405:
		return CAIRN_UNSUPPORTED;
	case 408:
	case 429:
		return CAIRN_UNKNOWN;
	case 409:
		return CAIRN_BUSY;
	case 412:
		return CAIRN_CONFLICT;
	case 413:
		return CAIRN_TOO_BIG;
	case 400:
	case 411:
	case 414:
	case 416:
		return CAIRN_INVALID;
	case 507:
		return CAIRN_NO_SPACE;
	default:
		/* A redirect, or a 404 of something that is no S3 server, leads nowhere. */
		return status >= 500 ? CAIRN_UNKNOWN : CAIRN_IO;
	}
}

static bool is_code(const struct cairn_s3_answer *answer, const char *code)
{
	return strcmp(answer->code, code) == 0;
}

/* Credentials that the server does not take any more: are there others by now? */
static bool learn_credentials(struct cairn_s3_store *s3, struct cairn_call *call,
			      const struct cairn_s3_answer *answer)
{
	if (!is_code(answer, "ExpiredToken") && !is_code(answer, "TokenRefreshRequired") &&
	    !is_code(answer, "InvalidToken") && !is_code(answer, "InvalidAccessKeyId") &&
	    !is_code(answer, "XAdminUserNotFound"))
		return false;
	return cairn_credentials_renew(s3->credentials, call, answer->credentials);
}

/* A refusal whose Date is far from the time that we signed with: the server's clock counts. */
static bool learn_clock(struct cairn_s3_store *s3, const struct cairn_s3_answer *answer)
{
	int64_t date = cairn_http_date(cairn_http_header(&answer->response, "date"));
	if (answer->response.status != 403 || date < 0)
		return false;
	(void)pthread_mutex_lock(&s3->lock);
	int64_t offset = date - cairn_clock_real();
	int64_t error = offset - s3->clock_offset;
	bool off = error > CLOCK_TOLERANCE || error < -CLOCK_TOLERANCE;
	if (off)
		s3->clock_offset = offset;
	(void)pthread_mutex_unlock(&s3->lock);
	return off;
}

/* A bucket of another region: 301, 307, or 400 AuthorizationHeaderMalformed. */
static bool learn_region(struct cairn_s3_store *s3, const struct cairn_s3_answer *answer)
{
	int status = answer->response.status;
	if (!*answer->region || (status != 301 && status != 307 && status != 400 && status != 403))
		return false;
	/* It becomes part of a host's name. */
	if (strspn(answer->region, "abcdefghijklmnopqrstuvwxyz0123456789-") !=
	    strlen(answer->region))
		return false;
	(void)pthread_mutex_lock(&s3->lock);
	bool other = strcmp(s3->region, answer->region) != 0;
	if (other)
		memcpy(s3->region, answer->region, sizeof(s3->region));
	(void)pthread_mutex_unlock(&s3->lock);
	return other;
}

/* "Retry-After: 3" tells the retries how long to wait at least. */
static void read_patience(struct cairn_call *call, const struct cairn_s3_answer *answer)
{
	const char *text = cairn_http_header(&answer->response, "retry-after");
	char *end;
	long seconds = text ? strtol(text, &end, 10) : 0;
	if (seconds > 0 && *end == '\0')
		call->retry_after = (seconds < RETRY_AFTER_MAX ? seconds : RETRY_AFTER_MAX) *
				    INT64_C(1000000);
}

int cairn_s3_failure(struct cairn_s3_store *s3, struct cairn_call *call,
		     const struct cairn_s3_request *request, const struct cairn_s3_answer *answer)
{
	int status = translate(answer);
	read_patience(call, answer);
	bool learnt = answer->response.status < 500 &&
		      (learn_region(s3, answer) || learn_credentials(s3, call, answer) ||
		       learn_clock(s3, answer));
	if (learnt)
		status = CAIRN_IO;
	else if (status == CAIRN_UNKNOWN && !request->write)
		status = CAIRN_TIMEOUT;
	const char *hint = "";
	if (status == CAIRN_ACCESS && is_code(answer, "RequestTimeTooSkewed"))
		hint = "; set this host's clock";
	else if (answer->response.status >= 300 && answer->response.status < 400)
		hint = "; the endpoint or the region is another one";
	else if (!*answer->code && answer->response.body.size)
		hint = "; that is no answer of S3, check the endpoint_url and proxies";
	return cairn_error_set(&call->error, status, "%s: %s from %s: %d %s%s%s%s", request->what,
			       request->method, s3->store.name, answer->response.status,
			       answer->code, *answer->message ? ", " : "", answer->message, hint);
}
