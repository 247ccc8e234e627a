/* SPDX-License-Identifier: MIT */
#include "storage/sigv4.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#define DIGEST_SIZE   32
#define HEADERS_MAX   32
#define CANONICAL_MAX ((size_t)1024 * 1024)

void cairn_sigv4_time(int64_t time, char ret_time[CAIRN_SIGV4_TIME_SIZE])
{
	time_t seconds = (time_t)(time / 1000000);
	struct tm parts = { 0 };
	(void)gmtime_r(&seconds, &parts);
	if (strftime(ret_time, CAIRN_SIGV4_TIME_SIZE, "%Y%m%dT%H%M%SZ", &parts) == 0)
		ret_time[0] = '\0';
}

static void hex(const unsigned char *digest, char ret_hex[CAIRN_SIGV4_HASH_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < DIGEST_SIZE; i++) {
		ret_hex[2 * i] = digits[digest[i] >> 4];
		ret_hex[2 * i + 1] = digits[digest[i] & 15];
	}
	ret_hex[2 * DIGEST_SIZE] = '\0';
}

int cairn_sigv4_hash(struct cairn_slice data, char ret_hash[CAIRN_SIGV4_HASH_SIZE])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	if (EVP_Digest(data.size ? data.data : "", data.size, digest, NULL, EVP_sha256(), NULL) !=
	    1)
		return CAIRN_NO_MEMORY;
	hex(digest, ret_hash);
	return CAIRN_OK;
}

int cairn_sigv4_encode(struct cairn_slice text, bool is_path, struct cairn_buffer *out)
{
	for (size_t i = 0; i < text.size; i++) {
		unsigned char byte = (unsigned char)text.data[i];
		bool plain = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
			     (byte >= '0' && byte <= '9') || (byte && strchr("-._~", byte)) ||
			     (is_path && byte == '/');
		int status = plain ? cairn_buffer_append(out, text.data + i, 1)
				   : cairn_buffer_printf(out, "%%%02X", byte);
		if (status)
			return status;
	}
	return CAIRN_OK;
}

static int by_name(const void *a, const void *b)
{
	const struct cairn_header *one = a, *other = b;
	int order = strcmp(one->name, other->name);
	return order ? order : strcmp(one->value, other->value);
}

/* `headers` sorted by name into `ret_sorted`. */
static int sort(const struct cairn_header *headers, size_t count, struct cairn_header *ret_sorted)
{
	if (count > HEADERS_MAX)
		return CAIRN_INVALID;
	if (count)
		memcpy(ret_sorted, headers, count * sizeof(*headers));
	qsort(ret_sorted, count, sizeof(*ret_sorted), by_name);
	return CAIRN_OK;
}

int cairn_sigv4_query(const struct cairn_header *parameters, size_t count, struct cairn_buffer *out)
{
	struct cairn_header sorted[HEADERS_MAX];
	int status = sort(parameters, count, sorted);
	for (size_t i = 0; i < count && !status; i++) {
		if (i)
			status = cairn_buffer_append(out, "&", 1);
		if (!status)
			status = cairn_sigv4_encode(cairn_slice_of(sorted[i].name), false, out);
		if (!status)
			status = cairn_buffer_append(out, "=", 1);
		if (!status)
			status = cairn_sigv4_encode(cairn_slice_of(sorted[i].value), false, out);
	}
	return status;
}

/* A header's value: trimmed, runs of spaces as one. */
static int append_value(struct cairn_buffer *out, const char *value)
{
	bool space = false;
	bool begun = false;
	int status = CAIRN_OK;
	for (; *value && !status; value++) {
		if (*value == ' ' || *value == '\t') {
			space = begun;
			continue;
		}
		if (space)
			status = cairn_buffer_append(out, " ", 1);
		if (!status)
			status = cairn_buffer_append(out, value, 1);
		space = false;
		begun = true;
	}
	return status;
}

static int append_names(struct cairn_buffer *out, const struct cairn_header *sorted, size_t count)
{
	int status = CAIRN_OK;
	for (size_t i = 0; i < count && !status; i++)
		status = cairn_buffer_printf(out, i ? ";%s" : "%s", sorted[i].name);
	return status;
}

static int append_canonical(struct cairn_buffer *out, const struct cairn_sigv4_request *request,
			    const struct cairn_header *sorted)
{
	int status = cairn_buffer_printf(out, "%s\n%s\n%s\n", request->method, request->path,
					 request->query);
	for (size_t i = 0; i < request->header_count && !status; i++) {
		status = cairn_buffer_printf(out, "%s:", sorted[i].name);
		if (!status)
			status = append_value(out, sorted[i].value);
		if (!status)
			status = cairn_buffer_append(out, "\n", 1);
	}
	if (!status)
		status = cairn_buffer_append(out, "\n", 1);
	if (!status)
		status = append_names(out, sorted, request->header_count);
	if (!status)
		status = cairn_buffer_printf(out, "\n%s", request->payload_hash);
	return status;
}

static int hmac(const void *key, size_t key_size, const char *text,
		unsigned char ret_digest[DIGEST_SIZE])
{
	unsigned size = DIGEST_SIZE;
	return HMAC(EVP_sha256(), key, (int)key_size, (const unsigned char *)text, strlen(text),
		    ret_digest, &size)
		       ? CAIRN_OK
		       : CAIRN_NO_MEMORY;
}

/* The chain of keys: date, region, service, and the string to sign. */
static int sign(const struct cairn_sigv4_request *request, const char *string,
		char ret_signature[CAIRN_SIGV4_HASH_SIZE])
{
	unsigned char key[DIGEST_SIZE], next[DIGEST_SIZE];
	char first[512], date[9];
	int length = snprintf(first, sizeof(first), "AWS4%s", request->secret_key);
	(void)snprintf(date, sizeof(date), "%.8s", request->time);
	int status = CAIRN_INVALID;
	if (length > 0 && (size_t)length < sizeof(first))
		status = hmac(first, (size_t)length, date, key);
	if (!status)
		status = hmac(key, sizeof(key), request->region, next);
	if (!status)
		status = hmac(next, sizeof(next), request->service, key);
	if (!status)
		status = hmac(key, sizeof(key), "aws4_request", next);
	if (!status)
		status = hmac(next, sizeof(next), string, key);
	if (!status)
		hex(key, ret_signature);
	OPENSSL_cleanse(first, sizeof(first));
	OPENSSL_cleanse(key, sizeof(key));
	OPENSSL_cleanse(next, sizeof(next));
	return status;
}

int cairn_sigv4_authorization(const struct cairn_sigv4_request *request, struct cairn_buffer *out)
{
	struct cairn_header sorted[HEADERS_MAX];
	char hash[CAIRN_SIGV4_HASH_SIZE], signature[CAIRN_SIGV4_HASH_SIZE];
	struct cairn_buffer text, scope;
	cairn_buffer_init(&text, CANONICAL_MAX);
	cairn_buffer_init(&scope, CANONICAL_MAX);
	int status = sort(request->headers, request->header_count, sorted);
	if (!status)
		status = append_canonical(&text, request, sorted);
	if (!status)
		status = cairn_sigv4_hash(cairn_buffer_slice(&text), hash);
	if (!status)
		status = cairn_buffer_printf(&scope, "%.8s/%s/%s/aws4_request", request->time,
					     request->region, request->service);
	cairn_buffer_clear(&text);
	if (!status)
		status = cairn_buffer_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", request->time,
					     scope.data, hash);
	if (!status)
		status = sign(request, text.data, signature);
	if (!status)
		status = cairn_buffer_printf(out,
					     "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=",
					     request->access_key, scope.data);
	if (!status)
		status = append_names(out, sorted, request->header_count);
	if (!status)
		status = cairn_buffer_printf(out, ", Signature=%s", signature);
	cairn_buffer_release(&text);
	cairn_buffer_release(&scope);
	return status;
}
