/* SPDX-License-Identifier: MIT */
#include "format/utf8.h"

#include <cairn/json.h>

int32_t cairn_utf8_read(const char **at, const char *end)
{
	static const int32_t smallest[] = { 0, 0x80, 0x800, 0x10000 };
	if (*at >= end)
		return -1;
	const unsigned char *bytes = (const unsigned char *)*at;
	int32_t code = bytes[0];
	if (code < 0x80) {
		*at += 1;
		return code;
	}
	int more = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : 1;
	if (code < 0xc2 || code > 0xf4 || end - *at <= more)
		return -1;
	code &= 0x3f >> more;
	for (int i = 1; i <= more; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return -1;
		code = code << 6 | (bytes[i] & 0x3f);
	}
	if (code < smallest[more] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return -1;
	*at += more + 1;
	return code;
}

size_t cairn_utf8_write(int32_t code, char ret_bytes[4])
{
	static const unsigned char first[] = { 0, 0xc0, 0xe0, 0xf0 };
	int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
	for (int i = more; i > 0; i--) {
		ret_bytes[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	ret_bytes[0] = (char)(first[more] | code);
	return (size_t)more + 1;
}

bool cairn_utf8_valid(struct cairn_slice text)
{
	if (text.size == 0)
		return true;
	const char *at = text.data;
	const char *end = at + text.size;
	while (at < end)
		if (cairn_utf8_read(&at, end) < 0)
			return false;
	return true;
}
