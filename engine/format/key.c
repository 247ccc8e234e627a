/* SPDX-License-Identifier: MIT */
#include <cairn/key.h>

#include <string.h>

#include <cairn/json.h>

#include "format/utf8.h"

int cairn_key_check(const char *key, struct cairn_error *error)
{
	size_t size = strlen(key);
	if (size == 0)
		return cairn_error_set(error, CAIRN_INVALID, "the empty key is not allowed");
	/* What is shown of a bad key is UTF-8 itself, and short. */
	const char *at = key;
	while (at - key < 64 && cairn_utf8_read(&at, key + size) >= 0)
		;
	if (size > CAIRN_KEY_MAX)
		return cairn_error_set(error, CAIRN_NAME_TOO_LONG,
				       "key %.*s…: %zu bytes, at most %d are allowed",
				       (int)(at - key), key, size, CAIRN_KEY_MAX);
	if (!cairn_utf8_valid(cairn_slice_of(key)))
		return cairn_error_set(error, CAIRN_INVALID, "key %.*s…: not UTF-8",
				       (int)(at - key), key);
	if (cairn_key_reserved(key))
		return cairn_error_set(error, CAIRN_INVALID,
				       "key %s: log/, logs/, snapshots/ and txapplied/ are "
				       "reserved for logs and transactions",
				       key);
	return CAIRN_OK;
}

bool cairn_key_reserved(const char *key)
{
	static const char *const prefixes[] = { "log/", "logs/", "snapshots/", "txapplied/" };
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Must the byte at `at`, the first of the character `code`, be written %XX in its segment? */
static bool needs_escape(struct cairn_slice segment, const char *at, int32_t code)
{
	if (code < 0x20 || code == 0x7f || code == '%')
		return true;
	if (at == segment.data)
		return code == '.' || cairn_slice_equal(segment, cairn_slice_of("4913")) ||
		       (code == '~' && segment.size == 1);
	return code == '~' && at == segment.data + segment.size - 1;
}

/* Back to the content before a failure. */
static void cut(struct cairn_buffer *out, size_t size)
{
	out->size = size;
	if (out->data)
		out->data[size] = '\0';
}

int cairn_name_encode(struct cairn_slice segment, struct cairn_buffer *out)
{
	if (segment.size == 0)
		return cairn_buffer_append(out, "%", 1);
	/* Neither can stand in a segment of a key; both would make two names of one key. */
	if (memchr(segment.data, '\0', segment.size) || memchr(segment.data, '/', segment.size))
		return CAIRN_INVALID;
	size_t before = out->size;
	int status = CAIRN_OK;
	const char *end = segment.data + segment.size;
	for (const char *at = segment.data; at < end && !status;) {
		const char *next = at;
		int32_t code = cairn_utf8_read(&next, end);
		if (!needs_escape(segment, at, code)) {
			status = cairn_buffer_append(out, at, (size_t)(next - at));
			at = next;
		} else {
			status = cairn_buffer_printf(out, "%%%02X", (unsigned char)*at);
			at++;
		}
	}
	if (status)
		cut(out, before);
	return status;
}

static int hex_digit(char byte)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *found = byte ? strchr(digits, byte) : NULL;
	return found ? (int)(found - digits) : -1;
}

/* Replace each %XX; whether it was needed is for the caller to see. */
static int unescape(const char *name, size_t size, struct cairn_buffer *out)
{
	for (size_t i = 0; i < size; i++) {
		char byte = name[i];
		if (byte == '%') {
			int high = i + 2 < size ? hex_digit(name[i + 1]) : -1;
			int low = i + 2 < size ? hex_digit(name[i + 2]) : -1;
			if (high < 0 || low < 0)
				return CAIRN_INVALID;
			byte = (char)(high << 4 | low);
			i += 2;
		}
		int status = cairn_buffer_append(out, &byte, 1);
		if (status)
			return status;
	}
	return CAIRN_OK;
}

/* As cairn_name_decode, of a name without the bare `%` of a prefix. */
static int decode_segment(const char *name, size_t size, struct cairn_buffer *out)
{
	size_t before = out->size;
	struct cairn_buffer again;
	cairn_buffer_init(&again, 3 * size + 1);
	int status = CAIRN_OK;
	if (size != 1 || name[0] != '%') {
		status = unescape(name, size, out);
		if (status)
			goto out;
		if (out->size == before) {
			status = CAIRN_INVALID;
			goto out;
		}
		/* Only the form that cairn_name_encode writes, so that no key has two names. */
		struct cairn_slice segment = { out->data + before, out->size - before };
		struct cairn_slice given = { name, size };
		status = cairn_name_encode(segment, &again);
		if (!status && !cairn_slice_equal(cairn_buffer_slice(&again), given))
			status = CAIRN_INVALID;
	}
out:
	cairn_buffer_release(&again);
	if (status)
		cut(out, before);
	return status;
}

int cairn_name_decode(const char *name, struct cairn_buffer *out, enum cairn_name_kind *ret_kind)
{
	size_t size = strlen(name);
	bool prefix = size > 1 && name[size - 1] == '%';
	int status = decode_segment(name, prefix ? size - 1 : size, out);
	if (!status)
		*ret_kind = prefix ? CAIRN_NAME_PREFIX : CAIRN_NAME_SEGMENT;
	return status;
}
