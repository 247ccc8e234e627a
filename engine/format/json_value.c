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

/* Behind the string that begins at `at`, in a text that is known to be JSON. */
static const char *skip_string(const char *at)
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
			at = skip_string(at) - 1;
		else if (*at == '{' || *at == '[')
			depth++;
		else if (depth == 0 && (*at == ',' || *at == '}'))
			return at;
		else if (*at == '}' || *at == ']')
			depth--;
	}
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
	end = at + size;
	bool found = false;
	for (at = skip_space(at + 1, end); at < end && *at == '"'; at = skip_space(at + 1, end)) {
		const char *behind = skip_string(at);
		bool wanted = name_equal(at + 1, behind - 1, name);
		const char *value = skip_space(skip_space(behind, end) + 1, end);
		at = skip_value(value);
		if (!wanted)
			continue;
		const char *last = at;
		while (cairn_json_space(last[-1]))
			last--;
		*ret_value = (struct cairn_slice){ .data = value, .size = (size_t)(last - value) };
		found = true;
	}
	return found ? CAIRN_OK : CAIRN_NOT_FOUND;
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
