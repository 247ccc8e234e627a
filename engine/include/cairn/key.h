/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_KEY_H
#define CAIRN_KEY_H

#include <stdbool.h>

#include <cairn/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest key in bytes (S3's limit), without the NUL that ends it in memory. */
#define CAIRN_KEY_MAX 1024

/*
 * May an application use `key`? FORMAT "Keys": not empty, at most CAIRN_KEY_MAX bytes, UTF-8, not
 * under log/, logs/, snapshots/ or txapplied/. Returns 0, CAIRN_INVALID or CAIRN_NAME_TOO_LONG.
 */
CAIRN_EXPORT int cairn_key_check(const char *key, struct cairn_error *error) CAIRN_MUST_USE;

/* True when `key` lies under a prefix that the engine keeps for itself. The bare words do not. */
CAIRN_EXPORT bool cairn_key_reserved(const char *key);

/*
 * File names of keys (DESIGN "Names"). A key is cut at its slashes; each segment is one name:
 * `%` is written %25; a first `.`, control characters (below 0x20 and 0x7f), and bytes that are no
 * UTF-8 are %XX with upper-case digits; `.` and `..` come out as %2E and %2E. (only their first
 * dot needs it); an empty segment is `%`; a last `~` is %7E; the segment `4913` is `%34913`.
 * An object that stands beside a prefix of its own keeps the name; the prefix is the name and `%`.
 */
enum cairn_name_kind {
	CAIRN_NAME_SEGMENT, /* a segment, of an object or of a prefix */
	CAIRN_NAME_PREFIX,  /* the name ended in a bare `%`: a prefix beside an object of its name */
};

/* Append the name of the segment `segment` to `out`. As cairn_buffer_append. */
CAIRN_EXPORT int cairn_name_encode(struct cairn_slice segment, struct cairn_buffer *out)
	CAIRN_MUST_USE;

/*
 * Append the segment that `name` stands for to `out` and say which kind of name it was. Only the
 * one form that cairn_name_encode writes is taken (so that no key has two names), except that a
 * name CAIRN_NAME_PREFIX is that form and a bare `%`. Returns 0, CAIRN_INVALID when no segment has
 * that name, or as cairn_buffer_append.
 */
CAIRN_EXPORT int cairn_name_decode(const char *name, struct cairn_buffer *out,
				   enum cairn_name_kind *ret_kind) CAIRN_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
