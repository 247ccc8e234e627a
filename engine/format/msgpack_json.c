/* SPDX-License-Identifier: MIT */
#include "format/msgpack_json.h"

#include <limits.h>
#include <msgpack/pack.h>
#include <openssl/evp.h>
#include <string.h>

#include "format/json_private.h"

#define BYTES_NAME "$bytes"

/* A container that is being written as JSON. */
struct level {
	struct cairn_slice name; /* the last member's */
	uint32_t left;		 /* members or items still to come */
	bool map;
};

struct writer {
	struct cairn_msgpack_reader *reader;
	struct cairn_buffer *out;
	bool unordered; /* some map's names are not in order, or not unique */
	unsigned depth;
	struct level levels[CAIRN_JSON_DEPTH];
};

static int put(struct cairn_buffer *out, const char *text)
{
	return cairn_buffer_append(out, text, strlen(text));
}

static int put_integer(struct cairn_buffer *out, bool negative, uint64_t size)
{
	char text[24];
	char *at = text + sizeof(text);
	do
		*--at = (char)('0' + size % 10);
	while (size /= 10);
	if (negative)
		*--at = '-';
	return cairn_buffer_append(out, at, (size_t)(text + sizeof(text) - at));
}

static int put_string(struct writer *writer, struct cairn_slice text)
{
	int status = cairn_json_string_encode(text, writer->out);
	return status == CAIRN_INVALID
		       ? cairn_msgpack_refuse(writer->reader, "a string that is not UTF-8")
		       : status;
}

static int put_base64(struct cairn_slice bytes, struct cairn_buffer *out)
{
	if (bytes.size > INT_MAX)
		return CAIRN_TOO_BIG;
	size_t size = (bytes.size + 2) / 3 * 4;
	int status = cairn_buffer_reserve(out, size);
	if (status)
		return status;
	/* Ends it with a NUL, for which a buffer has room. */
	(void)EVP_EncodeBlock((unsigned char *)out->data + out->size,
			      (const unsigned char *)bytes.data, (int)bytes.size);
	out->size += size;
	return CAIRN_OK;
}

static int put_bytes(struct cairn_slice bytes, struct cairn_buffer *out)
{
	int status = put(out, "{\"" BYTES_NAME "\":\"");
	if (!status)
		status = put_base64(bytes, out);
	return status ? status : put(out, "\"}");
}

/* The next member's name and its colon. */
static int put_name(struct writer *writer)
{
	struct level *level = &writer->levels[writer->depth - 1];
	struct cairn_msgpack_item item;
	int status = cairn_msgpack_next(writer->reader, &item);
	if (status)
		return status;
	if (item.kind != CAIRN_MSGPACK_STRING)
		return cairn_msgpack_refuse(writer->reader, "a map's key that is no string");
	struct cairn_slice before = level->name;
	/* The order of UTF-8's bytes is that of the code points. */
	if (before.data && !writer->unordered) {
		size_t common = before.size < item.bytes.size ? before.size : item.bytes.size;
		int order = memcmp(before.data, item.bytes.data, common);
		writer->unordered = order > 0 || (order == 0 && before.size >= item.bytes.size);
	}
	level->name = item.bytes;
	status = put_string(writer, item.bytes);
	return status ? status : put(writer->out, ":");
}

static int open_level(struct writer *writer, const struct cairn_msgpack_item *item)
{
	bool map = item->kind == CAIRN_MSGPACK_MAP;
	if (writer->depth == CAIRN_JSON_DEPTH)
		return cairn_msgpack_refuse(writer->reader, "nested more than 500 levels deep");
	writer->levels[writer->depth++] = (struct level){ .left = item->count, .map = map };
	return put(writer->out, map ? "{" : "[");
}

static int put_item(struct writer *writer, const struct cairn_msgpack_item *item)
{
	switch (item->kind) {
	case CAIRN_MSGPACK_NIL:
		return put(writer->out, "null");
	case CAIRN_MSGPACK_BOOLEAN:
		return put(writer->out, item->boolean ? "true" : "false");
	case CAIRN_MSGPACK_INTEGER:
		return put_integer(writer->out, true, 0 - (uint64_t)item->integer);
	case CAIRN_MSGPACK_UNSIGNED:
		return put_integer(writer->out, false, item->natural);
	case CAIRN_MSGPACK_FLOAT:
		return cairn_json_write_double(item->real, writer->out);
	case CAIRN_MSGPACK_STRING:
		return put_string(writer, item->bytes);
	case CAIRN_MSGPACK_BYTES:
		return put_bytes(item->bytes, writer->out);
	case CAIRN_MSGPACK_ARRAY:
	case CAIRN_MSGPACK_MAP:
		return open_level(writer, item);
	}
	return CAIRN_CORRUPT;
}

/* What comes behind an item: brackets that close, or a comma; and the next member's name. */
static int put_behind(struct writer *writer, bool opened)
{
	while (writer->depth > 0) {
		struct level *level = &writer->levels[writer->depth - 1];
		int status = CAIRN_OK;
		if (level->left == 0) {
			status = put(writer->out, level->map ? "}" : "]");
			if (status)
				return status;
			writer->depth--;
			opened = false;
			continue;
		}
		level->left--;
		if (!opened)
			status = put(writer->out, ",");
		return status || !level->map ? status : put_name(writer);
	}
	return CAIRN_OK;
}

/* What was appended behind `start` becomes canonical. */
static int put_in_order(struct cairn_buffer *out, size_t start)
{
	struct cairn_buffer ordered;
	cairn_buffer_init(&ordered, out->limit);
	int status = cairn_json_canonical(out->data + start, out->size - start, &ordered, NULL);
	if (!status) {
		/* Only members that were there twice are gone: it is never longer. */
		memcpy(out->data + start, ordered.data, ordered.size + 1);
		out->size = start + ordered.size;
	}
	cairn_buffer_release(&ordered);
	return status;
}

int cairn_msgpack_to_json(struct cairn_msgpack_reader *reader, struct cairn_buffer *out)
{
	size_t start = out->size;
	struct writer writer;
	writer.reader = reader;
	writer.out = out;
	writer.unordered = false;
	writer.depth = 0;
	int status;
	do {
		struct cairn_msgpack_item item;
		status = cairn_msgpack_next(reader, &item);
		if (!status && writer.depth == 0 && item.kind != CAIRN_MSGPACK_MAP)
			status = cairn_msgpack_refuse(reader, "not a map");
		unsigned depth = writer.depth;
		if (!status)
			status = put_item(&writer, &item);
		if (!status)
			status = put_behind(&writer, writer.depth > depth);
	} while (!status && writer.depth > 0);
	if (!status && writer.unordered)
		status = put_in_order(out, start);
	return status;
}

/* JSON that is being packed; it is known to be well-formed. */
struct packing {
	const char *what;
	const char *at;
	const char *end;
	const uint32_t *counts; /* of the containers, in the order in which they open */
	msgpack_packer packer;
	struct cairn_buffer *out;
	struct cairn_buffer scratch; /* a decoded string, NULL-safe */
	struct cairn_buffer bytes;   /* a decoded base64 */
	struct cairn_error *error;
	int status; /* why the packer could not write */
};

static int pack_write(void *context, const char *data, size_t size)
{
	struct packing *packing = context;
	if (!packing->status)
		packing->status = cairn_buffer_append(packing->out, data, size);
	return packing->status ? -1 : 0;
}

static int refuse(struct packing *packing, const char *reason)
{
	return cairn_error_set(packing->error, CAIRN_INVALID, "%s: %s", packing->what, reason);
}

/*
 * How many members or items each container of a well-formed text has, appended to `counts`;
 * ret_total is their sum.
 */
static int count_all(struct cairn_slice text, struct cairn_buffer *counts, uint64_t *ret_total)
{
	uint32_t open[CAIRN_JSON_DEPTH];
	unsigned depth = 0;
	const char *end = text.data + text.size;
	char last = '\0';
	*ret_total = 0;
	for (const char *at = text.data; at < end; at++) {
		char byte = *at;
		if (cairn_json_space(byte))
			continue;
		bool closes = byte == '}' || byte == ']';
		if (byte == '"') {
			at = cairn_json_skip_string(at) - 1;
		} else if (byte == '{' || byte == '[') {
			uint32_t none = 0;
			open[depth++] = (uint32_t)(counts->size / sizeof(none));
			if (cairn_buffer_append(counts, &none, sizeof(none)))
				return CAIRN_NO_MEMORY;
		} else if (byte == ',' || (closes && last != '{' && last != '[')) {
			((uint32_t *)(void *)counts->data)[open[depth - 1]]++;
			++*ret_total;
		}
		depth -= closes;
		last = byte;
	}
	return CAIRN_OK;
}

/* Decode the string at the cursor and move behind it. */
static int take_string(struct packing *packing)
{
	const char *start = packing->at;
	packing->at = cairn_json_skip_string(start);
	cairn_buffer_clear(&packing->scratch);
	int status = cairn_json_string_decode(
		(struct cairn_slice){ start, (size_t)(packing->at - start) }, &packing->scratch);
	return status == CAIRN_INVALID
		       ? refuse(packing, "a lone surrogate, which no event can hold")
		       : status;
}

static int pack_string(struct packing *packing)
{
	int status = take_string(packing);
	if (!status)
		(void)msgpack_pack_str_with_body(&packing->packer,
						 packing->scratch.data ? packing->scratch.data : "",
						 packing->scratch.size);
	return status;
}

static void skip_space(struct packing *packing)
{
	while (packing->at < packing->end && cairn_json_space(*packing->at))
		packing->at++;
}

/* Strictly: what is decoded must encode to the very same text. */
static int decode_base64(struct packing *packing, struct cairn_slice text)
{
	struct cairn_buffer again;
	cairn_buffer_clear(&packing->bytes);
	if (text.size > INT_MAX || text.size % 4 != 0)
		return refuse(packing, "\"$bytes\" is not base64");
	int status = cairn_buffer_reserve(&packing->bytes, text.size / 4 * 3);
	if (status || text.size == 0)
		return status;
	int size = EVP_DecodeBlock((unsigned char *)packing->bytes.data,
				   (const unsigned char *)text.data, (int)text.size);
	if (size < 0)
		return refuse(packing, "\"$bytes\" is not base64");
	packing->bytes.size = (size_t)size;
	for (int i = 1; i <= 2 && text.data[text.size - (size_t)i] == '='; i++)
		packing->bytes.size--;
	cairn_buffer_init(&again, text.size);
	status = put_base64(cairn_buffer_slice(&packing->bytes), &again);
	if (!status && !cairn_slice_equal(cairn_buffer_slice(&again), text))
		status = refuse(packing, "\"$bytes\" is not base64");
	cairn_buffer_release(&again);
	return status;
}

/* At an opening brace: is it {"$bytes":"…"}? Then it is packed. */
static int pack_bytes(struct packing *packing, bool *ret_packed)
{
	const char *start = packing->at;
	packing->at++;
	skip_space(packing);
	int status = take_string(packing);
	if (status)
		return status;
	if (!cairn_slice_equal(cairn_buffer_slice(&packing->scratch), cairn_slice_of(BYTES_NAME)))
		goto other;
	skip_space(packing);
	packing->at++;
	skip_space(packing);
	if (*packing->at != '"')
		goto other;
	status = take_string(packing);
	if (!status)
		status = decode_base64(packing, cairn_buffer_slice(&packing->scratch));
	if (status)
		return status;
	(void)msgpack_pack_bin_with_body(&packing->packer, packing->bytes.data,
					 packing->bytes.size);
	skip_space(packing);
	packing->at++;
	*ret_packed = true;
	return CAIRN_OK;
other:
	packing->at = start;
	return CAIRN_OK;
}

static int pack_integer(struct packing *packing, struct cairn_slice number)
{
	int64_t integer;
	int status = cairn_json_integer(number, &integer);
	if (!status) {
		(void)msgpack_pack_int64(&packing->packer, integer);
		return CAIRN_OK;
	}
	uint64_t natural = 0;
	bool big = number.data[0] == '-';
	for (size_t i = 0; i < number.size && !big; i++)
		big = __builtin_mul_overflow(natural, 10, &natural) ||
		      __builtin_add_overflow(natural, (uint64_t)(number.data[i] - '0'), &natural);
	if (big)
		return refuse(packing, "an integer beyond 64 bits, which no event can hold");
	(void)msgpack_pack_uint64(&packing->packer, natural);
	return CAIRN_OK;
}

/* A number or a word; it ends where a separator stands. */
static int pack_plain(struct packing *packing)
{
	const char *start = packing->at;
	bool real = false;
	while (packing->at < packing->end && !cairn_json_space(*packing->at) &&
	       !strchr(",]}", *packing->at)) {
		real = real || strchr(".eEN", *packing->at);
		packing->at++;
	}
	struct cairn_slice token = { start, (size_t)(packing->at - start) };
	switch (cairn_json_kind(token)) {
	case 't':
		(void)msgpack_pack_true(&packing->packer);
		return CAIRN_OK;
	case 'f':
		(void)msgpack_pack_false(&packing->packer);
		return CAIRN_OK;
	case 'n':
		(void)msgpack_pack_nil(&packing->packer);
		return CAIRN_OK;
	case 'N':
		(void)msgpack_pack_double(&packing->packer, cairn_json_real(token));
		return CAIRN_OK;
	default:
		if (!real)
			return pack_integer(packing, token);
		(void)msgpack_pack_double(&packing->packer, cairn_json_real(token));
		return CAIRN_OK;
	}
}

/* An opening bracket: the header of its container, or bytes as a whole. */
static int pack_open(struct packing *packing, bool outermost)
{
	bool object = *packing->at == '{';
	uint32_t count = *packing->counts++;
	if (object && count == 1 && !outermost) {
		bool packed = false;
		int status = pack_bytes(packing, &packed);
		if (status || packed)
			return status;
	}
	packing->at++;
	if (object)
		(void)msgpack_pack_map(&packing->packer, count);
	else
		(void)msgpack_pack_array(&packing->packer, count);
	return CAIRN_OK;
}

/* Colons, commas and closing brackets need no more: the counts have told. */
static int pack_text(struct packing *packing)
{
	const char *start = packing->at;
	int status = CAIRN_OK;
	while (!status && packing->at < packing->end) {
		char byte = *packing->at;
		if (cairn_json_space(byte) || strchr(":,]}", byte))
			packing->at++;
		else if (byte == '{' || byte == '[')
			status = pack_open(packing, packing->at == start);
		else if (byte == '"')
			status = pack_string(packing);
		else
			status = pack_plain(packing);
		if (!status)
			status = packing->status;
	}
	return status;
}

int cairn_msgpack_of_json(const char *what, struct cairn_slice text, struct cairn_buffer *out,
			  struct cairn_error *error)
{
	struct cairn_buffer canonical, counts, canonical_counts;
	struct packing packing = { .what = what, .out = out, .error = error };
	uint64_t total = 0, canonical_total = 0;
	cairn_buffer_init(&canonical, CAIRN_JSON_MAX);
	cairn_buffer_init(&counts, SIZE_MAX / 4);
	cairn_buffer_init(&canonical_counts, SIZE_MAX / 4);
	cairn_buffer_init(&packing.scratch, SIZE_MAX / 4);
	cairn_buffer_init(&packing.bytes, SIZE_MAX / 4);
	msgpack_packer_init(&packing.packer, &packing, pack_write);

	struct cairn_error wrong;
	int status = cairn_json_canonical(text.data, text.size, &canonical, &wrong);
	if (status) {
		status = cairn_error_set(error, status, "%s: %s", what, wrong.text);
		goto out;
	}
	if (canonical.data[0] != '{') {
		status = refuse(&packing, "not a JSON object");
		goto out;
	}
	while (cairn_json_space(*text.data)) {
		text.data++;
		text.size--;
	}
	status = count_all(text, &counts, &total);
	if (!status)
		status = count_all(cairn_buffer_slice(&canonical), &canonical_counts,
				   &canonical_total);
	if (!status) {
		bool twice = total != canonical_total;
		if (twice)
			text = cairn_buffer_slice(&canonical);
		packing.counts = (const uint32_t *)(const void *)(twice ? canonical_counts.data
									: counts.data);
		packing.at = text.data;
		packing.end = text.data + text.size;
		status = pack_text(&packing);
	}
	if (status == CAIRN_NO_MEMORY || status == CAIRN_TOO_BIG)
		cairn_error_set(error, status, "%s: %s", what,
				status == CAIRN_TOO_BIG ? "too big for a commit" : "out of memory");
out:
	cairn_buffer_release(&canonical);
	cairn_buffer_release(&counts);
	cairn_buffer_release(&canonical_counts);
	cairn_buffer_release(&packing.scratch);
	cairn_buffer_release(&packing.bytes);
	return status;
}
