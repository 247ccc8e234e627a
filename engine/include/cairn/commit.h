/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_COMMIT_H
#define CAIRN_COMMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The largest number of a commit, and the most events that one can hold (FORMAT "Data plane"). */
#define CAIRN_COMMIT_NUMBER_MAX ((int64_t)999999999999)
#define CAIRN_COMMIT_EVENTS_MAX ((size_t)1000000)

/* Most bytes of an encoded commit that is written or read. */
#define CAIRN_COMMIT_MAX ((size_t)256 << 20)

/* Bytes of a sequence's text with its NUL: "000000000042:000003". */
#define CAIRN_SEQUENCE_SIZE 20

/* The place of an event in its log: a commit, counted from 1, and an index in it from 0. */
struct cairn_sequence {
	int64_t commit;
	int64_t index;
};

/* Write `sequence` as text. CAIRN_INVALID when it is out of range. */
CAIRN_EXPORT int cairn_sequence_format(struct cairn_sequence sequence,
				       char ret_text[CAIRN_SEQUENCE_SIZE]) CAIRN_MUST_USE;

/* Read that very form: 12 digits, a colon, 6 digits, the commit at least 1. Else CAIRN_INVALID. */
CAIRN_EXPORT int cairn_sequence_parse(struct cairn_slice text, struct cairn_sequence *ret_sequence)
	CAIRN_MUST_USE;

/* Of an event that is appended: its timestamp is the time of the append. */
#define CAIRN_TIMESTAMP_NOW INT64_MIN

/*
 * An event; its slices belong to somebody else. event_type and schema_version are UTF-8; payload
 * and metadata are the text of one JSON object each, in which bytes are {"$bytes":"<base64>"}.
 * To be appended: event_type and payload must be there, timestamp may be CAIRN_TIMESTAMP_NOW,
 * schema_version without data is "1", metadata without data is {}; JSON of any layout, whose integers have 64 bits and
 * whose strings have no lone surrogates; members keep their order, unless one is there twice.
 * As read: payload and metadata are canonical.
 */
struct cairn_event {
	struct cairn_slice event_type;
	int64_t timestamp; /* microseconds since 1970 */
	struct cairn_slice schema_version;
	struct cairn_slice payload;
	struct cairn_slice metadata;
};

/* A commit as it was read: one object of a log. */
struct cairn_commit {
	int64_t number;
	int64_t created_at; /* microseconds since 1970 */
	struct cairn_event *events; /* owned */
	size_t count;
	struct cairn_buffer text; /* owned: what the events' slices point into */
};

CAIRN_EXPORT void cairn_commit_init(struct cairn_commit *commit);
CAIRN_EXPORT void cairn_commit_release(struct cairn_commit *commit);

/*
 * Append the commit `number` with `count` events as MessagePack to `out` (FORMAT "Data plane"):
 * the bytes that peers write. Returns 0, CAIRN_INVALID with the event's index and the reason,
 * CAIRN_TOO_BIG, or CAIRN_NO_MEMORY; on failure `out` is as before.
 */
CAIRN_EXPORT int cairn_commit_encode(int64_t number, int64_t created_at,
				     const struct cairn_event *events, size_t count,
				     struct cairn_buffer *out, struct cairn_error *error)
	CAIRN_MUST_USE;

/*
 * Read the object `key`, which is to be the commit `number`. ret_commit (initialised; what it held
 * is released) is filled on 0. CAIRN_CORRUPT with the key, the byte offset and the reason when the
 * bytes are not that commit: cut short, of wrong types, of another number, nested over 500 levels.
 * Memory is used in proportion to the bytes that are there, whatever counts they claim.
 */
CAIRN_EXPORT int cairn_commit_decode(const char *key, int64_t number, struct cairn_slice data,
				     struct cairn_commit *ret_commit, struct cairn_error *error)
	CAIRN_MUST_USE;

/*
 * Read an event from one JSON object (DESIGN "log/"): members event_type and payload, and, if they
 * are there, timestamp, schema_version and metadata; no others. The strings are decoded into
 * `work` (initialised, with a limit), and ret_event's slices point into it and into `text`.
 * Returns 0, CAIRN_INVALID with the member and the reason, CAIRN_TOO_BIG, or CAIRN_NO_MEMORY.
 */
CAIRN_EXPORT int cairn_event_parse(struct cairn_slice text, struct cairn_buffer *work,
				   struct cairn_event *ret_event, struct cairn_error *error)
	CAIRN_MUST_USE;

/*
 * Append the event (as read) with its place as one JSON object without a newline to `out`:
 * sequence, event_type, timestamp, schema_version, payload, metadata. As cairn_buffer_append.
 */
CAIRN_EXPORT int cairn_event_print(struct cairn_sequence sequence, const struct cairn_event *event,
				   struct cairn_buffer *out) CAIRN_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
