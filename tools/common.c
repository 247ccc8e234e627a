/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cairn/json.h>
#include <cairn/timestamp.h>

int tool_exit_of(int status)
{
	switch (status) {
	case CAIRN_OK:
		return TOOL_DONE;
	case CAIRN_NOT_FOUND:
	case CAIRN_EXISTS:
	case CAIRN_CONFLICT:
	case CAIRN_HELD:
	case CAIRN_LOST:
	case CAIRN_UNCHANGED:
	case CAIRN_NOT_EMPTY:
	case CAIRN_ABORTED:
	case CAIRN_BUSY:
		return TOOL_LOST;
	case CAIRN_INVALID:
	case CAIRN_NAME_TOO_LONG:
		return TOOL_USAGE;
	default:
		return TOOL_STORAGE;
	}
}

int tool_say(int exit_status, const char *format, ...)
{
	/* One write, so that lines of processes side by side do not mix. */
	struct cairn_error line;
	char text[sizeof(line.text)];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	(void)cairn_error_set(&line, CAIRN_OK, "%s", text);
	(void)fprintf(stderr, "cairn: %s\n", line.text);
	return exit_status;
}

int tool_usage(struct tool *tool, const char *format, ...)
{
	char text[400];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	const char *name = tool->command->name;
	(void)tool_say(TOOL_USAGE, "%s%s%s", name ? name : "", name ? ": " : "", text);
	(void)fprintf(stderr, "Try 'cairn %s%s--help'.\n", name ? name : "", name ? " " : "");
	return TOOL_USAGE;
}

int tool_fail(struct tool *tool, int status)
{
	const char *text = tool->call.error.text;
	if (tool->call.error.status != status || !text[0])
		text = cairn_status_name(status);
	bool unknown = status == CAIRN_UNKNOWN && !strstr(text, "outcome unknown");
	return tool_say(tool_exit_of(status), "%s%s", unknown ? "outcome unknown: " : "", text);
}

int tool_open(struct tool *tool, bool writes)
{
	struct cairn_store_options options = {
		.timeout = tool->arguments.timeout,
		.read_only = !writes,
	};
	int status =
		cairn_store_open(tool->arguments.store, &options, &tool->store, &tool->call.error);
	if (!status)
		return -1;
	/* A bucket that is not there is no absent key. */
	int exit_status = tool_fail(tool, status);
	return exit_status == TOOL_LOST ? TOOL_STORAGE : exit_status;
}

int tool_json(struct tool *tool, const char *what, struct cairn_slice text,
	      struct cairn_buffer *out)
{
	struct cairn_error error = { 0 };
	int status = cairn_json_canonical(text.data, text.size, out, &error);
	if (!status)
		return -1;
	if (status != CAIRN_INVALID)
		return tool_say(tool_exit_of(status), "%s: %s: %s", tool->command->name, what,
				error.text[0] ? error.text : cairn_status_name(status));
	return tool_usage(tool, "%s: %s. A text is quoted twice: '\"text\"'", what, error.text);
}

int tool_read_file(struct tool *tool, const char *path, struct cairn_buffer *out)
{
	bool standard = strcmp(path, "-") == 0;
	const char *name = standard ? "standard input" : path;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return tool_usage(tool, "cannot open %s: %s", name, strerror(errno));
	int exit_status = -1;
	for (;;) {
		/* A byte over the limit tells a file that is just too large from one that fits. */
		size_t room = out->limit - out->size;
		size_t piece = out->size < 65536 ? 65536 : out->size;
		char over;
		int status = cairn_buffer_reserve(out, room < piece ? room : piece);
		if (status) {
			exit_status = tool_say(TOOL_STORAGE, "cannot read %s: %s", name,
					       cairn_status_name(status));
			break;
		}
		ssize_t count = room ? read(fd, out->data + out->size, room < piece ? room : piece)
				     : read(fd, &over, 1);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			exit_status = tool_usage(tool, "cannot read %s: %s", name, strerror(errno));
		else if (count > 0 && !room)
			exit_status =
				tool_usage(tool, "%s is larger than %zu bytes", name, out->limit);
		if (count <= 0 || !room)
			break;
		out->size += (size_t)count;
		out->data[out->size] = '\0';
	}
	if (!standard)
		(void)close(fd);
	return exit_status;
}

void tool_time(int64_t time, char ret_text[static 32])
{
	if (cairn_timestamp_format(time, ret_text))
		(void)snprintf(ret_text, 32, "%" PRId64, time);
}
