/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_TIMESTAMP_H
#define CAIRN_TIMESTAMP_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A time is a number of microseconds since 1970-01-01T00:00:00Z, years 1 to 9999. */

/* Bytes of the written form with its NUL: "2026-08-09T12:00:00.000000Z". */
#define CAIRN_TIMESTAMP_SIZE 28

/* The present time by the system's clock. */
CAIRN_EXPORT int64_t cairn_timestamp_now(void);

/* Write `time` as YYYY-MM-DDTHH:MM:SS.ffffffZ. CAIRN_INVALID outside the years 1 to 9999. */
CAIRN_EXPORT int cairn_timestamp_format(int64_t time, char ret_text[CAIRN_TIMESTAMP_SIZE])
	CAIRN_MUST_USE;

/*
 * Read what Python 3.14's datetime.fromisoformat reads (FORMAT "Timestamps"): a date alone, basic
 * and extended form, week dates, any separator character, 0 to any number of fraction digits
 * (cut after six; `.` or `,`), `Z`, ±HH, ±HHMM, ±HH:MM, ±HH:MM:SS[.ffffff], 24:00 as the next
 * day's midnight; no zone means UTC. CAIRN_INVALID otherwise.
 */
CAIRN_EXPORT int cairn_timestamp_parse(struct cairn_slice text, int64_t *ret_time) CAIRN_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
