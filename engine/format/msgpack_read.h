/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_FORMAT_MSGPACK_READ_H
#define CAIRN_FORMAT_MSGPACK_READ_H

#include <stdbool.h>
#include <stdint.h>

#include <cairn/buffer.h>

/*
 * A pull reader of one MessagePack value: an item a call, nothing allocated, nothing recursive.
 * Every count is checked against the bytes that are left, each of which can be one item at most.
 */
struct cairn_msgpack_reader {
	const char *start;
	const char *at;
	const char *end;
	size_t owed;	   /* items that must still come, on all levels */
	const char *wrong; /* the reason of a failure */
};

enum cairn_msgpack_kind {
	CAIRN_MSGPACK_NIL,
	CAIRN_MSGPACK_BOOLEAN,
	CAIRN_MSGPACK_INTEGER,	/* negative */
	CAIRN_MSGPACK_UNSIGNED, /* 0 or above */
	CAIRN_MSGPACK_FLOAT,
	CAIRN_MSGPACK_STRING, /* not checked to be UTF-8 */
	CAIRN_MSGPACK_BYTES,
	CAIRN_MSGPACK_ARRAY, /* `count` items follow */
	CAIRN_MSGPACK_MAP,   /* `count` pairs of items follow */
};

struct cairn_msgpack_item {
	enum cairn_msgpack_kind kind;
	union {
		bool boolean;
		int64_t integer;
		uint64_t natural;
		double real;
		struct cairn_slice bytes; /* in the reader's text */
		uint32_t count;
	};
};

void cairn_msgpack_reader_init(struct cairn_msgpack_reader *reader, struct cairn_slice data);

/* The next item. CAIRN_CORRUPT, with reader->wrong set, where there is none. */
int cairn_msgpack_next(struct cairn_msgpack_reader *reader,
		       struct cairn_msgpack_item *ret_item) CAIRN_MUST_USE;

/* Pass over the next value, whatever it holds. As cairn_msgpack_next. */
int cairn_msgpack_skip(struct cairn_msgpack_reader *reader) CAIRN_MUST_USE;

/* CAIRN_CORRUPT unless the whole value was read and nothing stands behind it. */
int cairn_msgpack_end(struct cairn_msgpack_reader *reader) CAIRN_MUST_USE;

/* Say why the value is refused: sets reader->wrong, returns CAIRN_CORRUPT. */
int cairn_msgpack_refuse(struct cairn_msgpack_reader *reader, const char *reason);

#endif
