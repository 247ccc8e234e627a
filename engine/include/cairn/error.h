/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_ERROR_H
#define CAIRN_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_MUST_USE __attribute__((warn_unused_result))
#define CAIRN_PRINTF(at, first) __attribute__((format(printf, at, first)))
#define CAIRN_EXPORT __attribute__((visibility("default")))

/*
 * Every function of libcairn that can fail returns 0 (CAIRN_OK) or one of these negative values;
 * there is no other convention. The detail goes into the caller's struct cairn_error.
 */
enum cairn_status {
	CAIRN_OK = 0,
	CAIRN_NOT_FOUND = -1,     /* no such object */
	CAIRN_EXISTS = -2,        /* put-if-absent: somebody was first */
	CAIRN_CONFLICT = -3,      /* compare-and-swap: the version is no longer the present one */
	CAIRN_HELD = -4,          /* the lease is held by somebody else */
	CAIRN_LOST = -5,          /* the lease was lost: another epoch or holder, or no document */
	CAIRN_UNCHANGED = -6,     /* conditional get: still the version that the caller has */
	CAIRN_CORRUPT = -7,       /* stored bytes are not what the format says */
	CAIRN_INVALID = -8,       /* an argument or an input is wrong */
	CAIRN_TOO_BIG = -9,       /* over a size limit */
	CAIRN_NAME_TOO_LONG = -10,/* a key over 1,024 bytes, or longer than the store can hold */
	CAIRN_NOT_EMPTY = -11,    /* a prefix that still has keys */
	CAIRN_ABORTED = -12,      /* the caller's own function said no */
	CAIRN_BUSY = -13,         /* kept conflicting for all attempts, or until the deadline */
	CAIRN_UNKNOWN = -14,      /* the outcome of a write is unknown; it may have happened */
	CAIRN_TIMEOUT = -15,      /* no answer within the deadline; nothing was written */
	CAIRN_CANCELLED = -16,    /* the caller's cancelled() said so; a write may have happened */
	CAIRN_ACCESS = -17,       /* the store refused the credentials or the permission */
	CAIRN_READ_ONLY = -18,    /* the store, or this handle of it, does not take writes */
	CAIRN_NO_SPACE = -19,     /* disk or quota full */
	CAIRN_IO = -20,           /* any other failure of the store; nothing was written */
	CAIRN_UNSUPPORTED = -21,  /* this store cannot do that */
	CAIRN_NO_MEMORY = -22,
};

/* What went wrong, in words: what was being done, to which key, why it failed, what to do. */
struct cairn_error {
	int status;     /* an enum cairn_status; CAIRN_OK when nothing failed */
	/* One line of UTF-8, NUL-terminated, control characters escaped: a whole key and the reason. */
	char text[1500];
};

/*
 * Record `status` and a message in `error` (which may be NULL) and return `status`, so that a
 * function may end in `return cairn_error_set(…)`. The text is cut at the buffer's size at a
 * character's boundary; control characters in it are written \xXX.
 */
CAIRN_EXPORT int cairn_error_set(struct cairn_error *error, int status, const char *format, ...)
	CAIRN_PRINTF(3, 4);

/* The status's name in small letters, such as "not found"; "unknown status" for any other value. */
CAIRN_EXPORT const char *cairn_status_name(int status);

/*
 * The errno (positive, 1 to 511) that stands for `status` in files and at the command line:
 * the table of DESIGN "Errors". 0 for CAIRN_OK, EIO for a value outside the enum.
 */
CAIRN_EXPORT int cairn_status_errno(int status);

#ifdef __cplusplus
}
#endif
#endif
