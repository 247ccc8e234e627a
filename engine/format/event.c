/* SPDX-License-Identifier: MIT */
#include <cairn/commit.h>

#include <string.h>

#include <cairn/json.h>
#include <cairn/timestamp.h>

#include "format/json_private.h"

/* One line's members, as they stand there. */
struct members {
	struct cairn_slice event_type, timestamp, schema_version, payload, metadata;
};

/* Where the member `name` goes; NULL where there is no such member. */
static struct cairn_slice *member_of(struct members *members, struct cairn_slice name)
{
	const struct {
		const char *name;
		struct cairn_slice *member;
	} known[] = {
		{ "\"event_type\"", &members->event_type },
		{ "\"timestamp\"", &members->timestamp },
		{ "\"schema_version\"", &members->schema_version },
		{ "\"payload\"", &members->payload },
		{ "\"metadata\"", &members->metadata },
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (cairn_slice_equal(name, cairn_slice_of(known[i].name)))
			return known[i].member;
	return NULL;
}

static int split(struct cairn_slice text, struct members *members, struct cairn_error *error)
{
	struct cairn_slice none;
	int status = cairn_json_member(text, "sequence", &none);
	if (status == CAIRN_OK)
		return cairn_error_set(error, CAIRN_INVALID,
				       "sequence: the log gives it; leave it out");
	if (status != CAIRN_NOT_FOUND)
		return cairn_error_set(error, CAIRN_INVALID, "an event is one JSON object");
	while (cairn_json_space(*text.data)) {
		text.data++;
		text.size--;
	}
	struct cairn_slice name, value;
	while (cairn_json_next_member(&text, &name, &value)) {
		struct cairn_slice *member = member_of(members, name);
		if (!member)
			return cairn_error_set(error, CAIRN_INVALID,
					       "%.*s: an event has event_type, payload, timestamp, "
					       "schema_version and metadata alone",
					       name.size < 100 ? (int)name.size : 100, name.data);
		*member = value;
	}
	if (!members->event_type.data)
		return cairn_error_set(error, CAIRN_INVALID, "event_type is missing");
	if (!members->payload.data)
		return cairn_error_set(error, CAIRN_INVALID, "payload is missing");
	return CAIRN_OK;
}

/* The string `value` is appended to `work`; the slice is an offset, for `work` may move. */
static int decode(const char *name, struct cairn_slice value, struct cairn_buffer *work,
		  struct cairn_slice *ret_text, struct cairn_error *error)
{
	size_t start = work->size;
	int status = cairn_json_string_decode(value, work);
	if (status == CAIRN_INVALID)
		return cairn_error_set(error, status, "%s is no string of UTF-8", name);
	if (status)
		return cairn_error_set(error, status, "%s: %s", name, cairn_status_name(status));
	*ret_text = (struct cairn_slice){ (const char *)(uintptr_t)start, work->size - start };
	return CAIRN_OK;
}

static int check_object(const char *name, struct cairn_slice value, struct cairn_error *error)
{
	if (value.data && cairn_json_kind(value) != '{')
		return cairn_error_set(error, CAIRN_INVALID, "%s is not an object", name);
	return CAIRN_OK;
}

int cairn_event_parse(struct cairn_slice text, struct cairn_buffer *work,
		      struct cairn_event *ret_event, struct cairn_error *error)
{
	struct members members = { 0 };
	struct cairn_slice event_type = { 0 }, timestamp = { 0 }, version = { 0 };
	int64_t time = CAIRN_TIMESTAMP_NOW;
	int status = split(text, &members, error);
	if (!status)
		status = decode("event_type", members.event_type, work, &event_type, error);
	if (!status && members.schema_version.data)
		status = decode("schema_version", members.schema_version, work, &version, error);
	if (!status && members.timestamp.data)
		status = decode("timestamp", members.timestamp, work, &timestamp, error);
	if (!status)
		status = check_object("payload", members.payload, error);
	if (!status)
		status = check_object("metadata", members.metadata, error);
	if (status)
		return status;
	const char *base = work->data;
	timestamp.data = base + (uintptr_t)timestamp.data;
	if (members.timestamp.data && cairn_timestamp_parse(timestamp, &time))
		return cairn_error_set(error, CAIRN_INVALID,
				       "timestamp is none; such as 2026-08-09T12:00:00Z");
	event_type.data = base + (uintptr_t)event_type.data;
	if (members.schema_version.data)
		version.data = base + (uintptr_t)version.data;
	*ret_event = (struct cairn_event){
		.event_type = event_type,
		.timestamp = time,
		.schema_version = version,
		.payload = members.payload,
		.metadata = members.metadata,
	};
	return CAIRN_OK;
}

static int put(struct cairn_buffer *out, const char *text)
{
	return cairn_buffer_append(out, text, strlen(text));
}

int cairn_event_print(struct cairn_sequence sequence, const struct cairn_event *event,
		      struct cairn_buffer *out)
{
	char place[CAIRN_SEQUENCE_SIZE], time[CAIRN_TIMESTAMP_SIZE];
	size_t before = out->size;
	int status = cairn_sequence_format(sequence, place);
	if (!status)
		status = cairn_timestamp_format(event->timestamp, time);
	if (!status)
		status = cairn_buffer_printf(out, "{\"sequence\":\"%s\",\"event_type\":", place);
	if (!status)
		status = cairn_json_string_encode(event->event_type, out);
	if (!status)
		status =
			cairn_buffer_printf(out, ",\"timestamp\":\"%s\",\"schema_version\":", time);
	if (!status)
		status = cairn_json_string_encode(event->schema_version, out);
	if (!status)
		status = put(out, ",\"payload\":");
	if (!status)
		status = cairn_buffer_append(out, event->payload.data, event->payload.size);
	if (!status)
		status = put(out, ",\"metadata\":");
	if (!status)
		status = cairn_buffer_append(out, event->metadata.data, event->metadata.size);
	if (!status)
		status = put(out, "}");
	if (status && out->data) {
		out->size = before;
		out->data[before] = '\0';
	}
	return status;
}
