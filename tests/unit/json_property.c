/* SPDX-License-Identifier: MIT */
/*
 * The other half of json_property.py. Reads records, a letter (j: JSON, t: a timestamp), the size
 * in eight digits, and that many bytes; answers each with a size in eight digits and the canonical
 * form or the microseconds, or with "refused!". Ends with 1 when scanner, canonicaliser and member
 * differ.
 */
#include <inttypes.h>
#include <stdio.h>

#include <cairn/json.h>
#include <cairn/timestamp.h>

#include "json_scanning.h"

static bool scanner_agrees(const char *text, size_t size, bool good)
{
	static const size_t pieces[] = { 1, 2, 3, 7, SIZE_MAX };
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		if (scans_as_one_value(text, size, pieces[i]) != good)
			return false;
	return true;
}

static bool member_agrees(const char *text, size_t size, bool good)
{
	size_t space = 0;
	while (space < size && strchr(" \t\r\n", text[space]) && text[space])
		space++;
	bool object = good && text[space] == '{';
	struct cairn_slice value;
	int status = cairn_json_member((struct cairn_slice){ text, size }, "a", &value);
	if (status == CAIRN_OK)
		return object && scans_as_one_value(value.data, value.size, SIZE_MAX);
	return status == (object ? CAIRN_NOT_FOUND : CAIRN_INVALID);
}

static int answer(char kind, const char *text, size_t size, struct cairn_buffer *out)
{
	if (kind == 'j') {
		int status = cairn_json_canonical(text, size, out, NULL);
		if (status && status != CAIRN_INVALID)
			return status;
		if (!scanner_agrees(text, size, !status) || !member_agrees(text, size, !status)) {
			(void)fprintf(stderr, "the scanner or a member differs: %.*s\n", (int)size,
				      text);
			return CAIRN_CORRUPT;
		}
		return status;
	}
	int64_t time;
	int status = cairn_timestamp_parse((struct cairn_slice){ text, size }, &time);
	return status ? status : cairn_buffer_printf(out, "%" PRId64, time);
}

int main(void)
{
	char head[10] = "";
	struct cairn_buffer out;
	int status = CAIRN_OK;
	cairn_buffer_init(&out, CAIRN_JSON_MAX);
	while (status != CAIRN_CORRUPT && fread(head, 1, 9, stdin) == 9) {
		size_t size = strtoul(head + 1, NULL, 10);
		char *text = malloc(size ? size : 1);
		if (!text || fread(text, 1, size, stdin) != size) {
			free(text);
			return 1;
		}
		cairn_buffer_clear(&out);
		status = answer(head[0], text, size, &out);
		free(text);
		if (status)
			(void)printf("refused!");
		else
			(void)printf("%08zu%s", out.size, out.data);
	}
	cairn_buffer_release(&out);
	return status == CAIRN_CORRUPT || fflush(stdout) != 0;
}
