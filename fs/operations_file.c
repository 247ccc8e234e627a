/* SPDX-License-Identifier: MIT */
#include "operations.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "control.h"
#include "leases.h"
#include "tree.h"
#include "view.h"

/* A version that was looked up longer ago is looked at again: an open shows nothing older than
 * itself. */
#define FRESH ((int64_t)1000 * 1000)

static struct handle *handle_of(struct fuse_file_info *file)
{
	return (struct handle *)(uintptr_t)file->fh;
}

static bool reads(int flags)
{
	return (flags & O_ACCMODE) != O_WRONLY;
}

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY;
}

/* What an open of a version shows: the content of the look-up before it, or fetched now. */
static int open_version(struct request *request, struct handle *handle)
{
	struct filesystem *fs = request->fs;
	struct node *node = handle->node;
	struct node_facts facts = inodes_facts(fs->inodes, node);
	const struct view_ops *view = view_ops(node->view);
	bool fresh = cairn_clock() - facts.looked_up < FRESH;
	snprintf(handle->version.etag, sizeof(handle->version.etag), "%s", node->etag);
	handle->version.age = facts.age;
	if (fresh && (!reads(handle->flags) && (handle->flags & O_TRUNC)))
		return 0;
	if (fresh)
		handle->content = inodes_content(fs->inodes, node);
	if (handle->content)
		return 0;
	int error = view_fetch(request, node->view, node->key, node->etag, &handle->version,
			       &handle->content);
	if (error || handle->content || !view->json || (handle->flags & O_TRUNC))
		return error;
	if (handle->version.size > CAIRN_JSON_MAX)
		return request_refused(request, node->view, node->key, EFBIG,
				       "it has %llu bytes, and JSON is shown up to %zu",
				       (unsigned long long)handle->version.size, CAIRN_JSON_MAX);
	return request_refused(request, node->view, node->key, EINVAL, "it holds no JSON: %s",
			       request->call.error.text);
}

static int open_node(struct request *request, struct handle *handle, struct fuse_file_info *file)
{
	struct node *node = handle->node;
	int error = 0;
	switch (node->type) {
	case NODE_LISTED:
		return ESTALE; /* the kernel looks it up, which fetches it */
	case NODE_STAGING:
		handle->staging = staging_use(node->staging);
		if (!handle->staging)
			return ESTALE; /* placed meanwhile: the kernel looks the name up again */
		file->keep_cache = 1;
		return file->flags & O_TRUNC ? staging_truncate(node->staging, 0) : 0;
	case NODE_CONTROL:
		file->direct_io = 1;
		return (file->flags & O_ACCMODE) != O_RDONLY
			       ? EACCES
			       : control_content(request, node, &handle->content);
	case NODE_VERSION:
		error = open_version(request, handle);
		file->noflush = !writes(handle->flags);
		break;
	case NODE_LEASE:
		break;
	case NODE_WRITING: /* opened anew through /proc/PID/fd: what was written is not there yet */
		return EBUSY;
	default:
		return EISDIR;
	}
	file->direct_io = 1;
	return error ? error : view_ops(node->view)->open(request, handle, file);
}

static void op_open(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct request request;
	request_begin(&request, fuse);
	struct node *node = operation_node(&request, ino);
	struct handle *handle = node ? handle_new(&request, node, file->flags) : NULL;
	file->fh = (uintptr_t)handle;
	int error = handle ? open_node(&request, handle, file) : ENOMEM;
	if (error == DEFERRED)
		return;
	if (!error && fuse_reply_open(fuse, file) == 0)
		return;
	if (error)
		operation_reply(&request, error);
	else if (view_ops(handle->view) && !handle->staging)
		view_ops(handle->view)->release(&request, handle);
	if (handle)
		handle_unref(request.fs, handle);
}

/* By birth: made as mkstemp(3) makes it, to be renamed. */
static bool born_staging(enum view view, int flags, mode_t mode)
{
	return (view == VIEW_DOCS || view == VIEW_LEASES) && (flags & O_ACCMODE) == O_RDWR &&
	       (flags & O_EXCL) && (mode & 07777) == 0600;
}

static int create_staging(struct request *request, struct node *directory, const char *name,
			  mode_t mode, struct node **ret_node)
{
	struct filesystem *fs = request->fs;
	const struct fuse_ctx *asker = fuse_req_ctx(request->fuse);
	const struct staging_state state = {
		.mode = S_IFREG | (mode & 07777 & ~asker->umask),
		.uid = request->uid,
		.gid = request->gid,
	};
	struct staging_file *file = NULL;
	int error =
		staging_create(fs->staging, directory->view, directory->key, name, &state, &file);
	if (error)
		return error == EEXIST ? error
				       : request_refused(request, directory->view, name, error,
							 "make a staging file in cache_dir %s",
							 fs->options.cache_dir);
	*ret_node = inodes_look_up_staging(fs->inodes, directory->view, file);
	staging_unref(file);
	return *ret_node ? 0 : ENOMEM;
}

/* Create what `name` stands for; 0 with an open handle and one look-up counted on its node. */
static int create(struct request *request, struct node *directory, const char *name, mode_t mode,
		  struct fuse_file_info *file, struct handle **ret_handle)
{
	struct filesystem *fs = request->fs;
	const struct view_ops *view = view_ops(directory->view);
	struct target target;
	struct node *node = NULL;
	if (directory->type != NODE_DIRECTORY)
		return EPERM;
	int error = tree_resolve(request, directory, name, &target);
	if (error)
		return error;
	bool staging =
		target.kind == TARGET_STAGING || target.staging_name ||
		(target.kind == TARGET_KEY && born_staging(directory->view, file->flags, mode));
	if (target.file)
		error = EEXIST; /* made since the kernel looked */
	else if (staging)
		error = create_staging(request, directory, name, mode, &node);
	else if (target.kind != TARGET_KEY)
		error = request_refused(request, directory->view, directory->key, EINVAL,
					"create %s: not the name of a key", name);
	else if (!(node = inodes_look_up(fs->inodes,
					 view->mutable_nodes ? NODE_LEASE : NODE_WRITING,
					 directory->view, target.key, "", NULL)))
		error = ENOMEM;
	struct handle *handle = error ? NULL : handle_new(request, node, file->flags);
	if (!error && !handle)
		error = ENOMEM;
	if (!error && staging && !(handle->staging = staging_use(node->staging)))
		error = ESTALE; /* its name is gone already */
	else if (!error && !staging)
		error = view->create(request, target.key, handle);
	file->direct_io = !staging;
	target_release(&target);
	if (error && handle)
		handle_unref(fs, handle);
	if (error && node)
		inodes_forget(fs->inodes, node->id, 1);
	*ret_handle = handle;
	return error;
}

static void op_create(fuse_req_t fuse, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *file)
{
	struct request request;
	struct handle *handle = NULL;
	struct fuse_entry_param entry;
	request_begin(&request, fuse);
	struct node *directory = operation_node(&request, parent);
	int error = directory ? create(&request, directory, name, mode, file, &handle) : ENOENT;
	if (error) {
		operation_reply(&request, error);
		return;
	}
	struct node *node = handle->node;
	file->fh = (uintptr_t)handle;
	tree_entry(&request, node, &entry);
	if (fuse_reply_create(fuse, &entry, file) == 0)
		return;
	if (!handle->staging || node->type != NODE_STAGING)
		view_ops(handle->view)->release(&request, handle);
	handle_unref(request.fs, handle);
	inodes_forget(request.fs->inodes, entry.ino, 1);
}

static void op_read(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *file)
{
	struct request request;
	(void)ino;
	request_begin(&request, fuse);
	struct handle *handle = handle_of(file);
	const struct view_ops *view = view_ops(handle->view);
	if (handle->node->type == NODE_STAGING) {
		struct fuse_bufvec bytes = FUSE_BUFVEC_INIT(size);
		bytes.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
		bytes.buf[0].fd = staging_fd(handle->staging);
		bytes.buf[0].pos = offset;
		(void)fuse_reply_data(fuse, &bytes, FUSE_BUF_SPLICE_MOVE);
		return;
	}
	/* Held over the reply: the part may be changed by the next read or write. */
	handle_ref(handle);
	pthread_mutex_lock(&handle->mutex);
	struct cairn_slice part = { .data = NULL };
	int error = 0;
	if (view && view->read)
		error = view->read(&request, handle, size, offset, &part);
	else
		part = content_part(handle->content, size, offset);
	if (error)
		operation_reply(&request, error);
	else
		(void)fuse_reply_buf(fuse, part.data, part.size);
	pthread_mutex_unlock(&handle->mutex);
	handle_unref(request.fs, handle);
}

static int write_staging(struct request *request, struct handle *handle, const char *data,
			 size_t size, off_t offset, bool by_writer)
{
	if (by_writer && request->tid && handle->writer_tid != request->tid) {
		staging_set_writer(handle->staging, request_lineage(request));
		handle->writer_tid = request->tid;
	}
	int error = staging_write(handle->staging, data, size, offset);
	if (error)
		return request_refused(request, handle->view, "staging file", error,
				       error == EPERM
					       ? "it was renamed into place and takes no more"
					       : "write it in cache_dir");
	return 0;
}

static void op_write(fuse_req_t fuse, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		     struct fuse_file_info *file)
{
	struct request request;
	(void)ino;
	request_begin(&request, fuse);
	struct handle *handle = handle_of(file);
	pthread_mutex_lock(&handle->mutex);
	int error = handle->node->type == NODE_STAGING
			    ? write_staging(&request, handle, data, size, offset, !file->writepage)
			    : view_ops(handle->view)->write(&request, handle, data, size, offset);
	pthread_mutex_unlock(&handle->mutex);
	if (error)
		operation_reply(&request, error);
	else
		(void)fuse_reply_write(fuse, size);
}

static int flush(struct request *request, struct handle *handle)
{
	const struct view_ops *view = view_ops(handle->view);
	if (!view || handle->node->type == NODE_STAGING || !writes(handle->flags))
		return 0;
	pthread_mutex_lock(&handle->mutex);
	int error = view->flush(request, handle);
	pthread_mutex_unlock(&handle->mutex);
	return error;
}

static void op_flush(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct request request;
	(void)ino;
	request_begin(&request, fuse);
	struct handle *handle = handle_of(file);
	int error = flush(&request, handle);
	if (handle->view == VIEW_LEASES && handle->node->type == NODE_LEASE)
		leases_closed(&request, handle, file->lock_owner);
	operation_reply(&request, error);
}

static void op_fsync(fuse_req_t fuse, fuse_ino_t ino, int datasync, struct fuse_file_info *file)
{
	struct request request;
	(void)ino;
	(void)datasync;
	request_begin(&request, fuse);
	operation_reply(&request, flush(&request, handle_of(file)));
}

static void op_release(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct request request;
	(void)ino;
	request_begin(&request, fuse);
	struct handle *handle = handle_of(file);
	const struct view_ops *view = view_ops(handle->view);
	if (view && handle->node->type != NODE_STAGING)
		view->release(&request, handle);
	handle_unref(request.fs, handle);
	(void)fuse_reply_err(fuse, 0);
}

static void lock(fuse_req_t fuse, struct fuse_file_info *file, struct lock_owner owner, int type,
		 bool whole, bool wait)
{
	struct request request;
	request_begin(&request, fuse);
	struct handle *handle = handle_of(file);
	bool lease = handle->view == VIEW_LEASES && handle->node->type == NODE_LEASE;
	int error = !lease || (!whole && type != F_UNLCK) || type == F_RDLCK
			    ? EOPNOTSUPP
			    : leases_lock(&request, handle, owner, type, wait);
	if (error != DEFERRED)
		operation_reply(&request, error);
}

static void op_flock(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file, int op)
{
	(void)ino;
	int type = op & LOCK_EX ? F_WRLCK : op & LOCK_SH ? F_RDLCK : F_UNLCK;
	lock(fuse, file, (struct lock_owner){ .flock = true, .owner = file->lock_owner }, type,
	     true, !(op & LOCK_NB));
}

static void op_setlk(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file,
		     struct flock *range, int sleep)
{
	(void)ino;
	bool whole = range->l_start == 0 && range->l_len == 0;
	lock(fuse, file, (struct lock_owner){ .owner = file->lock_owner }, range->l_type, whole,
	     sleep != 0);
}

static void op_getlk(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file,
		     struct flock *range)
{
	struct request request;
	(void)ino;
	request_begin(&request, fuse);
	struct handle *handle = handle_of(file);
	bool held = false;
	int error = handle->view == VIEW_LEASES && handle->node->type == NODE_LEASE
			    ? leases_locked(&request, handle,
					    (struct lock_owner){ .owner = file->lock_owner }, &held)
			    : EOPNOTSUPP;
	if (error) {
		operation_reply(&request, error);
		return;
	}
	*range = (struct flock){ .l_type = held ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET };
	(void)fuse_reply_lock(fuse, range);
}

void operations_file(struct fuse_lowlevel_ops *ops)
{
	ops->open = op_open;
	ops->create = op_create;
	ops->read = op_read;
	ops->write = op_write;
	ops->flush = op_flush;
	ops->fsync = op_fsync;
	ops->release = op_release;
	ops->flock = op_flock;
	ops->setlk = op_setlk;
	ops->getlk = op_getlk;
}
