/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include <cairn/timestamp.h>

#define LINES	  1000
#define LINE_SIZE 3000

struct log {
	pthread_mutex_t mutex;
	bool syslog;
	char *lines[LINES]; /* a ring; each with its time and a newline */
	size_t next;
};

struct log *log_new(void)
{
	struct log *log = calloc(1, sizeof(*log));
	if (log)
		pthread_mutex_init(&log->mutex, NULL);
	return log;
}

void log_free(struct log *log)
{
	if (!log)
		return;
	for (size_t i = 0; i < LINES; i++)
		free(log->lines[i]);
	pthread_mutex_destroy(&log->mutex);
	free(log);
}

void log_to_syslog(struct log *log)
{
	openlog("cairnfs", LOG_PID, LOG_DAEMON);
	pthread_mutex_lock(&log->mutex);
	log->syslog = true;
	pthread_mutex_unlock(&log->mutex);
}

void log_line(struct log *log, const char *format, ...)
{
	char raw[LINE_SIZE - 64], text[LINE_SIZE - 64], time[CAIRN_TIMESTAMP_SIZE] = "",
							*line = NULL;
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(raw, sizeof(raw), format, arguments);
	va_end(arguments);
	size_t at = 0;
	for (const char *from = raw; *from && at < sizeof(text) - 5; from++) {
		unsigned char byte = (unsigned char)*from;
		if (byte < 0x20 || byte == 0x7f)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "\\x%02x", byte);
		else
			text[at++] = *from;
	}
	text[at] = '\0';
	if (cairn_timestamp_format(cairn_timestamp_now(), time) ||
	    asprintf(&line, "%s %s\n", time, text) < 0)
		line = NULL;
	pthread_mutex_lock(&log->mutex);
	if (line) {
		free(log->lines[log->next]);
		log->lines[log->next] = line;
		log->next = (log->next + 1) % LINES;
	}
	if (log->syslog)
		syslog(LOG_WARNING, "%s", text);
	else
		fprintf(stderr, "cairnfs: %s\n", text);
	pthread_mutex_unlock(&log->mutex);
}

int log_read(struct log *log, struct cairn_buffer *out)
{
	int status = CAIRN_OK;
	pthread_mutex_lock(&log->mutex);
	for (size_t i = 0; i < LINES && !status; i++) {
		const char *line = log->lines[(log->next + i) % LINES];
		if (line)
			status = cairn_buffer_append(out, line, strlen(line));
	}
	pthread_mutex_unlock(&log->mutex);
	return status;
}
