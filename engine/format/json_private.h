/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_FORMAT_JSON_PRIVATE_H
#define CAIRN_FORMAT_JSON_PRIVATE_H

#include <stdint.h>

#include <cairn/json.h>

/* JSON's white space, which is Python's. */
static inline bool cairn_json_space(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* How many of the bytes at `at` stand for themselves in a canonical string. */
size_t cairn_json_plain_run(const char *at, const char *end);

/*
 * The character at *at inside a JSON string, raw or escaped; *at is moved behind it. A lone
 * surrogate is returned as it is. -1 for what no string may hold (a raw control character, a wrong
 * escape, bytes that are no UTF-8) and at `end`, *at as before. A quote is no special case: the
 * caller looks for it first.
 */
int32_t cairn_json_read_char(const char **at, const char *end);

/* Append the character `code` as canonical strings have it. As cairn_buffer_append. */
int cairn_json_write_char(int32_t code, struct cairn_buffer *out);

/*
 * Append the canonical form of the number at *at, and move *at behind it. Returns 0, CAIRN_INVALID
 * (*at stands where the number goes wrong), or as cairn_buffer_append.
 */
int cairn_json_write_number(const char **at, const char *end, struct cairn_buffer *out);

/* Append `value` as canonical text has it, also NaN and infinities. As cairn_buffer_append. */
int cairn_json_write_double(double value, struct cairn_buffer *out);

/* What the number, NaN or infinity `value`, in a text known to be JSON, is as a double. */
double cairn_json_real(struct cairn_slice value);

/* Behind the string that begins at `at`, in a text that is known to be JSON. */
const char *cairn_json_skip_string(const char *at);

/*
 * The members of an object known to be JSON, one by one: `rest` is the object at first, then what
 * is left of it. Returns false behind the last. Names are with their quotes.
 */
bool cairn_json_next_member(struct cairn_slice *rest, struct cairn_slice *ret_name,
			    struct cairn_slice *ret_value);

#endif
