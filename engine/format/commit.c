/* SPDX-License-Identifier: MIT */
#include "format/commit_private.h"

#include <msgpack/pack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/json.h>
#include <cairn/timestamp.h>

#include "format/msgpack_json.h"

/* Fewest bytes of an event with its required members; bounds how many there can be. */
#define EVENT_BYTES_MIN 40

void cairn_commit_init(struct cairn_commit *commit)
{
	*commit = (struct cairn_commit){ 0 };
	/* What is read is bounded by the object. */
	cairn_buffer_init(&commit->text, SIZE_MAX / 4);
}

void cairn_commit_release(struct cairn_commit *commit)
{
	free(commit->events);
	cairn_buffer_release(&commit->text);
	cairn_commit_init(commit);
}

int cairn_sequence_format(struct cairn_sequence sequence, char ret_text[CAIRN_SEQUENCE_SIZE])
{
	if (sequence.commit < 1 || sequence.commit > CAIRN_COMMIT_NUMBER_MAX ||
	    sequence.index < 0 || sequence.index >= (int64_t)CAIRN_COMMIT_EVENTS_MAX)
		return CAIRN_INVALID;
	(void)snprintf(ret_text, CAIRN_SEQUENCE_SIZE, "%012lld:%06lld", (long long)sequence.commit,
		       (long long)sequence.index);
	return CAIRN_OK;
}

int cairn_sequence_parse(struct cairn_slice text, struct cairn_sequence *ret_sequence)
{
	int64_t parts[2] = { 0, 0 };
	if (text.size != CAIRN_SEQUENCE_SIZE - 1)
		return CAIRN_INVALID;
	for (size_t i = 0; i < text.size; i++) {
		char byte = text.data[i];
		if (i == 12 ? byte != ':' : byte < '0' || byte > '9')
			return CAIRN_INVALID;
		if (i != 12)
			parts[i > 12] = 10 * parts[i > 12] + (byte - '0');
	}
	if (parts[0] < 1)
		return CAIRN_INVALID;
	*ret_sequence = (struct cairn_sequence){ .commit = parts[0], .index = parts[1] };
	return CAIRN_OK;
}

/* What the packer writes to; its own return values carry no status. */
struct sink {
	struct cairn_buffer *out;
	int status;
};

static int sink_write(void *context, const char *data, size_t size)
{
	struct sink *sink = context;
	if (!sink->status)
		sink->status = cairn_buffer_append(sink->out, data, size);
	return sink->status ? -1 : 0;
}

static void pack_string(msgpack_packer *packer, struct cairn_slice text)
{
	(void)msgpack_pack_str_with_body(packer, text.data ? text.data : "", text.size);
}

static void pack_word(msgpack_packer *packer, const char *word)
{
	pack_string(packer, cairn_slice_of(word));
}

static int pack_time(msgpack_packer *packer, const char *what, int64_t time,
		     struct cairn_error *error)
{
	char text[CAIRN_TIMESTAMP_SIZE];
	if (cairn_timestamp_format(time, text))
		return cairn_error_set(error, CAIRN_INVALID, "%s: outside the years 1 to 9999",
				       what);
	pack_word(packer, text);
	return CAIRN_OK;
}

/* Say what a full or failed buffer means, and take back what was appended. */
static int finish(int status, size_t before, struct cairn_buffer *out, struct cairn_error *error)
{
	if (status && out->data) {
		out->size = before;
		out->data[before] = '\0';
	}
	if (status == CAIRN_TOO_BIG)
		return cairn_error_set(error, status, "too big for a commit: %zu bytes at most",
				       out->limit);
	if (status == CAIRN_NO_MEMORY)
		return cairn_error_set(error, status, "encoding a commit: out of memory");
	return status;
}

int cairn_commit_encode_head(int64_t number, int64_t created_at, size_t count,
			     struct cairn_buffer *out, struct cairn_error *error)
{
	if (number < 1 || number > CAIRN_COMMIT_NUMBER_MAX)
		return cairn_error_set(error, CAIRN_INVALID, "commit %lld: no such number",
				       (long long)number);
	if (count < 1 || count > CAIRN_COMMIT_EVENTS_MAX)
		return cairn_error_set(error, CAIRN_INVALID,
				       "commit %lld: %zu events; 1 to %zu are possible",
				       (long long)number, count, CAIRN_COMMIT_EVENTS_MAX);
	size_t before = out->size;
	struct sink sink = { .out = out };
	msgpack_packer packer;
	msgpack_packer_init(&packer, &sink, sink_write);
	(void)msgpack_pack_map(&packer, 3);
	pack_word(&packer, "number");
	(void)msgpack_pack_int64(&packer, number);
	pack_word(&packer, "created_at");
	int status = pack_time(&packer, "created_at", created_at, error);
	pack_word(&packer, "events");
	(void)msgpack_pack_array(&packer, count);
	return finish(status ? status : sink.status, before, out, error);
}

static int check_strings(const struct cairn_event *event, struct cairn_error *error)
{
	if (event->event_type.size == 0)
		return cairn_error_set(error, CAIRN_INVALID, "event_type is missing or empty");
	if (!cairn_utf8_valid(event->event_type))
		return cairn_error_set(error, CAIRN_INVALID, "event_type is not UTF-8");
	if (event->schema_version.data && !cairn_utf8_valid(event->schema_version))
		return cairn_error_set(error, CAIRN_INVALID, "schema_version is not UTF-8");
	if (!event->payload.data)
		return cairn_error_set(error, CAIRN_INVALID, "payload is missing");
	return CAIRN_OK;
}

int cairn_event_encode(const struct cairn_event *event, struct cairn_buffer *out,
		       struct cairn_error *error)
{
	int status = check_strings(event, error);
	if (status)
		return status;
	size_t before = out->size;
	struct sink sink = { .out = out };
	msgpack_packer packer;
	msgpack_packer_init(&packer, &sink, sink_write);
	(void)msgpack_pack_map(&packer, 5);
	pack_word(&packer, "event_type");
	pack_string(&packer, event->event_type);
	pack_word(&packer, "timestamp");
	status = pack_time(&packer, "timestamp",
			   event->timestamp == CAIRN_TIMESTAMP_NOW ? cairn_timestamp_now()
								   : event->timestamp,
			   error);
	pack_word(&packer, "payload");
	if (!status)
		status = cairn_msgpack_of_json("payload", event->payload, out, error);
	pack_word(&packer, "schema_version");
	pack_string(&packer,
		    event->schema_version.data ? event->schema_version : cairn_slice_of("1"));
	pack_word(&packer, "metadata");
	if (!status)
		status = cairn_msgpack_of_json(
			"metadata", event->metadata.data ? event->metadata : cairn_slice_of("{}"),
			out, error);
	return finish(status ? status : sink.status, before, out, error);
}

int cairn_commit_encode(int64_t number, int64_t created_at, const struct cairn_event *events,
			size_t count, struct cairn_buffer *out, struct cairn_error *error)
{
	size_t before = out->size;
	int status = cairn_commit_encode_head(number, created_at, count, out, error);
	for (size_t i = 0; i < count && !status; i++) {
		struct cairn_error wrong;
		status = cairn_event_encode(&events[i], out, &wrong);
		if (status)
			cairn_error_set(error, status, "event %zu: %s", i, wrong.text);
	}
	if (status && out->data) {
		out->size = before;
		out->data[before] = '\0';
	}
	return status;
}

/* The members of a commit and of an event that have been read, as bits. */
enum {
	HAS_NUMBER = 1,
	HAS_CREATED = 2,
	HAS_EVENTS = 4,
	COMMIT_MEMBERS = HAS_NUMBER | HAS_CREATED | HAS_EVENTS,

	HAS_TYPE = 1,
	HAS_TIMESTAMP = 2,
	HAS_PAYLOAD = 4,
	HAS_VERSION = 8,
	HAS_METADATA = 16,
	EVENT_MEMBERS = HAS_TYPE | HAS_TIMESTAMP | HAS_PAYLOAD | HAS_VERSION,
};

struct decoding {
	struct cairn_msgpack_reader reader;
	struct cairn_commit commit;
	size_t capacity; /* room in commit.events */
};

static int refuse(struct decoding *decoding, const char *reason)
{
	return cairn_msgpack_refuse(&decoding->reader, reason);
}

/* The next item, which must be of this kind. */
static int expect(struct decoding *decoding, enum cairn_msgpack_kind kind, const char *reason,
		  struct cairn_msgpack_item *ret_item)
{
	int status = cairn_msgpack_next(&decoding->reader, ret_item);
	if (!status && ret_item->kind != kind)
		status = refuse(decoding, reason);
	return status;
}

/*
 * While the text grows it moves: until all is read, slices into it are offsets. `data` NULL stands
 * for what has no offset yet.
 */
static struct cairn_slice text_since(const struct decoding *decoding, size_t start)
{
	return (struct cairn_slice){
		.data = (const char *)(uintptr_t)start,
		.size = decoding->commit.text.size - start,
	};
}

static int read_time(struct decoding *decoding, int64_t *ret_time)
{
	struct cairn_msgpack_item item;
	int status = expect(decoding, CAIRN_MSGPACK_STRING, "a timestamp that is no string", &item);
	if (!status && cairn_timestamp_parse(item.bytes, ret_time))
		status = refuse(decoding, "not a timestamp");
	return status;
}

static int read_string(struct decoding *decoding, struct cairn_slice *ret_text)
{
	struct cairn_msgpack_item item;
	size_t start = decoding->commit.text.size;
	int status = expect(decoding, CAIRN_MSGPACK_STRING, "not a string", &item);
	if (!status && !cairn_utf8_valid(item.bytes))
		status = refuse(decoding, "a string that is not UTF-8");
	if (!status)
		status = cairn_buffer_append(&decoding->commit.text, item.bytes.data,
					     item.bytes.size);
	if (!status)
		*ret_text = text_since(decoding, start);
	return status;
}

static int read_json(struct decoding *decoding, struct cairn_slice *ret_text)
{
	size_t start = decoding->commit.text.size;
	int status = cairn_msgpack_to_json(&decoding->reader, &decoding->commit.text);
	if (!status)
		*ret_text = text_since(decoding, start);
	return status;
}

static bool named(const struct cairn_msgpack_item *name, const char *text)
{
	return name->kind == CAIRN_MSGPACK_STRING &&
	       cairn_slice_equal(name->bytes, cairn_slice_of(text));
}

static int read_event_member(struct decoding *decoding, struct cairn_event *event, unsigned *has)
{
	struct cairn_msgpack_item name;
	int status = cairn_msgpack_next(&decoding->reader, &name);
	if (status)
		return status;
	if (named(&name, "event_type")) {
		*has |= HAS_TYPE;
		return read_string(decoding, &event->event_type);
	}
	if (named(&name, "timestamp")) {
		*has |= HAS_TIMESTAMP;
		return read_time(decoding, &event->timestamp);
	}
	if (named(&name, "payload")) {
		*has |= HAS_PAYLOAD;
		return read_json(decoding, &event->payload);
	}
	if (named(&name, "schema_version")) {
		*has |= HAS_VERSION;
		return read_string(decoding, &event->schema_version);
	}
	if (named(&name, "metadata")) {
		*has |= HAS_METADATA;
		return read_json(decoding, &event->metadata);
	}
	if (name.kind != CAIRN_MSGPACK_STRING)
		return refuse(decoding, "a map's key that is no string");
	return cairn_msgpack_skip(&decoding->reader);
}

static int read_event(struct decoding *decoding, struct cairn_event *event)
{
	struct cairn_msgpack_item map;
	unsigned has = 0;
	*event = (struct cairn_event){ 0 };
	int status = expect(decoding, CAIRN_MSGPACK_MAP, "an event that is no map", &map);
	for (uint32_t i = 0; !status && i < map.count; i++)
		status = read_event_member(decoding, event, &has);
	if (!status && (has & EVENT_MEMBERS) != EVENT_MEMBERS)
		status = refuse(decoding, "an event without event_type, timestamp, payload or "
					  "schema_version");
	if (!status && !(has & HAS_METADATA)) {
		size_t start = decoding->commit.text.size;
		status = cairn_buffer_append(&decoding->commit.text, "{}", 2);
		event->metadata = text_since(decoding, start);
	}
	return status;
}

static int read_events(struct decoding *decoding)
{
	struct cairn_commit *commit = &decoding->commit;
	struct cairn_msgpack_item array;
	int status = expect(decoding, CAIRN_MSGPACK_ARRAY, "events that are no array", &array);
	if (status)
		return status;
	size_t bytes = (size_t)(decoding->reader.end - decoding->reader.at);
	if (array.count == 0)
		return refuse(decoding, "a commit without events");
	if (array.count > CAIRN_COMMIT_EVENTS_MAX || array.count > bytes / EVENT_BYTES_MIN)
		return refuse(decoding, "more events than there can be");
	free(commit->events);
	commit->count = 0;
	commit->events = calloc(array.count, sizeof(*commit->events));
	if (!commit->events)
		return CAIRN_NO_MEMORY;
	while (!status && commit->count < array.count) {
		status = read_event(decoding, &commit->events[commit->count]);
		commit->count++;
	}
	return status;
}

static int read_commit_member(struct decoding *decoding, unsigned *has)
{
	struct cairn_msgpack_item item;
	int status = cairn_msgpack_next(&decoding->reader, &item);
	if (status)
		return status;
	if (named(&item, "created_at")) {
		*has |= HAS_CREATED;
		return read_time(decoding, &decoding->commit.created_at);
	}
	if (named(&item, "events")) {
		*has |= HAS_EVENTS;
		return read_events(decoding);
	}
	if (item.kind != CAIRN_MSGPACK_STRING)
		return refuse(decoding, "a map's key that is no string");
	if (!named(&item, "number"))
		return cairn_msgpack_skip(&decoding->reader);
	*has |= HAS_NUMBER;
	status = expect(decoding, CAIRN_MSGPACK_UNSIGNED, "a number that is none", &item);
	if (!status && item.natural != (uint64_t)decoding->commit.number)
		status = refuse(decoding, "it has the number of another commit");
	return status;
}

static int read_commit(struct decoding *decoding)
{
	struct cairn_msgpack_item map;
	unsigned has = 0;
	int status = expect(decoding, CAIRN_MSGPACK_MAP, "not a map", &map);
	for (uint32_t i = 0; !status && i < map.count; i++)
		status = read_commit_member(decoding, &has);
	if (!status)
		status = cairn_msgpack_end(&decoding->reader);
	if (!status && has != COMMIT_MEMBERS)
		status = refuse(decoding, "number, created_at or events is missing");
	return status;
}

static void fix(struct cairn_slice *slice, const char *text)
{
	slice->data = text + (uintptr_t)slice->data;
}

int cairn_commit_decode(const char *key, int64_t number, struct cairn_slice data,
			struct cairn_commit *ret_commit, struct cairn_error *error)
{
	struct decoding decoding;
	cairn_msgpack_reader_init(&decoding.reader, data);
	cairn_commit_init(&decoding.commit);
	decoding.commit.number = number;
	int status = read_commit(&decoding);
	if (status) {
		cairn_commit_release(&decoding.commit);
		if (status == CAIRN_CORRUPT)
			return cairn_error_set(
				error, status, "%s: not a commit: %s, at byte %zu of %zu", key,
				decoding.reader.wrong,
				(size_t)(decoding.reader.at - decoding.reader.start), data.size);
		return cairn_error_set(error, CAIRN_NO_MEMORY, "%s: out of memory", key);
	}
	const char *text = decoding.commit.text.data;
	for (size_t i = 0; i < decoding.commit.count; i++) {
		struct cairn_event *event = &decoding.commit.events[i];
		fix(&event->event_type, text);
		fix(&event->schema_version, text);
		fix(&event->payload, text);
		fix(&event->metadata, text);
	}
	cairn_commit_release(ret_commit);
	*ret_commit = decoding.commit;
	return CAIRN_OK;
}
