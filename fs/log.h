/* SPDX-License-Identifier: MIT */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>

#include <cairn/buffer.h>

/* The daemon's log: stderr or syslog, and the last 1,000 lines for .cairn/log. Thread-safe. */
struct log;

/* Lines go to stderr until log_to_syslog. */
struct log *log_new(void);
void log_free(struct log *log);

/* From now on lines go to syslog (the daemon has no terminal any more). */
void log_to_syslog(struct log *log);

/* One line: control characters in it are written \xXX, a text over 2,900 bytes is cut. */
void log_line(struct log *log, const char *format, ...) CAIRN_PRINTF(2, 3);

/* Append the kept lines, each with its time, to `out`. As cairn_buffer_append. */
int log_read(struct log *log, struct cairn_buffer *out) CAIRN_MUST_USE;

#endif
