/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_JSON_H
#define CAIRN_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Deepest nesting that is read or written; level 501 is CAIRN_INVALID. */
#define CAIRN_JSON_DEPTH 500

/* Largest JSON text of a claim, lease or document, in bytes. */
#define CAIRN_JSON_MAX ((size_t)64 << 20)

/*
 * The canonical form of one JSON value: byte for byte what Python's
 * `json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True)` writes (FORMAT "Control
 * plane"). White space around the value is accepted; anything else behind it is not.
 * Integers of any size, NaN, Infinity, -Infinity, 1e400 (written Infinity), lone surrogates and
 * NUL in member names are kept. Of equal member names the last wins. A BOM, UTF-16 and bytes that
 * are not UTF-8 are refused.
 *
 * `text` is `size` bytes, need not be NUL-terminated. The form is appended to `out`.
 * Returns 0, CAIRN_INVALID (with the byte offset and the reason in `error`), CAIRN_TOO_BIG where
 * `out` cannot hold it, or CAIRN_NO_MEMORY; on failure `out` is as before.
 */
CAIRN_EXPORT int cairn_json_canonical(const char *text, size_t size, struct cairn_buffer *out,
				      struct cairn_error *error) CAIRN_MUST_USE;

/* What a text that arrives in pieces amounts to so far. */
enum cairn_json_progress {
	CAIRN_JSON_EMPTY,      /* nothing but white space */
	CAIRN_JSON_PARTIAL,    /* a proper prefix of a value */
	CAIRN_JSON_OPEN_ENDED, /* a scalar that is complete if the text ends here: 12, true */
	CAIRN_JSON_COMPLETE,   /* a value ended, at *ret_end */
	CAIRN_JSON_WRONG,      /* no continuation makes this JSON */
};

/*
 * Finds where a value completes in a text that arrives in pieces (DESIGN "claims/"). An object,
 * array or string completes at its closing character; a number or a word at the first byte behind
 * it that is white space. What it calls complete, cairn_json_canonical takes (within its sizes), and
 * the other way round. Caller's storage, nothing to release.
 */
struct cairn_json_scan {
	uint8_t state;
	uint8_t word;      /* a word's index */
	uint8_t count;     /* bytes of the word read, or bytes of an escape or a character to come */
	uint8_t low, high; /* bounds of a character's next byte */
	bool name;         /* the string is a member's name */
	uint16_t depth;
	uint64_t stack[(CAIRN_JSON_DEPTH + 63) / 64]; /* bit set: an object, clear: an array */
};

CAIRN_EXPORT void cairn_json_scan_init(struct cairn_json_scan *scan);

/*
 * Feed `size` bytes. When a value completes in them, returns CAIRN_JSON_COMPLETE and sets
 * *ret_end to the number of bytes of this piece up to and including the value's last (for a
 * scalar that ended before this piece, 0); the scan is then ready for the next value. Otherwise
 * returns what the text amounts to, with *ret_end = size; CAIRN_JSON_WRONG sets it to the offset
 * of the first wrong byte and the scan stays wrong until init.
 */
CAIRN_EXPORT enum cairn_json_progress cairn_json_scan_feed(struct cairn_json_scan *scan,
							   const char *data, size_t size,
							   size_t *ret_end) CAIRN_MUST_USE;

/* What the bytes fed so far amount to, as if the text ended here (never CAIRN_JSON_COMPLETE). */
CAIRN_EXPORT enum cairn_json_progress cairn_json_scan_end(const struct cairn_json_scan *scan);

/*
 * Of the JSON object `object` (one value, any layout), the last member called `name` (UTF-8
 * bytes): *ret_value is its text, a slice into `object` without surrounding white space.
 * Returns 0, CAIRN_NOT_FOUND without such a member, CAIRN_INVALID when `object` is no JSON object.
 */
CAIRN_EXPORT int cairn_json_member(struct cairn_slice object, const char *name,
				   struct cairn_slice *ret_value) CAIRN_MUST_USE;

/* The first byte of a value's kind: '{' '[' '"' '0' (number), 't' 'f' 'n', 'N' (NaN, ±Infinity), 0 (none). */
CAIRN_EXPORT char cairn_json_kind(struct cairn_slice value);

/*
 * Decode the JSON string `value` (with its quotes) and append it as UTF-8 to `out`; \u0000 becomes
 * a NUL byte. Returns 0, CAIRN_INVALID when it is no string or has a lone surrogate, or as
 * cairn_buffer_append.
 */
CAIRN_EXPORT int cairn_json_string_decode(struct cairn_slice value, struct cairn_buffer *out)
	CAIRN_MUST_USE;

/*
 * Append `text` (UTF-8) as a canonical JSON string with its quotes. CAIRN_INVALID when it is not
 * UTF-8; else as cairn_buffer_append.
 */
CAIRN_EXPORT int cairn_json_string_encode(struct cairn_slice text, struct cairn_buffer *out)
	CAIRN_MUST_USE;

/* The integer `value`; CAIRN_INVALID when it is no JSON integer, CAIRN_TOO_BIG outside 64 bits. */
CAIRN_EXPORT int cairn_json_integer(struct cairn_slice value, int64_t *ret_integer) CAIRN_MUST_USE;

/* True when `text` is well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
CAIRN_EXPORT bool cairn_utf8_valid(struct cairn_slice text);

#ifdef __cplusplus
}
#endif
#endif
