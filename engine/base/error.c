/* SPDX-License-Identifier: MIT */
#include <cairn/error.h>

#include <errno.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int error;
} statuses[] = {
	[-CAIRN_OK] = { "ok", 0 },
	[-CAIRN_NOT_FOUND] = { "not found", ENOENT },
	[-CAIRN_EXISTS] = { "exists", EEXIST },
	[-CAIRN_CONFLICT] = { "conflict", EBUSY },
	[-CAIRN_HELD] = { "held", EAGAIN },
	[-CAIRN_LOST] = { "lost", ESTALE },
	[-CAIRN_UNCHANGED] = { "unchanged", EIO },
	[-CAIRN_CORRUPT] = { "corrupt", EINVAL },
	[-CAIRN_INVALID] = { "invalid", EINVAL },
	[-CAIRN_TOO_BIG] = { "too big", EFBIG },
	[-CAIRN_NAME_TOO_LONG] = { "name too long", ENAMETOOLONG },
	[-CAIRN_NOT_EMPTY] = { "not empty", ENOTEMPTY },
	[-CAIRN_ABORTED] = { "aborted", ECANCELED },
	[-CAIRN_BUSY] = { "busy", EBUSY },
	[-CAIRN_UNKNOWN] = { "outcome unknown", EIO },
	[-CAIRN_TIMEOUT] = { "timed out", ETIMEDOUT },
	[-CAIRN_CANCELLED] = { "cancelled", EINTR },
	[-CAIRN_ACCESS] = { "access refused", EACCES },
	[-CAIRN_READ_ONLY] = { "read-only", EROFS },
	[-CAIRN_NO_SPACE] = { "no space", ENOSPC },
	[-CAIRN_IO] = { "store failed", EIO },
	[-CAIRN_UNSUPPORTED] = { "unsupported", EOPNOTSUPP },
	[-CAIRN_NO_MEMORY] = { "out of memory", ENOMEM },
};

#define STATUS_COUNT ((int)(sizeof(statuses) / sizeof(statuses[0])))

static bool status_known(int status)
{
	return status <= 0 && status > -STATUS_COUNT;
}

/* Control characters written \xXX, in place of what would break the line; cut between characters. */
static void escape(const char *text, char *ret_text, size_t size)
{
	size_t at = 0;
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;
		bool control = byte < 0x20 || byte == 0x7f;
		if (at + (control ? 4 : 1) >= size)
			break;
		if (control)
			at += (size_t)snprintf(ret_text + at, size - at, "\\x%02x", byte);
		else
			ret_text[at++] = (char)byte;
	}
	if (*text && ((unsigned char)*text & 0xc0) == 0x80) {
		while (at > 0 && ((unsigned char)ret_text[at - 1] & 0xc0) == 0x80)
			at--;
		if (at > 0)
			at--;
	}
	ret_text[at] = '\0';
}

int cairn_error_set(struct cairn_error *error, int status, const char *format, ...)
{
	if (!error)
		return status;
	/* The arguments may lie in error->text itself. */
	char text[2 * sizeof(error->text)];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	error->status = status;
	escape(text, error->text, sizeof(error->text));
	return status;
}

const char *cairn_status_name(int status)
{
	return status_known(status) ? statuses[-status].name : "unknown status";
}

int cairn_status_errno(int status)
{
	return status_known(status) ? statuses[-status].error : EIO;
}
