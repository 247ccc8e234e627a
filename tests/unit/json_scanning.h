/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_TEST_JSON_SCANNING_H
#define CAIRN_TEST_JSON_SCANNING_H

#include <cairn/json.h>

/* Is the text one JSON value, as the scanner sees it when it comes in pieces of `piece` bytes? */
static inline bool scans_as_one_value(const char *text, size_t size, size_t piece)
{
	struct cairn_json_scan scan;
	size_t values = 0;
	cairn_json_scan_init(&scan);
	for (size_t at = 0; at < size;) {
		size_t length = size - at < piece ? size - at : piece;
		size_t end = 0;
		enum cairn_json_progress progress =
			cairn_json_scan_feed(&scan, text + at, length, &end);
		if (progress == CAIRN_JSON_WRONG)
			return false;
		values += progress == CAIRN_JSON_COMPLETE;
		at += end;
	}
	enum cairn_json_progress last = cairn_json_scan_end(&scan);
	values += last == CAIRN_JSON_OPEN_ENDED;
	return values == 1 && last != CAIRN_JSON_PARTIAL;
}

#endif
