/* SPDX-License-Identifier: MIT */
#include "format/msgpack_read.h"

#include <string.h>

void cairn_msgpack_reader_init(struct cairn_msgpack_reader *reader, struct cairn_slice data)
{
	*reader = (struct cairn_msgpack_reader){
		.start = data.data,
		.at = data.data,
		.end = data.size ? data.data + data.size : data.data,
		.owed = 1,
	};
}

int cairn_msgpack_refuse(struct cairn_msgpack_reader *reader, const char *reason)
{
	reader->wrong = reason;
	return CAIRN_CORRUPT;
}

static size_t left(const struct cairn_msgpack_reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

/* A number of `size` bytes, the highest first. */
static int read_number(struct cairn_msgpack_reader *reader, unsigned size, uint64_t *ret_number)
{
	if (left(reader) < size)
		return cairn_msgpack_refuse(reader, "cut short");
	uint64_t number = 0;
	for (unsigned i = 0; i < size; i++)
		number = number << 8 | (unsigned char)reader->at[i];
	reader->at += size;
	*ret_number = number;
	return CAIRN_OK;
}

static int read_signed(struct cairn_msgpack_reader *reader, unsigned size,
		       struct cairn_msgpack_item *item)
{
	uint64_t number;
	int status = read_number(reader, size, &number);
	if (status)
		return status;
	/* Move the sign to the top and back. */
	unsigned shift = 64 - 8 * size;
	int64_t integer = (int64_t)(number << shift) >> shift;
	item->kind = integer < 0 ? CAIRN_MSGPACK_INTEGER : CAIRN_MSGPACK_UNSIGNED;
	item->integer = integer;
	return CAIRN_OK;
}

static int read_real(struct cairn_msgpack_reader *reader, unsigned size,
		     struct cairn_msgpack_item *item)
{
	uint64_t number;
	int status = read_number(reader, size, &number);
	if (status)
		return status;
	item->kind = CAIRN_MSGPACK_FLOAT;
	if (size == 4) {
		uint32_t bits = (uint32_t)number;
		float real;
		memcpy(&real, &bits, sizeof(real));
		item->real = (double)real;
	} else {
		memcpy(&item->real, &number, sizeof(item->real));
	}
	return CAIRN_OK;
}

static int take_bytes(struct cairn_msgpack_reader *reader, enum cairn_msgpack_kind kind,
		      uint64_t size, struct cairn_msgpack_item *item)
{
	if (left(reader) < size)
		return cairn_msgpack_refuse(reader, "a length beyond the end");
	item->kind = kind;
	item->bytes = (struct cairn_slice){ .data = reader->at, .size = (size_t)size };
	reader->at += size;
	return CAIRN_OK;
}

static int read_bytes(struct cairn_msgpack_reader *reader, enum cairn_msgpack_kind kind,
		      unsigned size, struct cairn_msgpack_item *item)
{
	uint64_t length;
	int status = read_number(reader, size, &length);
	return status ? status : take_bytes(reader, kind, length, item);
}

static int open_container(struct cairn_msgpack_reader *reader, enum cairn_msgpack_kind kind,
			  uint64_t count, struct cairn_msgpack_item *item)
{
	reader->owed += (size_t)count * (kind == CAIRN_MSGPACK_MAP ? 2 : 1);
	if (reader->owed > left(reader))
		return cairn_msgpack_refuse(reader, "a count beyond the end");
	item->kind = kind;
	item->count = (uint32_t)count;
	return CAIRN_OK;
}

static int read_container(struct cairn_msgpack_reader *reader, enum cairn_msgpack_kind kind,
			  unsigned size, struct cairn_msgpack_item *item)
{
	uint64_t count;
	int status = read_number(reader, size, &count);
	return status ? status : open_container(reader, kind, count, item);
}

/* Items whose first byte is all there is of their type. */
static int read_short(struct cairn_msgpack_reader *reader, unsigned char byte,
		      struct cairn_msgpack_item *item)
{
	if (byte < 0x80) {
		item->kind = CAIRN_MSGPACK_UNSIGNED;
		item->natural = byte;
		return CAIRN_OK;
	}
	if (byte >= 0xe0) {
		item->kind = CAIRN_MSGPACK_INTEGER;
		item->integer = (int64_t)byte - 256;
		return CAIRN_OK;
	}
	if (byte < 0x90)
		return open_container(reader, CAIRN_MSGPACK_MAP, byte & 15, item);
	if (byte < 0xa0)
		return open_container(reader, CAIRN_MSGPACK_ARRAY, byte & 15, item);
	return take_bytes(reader, CAIRN_MSGPACK_STRING, byte & 31, item);
}

int cairn_msgpack_next(struct cairn_msgpack_reader *reader, struct cairn_msgpack_item *ret_item)
{
	if (reader->owed == 0 || reader->at == reader->end)
		return cairn_msgpack_refuse(reader, "cut short");
	reader->owed--;
	unsigned char byte = (unsigned char)*reader->at++;
	if (byte < 0xc0 || byte >= 0xe0)
		return read_short(reader, byte, ret_item);
	switch (byte) {
	case 0xc0:
		ret_item->kind = CAIRN_MSGPACK_NIL;
		return CAIRN_OK;
	case 0xc2:
	case 0xc3:
		ret_item->kind = CAIRN_MSGPACK_BOOLEAN;
		ret_item->boolean = byte == 0xc3;
		return CAIRN_OK;
	case 0xc4:
	case 0xc5:
	case 0xc6:
		return read_bytes(reader, CAIRN_MSGPACK_BYTES, 1U << (byte - 0xc4), ret_item);
	case 0xca:
	case 0xcb:
		return read_real(reader, byte == 0xca ? 4 : 8, ret_item);
	case 0xcc:
	case 0xcd:
	case 0xce:
	case 0xcf:
		ret_item->kind = CAIRN_MSGPACK_UNSIGNED;
		return read_number(reader, 1U << (byte - 0xcc), &ret_item->natural);
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return read_signed(reader, 1U << (byte - 0xd0), ret_item);
	case 0xd9:
	case 0xda:
	case 0xdb:
		return read_bytes(reader, CAIRN_MSGPACK_STRING, 1U << (byte - 0xd9), ret_item);
	case 0xdc:
	case 0xdd:
		return read_container(reader, CAIRN_MSGPACK_ARRAY, byte == 0xdc ? 2 : 4, ret_item);
	case 0xde:
	case 0xdf:
		return read_container(reader, CAIRN_MSGPACK_MAP, byte == 0xde ? 2 : 4, ret_item);
	default:
		return cairn_msgpack_refuse(reader, byte == 0xc1 ? "a byte that begins no value"
								 : "an extension type");
	}
}

int cairn_msgpack_skip(struct cairn_msgpack_reader *reader)
{
	size_t outside = reader->owed - 1;
	struct cairn_msgpack_item item;
	int status;
	do
		status = cairn_msgpack_next(reader, &item);
	while (!status && reader->owed > outside);
	return status;
}

int cairn_msgpack_end(struct cairn_msgpack_reader *reader)
{
	if (reader->owed > 0)
		return cairn_msgpack_refuse(reader, "cut short");
	if (reader->at < reader->end)
		return cairn_msgpack_refuse(reader, "more bytes behind the value");
	return CAIRN_OK;
}
