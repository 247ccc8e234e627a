/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* The key's name in the table of reads. */
static const char *reads_key(const char *key, char ret_name[CAIRN_KEY_MAX + 8])
{
	snprintf(ret_name, CAIRN_KEY_MAX + 8, "docs/%s", key);
	return ret_name;
}

static void record(struct request *request, const char *key, const struct lineage *reader,
		   const char *version)
{
	char name[CAIRN_KEY_MAX + 8];
	reads_record(request->fs->reads, reads_key(key, name), reader, version);
}

/* Rule 2 of DESIGN "docs/"; ret_base stays as it is where nothing was read. */
static int base_from_reads(struct request *request, const char *key, const struct lineage *writer,
			   const struct lineage *renamer, struct base *ret_base)
{
	char name[CAIRN_KEY_MAX + 8], version[CAIRN_ETAG_SIZE];
	switch (reads_base(request->fs->reads, reads_key(key, name), writer, renamer, version)) {
	case READS_TANGLED:
		return request_refused(
			request, VIEW_DOCS, key, EBUSY,
			"several processes near the writer have read different "
			"versions; read the document again, or state user.cairn.if_match");
	case READS_VERSION:
		ret_base->kind = version[0] ? BASE_VERSION : BASE_ABSENT;
		memcpy(ret_base->etag, version, sizeof(version));
		ret_base->read = true;
		ret_base->why = version[0] ? "it is not the version that was read before"
					   : "it was unlinked before and is there again";
		return 0;
	case READS_REFUSED:
		return request_refused(request, VIEW_DOCS, key, EBUSY,
				       "it was refused before, and has not been read since");
	case READS_NONE:
		break;
	}
	return 0;
}

/* Put `value` (any layout) in place of `base`. `ret_version` is set on 0. */
static int commit(struct request *request, const char *key, const struct base *base,
		  struct cairn_slice value, struct cairn_version *ret_version)
{
	struct cairn_store *store = request->fs->store;
	int status = cairn_key_check(key, &request->call.error);
	if (!status && base->kind == BASE_ANY) {
		struct cairn_buffer canonical;
		cairn_buffer_init(&canonical, CAIRN_JSON_MAX);
		status = cairn_json_canonical(value.data, value.size, &canonical,
					      &request->call.error);
		if (!status)
			status = cairn_store_put(store, &request->call, key,
						 cairn_buffer_slice(&canonical), NULL, ret_version);
		cairn_buffer_release(&canonical);
	} else if (!status) {
		status = cairn_doc_replace(store, &request->call, key,
					   base->kind == BASE_ABSENT ? NULL : base->etag, value,
					   NULL, ret_version);
	}
	if (status == CAIRN_EXISTS && base->exclusive)
		return EEXIST;
	if (status == CAIRN_CONFLICT || status == CAIRN_EXISTS)
		return request_refused(request, VIEW_DOCS, key, EBUSY,
				       "%s; read it again and retry", base->why);
	return status ? request_failed(request, key, status, 0) : 0;
}

static int docs_open(struct request *request, struct handle *handle, struct fuse_file_info *file)
{
	(void)request;
	(void)file;
	handle->started = handle->flags & O_TRUNC;
	return 0;
}

static int docs_create(struct request *request, const char *key, struct handle *handle)
{
	int status = cairn_key_check(key, &request->call.error);
	handle->started = true;
	return status ? request_failed(request, key, status, 0) : 0;
}

static int docs_read(struct request *request, struct handle *handle, size_t size, off_t offset,
		     struct cairn_slice *ret_part)
{
	if (handle->started) {
		const struct content written = { .bytes = handle->text.bytes };
		*ret_part = content_part(&written, size, offset);
		return 0;
	}
	if (!handle->read_seen && handle->version.etag[0])
		record(request, handle->node->key, request_lineage(request), handle->version.etag);
	handle->read_seen = true;
	*ret_part = content_part(handle->content, size, offset);
	return 0;
}

/* Commit the text if it is a value. The handle's mutex is held: writers take turns. */
static int docs_commit(struct request *request, struct handle *handle, bool ended)
{
	char name[CAIRN_KEY_MAX + 8];
	const char *key = handle->node->key;
	struct cairn_slice value = text_value(&handle->text, ended);
	if (!value.data)
		return 0;
	if (!text_ends_there(&handle->text)) {
		handle->dirty = false;
		return request_refused(request, VIEW_DOCS, key, EINVAL,
				       "the text is not one JSON value");
	}
	const struct lineage *writer = request_lineage(request);
	struct base base = { .kind = handle->version.etag[0] ? BASE_VERSION : BASE_ABSENT,
			     .why = handle->version.etag[0]
					    ? "it is not the version that was opened"
					    : "it was absent when it was opened" };
	memcpy(base.etag, handle->version.etag, sizeof(base.etag));
	int error = base_from_reads(request, key, writer, NULL, &base);
	if (!error)
		error = commit(request, key, &base, value, &handle->version);
	/*
	 * Whoever replaces blindly goes on so; whoever read knows what stands there now, or has to
	 * read again: what it tries next may be the same old edit.
	 */
	if (!error && base.read)
		record(request, key, writer, handle->version.etag);
	else if (error == EBUSY && base.read)
		reads_refuse(request->fs->reads, reads_key(key, name), writer);
	/* A refused text is dropped: what fails at the write must not come again at the close. */
	handle->dirty = false;
	handle->refused = error == EBUSY;
	return error;
}

/* Begin the new content, if this write does: at the start anew, at the end with the old text. */
static int docs_start(struct handle *handle, off_t offset)
{
	if (handle->started)
		return 0;
	const struct content *content = handle->content;
	handle->started = true;
	if (offset == 0 || !content)
		return 0;
	if (offset != (off_t)content->bytes.size)
		return EINVAL;
	return text_write(&handle->text, content->bytes.data, content->bytes.size, 0);
}

static int docs_write(struct request *request, struct handle *handle, const char *data, size_t size,
		      off_t offset)
{
	const char *key = handle->node->key;
	/* Python's files write again at their close what was refused. */
	if (handle->refused)
		return request_refused(request, VIEW_DOCS, key, EBUSY,
				       "what this descriptor wrote was refused; open it again");
	if (handle->flags & O_APPEND)
		offset = handle->started   ? (off_t)handle->text.bytes.size
			 : handle->content ? (off_t)handle->content->bytes.size
					   : 0;
	int error = docs_start(handle, offset);
	bool complete = handle->text.progress == CAIRN_JSON_COMPLETE && !handle->dirty;
	if (!error && offset == 0)
		text_clear(&handle->text);
	if (!error)
		error = text_write(&handle->text, data, size, offset);
	if (error) {
		text_clear(&handle->text);
		handle->dirty = false;
	}
	if (error)
		return request_refused(request, VIEW_DOCS, key, error,
				       error == EFBIG
					       ? "a document has at most 64 MiB"
					       : "a write that neither begins nor continues the "
						 "text");
	inodes_set_size(request->fs->inodes, handle->node, handle->text.bytes.size);
	if (handle->text.progress == CAIRN_JSON_WRONG) {
		text_clear(&handle->text);
		handle->dirty = false;
		return request_refused(request, VIEW_DOCS, key, EINVAL, "the text is not JSON");
	}
	/* White space behind a value that was committed changes nothing. */
	if (complete && offset > 0 && text_ends_there(&handle->text))
		return 0;
	handle->dirty = true;
	return docs_commit(request, handle, false);
}

static int docs_truncate(struct request *request, struct node *node, struct handle *handle,
			 off_t size)
{
	if (!handle)
		return request_refused(request, VIEW_DOCS, node->key, EINVAL,
				       "cutting a document leaves no JSON; write it whole");
	bool committed = handle->text.progress == CAIRN_JSON_COMPLETE && !handle->dirty;
	if (!handle->started) {
		if (handle->content && size == (off_t)handle->content->bytes.size)
			return 0;
		if (size != 0)
			return EINVAL;
		handle->started = true;
		return 0;
	}
	/* Cutting what is behind a committed value, or nothing. */
	if (committed && size >= (off_t)handle->text.end)
		return size <= (off_t)handle->text.bytes.size ? text_truncate(&handle->text, size)
							      : EINVAL;
	int error = text_truncate(&handle->text, size);
	if (!error)
		inodes_set_size(request->fs->inodes, node, (uint64_t)size);
	if (!error && size > 0) {
		handle->dirty = true;
		error = docs_commit(request, handle, false);
	}
	return error;
}

static int docs_flush(struct request *request, struct handle *handle)
{
	if (!handle->dirty)
		return 0;
	int error = docs_commit(request, handle, true);
	bool partial = handle->dirty && handle->text.progress == CAIRN_JSON_PARTIAL;
	return partial && !error && handle_opened_by(handle, request) ? EINVAL : error;
}

static void docs_release(struct request *request, struct handle *handle)
{
	if (handle->dirty && handle->text.progress == CAIRN_JSON_PARTIAL)
		(void)request_refused(request, VIEW_DOCS, handle->node->key, EINVAL,
				      "closed with incomplete JSON, which is dropped");
}

/* The base of a replacement by a staging file: what it states, or what its makers read. */
static int base_of_staging(struct request *request, struct staging_file *file, const char *key,
			   const struct lineage *writer, struct base *ret_base)
{
	int error = view_stated_base(request, file, key, ret_base);
	if (error || ret_base->kind != BASE_UNSTATED)
		return error;
	ret_base->kind = BASE_ABSENT;
	ret_base->why = "it is there, and nothing shows which version the new one was made from";
	return base_from_reads(request, key, writer, request_lineage(request), ret_base);
}

/* An exclusive placement creates what never was there, not what its makers knew. */
static int check_exclusive(struct request *request, struct staging_file *file, const char *key,
			   const struct lineage *writer)
{
	char name[CAIRN_KEY_MAX + 8], version[CAIRN_ETAG_SIZE];
	struct reads *reads = request->fs->reads;
	const struct lineage *renamer = request_lineage(request);
	struct staging_state state = staging_state(file);
	struct base base = { .kind = BASE_UNSTATED };
	bool stated = state.if_match[0];
	bool known = stated ? strcmp(state.if_match, "*") != 0
			    : (reads_peek(reads, reads_key(key, name), writer, version) ||
			       reads_peek(reads, reads_key(key, name), renamer, version)) &&
				      version[0];
	if (!known)
		return 0;
	int error = view_refuse_exclusive(request, VIEW_DOCS, key);
	/* The refused attempt has used what was read. */
	if (error == EBUSY && !stated)
		(void)base_from_reads(request, key, writer, renamer, &base);
	return error;
}

static int docs_place(struct request *request, struct staging_file *file, const char *key,
		      bool exclusive)
{
	struct cairn_buffer value;
	struct cairn_version version;
	struct lineage writer = staging_writer(file);
	const struct lineage *renamer = request_lineage(request);
	int error = view_staged_json(request, VIEW_DOCS, file, key, &value);
	struct base base = { .kind = BASE_ABSENT, .exclusive = exclusive };
	if (!error)
		error = exclusive ? check_exclusive(request, file, key, &writer)
				  : base_of_staging(request, file, key, &writer, &base);
	if (!error)
		error = commit(request, key, &base, cairn_buffer_slice(&value), &version);
	/* Whoever both wrote and renamed knows what stands there now. */
	if (!error && writer.count && renamer->count &&
	    writer.chain[0].pid == renamer->chain[0].pid &&
	    writer.chain[0].start == renamer->chain[0].start)
		record(request, key, renamer, version.etag);
	cairn_buffer_release(&value);
	return error;
}

/* Delete the version `etag`; where the store has no conditional delete, after a check. */
static int delete_version(struct request *request, const char *key, const char *etag)
{
	struct cairn_store *store = request->fs->store;
	const struct cairn_delete_options options = {
		.if_match = store->capabilities.delete_if_match ? etag : NULL,
	};
	int status = cairn_object_delete(store, &request->call, key, &options);
	if (status == CAIRN_CONFLICT)
		return request_refused(request, VIEW_DOCS, key, EBUSY,
				       "it was replaced while it was being deleted");
	return status ? request_failed(request, key, status, 0) : 0;
}

/* The present version of `key`. 0, ENOENT, or the store's failure. */
static int present(struct request *request, const char *key, struct cairn_object *ret_object,
		   bool no_data)
{
	struct cairn_get_options options = { .no_data = no_data };
	int status =
		cairn_object_get(request->fs->store, &request->call, key, &options, ret_object);
	return status == CAIRN_NOT_FOUND ? ENOENT
	       : status			 ? request_failed(request, key, status, 0)
					 : 0;
}

/* Unlinking a version that is not the one that was read is refused until it is read again. */
static int check_unlink(struct request *request, const char *key, const char *etag)
{
	char name[CAIRN_KEY_MAX + 8], version[CAIRN_ETAG_SIZE];
	struct reads *reads = request->fs->reads;
	const struct lineage *asker = request_lineage(request);
	struct base base = { .kind = BASE_UNSTATED };
	if (!reads_peek(reads, reads_key(key, name), asker, version) || strcmp(version, etag) == 0)
		return base_from_reads(request, key, asker, NULL, &base);
	reads_refuse(reads, name, asker);
	return request_refused(request, VIEW_DOCS, key, EBUSY,
			       "unlink: it is not the version that was read before");
}

static int docs_unlink(struct request *request, const char *key)
{
	struct cairn_object object;
	cairn_object_init(&object);
	int error = present(request, key, &object, true);
	if (!error)
		error = check_unlink(request, key, object.version.etag);
	if (!error)
		error = delete_version(request, key, object.version.etag);
	if (!error)
		record(request, key, request_lineage(request), READS_ABSENT);
	cairn_object_release(&object);
	return error;
}

static int docs_move(struct request *request, const char *from, const char *to, bool exclusive)
{
	struct cairn_object object;
	struct cairn_version version;
	cairn_object_init(&object);
	struct base base = { .kind = BASE_ABSENT,
			     .exclusive = exclusive,
			     .why = "it is there, and nothing shows that it was read" };
	int error = present(request, from, &object, false);
	if (!error && !exclusive)
		error = base_from_reads(request, to, request_lineage(request), NULL, &base);
	if (!error)
		error = commit(request, to, &base, cairn_buffer_slice(&object.data), &version);
	if (!error)
		error = delete_version(request, from, object.version.etag);
	cairn_object_release(&object);
	return error;
}

const struct view_ops docs_view = {
	.name = "docs",
	.json = true,
	.xattrs = (const char *const[]){ "user.cairn.etag", NULL },
	.show = view_show_json,
	.open = docs_open,
	.create = docs_create,
	.read = docs_read,
	.write = docs_write,
	.truncate = docs_truncate,
	.flush = docs_flush,
	.release = docs_release,
	.unlink = docs_unlink,
	.place = docs_place,
	.move = docs_move,
};
