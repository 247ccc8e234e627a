/* SPDX-License-Identifier: MIT */
#include "operations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "leases.h"
#include "tree.h"
#include "view.h"

struct node *operation_node(struct request *request, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? inodes_root(request->fs->inodes)
				   : inodes_at(request->fs->inodes, ino);
}

void operation_reply(struct request *request, int error)
{
	(void)fuse_reply_err(request->fuse, error);
}

/* Answer with an entry; one that does not reach the kernel is not counted. */
static void reply_entry(struct request *request, int error, const struct fuse_entry_param *entry)
{
	if (error)
		operation_reply(request, error);
	else if (fuse_reply_entry(request->fuse, entry) != 0)
		inodes_forget(request->fs->inodes, entry->ino, 1);
}

static void op_lookup(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	struct request request;
	struct fuse_entry_param entry;
	request_begin(&request, fuse);
	struct node *directory = operation_node(&request, parent);
	int error = directory ? tree_look_up(&request, directory, name, &entry) : ENOENT;
	reply_entry(&request, error, &entry);
}

static void op_forget(fuse_req_t fuse, fuse_ino_t ino, uint64_t count)
{
	struct filesystem *fs = fuse_req_userdata(fuse);
	inodes_forget(fs->inodes, ino, count);
	fuse_reply_none(fuse);
}

static void op_forget_multi(fuse_req_t fuse, size_t count, struct fuse_forget_data *forgets)
{
	struct filesystem *fs = fuse_req_userdata(fuse);
	for (size_t i = 0; i < count; i++)
		inodes_forget(fs->inodes, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(fuse);
}

static void reply_attributes(struct request *request, struct node *node, int error)
{
	struct stat stat;
	double timeout = 0;
	if (!error)
		error = tree_attributes(request, node, &stat, &timeout);
	if (error)
		operation_reply(request, error);
	else
		(void)fuse_reply_attr(request->fuse, &stat, timeout);
}

static void op_getattr(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct request request;
	(void)file;
	request_begin(&request, fuse);
	struct node *node = operation_node(&request, ino);
	int error = !node ? ENOENT : node->type == NODE_LEASE ? leases_refresh(&request, node) : 0;
	reply_attributes(&request, node, error);
}

/* What a staging file lets be changed: all. */
static int set_staging(struct staging_file *file, const struct stat *wanted, int set)
{
	struct staging_state state = staging_state(file);
	if (set & FUSE_SET_ATTR_MODE)
		state.mode = S_IFREG | (wanted->st_mode & 07777);
	if (set & FUSE_SET_ATTR_UID)
		state.uid = wanted->st_uid;
	if (set & FUSE_SET_ATTR_GID)
		state.gid = wanted->st_gid;
	staging_set_state(file, &state);
	if (set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) {
		struct timespec times[2] = { wanted->st_atim, wanted->st_mtim };
		if (!(set & FUSE_SET_ATTR_ATIME))
			times[0].tv_nsec = UTIME_OMIT;
		else if (set & FUSE_SET_ATTR_ATIME_NOW)
			times[0].tv_nsec = UTIME_NOW;
		if (!(set & FUSE_SET_ATTR_MTIME))
			times[1].tv_nsec = UTIME_OMIT;
		else if (set & FUSE_SET_ATTR_MTIME_NOW)
			times[1].tv_nsec = UTIME_NOW;
		if (futimens(staging_fd(file), times) != 0)
			return errno;
	}
	return set & FUSE_SET_ATTR_SIZE ? staging_truncate(file, wanted->st_size) : 0;
}

static int set_staging_node(struct node *node, const struct stat *wanted, int set)
{
	struct staging_file *file = staging_use(node->staging);
	int error = file ? set_staging(file, wanted, set) : ESTALE;
	staging_unref(file);
	return error;
}

/*
 * A key's mode and owner are what they are; times are accepted and ignored, and so is the mode of a
 * file that its creator still writes (install(1) makes it 0600 first).
 */
static int set_key(struct request *request, struct node *node, const struct stat *wanted, int set,
		   struct handle *handle)
{
	struct stat now;
	double timeout = 0;
	const struct view_ops *view = view_ops(node->view);
	int error = tree_attributes(request, node, &now, &timeout);
	if (error)
		return error;
	if (node->type == NODE_WRITING)
		set &= ~FUSE_SET_ATTR_MODE;
	if (((set & FUSE_SET_ATTR_MODE) && (wanted->st_mode ^ now.st_mode) & 07777) ||
	    ((set & FUSE_SET_ATTR_UID) && wanted->st_uid != now.st_uid) ||
	    ((set & FUSE_SET_ATTR_GID) && wanted->st_gid != now.st_gid))
		return EPERM;
	if (!(set & FUSE_SET_ATTR_SIZE))
		return 0;
	if (!view || S_ISDIR(now.st_mode))
		return EPERM;
	if (!handle)
		return view->truncate(request, node, NULL, wanted->st_size);
	pthread_mutex_lock(&handle->mutex);
	error = view->truncate(request, node, handle, wanted->st_size);
	pthread_mutex_unlock(&handle->mutex);
	return error;
}

static void op_setattr(fuse_req_t fuse, fuse_ino_t ino, struct stat *wanted, int set,
		       struct fuse_file_info *file)
{
	struct request request;
	request_begin(&request, fuse);
	struct node *node = operation_node(&request, ino);
	struct handle *handle = file ? (struct handle *)(uintptr_t)file->fh : NULL;
	int error = !node			 ? ENOENT
		    : node->type == NODE_STAGING ? set_staging_node(node, wanted, set)
						 : set_key(&request, node, wanted, set, handle);
	reply_attributes(&request, node, error);
}

static void op_mkdir(fuse_req_t fuse, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct request request;
	struct fuse_entry_param entry;
	(void)mode;
	request_begin(&request, fuse);
	struct node *directory = operation_node(&request, parent);
	reply_entry(&request,
		    directory ? tree_make_directory(&request, directory, name, &entry) : ENOENT,
		    &entry);
}

static void op_rmdir(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	struct request request;
	request_begin(&request, fuse);
	struct node *directory = operation_node(&request, parent);
	operation_reply(&request,
			directory ? tree_remove_directory(&request, directory, name) : ENOENT);
}

static void op_opendir(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct request request;
	struct directory *directory = NULL;
	request_begin(&request, fuse);
	struct node *node = operation_node(&request, ino);
	int error = node ? directory_open(&directory) : ENOENT;
	if (error) {
		operation_reply(&request, error);
		return;
	}
	file->fh = (uintptr_t)directory;
	if (fuse_reply_open(fuse, file) != 0)
		directory_free(directory);
}

static void read_directory(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t offset,
			   struct fuse_file_info *file, bool plus)
{
	struct request request;
	request_begin(&request, fuse);
	struct node *node = operation_node(&request, ino);
	char *buffer = malloc(size);
	size_t used = 0;
	int error = !node     ? ENOENT
		    : !buffer ? ENOMEM
			      : directory_read(&request, (struct directory *)(uintptr_t)file->fh,
					       node, buffer, size, offset, plus, &used);
	if (error)
		operation_reply(&request, error);
	else
		(void)fuse_reply_buf(fuse, buffer, used);
	free(buffer);
}

static void op_readdir(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t offset,
		       struct fuse_file_info *file)
{
	read_directory(fuse, ino, size, offset, file, false);
}

static void op_readdirplus(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t offset,
			   struct fuse_file_info *file)
{
	read_directory(fuse, ino, size, offset, file, true);
}

static void op_releasedir(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file)
{
	(void)ino;
	directory_free((struct directory *)(uintptr_t)file->fh);
	(void)fuse_reply_err(fuse, 0);
}

static void op_statfs(fuse_req_t fuse, fuse_ino_t ino)
{
	struct request request;
	struct cairn_space space;
	(void)ino;
	request_begin(&request, fuse);
	struct cairn_store *store = request.fs->store;
	int status = cairn_store_space(store, &request.call, &space);
	if (status) {
		operation_reply(&request, request_failed(&request, store->name, status, 0));
		return;
	}
	/* A bucket without an end is shown as one of 1 PiB, all free. */
	if (space.total == UINT64_MAX)
		space.total = space.available = UINT64_C(1) << 50;
	const struct statvfs answer = {
		.f_bsize = 4096,
		.f_frsize = 4096,
		.f_blocks = space.total / 4096,
		.f_bfree = space.available / 4096,
		.f_bavail = space.available / 4096,
		.f_namemax = store->capabilities.real_directories ? 249 : 1024,
	};
	(void)fuse_reply_statfs(fuse, &answer);
}

void operations_tree(struct fuse_lowlevel_ops *ops)
{
	ops->lookup = op_lookup;
	ops->forget = op_forget;
	ops->forget_multi = op_forget_multi;
	ops->getattr = op_getattr;
	ops->setattr = op_setattr;
	ops->mkdir = op_mkdir;
	ops->rmdir = op_rmdir;
	ops->opendir = op_opendir;
	ops->readdir = op_readdir;
	ops->readdirplus = op_readdirplus;
	ops->releasedir = op_releasedir;
	ops->statfs = op_statfs;
}
