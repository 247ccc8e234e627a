/* SPDX-License-Identifier: MIT */
#include "coordination/lease_document.h"

#include <inttypes.h>

#include <cairn/json.h>
#include <cairn/key.h>
#include <cairn/timestamp.h>

#include "coordination/text.h"

void cairn_lease_document_init(struct cairn_lease_document *document)
{
	*document = (struct cairn_lease_document){ 0 };
	cairn_buffer_init(&document->holder, CAIRN_JSON_MAX);
	cairn_buffer_init(&document->state, CAIRN_JSON_MAX);
}

void cairn_lease_document_release(struct cairn_lease_document *document)
{
	cairn_buffer_release(&document->holder);
	cairn_buffer_release(&document->state);
	cairn_lease_document_init(document);
}

void cairn_lease_members_init(struct cairn_lease_members *members)
{
	*members = (struct cairn_lease_members){ .state = cairn_slice_of("null") };
	cairn_buffer_init(&members->text, CAIRN_JSON_MAX);
}

void cairn_lease_members_release(struct cairn_lease_members *members)
{
	cairn_buffer_release(&members->text);
	cairn_lease_members_init(members);
}

static int corrupt(const char *key, const char *reason, struct cairn_error *error)
{
	return cairn_error_set(error, CAIRN_CORRUPT,
			       "lease %s: the object is no lease document: %s", key, reason);
}

static int parse_epoch(const char *key, struct cairn_slice object, int64_t *ret_epoch,
		       struct cairn_error *error)
{
	struct cairn_slice value;
	if (cairn_json_member(object, "epoch", &value))
		return corrupt(key, "epoch is missing", error);
	int status = cairn_json_integer(value, ret_epoch);
	if (status == CAIRN_TOO_BIG)
		return corrupt(key, "epoch does not fit in 64 bits", error);
	if (status)
		return corrupt(key, "epoch is no integer", error);
	if (*ret_epoch < 1)
		return corrupt(key, "epoch is not positive", error);
	return CAIRN_OK;
}

static int parse_deadline(const char *key, struct cairn_slice object, int64_t *ret_deadline,
			  struct cairn_error *error)
{
	struct cairn_slice value;
	if (cairn_json_member(object, "deadline_at", &value))
		return corrupt(key, "deadline_at is missing", error);
	if (cairn_json_kind(value) != '"')
		return corrupt(key, "deadline_at is no string", error);
	struct cairn_buffer text;
	cairn_buffer_init(&text, CAIRN_JSON_MAX);
	int status = cairn_json_string_decode(value, &text);
	if (!status)
		status = cairn_timestamp_parse(cairn_buffer_slice(&text), ret_deadline);
	cairn_buffer_release(&text);
	if (status == CAIRN_NO_MEMORY)
		return cairn_error_set(error, status, "lease %s: out of memory", key);
	return status ? corrupt(key, "deadline_at is no timestamp", error) : CAIRN_OK;
}

/* The members of the canonical text that `members` owns. */
static int parse_members(const char *key, struct cairn_lease_members *members,
			 struct cairn_error *error)
{
	struct cairn_slice object = cairn_buffer_slice(&members->text);
	if (cairn_json_kind(object) != '{')
		return corrupt(key, "it is no JSON object", error);
	int status = parse_epoch(key, object, &members->epoch, error);
	if (!status)
		status = parse_deadline(key, object, &members->deadline, error);
	if (status)
		return status;
	if (cairn_json_member(object, "holder", &members->holder))
		return corrupt(key, "holder is missing", error);
	char kind = cairn_json_kind(members->holder);
	if (kind != '"' && kind != 'n')
		return corrupt(key, "holder is neither a string nor null", error);
	members->held = kind == '"';
	if (cairn_json_member(object, "state", &members->state))
		members->state = cairn_slice_of("null");
	return CAIRN_OK;
}

int cairn_lease_members_parse(const char *key, struct cairn_slice data,
			      struct cairn_lease_members *members, struct cairn_error *error)
{
	struct cairn_error reason = { 0 };
	cairn_lease_members_release(members);
	int status = cairn_json_canonical(data.data, data.size, &members->text, &reason);
	if (status == CAIRN_INVALID)
		status = cairn_error_set(error, CAIRN_CORRUPT,
					 "lease %s: the object is no lease document: %s", key,
					 reason.text);
	else if (status)
		status = cairn_error_set(error, status, "lease %s: %s", key,
					 cairn_status_name(status));
	else
		status = parse_members(key, members, error);
	if (status)
		cairn_lease_members_release(members);
	return status;
}

int cairn_lease_members_read(struct cairn_store *store, struct cairn_call *call, const char *key,
			     struct cairn_lease_members *members)
{
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_text_get(store, call, "lease", key, &object);
	if (!status)
		status = cairn_lease_members_parse(key, cairn_buffer_slice(&object.data), members,
						   &call->error);
	if (!status)
		members->version = object.version;
	cairn_object_release(&object);
	return status;
}

/* Would the state, one level down in its document, still be read? */
static bool state_fits(struct cairn_slice state)
{
	struct cairn_json_scan scan;
	size_t end;
	cairn_json_scan_init(&scan);
	return cairn_json_scan_feed(&scan, "[", 1, &end) == CAIRN_JSON_PARTIAL &&
	       cairn_json_scan_feed(&scan, state.data, state.size, &end) == CAIRN_JSON_PARTIAL &&
	       cairn_json_scan_feed(&scan, "]", 1, &end) == CAIRN_JSON_COMPLETE;
}

int cairn_lease_members_encode(const char *key, const struct cairn_lease_members *members,
			       struct cairn_buffer *ret_text, struct cairn_error *error)
{
	char deadline[CAIRN_TIMESTAMP_SIZE];
	if (cairn_timestamp_format(members->deadline, deadline))
		return cairn_error_set(error, CAIRN_INVALID,
				       "lease %s: the deadline would be after the year 9999; give "
				       "a smaller ttl",
				       key);
	if (!state_fits(members->state))
		return cairn_error_set(error, CAIRN_INVALID,
				       "lease %s: the state has more than %d levels", key,
				       CAIRN_JSON_DEPTH - 1);
	int status = cairn_buffer_printf(
		ret_text, "{\"deadline_at\":\"%s\",\"epoch\":%" PRId64 ",\"holder\":", deadline,
		members->epoch);
	if (!status)
		status = cairn_buffer_append(ret_text, members->holder.data, members->holder.size);
	if (!status)
		status = cairn_buffer_append(ret_text, ",\"state\":", 9);
	if (!status)
		status = cairn_buffer_append(ret_text, members->state.data, members->state.size);
	if (!status)
		status = cairn_buffer_append(ret_text, "}", 1);
	if (status == CAIRN_TOO_BIG)
		return cairn_error_set(error, status,
				       "lease %s: the document would have more than %zu bytes", key,
				       CAIRN_JSON_MAX);
	if (status)
		return cairn_error_set(error, status, "lease %s: out of memory", key);
	return CAIRN_OK;
}

/* The members as the public form has them: the holder decoded, the state in memory of its own. */
static int document_fill(const char *key, const struct cairn_lease_members *members,
			 struct cairn_lease_document *document, struct cairn_error *error)
{
	document->epoch = members->epoch;
	document->held = members->held;
	document->deadline = members->deadline;
	document->version = members->version;
	if (members->held) {
		int status = cairn_json_string_decode(members->holder, &document->holder);
		if (status == CAIRN_INVALID)
			return corrupt(key, "holder has a lone surrogate", error);
		if (status)
			return cairn_error_set(error, status, "lease %s: out of memory", key);
	}
	int status =
		cairn_buffer_append(&document->state, members->state.data, members->state.size);
	if (status)
		return cairn_error_set(error, status, "lease %s: out of memory", key);
	return CAIRN_OK;
}

static int document_give(const char *key, const struct cairn_lease_members *members,
			 struct cairn_lease_document *ret_document, struct cairn_error *error)
{
	struct cairn_lease_document document;
	cairn_lease_document_init(&document);
	int status = document_fill(key, members, &document, error);
	if (status) {
		cairn_lease_document_release(&document);
		return status;
	}
	cairn_lease_document_release(ret_document);
	*ret_document = document;
	return CAIRN_OK;
}

int cairn_lease_parse(const char *key, struct cairn_slice data,
		      struct cairn_lease_document *ret_document, struct cairn_error *error)
{
	struct cairn_lease_members members;
	cairn_lease_members_init(&members);
	int status = cairn_lease_members_parse(key, data, &members, error);
	if (!status)
		status = document_give(key, &members, ret_document, error);
	cairn_lease_members_release(&members);
	return status;
}

int cairn_lease_read(struct cairn_store *store, struct cairn_call *call, const char *key,
		     struct cairn_lease_document *ret_document)
{
	struct cairn_lease_members members;
	cairn_lease_members_init(&members);
	int status = cairn_key_check(key, &call->error);
	if (!status)
		status = cairn_lease_members_read(store, call, key, &members);
	if (!status)
		status = document_give(key, &members, ret_document, &call->error);
	cairn_lease_members_release(&members);
	return status;
}
