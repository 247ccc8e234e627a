/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_S3_PRIVATE_H
#define CAIRN_S3_PRIVATE_H

#include <pthread.h>

#include "storage/credentials.h"
#include "storage/http.h"
#include "storage/s3.h"

#define CAIRN_S3_REGION_SIZE 64

struct cairn_s3_store {
	struct cairn_store store;
	struct cairn_http *http;
	struct cairn_credential_source *credentials;
	char *bucket;
	char *prefix; /* ends in a slash, or "" */
	char *scheme; /* "https://" */
	char *host;   /* with its port where it is not the scheme's; NULL: Amazon's */
	bool virtual_host;
	bool quoted; /* etags of conditions are sent in quotes; constant after the probe */
	pthread_mutex_t lock;
	/* Under lock: what the server taught. */
	char region[CAIRN_S3_REGION_SIZE];
	int64_t clock_offset; /* microseconds that the server's clock is ahead */
};

#define CAIRN_S3_FIELDS 8

/* Room for an etag in quotes. */
#define CAIRN_S3_ETAG_SIZE (CAIRN_ETAG_SIZE + 2)

struct cairn_s3_request {
	const char *what; /* the key or prefix, for messages */
	const char *method;
	const char *key; /* without the store's prefix; NULL: the bucket */
	struct cairn_header query[CAIRN_S3_FIELDS];
	size_t query_count;
	struct cairn_header headers[CAIRN_S3_FIELDS];
	size_t header_count;
	struct cairn_slice body;
	size_t max_body;
	bool write;
	bool fresh;
};

struct cairn_s3_answer {
	struct cairn_http_response response;
	char code[64]; /* of S3's error document, or "" */
	char message[200];
	char region[CAIRN_S3_REGION_SIZE];     /* where the server says that the bucket is, or "" */
	struct cairn_credentials *credentials; /* owned: what the request was signed with */
};

void cairn_s3_answer_init(struct cairn_s3_answer *answer);
void cairn_s3_answer_release(struct cairn_s3_answer *answer);

void cairn_s3_add_query(struct cairn_s3_request *request, const char *name, const char *value);
void cairn_s3_add_header(struct cairn_s3_request *request, const char *name, const char *value);

/* Add a condition on an etag, as the server wants it; `room` lives as long as the request. */
void cairn_s3_add_etag(const struct cairn_s3_store *s3, struct cairn_s3_request *request,
		       const char *name, const char *etag, char room[CAIRN_S3_ETAG_SIZE]);

/*
 * Sign, send once, read the answer. 0 with any answer of the server (response.status below 300, or
 * 304: a good one; the others go to cairn_s3_failure), or as cairn_http_perform and
 * cairn_credentials_get.
 */
int cairn_s3_send(struct cairn_s3_store *s3, struct cairn_call *call,
		  const struct cairn_s3_request *request,
		  struct cairn_s3_answer *answer) CAIRN_MUST_USE;

bool cairn_s3_is_good(const struct cairn_s3_answer *answer);

/*
 * What an answer that is not good amounts to, described: the one place where HTTP statuses and S3's
 * codes become ours. CAIRN_NOT_FOUND only of a NoSuchKey, CAIRN_CONFLICT of a failed condition,
 * CAIRN_BUSY of a collision; CAIRN_UNKNOWN (of a read: CAIRN_TIMEOUT) where the server does not say
 * that nothing was done; CAIRN_IO also where something was learnt that lets the next try succeed
 * (region, clock, credentials).
 */
int cairn_s3_failure(struct cairn_s3_store *s3, struct cairn_call *call,
		     const struct cairn_s3_request *request, const struct cairn_s3_answer *answer);

/* The server's time of an answer, microseconds since 1970. */
int64_t cairn_s3_date(struct cairn_s3_store *s3, const struct cairn_s3_answer *answer);

/* Copy an etag without its quotes. False: it is missing or too long. */
bool cairn_s3_read_etag(const char *text, char ret_etag[CAIRN_ETAG_SIZE]);

/* The operation of that name. */
int cairn_s3_list(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		  const struct cairn_list_options *options, struct cairn_listing *ret_listing);

extern const struct cairn_store_ops cairn_s3_ops;

#endif
