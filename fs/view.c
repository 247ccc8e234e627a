/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <errno.h>
#include <string.h>

/* Objects up to this size are fetched whole, larger ones by ranges. */
#define WHOLE_MAX ((uint64_t)8 << 20)

const struct view_ops *view_ops(enum view view)
{
	static const struct view_ops *const all[VIEW_COUNT] = {
		[VIEW_CLAIMS] = &claims_view,
		[VIEW_LEASES] = &leases_view,
		[VIEW_DOCS] = &docs_view,
		[VIEW_OBJECTS] = &objects_view,
	};
	return view < VIEW_COUNT ? all[view] : NULL;
}

int view_fetch(struct request *request, enum view view, const char *key, const char *if_match,
	       struct cairn_version *ret_version, struct content **ret_content)
{
	const struct view_ops *ops = view_ops(view);
	struct cairn_get_options options = {
		.if_match = if_match,
		.max_size = ops->json ? CAIRN_JSON_MAX : WHOLE_MAX,
	};
	struct cairn_object object;
	cairn_object_init(&object);
	*ret_content = NULL;
	int status = cairn_store_get(request->fs->store, &request->call, key, &options, &object);
	int error = 0;
	if (status == CAIRN_NOT_FOUND)
		error = ENOENT;
	else if (status == CAIRN_CONFLICT)
		error = ESTALE;
	else if (status)
		error = request_failed(request, key, status, 0);
	if (!error)
		*ret_version = object.version;
	if (!error && object.version.size <= options.max_size) {
		struct cairn_buffer bytes;
		cairn_buffer_init(&bytes, SIZE_MAX / 2);
		/* What the view cannot show has a size all the same; opening it says why not. */
		if (ops->show(&object, &bytes, &request->call.error) == 0 &&
		    !(*ret_content = content_new(&bytes)))
			error = ENOMEM;
		cairn_buffer_release(&bytes);
	}
	cairn_object_release(&object);
	return error;
}

int view_stated_base(struct request *request, struct staging_file *file, const char *key,
		     struct base *ret_base)
{
	struct staging_state state = staging_state(file);
	*ret_base = (struct base){ .why = "it is not the stated version" };
	if (strcmp(state.if_match, "*") == 0)
		ret_base->kind = BASE_ANY;
	else if (state.if_match[0] || state.etag[0])
		ret_base->kind = BASE_VERSION;
	memcpy(ret_base->etag, state.if_match[0] ? state.if_match : state.etag,
	       sizeof(ret_base->etag));
	if (state.if_match[0] || !state.etag[0])
		return 0;
	struct cairn_get_options options = { .no_data = true };
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_get(request->fs->store, &request->call, key, &options, &object);
	cairn_object_release(&object);
	if (status == CAIRN_NOT_FOUND)
		ret_base->kind = BASE_ABSENT;
	else if (status)
		return request_failed(request, key, status, 0);
	return 0;
}

int view_refuse_exclusive(struct request *request, enum view view, const char *key)
{
	const struct cairn_get_options options = { .no_data = true };
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_get(request->fs->store, &request->call, key, &options, &object);
	cairn_object_release(&object);
	if (status == CAIRN_NOT_FOUND)
		return request_refused(request, view, key, EBUSY,
				       "the version that the new one was made from is gone");
	return status ? request_failed(request, key, status, 0) : EEXIST;
}

int view_show_json(struct cairn_object *object, struct cairn_buffer *ret_bytes,
		   struct cairn_error *error)
{
	int status = cairn_json_canonical(object->data.data ? object->data.data : "",
					  object->data.size, ret_bytes, error);
	if (!status)
		status = cairn_buffer_append(ret_bytes, "\n", 1);
	return cairn_status_errno(status);
}

int view_staged_json(struct request *request, enum view view, struct staging_file *file,
		     const char *key, struct cairn_buffer *ret_value)
{
	struct cairn_buffer text;
	cairn_buffer_init(&text, CAIRN_JSON_MAX + 1);
	cairn_buffer_init(ret_value, CAIRN_JSON_MAX);
	int error = staging_read_all(file, &text);
	if (error) {
		(void)request_refused(request, view, key, error,
				      "read the staging file that is put there (at most %zu bytes)",
				      CAIRN_JSON_MAX);
		goto out;
	}
	int status = cairn_json_canonical(text.data ? text.data : "", text.size, ret_value,
					  &request->call.error);
	if (status)
		error = request_failed(request, key, status, 0);
out:
	cairn_buffer_release(&text);
	return error;
}

int view_refuse_unlink(struct request *request, const char *key)
{
	(void)request;
	(void)key;
	return EPERM;
}

int view_refuse_move(struct request *request, const char *from, const char *to, bool exclusive)
{
	(void)request;
	(void)from;
	(void)to;
	(void)exclusive;
	return EPERM;
}
