/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_SIGV4_H
#define CAIRN_SIGV4_H

/* AWS Signature Version 4 in the Authorization header, over a payload whose hash is sent. */

#include "storage/http.h"

/* Bytes of a hex SHA-256, and of a time such as 20150830T123600Z, with their NUL. */
#define CAIRN_SIGV4_HASH_SIZE 65
#define CAIRN_SIGV4_TIME_SIZE 17

struct cairn_sigv4_request {
	const char *method;
	const char *path;		    /* as it is sent: cairn_sigv4_encode */
	const char *query;		    /* as it is sent: cairn_sigv4_query; "" without one */
	const struct cairn_header *headers; /* those to sign, host among them, in any order */
	size_t header_count;
	const char *payload_hash;
	const char *time;
	const char *region;
	const char *service;
	const char *access_key;
	const char *secret_key;
};

/* Microseconds since 1970 as the value of x-amz-date. */
void cairn_sigv4_time(int64_t time, char ret_time[CAIRN_SIGV4_TIME_SIZE]);

/* The hex SHA-256. CAIRN_NO_MEMORY. */
int cairn_sigv4_hash(struct cairn_slice data, char ret_hash[CAIRN_SIGV4_HASH_SIZE]) CAIRN_MUST_USE;

/* Append `text` percent-encoded, its slashes kept for a path. As cairn_buffer_append. */
int cairn_sigv4_encode(struct cairn_slice text, bool is_path,
		       struct cairn_buffer *out) CAIRN_MUST_USE;

/* Append a query of `count` parameters, encoded and sorted by name. As cairn_buffer_append. */
int cairn_sigv4_query(const struct cairn_header *parameters, size_t count,
		      struct cairn_buffer *out) CAIRN_MUST_USE;

/*
 * Append the value of the Authorization header. Returns 0, CAIRN_INVALID with more headers than
 * fit (32), CAIRN_NO_MEMORY, or as cairn_buffer_append.
 */
int cairn_sigv4_authorization(const struct cairn_sigv4_request *request,
			      struct cairn_buffer *out) CAIRN_MUST_USE;

#endif
