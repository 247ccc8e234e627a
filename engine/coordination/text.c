/* SPDX-License-Identifier: MIT */
#include "coordination/text.h"

#include <cairn/json.h>

int cairn_text_get(struct cairn_store *store, struct cairn_call *call, const char *what,
		   const char *key, struct cairn_object *ret_object)
{
	const struct cairn_get_options options = { .max_size = CAIRN_JSON_MAX };
	int status = cairn_store_get(store, call, key, &options, ret_object);
	if (!status && ret_object->version.size > CAIRN_JSON_MAX)
		return cairn_error_set(&call->error, CAIRN_TOO_BIG,
				       "%s %s: the object has %llu bytes, more than the %zu that "
				       "a JSON value may have",
				       what, key, (unsigned long long)ret_object->version.size,
				       CAIRN_JSON_MAX);
	return status;
}

/* What the JSON reader found, told as this call's failure. */
static int text_refuse(const char *what, const char *key, const char *whose, int status,
		       const struct cairn_error *reason, struct cairn_error *error)
{
	if (status == CAIRN_TOO_BIG)
		return cairn_error_set(error, status,
				       "%s %s: %s would have more than %zu bytes as canonical JSON",
				       what, key, whose, CAIRN_JSON_MAX);
	if (status == CAIRN_NO_MEMORY)
		return cairn_error_set(error, status, "%s %s: out of memory", what, key);
	return cairn_error_set(error, status, "%s %s: %s is no JSON: %s", what, key, whose,
			       reason->text);
}

int cairn_text_check(const char *what, const char *key, struct cairn_slice data,
		     struct cairn_error *error)
{
	struct cairn_error reason = { 0 };
	struct cairn_buffer scratch;
	cairn_buffer_init(&scratch, CAIRN_JSON_MAX);
	int status = cairn_json_canonical(data.data, data.size, &scratch, &reason);
	cairn_buffer_release(&scratch);
	if (!status)
		return CAIRN_OK;
	if (status == CAIRN_INVALID)
		status = CAIRN_CORRUPT;
	return text_refuse(what, key, "the object", status, &reason, error);
}

int cairn_text_canonical(const char *what, const char *key, struct cairn_slice value,
			 struct cairn_buffer *ret_text, struct cairn_error *error)
{
	struct cairn_error reason = { 0 };
	int status = cairn_json_canonical(value.data, value.size, ret_text, &reason);
	if (!status)
		return CAIRN_OK;
	return text_refuse(what, key, "the new value", status, &reason, error);
}

int cairn_text_transform(const char *what, const char *key, cairn_transform transform,
			 void *context, struct cairn_slice current, struct cairn_buffer *ret_text,
			 struct cairn_error *error)
{
	struct cairn_buffer next;
	cairn_buffer_init(&next, CAIRN_JSON_MAX);
	/* For a function that says no without a word; what an earlier call left is not its reason.
	 */
	(void)cairn_error_set(error, CAIRN_ABORTED,
			      "%s %s: the function that makes the new value refused", what, key);
	int status = transform(context, current, &next, error);
	error->status = status;
	if (!status)
		status =
			cairn_text_canonical(what, key, cairn_buffer_slice(&next), ret_text, error);
	cairn_buffer_release(&next);
	return status;
}
