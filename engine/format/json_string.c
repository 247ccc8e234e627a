/* SPDX-License-Identifier: MIT */
#include "format/json_private.h"

#include <string.h>

#include "format/utf8.h"

size_t cairn_json_plain_run(const char *at, const char *end)
{
	const char *start = at;
	while (at < end && *at >= ' ' && *at < 0x7f && *at != '"' && *at != '\\')
		at++;
	return (size_t)(at - start);
}

static const char escape_letters[] = "\"\\/bfnrt";
static const char escape_bytes[] = "\"\\/\b\f\n\r\t";

/* The four hex digits of an escape at `at`, of either case; -1 where they are not. */
static int32_t read_hex(const char *at, const char *end)
{
	int32_t code = 0;
	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char byte = at[i];
		if (byte >= '0' && byte <= '9')
			code = code << 4 | (byte - '0');
		else if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f')
			code = code << 4 | ((byte | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return code;
}

/* An escape, at its backslash. An escaped high surrogate joins an escaped low one behind it. */
static int32_t read_escape(const char **at, const char *end)
{
	const char *text = *at;
	if (end - text < 2)
		return -1;
	if (text[1] != 'u') {
		const char *found = text[1] ? strchr(escape_letters, text[1]) : NULL;
		if (!found)
			return -1;
		*at += 2;
		return escape_bytes[found - escape_letters];
	}
	int32_t code = read_hex(text + 2, end);
	if (code < 0)
		return -1;
	*at += 6;
	if (code < 0xd800 || code > 0xdbff || end - text < 12 || text[6] != '\\' || text[7] != 'u')
		return code;
	int32_t low = read_hex(text + 8, end);
	if (low < 0xdc00 || low > 0xdfff)
		return code;
	*at += 6;
	return 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
}

int32_t cairn_json_read_char(const char **at, const char *end)
{
	if (*at < end && **at == '\\')
		return read_escape(at, end);
	if (*at < end && **at >= 0 && **at < ' ')
		return -1;
	return cairn_utf8_read(at, end);
}

static void hex_escape(int32_t unit, char ret_bytes[6])
{
	static const char digits[] = "0123456789abcdef";
	ret_bytes[0] = '\\';
	ret_bytes[1] = 'u';
	for (int i = 5; i > 1; i--) {
		ret_bytes[i] = digits[unit & 15];
		unit >>= 4;
	}
}

int cairn_json_write_char(int32_t code, struct cairn_buffer *out)
{
	char bytes[12] = { '\\' };
	if (code >= 0x10000) {
		hex_escape(0xd800 + ((code - 0x10000) >> 10), bytes);
		hex_escape(0xdc00 + ((code - 0x10000) & 0x3ff), bytes + 6);
		return cairn_buffer_append(out, bytes, 12);
	}
	const char *found = code > 0 && code < 0x7f && code != '/' ? strchr(escape_bytes, code)
								   : NULL;
	if (found) {
		bytes[1] = escape_letters[found - escape_bytes];
		return cairn_buffer_append(out, bytes, 2);
	}
	if (code >= ' ' && code < 0x7f) {
		bytes[0] = (char)code;
		return cairn_buffer_append(out, bytes, 1);
	}
	hex_escape(code, bytes);
	return cairn_buffer_append(out, bytes, 6);
}

/* Both end in this: nothing half done is left behind. */
static int finish(int status, size_t before, struct cairn_buffer *out)
{
	if (status && out->data) {
		out->size = before;
		out->data[before] = '\0';
	}
	return status;
}

int cairn_json_string_decode(struct cairn_slice value, struct cairn_buffer *out)
{
	if (value.size < 2 || value.data[0] != '"' || value.data[value.size - 1] != '"')
		return CAIRN_INVALID;
	size_t before = out->size;
	const char *at = value.data + 1;
	const char *end = value.data + value.size - 1;
	int status = CAIRN_OK;
	while (at < end && !status) {
		size_t run = cairn_json_plain_run(at, end);
		status = cairn_buffer_append(out, at, run);
		at += run;
		if (at == end || status)
			break;
		int32_t code = *at == '"' ? -1 : cairn_json_read_char(&at, end);
		if (code < 0 || (code >= 0xd800 && code <= 0xdfff)) {
			status = CAIRN_INVALID;
		} else {
			char bytes[4];
			status = cairn_buffer_append(out, bytes, cairn_utf8_write(code, bytes));
		}
	}
	return finish(status, before, out);
}

int cairn_json_string_encode(struct cairn_slice text, struct cairn_buffer *out)
{
	size_t before = out->size;
	const char *at = text.data;
	const char *end = text.size ? at + text.size : at;
	int status = cairn_buffer_append(out, "\"", 1);
	while (at < end && !status) {
		size_t run = cairn_json_plain_run(at, end);
		status = cairn_buffer_append(out, at, run);
		at += run;
		if (at == end || status)
			break;
		int32_t code = cairn_utf8_read(&at, end);
		status = code < 0 ? CAIRN_INVALID : cairn_json_write_char(code, out);
	}
	if (!status)
		status = cairn_buffer_append(out, "\"", 1);
	return finish(status, before, out);
}
