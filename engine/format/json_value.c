/* SPDX-License-Identifier: MIT */
#include "format/json_private.h"

#include <string.h>

#include "format/utf8.h"

/* Does the text between a name's quotes spell `name`? */
static bool name_equal(const char *at, const char *end, const char *name)
{
	while (at < end) {
		char bytes[4];
		int32_t code = cairn_json_read_char(&at, end);
		/* A C string has neither NUL nor surrogates. */
		if (code <= 0 || (code >= 0xd800 && code <= 0xdfff))
			return false;
		size_t size = cairn_utf8_write(code, bytes);
		if (strncmp(name, bytes, size) != 0)
			return false;
		name += size;
	}
	return *name == '\0';
}

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && cairn_json_space(*at))
		at++;
	return at;
}

const char *cairn_json_skip_string(const char *at)
{
	for (at++; *at != '"'; at++)
		if (*at == '\\')
			at++;
	return at + 1;
}

/* The comma or bracket behind the value that begins at `at`, in a text known to be JSON. */
static const char *skip_value(const char *at)
{
	for (size_t depth = 0;; at++) {
		if (*at == '"')
			at = cairn_json_skip_string(at) - 1;
		else if (*at == '{' || *at == '[')
			depth++;
		else if (depth == 0 && (*at == ',' || *at == '}'))
			return at;
		else if (*at == '}' || *at == ']')
			depth--;
	}
}

bool cairn_json_next_member(struct cairn_slice *rest, struct cairn_slice *ret_name,
			    struct cairn_slice *ret_value)
{
	const char *end = rest->data + rest->size;
	/* At the opening brace, or at the comma or brace behind a member. */
	const char *at = skip_space(rest->data, end);
	at = at < end ? skip_space(at + 1, end) : end;
	if (at == end || *at != '"')
		return false;
	const char *behind = cairn_json_skip_string(at);
	*ret_name = (struct cairn_slice){ .data = at, .size = (size_t)(behind - at) };
	const char *value = skip_space(skip_space(behind, end) + 1, end);
	at = skip_value(value);
	*rest = (struct cairn_slice){ .data = at, .size = (size_t)(end - at) };
	while (cairn_json_space(at[-1]))
		at--;
	*ret_value = (struct cairn_slice){ .data = value, .size = (size_t)(at - value) };
	return true;
}

int cairn_json_member(struct cairn_slice object, const char *name, struct cairn_slice *ret_value)
{
	const char *end = object.size ? object.data + object.size : object.data;
	const char *at = skip_space(object.data, end);
	struct cairn_json_scan scan;
	size_t size = 0;
	cairn_json_scan_init(&scan);
	if (at == end || *at != '{' ||
	    cairn_json_scan_feed(&scan, at, (size_t)(end - at), &size) != CAIRN_JSON_COMPLETE ||
	    skip_space(at + size, end) != end)
		return CAIRN_INVALID;
	struct cairn_slice rest = { .data = at, .size = size };
	struct cairn_slice found, value;
	bool any = false;
	while (cairn_json_next_member(&rest, &found, &value)) {
		if (!name_equal(found.data + 1, found.data + found.size - 1, name))
			continue;
		*ret_value = value;
		any = true;
	}
	return any ? CAIRN_OK : CAIRN_NOT_FOUND;
}

char cairn_json_kind(struct cairn_slice value)
{
	char first = value.size ? value.data[0] : '\0';
	if (first == 'N' || first == 'I' ||
	    (first == '-' && value.size > 1 && value.data[1] == 'I'))
		return 'N';
	if (first == '-' || (first >= '0' && first <= '9'))
		return '0';
	return first && strchr("{[\"tfn", first) ? first : '\0';
}

int cairn_json_integer(struct cairn_slice value, int64_t *ret_integer)
{
	bool negative = value.size && value.data[0] == '-';
	size_t first = negative;
	int64_t integer = 0;
	bool big = false;
	if (first == value.size || (value.data[first] == '0' && value.size > first + 1))
		return CAIRN_INVALID;
	for (size_t i = first; i < value.size; i++) {
		int digit = value.data[i] - '0';
		if (digit < 0 || digit > 9)
			return CAIRN_INVALID;
		big = big || __builtin_mul_overflow(integer, 10, &integer) ||
		      __builtin_sub_overflow(integer, digit, &integer);
	}
	/* Summed up below zero, where the smallest integer lies. */
	if (big || (!negative && integer == INT64_MIN))
		return CAIRN_TOO_BIG;
	*ret_integer = negative ? integer : -integer;
	return CAIRN_OK;
}
