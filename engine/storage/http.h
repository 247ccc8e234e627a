/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_HTTP_H
#define CAIRN_HTTP_H

/* HTTP, one request at a time over pooled connections. What lies behind is http.c's alone. */

#include <cairn/store.h>

/* A pool of connections; thread-safe. */
struct cairn_http;

struct cairn_http_options {
	const char *ca_bundle; /* file of trusted certificates; NULL: the system's */
	bool direct;	       /* no proxy, whatever the environment says */
};

struct cairn_header {
	const char *name; /* lower case */
	const char *value;
};

struct cairn_http_request {
	const char *what; /* what is being done, for messages */
	const char *method;
	const char *url; /* sent as it is, dot segments too */
	const struct cairn_header *headers;
	size_t header_count;
	struct cairn_slice body;
	size_t max_body; /* of a 2xx answer; a longer one comes without body, as `cut` */
	bool write;	 /* may change something: goes out once, never again by itself */
	bool fresh;	 /* over a connection of its own */
};

struct cairn_http_response {
	int status;		     /* 100 to 599 */
	struct cairn_buffer headers; /* private */
	struct cairn_buffer body;    /* of an answer that is not 2xx, its beginning */
	bool cut;		     /* there was more than max_body, so there is none */
};

void cairn_http_response_init(struct cairn_http_response *response);
void cairn_http_response_release(struct cairn_http_response *response);

/* The header `name` (lower case), its first value without surrounding white space, or NULL. */
const char *cairn_http_header(const struct cairn_http_response *response, const char *name);

/* Microseconds since 1970 of an HTTP date; -1 when it is none (NULL: too). */
int64_t cairn_http_date(const char *text);

/* options NULL: defaults. CAIRN_NO_MEMORY, CAIRN_INVALID (unreadable ca_bundle), described. */
int cairn_http_new(const struct cairn_http_options *options, struct cairn_http **ret_http,
		   struct cairn_error *error) CAIRN_MUST_USE;

/* NULL is fine. No request may be under way. */
void cairn_http_free(struct cairn_http *http);

/*
 * Send one request and read its whole answer, within call->deadline. No redirect is followed.
 * Returns 0 with whatever the server answered in `response` (initialised), or, described,
 * CAIRN_UNKNOWN: a write went out and no whole answer came. CAIRN_TIMEOUT: no answer, and nothing
 * was written; worth trying again. CAIRN_IO: the same, but it looks like a fault that stays.
 * CAIRN_CANCELLED, CAIRN_NO_MEMORY.
 */
int cairn_http_perform(struct cairn_http *http, struct cairn_call *call,
		       const struct cairn_http_request *request,
		       struct cairn_http_response *response) CAIRN_MUST_USE;

#endif
