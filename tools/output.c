/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cairn/json.h>

static void output_failed(struct tool *tool)
{
	if (!tool->output_errno)
		tool->output_errno = errno ? errno : EIO;
}

void output_bytes(struct tool *tool, struct cairn_slice bytes)
{
	errno = 0;
	if (bytes.size && fwrite(bytes.data, 1, bytes.size, stdout) != bytes.size)
		output_failed(tool);
}

void output_text(struct tool *tool, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	errno = 0;
	if (vprintf(format, arguments) < 0)
		output_failed(tool);
	va_end(arguments);
}

void output_line(struct tool *tool, struct cairn_slice bytes)
{
	output_bytes(tool, bytes);
	output_bytes(tool, cairn_slice_of("\n"));
}

int tool_flush(struct tool *tool, int exit_status)
{
	errno = 0;
	if (fflush(stdout) != 0)
		output_failed(tool);
	if (!tool->output_errno)
		return exit_status;
	return tool_say(TOOL_STORAGE, "cannot write to standard output: %s",
			strerror(tool->output_errno));
}

void record_init(struct record *record)
{
	*record = (struct record){ .status = CAIRN_OK };
	cairn_buffer_init(&record->text, SIZE_MAX / 2);
}

static void record_name(struct record *record, const char *name)
{
	if (!record->status)
		record->status = cairn_buffer_printf(
			&record->text, "%c\"%s\":", record->text.size ? ',' : '{', name);
}

/*
 * Bytes that are no UTF-8 (a key in a listing may be any) as Python's surrogateescape shows them,
 * which its os.fsencode turns back.
 */
static int append_escaped(struct cairn_buffer *out, const char *text)
{
	int status = cairn_buffer_append(out, "\"", 1);
	for (; *text && !status; text++) {
		unsigned char byte = (unsigned char)*text;
		if (byte >= 0x80)
			status = cairn_buffer_printf(out, "\\udc%02x", byte);
		else if (byte < 0x20 || byte == 0x7f)
			status = cairn_buffer_printf(out, "\\u%04x", byte);
		else if (byte == '"' || byte == '\\')
			status = cairn_buffer_printf(out, "\\%c", byte);
		else
			status = cairn_buffer_append(out, text, 1);
	}
	return status ? status : cairn_buffer_append(out, "\"", 1);
}

void record_text(struct record *record, const char *name, const char *text)
{
	record_name(record, name);
	if (record->status)
		return;
	struct cairn_slice slice = cairn_slice_of(text);
	record->status = cairn_utf8_valid(slice) ? cairn_json_string_encode(slice, &record->text)
						 : append_escaped(&record->text, text);
}

void record_bytes(struct record *record, const char *name, struct cairn_slice bytes)
{
	record_json(record, name, cairn_slice_of("\""));
	while (bytes.size && !record->status) {
		unsigned char encoded[4097];
		size_t piece = bytes.size < 3072 ? bytes.size : 3072;
		int length =
			EVP_EncodeBlock(encoded, (const unsigned char *)bytes.data, (int)piece);
		record->status = cairn_buffer_append(&record->text, encoded, (size_t)length);
		bytes.data += piece;
		bytes.size -= piece;
	}
	if (!record->status)
		record->status = cairn_buffer_append(&record->text, "\"", 1);
}

void record_json(struct record *record, const char *name, struct cairn_slice json)
{
	record_name(record, name);
	if (!record->status)
		record->status = cairn_buffer_append(&record->text, json.data, json.size);
}

void record_integer(struct record *record, const char *name, int64_t value)
{
	record_name(record, name);
	if (!record->status)
		record->status = cairn_buffer_printf(&record->text, "%" PRId64, value);
}

void record_boolean(struct record *record, const char *name, bool value)
{
	record_json(record, name, cairn_slice_of(value ? "true" : "false"));
}

void record_time(struct record *record, const char *name, int64_t time)
{
	char text[32];
	tool_time(time, text);
	record_text(record, name, text);
}

void record_version(struct record *record, const struct cairn_version *version)
{
	record_text(record, "etag", version->etag);
	record_integer(record, "size", (int64_t)version->size);
	record_time(record, "modified", version->modified);
}

int record_print(struct record *record, struct tool *tool, int exit_status)
{
	if (!record->status)
		record->status = cairn_buffer_append(&record->text, "}\n", 2);
	if (record->status)
		exit_status = tool_say(TOOL_STORAGE, "cannot write the JSON answer: %s",
				       cairn_status_name(record->status));
	else
		output_bytes(tool, cairn_buffer_slice(&record->text));
	cairn_buffer_release(&record->text);
	return exit_status;
}
