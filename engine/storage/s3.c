/* SPDX-License-Identifier: MIT */
#include "storage/s3.h"

#include <cairn/key.h>

#include "storage/s3_private.h"
#include "storage/store_private.h"

/* Of an answer whose body is not needed. */
#define SMALL_BODY ((size_t)64 * 1024)

static struct cairn_s3_store *s3_of(struct cairn_store *store)
{
	return (struct cairn_s3_store *)store;
}

static int check_length(const struct cairn_s3_store *s3, struct cairn_call *call, const char *key)
{
	if (strlen(s3->prefix) + strlen(key) <= CAIRN_KEY_MAX)
		return CAIRN_OK;
	return cairn_error_set(&call->error, CAIRN_NAME_TOO_LONG,
			       "key %.40s…: longer than %d bytes with the bucket's prefix", key,
			       CAIRN_KEY_MAX);
}

/* What a get asks for: its range, one byte (for the version alone), or all. */
enum extent { EXTENT_ASKED, EXTENT_BYTE, EXTENT_WHOLE };

static enum extent first_extent(const struct cairn_get_options *options)
{
	if (options->no_data)
		return EXTENT_BYTE;
	return options->offset || options->length ? EXTENT_ASKED : EXTENT_WHOLE;
}

/* A range's header; a HEAD is no use, since its 404 does not say of what. */
static void add_range(struct cairn_s3_request *request, const struct cairn_get_options *options,
		      enum extent extent, char *room, size_t size)
{
	if (extent == EXTENT_WHOLE)
		return;
	if (extent == EXTENT_BYTE)
		(void)snprintf(room, size, "bytes=0-0");
	else if (options->length && options->length - 1 <= UINT64_MAX - options->offset)
		(void)snprintf(room, size, "bytes=%llu-%llu", (unsigned long long)options->offset,
			       (unsigned long long)(options->offset + options->length - 1));
	else
		(void)snprintf(room, size, "bytes=%llu-", (unsigned long long)options->offset);
	cairn_s3_add_header(request, "range", room);
}

/* "bytes FIRST-LAST/TOTAL" */
static bool read_range(const char *text, uint64_t *ret_first, uint64_t *ret_total)
{
	unsigned long long first, last, total;
	char rest;
	if (!text || sscanf(text, "bytes %llu-%llu/%llu%c", &first, &last, &total, &rest) != 3)
		return false;
	*ret_first = first;
	*ret_total = total;
	return first <= last && last < total;
}

/* Version of a good answer; the sizes of a part are its Content-Range's. */
static int read_version(struct cairn_s3_store *s3, struct cairn_call *call,
			const struct cairn_s3_request *request,
			const struct cairn_s3_answer *answer, uint64_t offset,
			struct cairn_version *ret_version)
{
	const struct cairn_http_response *response = &answer->response;
	const char *nonce = cairn_http_header(response, "x-amz-meta-cairn-nonce");
	const char *length = cairn_http_header(response, "content-length");
	struct cairn_version version = { .size = response->body.size };
	uint64_t first = 0;
	bool good = cairn_s3_read_etag(cairn_http_header(response, "etag"), version.etag);
	if (response->status == 206)
		good = good &&
		       read_range(cairn_http_header(response, "content-range"), &first,
				  &version.size) &&
		       first == offset;
	else if (length)
		version.size = strtoull(length, NULL, 10);
	else if (response->cut)
		good = false;
	version.modified = cairn_http_date(cairn_http_header(response, "last-modified"));
	if (!good || version.modified < 0)
		return cairn_error_set(&call->error, CAIRN_IO,
				       "%s: %s from %s: the answer lacks its ETag, Last-Modified "
				       "or size",
				       request->what, request->method, s3->store.name);
	if (nonce && strlen(nonce) < sizeof(version.nonce))
		(void)snprintf(version.nonce, sizeof(version.nonce), "%s", nonce);
	int64_t age = cairn_s3_date(s3, answer) - version.modified;
	version.age = age > 0 ? age : 0;
	*ret_version = version;
	return CAIRN_OK;
}

/* The asked bytes of a good answer. */
static int read_data(struct cairn_call *call, const struct cairn_get_options *options,
		     enum extent extent, struct cairn_s3_answer *answer, const char *key,
		     struct cairn_object *object)
{
	struct cairn_http_response *response = &answer->response;
	if (extent != first_extent(options) || options->no_data ||
	    (options->max_size && object->version.size > options->max_size))
		return CAIRN_OK;
	if (response->cut || (extent == EXTENT_ASKED && response->status != 206))
		return cairn_error_set(&call->error, CAIRN_UNSUPPORTED,
				       "%s: the server does not send parts of objects", key);
	size_t size = 0;
	char *data = cairn_buffer_steal(&response->body, &size);
	object->data.data = data;
	object->data.size = size;
	object->data.capacity = data ? size + 1 : 0;
	return CAIRN_OK;
}

/* One request of a get. ret_beyond: the object has no such bytes, ask with the next extent. */
static int get_extent(struct cairn_s3_store *s3, struct cairn_call *call, const char *key,
		      const struct cairn_get_options *options, enum extent extent,
		      struct cairn_object *object, bool *ret_beyond)
{
	char range[64], match[CAIRN_S3_ETAG_SIZE], none_match[CAIRN_S3_ETAG_SIZE];
	*ret_beyond = false;
	struct cairn_s3_answer answer;
	struct cairn_s3_request request = {
		.what = key, .method = "GET", .key = key, .max_body = SMALL_BODY
	};
	if (extent == first_extent(options) && !options->no_data)
		request.max_body = options->max_size ? (size_t)options->max_size : SIZE_MAX / 2;
	if (options->if_match)
		cairn_s3_add_etag(s3, &request, "if-match", options->if_match, match);
	if (options->if_none_match)
		cairn_s3_add_etag(s3, &request, "if-none-match", options->if_none_match,
				  none_match);
	add_range(&request, options, extent, range, sizeof(range));
	cairn_s3_answer_init(&answer);
	int status = cairn_s3_send(s3, call, &request, &answer);
	if (status)
		goto out;
	*ret_beyond = answer.response.status == 416 && extent != EXTENT_WHOLE;
	if (*ret_beyond)
		goto out;
	if (answer.response.status == 304) {
		status = cairn_error_set(&call->error, CAIRN_UNCHANGED, "%s: unchanged", key);
		goto out;
	}
	if (!cairn_s3_is_good(&answer)) {
		status = cairn_s3_failure(s3, call, &request, &answer);
		goto out;
	}
	status = read_version(s3, call, &request, &answer,
			      extent == EXTENT_ASKED ? options->offset : 0, &object->version);
	if (!status)
		status = read_data(call, options, extent, &answer, key, object);
out:
	cairn_s3_answer_release(&answer);
	return status;
}

static int s3_get(struct cairn_store *store, struct cairn_call *call, const char *key,
		  const struct cairn_get_options *options, struct cairn_object *ret_object)
{
	struct cairn_s3_store *s3 = s3_of(store);
	cairn_object_release(ret_object);
	int status = check_length(s3, call, key);
	bool beyond = !status;
	/* 416: the part lies behind the end; not even a first byte: the object is empty. */
	for (enum extent extent = first_extent(options); beyond; extent++)
		status = get_extent(s3, call, key, options, extent, ret_object, &beyond);
	return status;
}

/* The put's nonce, known to the caller before anything is sent. */
static void choose_nonce(const struct cairn_put_options *options, char nonce[CAIRN_NONCE_SIZE])
{
	uint64_t random[2];
	arc4random_buf(random, sizeof(random));
	if (options->nonce && *options->nonce)
		(void)snprintf(nonce, CAIRN_NONCE_SIZE, "%s", options->nonce);
	else
		(void)snprintf(nonce, CAIRN_NONCE_SIZE, "%016llx%016llx",
			       (unsigned long long)random[0], (unsigned long long)random[1]);
	if (options->nonce)
		memcpy(options->nonce, nonce, CAIRN_NONCE_SIZE);
}

/* A put was not carried out, or that is not known: say which condition it was. */
static int put_failure(struct cairn_s3_store *s3, struct cairn_call *call,
		       const struct cairn_s3_request *request, const struct cairn_s3_answer *answer,
		       const struct cairn_put_options *options)
{
	int status = cairn_s3_failure(s3, call, request, answer);
	bool absent = status == CAIRN_NOT_FOUND;
	if (options->if_match && (absent || status == CAIRN_CONFLICT))
		return cairn_error_set(&call->error, CAIRN_CONFLICT, "%s: is %s now", request->what,
				       absent ? "absent" : "another version");
	if (options->if_absent && status == CAIRN_CONFLICT)
		return cairn_error_set(&call->error, CAIRN_EXISTS, "%s: exists", request->what);
	/* Deleted by another while it was put: it is put again. */
	if (absent)
		call->error.status = status = CAIRN_BUSY;
	return status;
}

static int put(struct cairn_s3_store *s3, struct cairn_call *call, const char *key,
	       struct cairn_slice data, const struct cairn_put_options *options,
	       struct cairn_version *ret_version)
{
	char match[CAIRN_S3_ETAG_SIZE];
	struct cairn_version version = { .size = data.size };
	choose_nonce(options, version.nonce);
	struct cairn_s3_request request = {
		.what = key,
		.method = "PUT",
		.key = key,
		.body = data,
		.max_body = SMALL_BODY,
		.write = true,
	};
	if (options->if_absent)
		cairn_s3_add_header(&request, "if-none-match", "*");
	if (options->if_match)
		cairn_s3_add_etag(s3, &request, "if-match", options->if_match, match);
	cairn_s3_add_header(&request, "x-amz-meta-cairn-nonce", version.nonce);
	struct cairn_s3_answer answer;
	cairn_s3_answer_init(&answer);
	int status = cairn_s3_send(s3, call, &request, &answer);
	if (!status && !cairn_s3_is_good(&answer))
		status = put_failure(s3, call, &request, &answer, options);
	else if (!status &&
		 !cairn_s3_read_etag(cairn_http_header(&answer.response, "etag"), version.etag))
		status = cairn_error_set(&call->error, CAIRN_UNKNOWN,
					 "%s: PUT from %s: the answer has no ETag", key,
					 s3->store.name);
	if (!status) {
		version.modified = cairn_s3_date(s3, &answer);
		*ret_version = version;
	}
	cairn_s3_answer_release(&answer);
	return status;
}

static int s3_put(struct cairn_store *store, struct cairn_call *call, const char *key,
		  struct cairn_slice data, const struct cairn_put_options *options,
		  struct cairn_version *ret_version)
{
	struct cairn_s3_store *s3 = s3_of(store);
	int status = check_length(s3, call, key);
	return status ? status : put(s3, call, key, data, options, ret_version);
}

/* One DELETE; `fresh`: over a connection of its own. */
static int delete_once(struct cairn_s3_store *s3, struct cairn_call *call, const char *key,
		       const char *if_match, bool fresh)
{
	char match[CAIRN_S3_ETAG_SIZE];
	struct cairn_s3_answer answer;
	struct cairn_s3_request request = {
		.what = key,
		.method = "DELETE",
		.key = key,
		.max_body = SMALL_BODY,
		.write = true,
		.fresh = fresh,
	};
	if (if_match)
		cairn_s3_add_etag(s3, &request, "if-match", if_match, match);
	cairn_s3_answer_init(&answer);
	int status = cairn_s3_send(s3, call, &request, &answer);
	if (!status && !cairn_s3_is_good(&answer)) {
		status = cairn_s3_failure(s3, call, &request, &answer);
		if (status == CAIRN_NOT_FOUND)
			status = if_match ? cairn_error_set(&call->error, CAIRN_CONFLICT,
							    "%s: is absent now", key)
					  : CAIRN_OK;
	}
	cairn_s3_answer_release(&answer);
	return status;
}

static int s3_remove(struct cairn_store *store, struct cairn_call *call, const char *key,
		     const struct cairn_delete_options *options)
{
	struct cairn_s3_store *s3 = s3_of(store);
	int status = check_length(s3, call, key);
	return status ? status : delete_once(s3, call, key, options->if_match, false);
}

static int s3_prefix_exists(struct cairn_store *store, struct cairn_call *call, const char *prefix)
{
	const struct cairn_list_options options = { .max = 1, .names_only = true };
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	int status = cairn_s3_list(store, call, prefix, &options, &listing);
	if (!status && !listing.count && *prefix)
		status = cairn_error_set(&call->error, CAIRN_NOT_FOUND, "%s: no such prefix",
					 prefix);
	cairn_listing_release(&listing);
	return status;
}

static int s3_prefix_make(struct cairn_store *store, struct cairn_call *call, const char *prefix)
{
	static const struct cairn_put_options options = { .if_absent = true };
	struct cairn_version version;
	return s3_put(store, call, prefix, (struct cairn_slice){ 0 }, &options, &version);
}

static int s3_prefix_remove(struct cairn_store *store, struct cairn_call *call, const char *prefix)
{
	const struct cairn_list_options options = { .max = 2, .names_only = true };
	struct cairn_listing listing;
	cairn_listing_init(&listing);
	int status = cairn_s3_list(store, call, prefix, &options, &listing);
	bool made = !status && listing.count && strcmp(listing.entries[0].key, prefix) == 0;
	if (!status && listing.count > made)
		status = cairn_error_set(&call->error, CAIRN_NOT_EMPTY, "%s: holds keys", prefix);
	else if (!status && !made)
		status = cairn_error_set(&call->error, CAIRN_NOT_FOUND, "%s: no such prefix",
					 prefix);
	cairn_listing_release(&listing);
	/* Once, where nothing sends it again: markers all look alike (DESIGN "The tree"). */
	return status ? status : delete_once(s3_of(store), call, prefix, NULL, true);
}

static int s3_space(struct cairn_store *store, struct cairn_call *call,
		    struct cairn_space *ret_space)
{
	(void)store;
	(void)call;
	*ret_space = (struct cairn_space){ .total = UINT64_MAX, .available = UINT64_MAX };
	return CAIRN_OK;
}

static void s3_free(struct cairn_store *store)
{
	struct cairn_s3_store *s3 = s3_of(store);
	cairn_http_free(s3->http);
	cairn_credential_source_free(s3->credentials);
	free(s3->bucket);
	free(s3->prefix);
	free(s3->scheme);
	free(s3->host);
	(void)pthread_mutex_destroy(&s3->lock);
	free(s3);
}

const struct cairn_store_ops cairn_s3_ops = {
	.get = s3_get,
	.put = s3_put,
	.remove = s3_remove,
	.list = cairn_s3_list,
	.prefix_exists = s3_prefix_exists,
	.prefix_make = s3_prefix_make,
	.prefix_remove = s3_prefix_remove,
	.space = s3_space,
	.free = s3_free,
};
