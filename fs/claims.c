/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* How often a reader that waits for a value looks. */
#define POLL ((int64_t)50 * 1000)

static bool is_null(const struct content *content)
{
	return content && cairn_slice_equal(cairn_buffer_slice(&content->bytes),
					    (struct cairn_slice){ "null\n", 5 });
}

/* A reader that found `null` and waits for the value, or for the time when none can come any more.
 */
struct waiting {
	struct task task;
	struct filesystem *fs;
	fuse_req_t fuse;
	struct fuse_file_info file;
	struct handle *handle;
	int64_t until; /* cairn_clock */
};

static void answer(struct waiting *waiting, int error)
{
	/* ESTALE: the kernel looks the key up again and finds the version that has the value. */
	if (error || fuse_reply_open(waiting->fuse, &waiting->file) != 0)
		handle_unref(waiting->fs, waiting->handle);
	if (error)
		(void)fuse_reply_err(waiting->fuse, error);
	free(waiting);
}

static void look(struct task *task)
{
	struct waiting *waiting = (struct waiting *)task;
	struct filesystem *fs = waiting->fs;
	struct cairn_call call = { .deadline = cairn_clock() + fs->options.timeout };
	struct cairn_object object;
	cairn_object_init(&object);
	if (fuse_req_interrupted(waiting->fuse)) {
		answer(waiting, EINTR);
		return;
	}
	struct cairn_get_options options = { .if_none_match = waiting->handle->version.etag,
					     .no_data = true };
	int status =
		cairn_store_get(fs->store, &call, waiting->handle->node->key, &options, &object);
	cairn_object_release(&object);
	int64_t now = cairn_clock();
	if (status == CAIRN_OK || status == CAIRN_NOT_FOUND)
		answer(waiting, ESTALE);
	else if (now >= waiting->until || !waiters_schedule(fs->waiters, task, now + POLL))
		answer(waiting, 0);
}

static int claims_open(struct request *request, struct handle *handle, struct fuse_file_info *file)
{
	struct filesystem *fs = request->fs;
	if ((handle->flags & O_ACCMODE) != O_RDONLY || (handle->flags & O_TRUNC))
		return EEXIST;
	if (!is_null(handle->content))
		return 0;
	struct node_facts facts = inodes_facts(fs->inodes, handle->node);
	int64_t until = facts.looked_up - facts.age + fs->options.claim_settle;
	if (cairn_clock() >= until)
		return 0;
	struct waiting *waiting = calloc(1, sizeof(*waiting));
	if (!waiting)
		return ENOMEM;
	*waiting = (struct waiting){ .task = { .run = look },
				     .fs = fs,
				     .fuse = request->fuse,
				     .file = *file,
				     .handle = handle,
				     .until = until };
	if (waiters_schedule(fs->waiters, &waiting->task, cairn_clock()))
		return DEFERRED;
	free(waiting);
	return EINTR;
}

static int claims_create(struct request *request, const char *key, struct handle *handle)
{
	bool writes = (handle->flags & O_ACCMODE) != O_RDONLY;
	if (!writes && !(handle->flags & O_EXCL))
		return EPERM;
	struct cairn_claim claim;
	cairn_claim_init(&claim);
	handle->created = cairn_clock();
	int status = cairn_claim(request->fs->store, &request->call, key, cairn_slice_of("null"),
				 &claim);
	int error = status ? request_failed(request, key, status, 0) : claim.won ? 0 : EEXIST;
	handle->version = claim.version;
	handle->settled = !writes;
	cairn_claim_release(&claim);
	return error;
}

/*
 * What the text `text` is as a claim's value: JSON, or one line of anything else as a string
 * (DESIGN "claims/"). `ended`: no more will come. 0 with ret_value (canonical; empty: not complete
 * yet), or EINVAL.
 */
static int value_of(struct request *request, const char *key, const struct text *text, bool ended,
		    struct cairn_buffer *ret_value)
{
	struct cairn_slice all = cairn_buffer_slice(&text->bytes), line = all;
	const char *newline = all.size ? memchr(all.data, '\n', all.size) : NULL;
	bool compound = all.size && strchr("{[", cairn_json_kind(all)) && cairn_json_kind(all);
	struct cairn_slice value = text_value(text, ended);
	if (value.data && (compound || newline || ended) && text_ends_there(text)) {
		int status = cairn_json_canonical(value.data, value.size, ret_value,
						  &request->call.error);
		return status ? request_failed(request, key, status, 0) : 0;
	}
	bool wrong = text->progress == CAIRN_JSON_WRONG || (value.data && !text_ends_there(text)) ||
		     (!compound && text->progress == CAIRN_JSON_PARTIAL);
	if (!wrong || !(newline || ended))
		return 0;
	if (newline)
		line.size = (size_t)(newline - all.data);
	for (size_t i = line.size; i < all.size; i++)
		if (!strchr("\r\n", all.data[i]))
			return request_refused(request, VIEW_CLAIMS, key, EINVAL,
					       "the value is neither JSON nor one line of text");
	if (text->scan.depth >= CAIRN_JSON_DEPTH)
		return request_refused(request, VIEW_CLAIMS, key, EINVAL,
				       "JSON nested over %d levels", CAIRN_JSON_DEPTH);
	int status = cairn_json_string_encode(line, ret_value);
	return status ? request_refused(request, VIEW_CLAIMS, key, cairn_status_errno(status),
					"the line is not UTF-8")
		      : 0;
}

/* Set the value if the text makes one. The handle's mutex is held: writers take turns. */
static int settle(struct request *request, struct handle *handle, bool ended)
{
	struct filesystem *fs = request->fs;
	const char *key = handle->node->key;
	struct cairn_buffer value;
	cairn_buffer_init(&value, CAIRN_JSON_MAX);
	int error = value_of(request, key, &handle->text, ended, &value);
	if (error || !value.size)
		goto out;
	if (cairn_clock() - handle->created >= fs->options.claim_settle / 2) {
		error = request_refused(
			request, VIEW_CLAIMS, key, EPERM,
			"the value came over %.3g s after the claim was created; it "
			"stays null (slow producers: write a staging file and ln it)",
			(double)fs->options.claim_settle / 2e6);
		handle->settled = true;
		goto out;
	}
	const struct cairn_put_options options = { .if_match = handle->version.etag };
	int status = cairn_object_put(fs->store, &request->call, key, cairn_buffer_slice(&value),
				      &options, &handle->version);
	if (status)
		error = request_failed(request, key, status, 0);
	/* After an unknown outcome the value may stand: another one must not follow it. */
	handle->settled = true;
	handle->dirty = false;
out:
	cairn_buffer_release(&value);
	return error;
}

static int claims_write(struct request *request, struct handle *handle, const char *data,
			size_t size, off_t offset)
{
	(void)offset; /* bash opens without O_APPEND and duplicates: what comes is the next piece */
	if (handle->settled) {
		/* The newline behind a value that was complete before it. */
		for (size_t i = 0; i < size; i++)
			if (!strchr(" \t\r\n", data[i]) || !data[i])
				return EPERM;
		return 0;
	}
	int error = text_write(&handle->text, data, size, (off_t)handle->text.bytes.size);
	if (error)
		return request_refused(request, VIEW_CLAIMS, handle->node->key, error,
				       "a value has at most %zu bytes", CAIRN_JSON_MAX);
	handle->dirty = true;
	inodes_set_size(request->fs->inodes, handle->node, handle->text.bytes.size);
	error = settle(request, handle, false);
	if (error && !handle->settled)
		text_clear(&handle->text);
	return error;
}

static int claims_truncate(struct request *request, struct node *node, struct handle *handle,
			   off_t size)
{
	(void)request;
	(void)node;
	bool same = handle && !handle->settled && size == (off_t)handle->text.bytes.size;
	return same ? 0 : EPERM;
}

static int claims_flush(struct request *request, struct handle *handle)
{
	if (!handle->dirty || handle->settled)
		return 0;
	int error = settle(request, handle, true);
	bool partial = !error && !handle->settled && handle->text.bytes.size;
	return partial && handle_opened_by(handle, request) ? EINVAL : error;
}

static void claims_release(struct request *request, struct handle *handle)
{
	if (handle->dirty && !handle->settled)
		(void)request_refused(request, VIEW_CLAIMS, handle->node->key, EINVAL,
				      "closed with incomplete JSON; the claim's value stays null");
}

static int claims_place(struct request *request, struct staging_file *file, const char *key,
			bool exclusive)
{
	(void)exclusive; /* a claim that exists is never replaced */
	struct filesystem *fs = request->fs;
	struct text text;
	struct cairn_buffer value;
	struct cairn_claim claim;
	struct cairn_buffer bytes;
	text_init(&text);
	cairn_claim_init(&claim);
	cairn_buffer_init(&value, CAIRN_JSON_MAX);
	cairn_buffer_init(&bytes, CAIRN_JSON_MAX + 1);
	int error = staging_read_all(file, &bytes);
	if (!error)
		error = text_write(&text, bytes.data ? bytes.data : "", bytes.size, 0);
	if (error) {
		(void)request_refused(request, VIEW_CLAIMS, key, error,
				      "read the staging file (at most %zu bytes)", CAIRN_JSON_MAX);
		goto out;
	}
	error = value_of(request, key, &text, true, &value);
	if (!error && !value.size)
		error = request_refused(request, VIEW_CLAIMS, key, EINVAL,
					"the staging file is empty or incomplete JSON");
	if (error)
		goto out;
	int status =
		cairn_claim(fs->store, &request->call, key, cairn_buffer_slice(&value), &claim);
	error = status ? request_failed(request, key, status, 0) : claim.won ? 0 : EEXIST;
out:
	cairn_claim_release(&claim);
	cairn_buffer_release(&value);
	cairn_buffer_release(&bytes);
	text_release(&text);
	return error;
}

const struct view_ops claims_view = {
	.name = "claims",
	.json = true,
	.xattrs = (const char *const[]){ "user.cairn.etag", NULL },
	.show = view_show_json,
	.open = claims_open,
	.create = claims_create,
	.write = claims_write,
	.truncate = claims_truncate,
	.flush = claims_flush,
	.release = claims_release,
	.unlink = view_refuse_unlink,
	.place = claims_place,
	.move = view_refuse_move,
};
