/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <errno.h>
#include <string.h>

void text_init(struct text *text)
{
	cairn_buffer_init(&text->bytes, CAIRN_JSON_MAX + 1);
	text_clear(text);
}

void text_release(struct text *text)
{
	cairn_buffer_release(&text->bytes);
}

static void scan_again(struct text *text)
{
	cairn_json_scan_init(&text->scan);
	text->scanned = text->end = 0;
	text->progress = CAIRN_JSON_EMPTY;
}

void text_clear(struct text *text)
{
	cairn_buffer_clear(&text->bytes);
	scan_again(text);
}

/* Feed what was not fed yet; a text that is complete or wrong stays so. */
static void scan_on(struct text *text)
{
	if (text->progress == CAIRN_JSON_COMPLETE || text->progress == CAIRN_JSON_WRONG ||
	    text->scanned == text->bytes.size)
		return;
	size_t end = 0;
	text->progress = cairn_json_scan_feed(&text->scan, text->bytes.data + text->scanned,
					      text->bytes.size - text->scanned, &end);
	text->end = text->scanned + end;
	text->scanned = text->bytes.size;
}

int text_write(struct text *text, const char *data, size_t size, off_t offset)
{
	size_t before = text->bytes.size;
	if (offset < 0 || (uint64_t)offset > before)
		return EINVAL;
	size_t at = (size_t)offset, over = size < before - at ? size : before - at;
	int status = cairn_buffer_append(&text->bytes, data + over, size - over);
	if (status)
		return cairn_status_errno(status);
	if (over) {
		memcpy(text->bytes.data + at, data, over);
		scan_again(text);
	}
	scan_on(text);
	return 0;
}

int text_truncate(struct text *text, off_t size)
{
	if (size < 0 || (uint64_t)size > text->bytes.size)
		return EINVAL;
	if ((size_t)size == text->bytes.size)
		return 0;
	text->bytes.size = (size_t)size;
	text->bytes.data[size] = '\0';
	scan_again(text);
	scan_on(text);
	return 0;
}

struct cairn_slice text_value(const struct text *text, bool ended)
{
	struct cairn_slice value = { .data = text->bytes.data, .size = text->bytes.size };
	if (text->progress == CAIRN_JSON_COMPLETE)
		value.size = text->end;
	else if (!ended || text->progress != CAIRN_JSON_OPEN_ENDED)
		value = (struct cairn_slice){ .data = NULL };
	return value;
}

bool text_ends_there(const struct text *text)
{
	for (size_t i = text->end; i < text->bytes.size; i++)
		if (!strchr(" \t\r\n", text->bytes.data[i]) || !text->bytes.data[i])
			return false;
	return true;
}
