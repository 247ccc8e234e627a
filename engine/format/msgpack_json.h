/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_FORMAT_MSGPACK_JSON_H
#define CAIRN_FORMAT_MSGPACK_JSON_H

#include "format/msgpack_read.h"

/* JSON objects as MessagePack maps and back; bytes are {"$bytes":"<base64>"} in JSON. */

/*
 * Append the next value, which must be a map, as canonical JSON to `out`. CAIRN_CORRUPT with
 * reader->wrong, or as cairn_buffer_append.
 */
int cairn_msgpack_to_json(struct cairn_msgpack_reader *reader,
			  struct cairn_buffer *out) CAIRN_MUST_USE;

/*
 * Append the JSON object `text` as a map to `out`, members in the order in which they stand there
 * (in canonical order if one stands there twice). `what` names it in messages. CAIRN_INVALID,
 * CAIRN_TOO_BIG or CAIRN_NO_MEMORY, `out` may have changed.
 */
int cairn_msgpack_of_json(const char *what, struct cairn_slice text, struct cairn_buffer *out,
			  struct cairn_error *error) CAIRN_MUST_USE;

#endif
