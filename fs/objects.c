/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes copied at a time when a writer keeps what stood there. */
#define PIECE ((uint64_t)4 << 20)

static bool key_allowed(struct request *request, const char *key, int *ret_error)
{
	/* With -o raw, objects/ is for backup and repair of the engine's own keys too. */
	int status = request->fs->options.raw && cairn_key_reserved(key)
			     ? 0
			     : cairn_key_check(key, &request->call.error);
	*ret_error = status ? request_failed(request, key, status, 0) : 0;
	return !status;
}

static int objects_show(struct cairn_object *object, struct cairn_buffer *ret_bytes,
			struct cairn_error *error)
{
	(void)error;
	*ret_bytes = object->data;
	cairn_buffer_init(&object->data, object->data.limit);
	return 0;
}

/* Put what was gathered in place of `base`. */
static int put_file(struct request *request, const char *key, struct staging_file *file,
		    const struct base *base, struct cairn_version *ret_version)
{
	struct stat stat;
	int error = staging_stat(file, &stat);
	if (error)
		return error;
	size_t size = (size_t)stat.st_size;
	void *data = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, staging_fd(file), 0) : NULL;
	if (data == MAP_FAILED)
		return errno;
	const struct cairn_put_options options = {
		.if_absent = base->kind == BASE_ABSENT,
		.if_match = base->kind == BASE_VERSION ? base->etag : NULL,
	};
	int status = cairn_store_put(request->fs->store, &request->call, key,
				     (struct cairn_slice){ data, size }, &options, ret_version);
	if (data)
		(void)munmap(data, size);
	if (status == CAIRN_EXISTS)
		return EEXIST;
	if (status == CAIRN_CONFLICT)
		return request_refused(request, VIEW_OBJECTS, key, EBUSY, "%s", base->why);
	return status ? request_failed(request, key, status, 0) : 0;
}

static int objects_open(struct request *request, struct handle *handle, struct fuse_file_info *file)
{
	(void)file;
	int error = 0;
	if ((handle->flags & O_ACCMODE) == O_RDONLY)
		return 0;
	if (!key_allowed(request, handle->node->key, &error))
		return error;
	if (handle->flags & O_TRUNC) {
		error = staging_gather(request->fs->staging, &handle->staging);
		handle->started = handle->dirty = true;
	}
	return error;
}

/*
 * O_EXCL wins the key at once, with an empty object, as a claim does. Otherwise nobody sees the
 * object before it is whole, at the close.
 */
static int objects_create(struct request *request, const char *key, struct handle *handle)
{
	struct cairn_store *store = request->fs->store;
	int error = 0, status;
	if (!key_allowed(request, key, &error))
		return error;
	if (handle->flags & O_EXCL) {
		const struct cairn_put_options options = { .if_absent = true };
		status = cairn_store_put(store, &request->call, key,
					 (struct cairn_slice){ .data = "" }, &options,
					 &handle->version);
	} else {
		/* A key that the store cannot hold is refused now, not at the close. */
		const struct cairn_get_options options = { .no_data = true };
		struct cairn_object object;
		cairn_object_init(&object);
		status = cairn_store_get(store, &request->call, key, &options, &object);
		cairn_object_release(&object);
		if (status == CAIRN_NOT_FOUND)
			status = CAIRN_OK;
	}
	if (status)
		return request_failed(request, key, status, 0);
	handle->started = true;
	handle->dirty = !(handle->flags & O_EXCL);
	return staging_gather(request->fs->staging, &handle->staging);
}

/* A range of the version that was opened. */
static int read_range(struct request *request, struct handle *handle, size_t size, off_t offset,
		      struct cairn_buffer *ret_bytes)
{
	struct cairn_get_options options = { .if_match = handle->version.etag,
					     .offset = (uint64_t)offset,
					     .length = size };
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_get(request->fs->store, &request->call, handle->node->key,
				     &options, &object);
	if (!status) {
		cairn_buffer_release(ret_bytes);
		*ret_bytes = object.data;
		cairn_buffer_init(&object.data, 0);
	}
	cairn_object_release(&object);
	if (status == CAIRN_CONFLICT || status == CAIRN_NOT_FOUND)
		return request_refused(request, VIEW_OBJECTS, handle->node->key, ESTALE,
				       "the version that was opened is gone; open it again");
	return status ? request_failed(request, handle->node->key, status, 0) : 0;
}

static int objects_read(struct request *request, struct handle *handle, size_t size, off_t offset,
			struct cairn_slice *ret_part)
{
	*ret_part = (struct cairn_slice){ .data = NULL };
	if (!handle->started && handle->content) {
		*ret_part = content_part(handle->content, size, offset);
		return 0;
	}
	/* handle->text holds the piece until the answer is sent: readers of one handle take turns.
	 */
	struct cairn_buffer *piece = &handle->text.bytes;
	if (!handle->started) {
		if ((uint64_t)offset >= handle->version.size)
			return 0;
		int error = read_range(request, handle, size, offset, piece);
		*ret_part = cairn_buffer_slice(piece);
		return error;
	}
	cairn_buffer_clear(piece);
	if (cairn_buffer_reserve(piece, size))
		return ENOMEM;
	ssize_t got = pread(staging_fd(handle->staging), piece->data, size, offset);
	if (got < 0)
		return errno;
	*ret_part = (struct cairn_slice){ piece->data, (size_t)got };
	return 0;
}

/* Before the first write without O_TRUNC: what stands there is kept. */
static int start(struct request *request, struct handle *handle)
{
	if (handle->started)
		return 0;
	int error = staging_gather(request->fs->staging, &handle->staging);
	if (error)
		return error;
	struct cairn_buffer piece;
	cairn_buffer_init(&piece, 0);
	if (handle->content)
		error = staging_write(handle->staging, handle->content->bytes.data,
				      handle->content->bytes.size, 0);
	for (uint64_t at = 0; !handle->content && !error && at < handle->version.size;
	     at += PIECE) {
		error = read_range(request, handle, PIECE, (off_t)at, &piece);
		if (!error)
			error = staging_write(handle->staging, piece.data, piece.size, (off_t)at);
	}
	cairn_buffer_release(&piece);
	if (error) {
		staging_unref(handle->staging);
		handle->staging = NULL;
	} else {
		handle->started = true;
	}
	return error;
}

static void show_size(struct request *request, struct handle *handle)
{
	struct stat stat;
	if (staging_stat(handle->staging, &stat) == 0)
		inodes_set_size(request->fs->inodes, handle->node, (uint64_t)stat.st_size);
}

static int objects_write(struct request *request, struct handle *handle, const char *data,
			 size_t size, off_t offset)
{
	int error = start(request, handle);
	if (!error)
		error = staging_write(handle->staging, data, size, offset);
	if (error)
		return request_refused(request, VIEW_OBJECTS, handle->node->key, error,
				       "gather the new content in cache_dir");
	handle->dirty = true;
	handle->settled = true; /* something was written: a flush puts it */
	if (handle->node->type == NODE_WRITING)
		show_size(request, handle);
	return 0;
}

static int objects_truncate(struct request *request, struct node *node, struct handle *handle,
			    off_t size)
{
	if (handle) {
		int error = start(request, handle);
		if (!error)
			error = staging_truncate(handle->staging, size);
		handle->dirty = handle->settled = true;
		if (!error && node->type == NODE_WRITING)
			show_size(request, handle);
		return error;
	}
	/* truncate(2) on a name: the whole change in one call, on the version that is there. */
	struct handle whole = { .node = node, .view = VIEW_OBJECTS };
	struct base base = { .kind = BASE_VERSION,
			     .why = "it was replaced while it was being cut" };
	int error =
		view_fetch(request, VIEW_OBJECTS, node->key, NULL, &whole.version, &whole.content);
	if (!error)
		error = start(request, &whole);
	if (!error)
		error = staging_truncate(whole.staging, size);
	memcpy(base.etag, whole.version.etag, sizeof(base.etag));
	if (!error)
		error = put_file(request, node->key, whole.staging, &base, &whole.version);
	content_unref(whole.content);
	staging_unref(whole.staging);
	return error;
}

static int commit(struct request *request, struct handle *handle)
{
	const struct base any = { .kind = BASE_ANY };
	int error = put_file(request, handle->node->key, handle->staging, &any, &handle->version);
	handle->dirty = false;
	return error;
}

static int objects_flush(struct request *request, struct handle *handle)
{
	/*
	 * A shell's `> key` closes a duplicate before it writes: what was only cut is put at the
	 * next close, or the last one.
	 */
	bool now = handle->settled || handle->read_seen;
	handle->read_seen = true;
	return handle->dirty && now ? commit(request, handle) : 0;
}

static void objects_release(struct request *request, struct handle *handle)
{
	if (handle->dirty)
		(void)commit(request, handle);
}

static int objects_unlink(struct request *request, const char *key)
{
	int error = 0;
	if (!key_allowed(request, key, &error))
		return error;
	struct cairn_get_options options = { .no_data = true };
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_store_get(request->fs->store, &request->call, key, &options, &object);
	cairn_object_release(&object);
	if (!status)
		status = cairn_store_delete(request->fs->store, &request->call, key, NULL);
	return status ? request_failed(request, key, status, 0) : 0;
}

static int objects_place(struct request *request, struct staging_file *file, const char *key,
			 bool exclusive)
{
	struct cairn_version version;
	struct base base = { .kind = BASE_ABSENT };
	int error = 0;
	if (!key_allowed(request, key, &error))
		return error;
	error = view_stated_base(request, file, key, &base);
	if (!error && exclusive && base.kind == BASE_VERSION)
		error = view_refuse_exclusive(request, VIEW_OBJECTS, key);
	if (exclusive)
		base.kind = BASE_ABSENT;
	if (error)
		return error;
	error = put_file(request, key, file, &base, &version);
	/* Absent was only stated of the target: "it went" is a lost race, as a changed one is. */
	return error == EEXIST && !exclusive ? EBUSY : error;
}

static int objects_move(struct request *request, const char *from, const char *to, bool exclusive)
{
	struct cairn_store *store = request->fs->store;
	struct cairn_object object;
	int error = 0;
	if (!key_allowed(request, from, &error) || !key_allowed(request, to, &error))
		return error;
	cairn_object_init(&object);
	const struct cairn_get_options get = { 0 };
	const struct cairn_put_options put = { .if_absent = exclusive };
	int status = cairn_store_get(store, &request->call, from, &get, &object);
	if (!status)
		status = cairn_store_put(store, &request->call, to,
					 cairn_buffer_slice(&object.data), &put, NULL);
	if (!status) {
		const struct cairn_delete_options options = {
			.if_match = store->capabilities.delete_if_match ? object.version.etag
									: NULL,
		};
		status = cairn_store_delete(store, &request->call, from, &options);
	}
	cairn_object_release(&object);
	return status ? request_failed(request, from, status, 0) : 0;
}

const struct view_ops objects_view = {
	.name = "objects",
	.xattrs = (const char *const[]){ "user.cairn.etag", NULL },
	.show = objects_show,
	.open = objects_open,
	.create = objects_create,
	.read = objects_read,
	.write = objects_write,
	.truncate = objects_truncate,
	.flush = objects_flush,
	.release = objects_release,
	.unlink = objects_unlink,
	.place = objects_place,
	.move = objects_move,
};
