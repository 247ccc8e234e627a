/* SPDX-License-Identifier: MIT */
#include <cairn/doc.h>

#include <cairn/json.h>
#include <cairn/key.h>

#include "coordination/attempts.h"
#include "coordination/text.h"

#define DOC_ATTEMPTS 10

/* Run the caller's validation hook, with words of ours where it has none. */
static int doc_check(const char *what, const char *key, const struct cairn_check *check,
		     struct cairn_slice value, struct cairn_error *error)
{
	if (!check || !check->check)
		return CAIRN_OK;
	(void)cairn_error_set(error, CAIRN_INVALID, "%s %s: the check refused the value", what,
			      key);
	error->status = check->check(check->context, value, error);
	return error->status;
}

static int doc_read(struct cairn_store *store, struct cairn_call *call, const char *what,
		    const char *key, const struct cairn_check *check,
		    struct cairn_object *ret_object)
{
	int status = cairn_text_get(store, call, what, key, ret_object);
	if (status)
		return status;
	struct cairn_slice data = cairn_buffer_slice(&ret_object->data);
	status = cairn_text_check(what, key, data, &call->error);
	if (!status)
		status = doc_check(what, key, check, data, &call->error);
	return status;
}

/* Make `target` what `source` is; `source` is empty afterwards. */
static void object_move(struct cairn_object *target, struct cairn_object *source)
{
	cairn_object_release(target);
	*target = *source;
	cairn_object_init(source);
}

int cairn_doc_get(struct cairn_store *store, struct cairn_call *call, const char *key,
		  const struct cairn_check *check, struct cairn_object *ret_object)
{
	int status = cairn_key_check(key, &call->error);
	if (status)
		return status;
	struct cairn_object object;
	cairn_object_init(&object);
	status = doc_read(store, call, "read document", key, check, &object);
	if (!status)
		object_move(ret_object, &object);
	cairn_object_release(&object);
	return status;
}

int cairn_doc_replace(struct cairn_store *store, struct cairn_call *call, const char *key,
		      const char *if_match, struct cairn_slice value,
		      const struct cairn_check *check, struct cairn_version *ret_version)
{
	struct cairn_buffer text;
	cairn_buffer_init(&text, CAIRN_JSON_MAX);
	int status = cairn_key_check(key, &call->error);
	if (!status)
		status = cairn_text_canonical("replace document", key, value, &text, &call->error);
	if (!status)
		status = doc_check("replace document", key, check, cairn_buffer_slice(&text),
				   &call->error);
	if (!status) {
		const struct cairn_put_options options = {
			.if_match = if_match,
			.if_absent = !if_match,
		};
		status = cairn_store_put(store, call, key, cairn_buffer_slice(&text), &options,
					 ret_version);
	}
	cairn_buffer_release(&text);
	return status;
}

/* One update under way. */
struct doc_update {
	struct cairn_store *store;
	struct cairn_call *call;
	const char *key;
	struct cairn_doc_options options;
	cairn_transform transform;
	void *context;
};

static int doc_update_try(const struct doc_update *update, struct cairn_attempts *attempts,
			  struct cairn_object *ret_written)
{
	const char *what = attempts->what;
	struct cairn_call *call = update->call;
	struct cairn_object old;
	cairn_object_init(&old);
	int status = doc_read(update->store, call, what, update->key, update->options.check, &old);
	bool absent = status == CAIRN_NOT_FOUND && update->options.create.data;
	if (status && !absent)
		goto out;

	cairn_buffer_clear(&ret_written->data);
	struct cairn_slice current = absent ? update->options.create
					    : cairn_buffer_slice(&old.data);
	status = cairn_text_transform(what, update->key, update->transform, update->context,
				      current, &ret_written->data, &call->error);
	if (status)
		goto out;
	struct cairn_slice next = cairn_buffer_slice(&ret_written->data);
	status = doc_check(what, update->key, update->options.check, next, &call->error);
	if (status)
		goto out;
	const struct cairn_put_options options = {
		.if_match = absent ? NULL : old.version.etag,
		.if_absent = absent,
	};
	status = cairn_store_put(update->store, call, update->key, next, &options,
				 &ret_written->version);
	(void)cairn_attempts_answer(attempts, status);
out:
	cairn_object_release(&old);
	return status;
}

int cairn_doc_update(struct cairn_store *store, struct cairn_call *call, const char *key,
		     const struct cairn_doc_options *options, cairn_transform transform,
		     void *context, struct cairn_object *ret_object)
{
	int status = cairn_key_check(key, &call->error);
	if (status)
		return status;
	struct doc_update update = {
		.store = store,
		.call = call,
		.key = key,
		.transform = transform,
		.context = context,
	};
	if (options)
		update.options = *options;
	unsigned max = update.options.max_attempts ? update.options.max_attempts : DOC_ATTEMPTS;

	struct cairn_object written;
	cairn_object_init(&written);
	cairn_buffer_init(&written.data, CAIRN_JSON_MAX);
	struct cairn_attempts attempts;
	cairn_attempts_begin(&attempts, store, call, "update document", key, max);
	do {
		status = cairn_attempts_next(&attempts);
		if (!status)
			status = doc_update_try(&update, &attempts, &written);
	} while (attempts.again);
	cairn_attempts_end(&attempts);

	if (!status && ret_object)
		object_move(ret_object, &written);
	cairn_object_release(&written);
	return status;
}

int cairn_doc_delete(struct cairn_store *store, struct cairn_call *call, const char *key)
{
	int status = cairn_key_check(key, &call->error);
	if (status)
		return status;
	return cairn_store_delete(store, call, key, NULL);
}
