/* SPDX-License-Identifier: MIT */
#include "operations.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tree.h"
#include "view.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE	 (1 << 1)
#endif

/* What a name is for an operation that needs a file there: ENOENT for a name of nothing. */
static int resolve_there(struct request *request, struct node *directory, const char *name,
			 struct target *ret_target)
{
	if (!directory || directory->type != NODE_DIRECTORY)
		return EPERM;
	int error = tree_resolve(request, directory, name, ret_target);
	if (error)
		return error;
	if (ret_target->kind == TARGET_KEY ||
	    (ret_target->kind == TARGET_STAGING && ret_target->file))
		return 0;
	target_release(ret_target);
	return ret_target->kind == TARGET_PREFIX ? EISDIR : ENOENT;
}

static void op_unlink(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	struct request request;
	struct target target;
	request_begin(&request, fuse);
	struct node *directory = operation_node(&request, parent);
	int error = resolve_there(&request, directory, name, &target);
	if (!error) {
		error = target.kind == TARGET_STAGING
				? staging_unlink(request.fs->staging, directory->view,
						 directory->key, name)
				: view_ops(directory->view)->unlink(&request, target.key);
		target_release(&target);
	}
	operation_reply(&request, error);
}

/* A key renamed to a staging name (vim's backup) is copied there and stays. */
static int copy_out(struct request *request, struct node *directory, const char *key,
		    const char *name, bool exclusive)
{
	struct filesystem *fs = request->fs;
	const struct view_ops *view = view_ops(directory->view);
	const struct cairn_get_options options = { 0 };
	struct staging_file *file = NULL;
	struct cairn_object object;
	struct cairn_buffer bytes;
	cairn_object_init(&object);
	cairn_buffer_init(&bytes, SIZE_MAX / 2);
	int status = cairn_store_get(fs->store, &request->call, key, &options, &object);
	int error = status ? request_failed(request, key, status, 0) : 0;
	if (!error && (error = view->show(&object, &bytes, &request->call.error)) != 0)
		error = request_failed(request, key, request->call.error.status, error);
	const struct staging_state state = {
		.mode = S_IFREG | (0666 & ~fs->options.umask),
		.uid = request->uid,
		.gid = request->gid,
	};
	if (!error && !exclusive)
		(void)staging_unlink(fs->staging, directory->view, directory->key, name);
	if (!error)
		error = staging_create(fs->staging, directory->view, directory->key, name, &state,
				       &file);
	if (!error && (error = staging_write(file, bytes.data, bytes.size, 0)) != 0)
		(void)staging_unlink(fs->staging, directory->view, directory->key, name);
	staging_unref(file);
	cairn_buffer_release(&bytes);
	cairn_object_release(&object);
	return error;
}

static int move_key(struct request *request, enum view view, const char *from, const char *to,
		    bool exclusive)
{
	if (strcmp(from, to) == 0)
		return 0;
	int error = view_ops(view)->move(request, from, to, exclusive);
	if (error != ENOENT || strlen(from) >= CAIRN_KEY_MAX)
		return error;
	char prefix[CAIRN_KEY_MAX + 2];
	snprintf(prefix, sizeof(prefix), "%s/", from);
	return cairn_store_prefix_exists(request->fs->store, &request->call, prefix) == 0
		       ? EOPNOTSUPP
		       : ENOENT;
}

/* Put a staging file in a key's place: its name goes, and with the last one its purpose. */
static int place(struct request *request, struct node *directory, const char *name,
		 struct staging_file *file, const char *key, bool exclusive)
{
	struct stat stat;
	int error = view_ops(directory->view)->place(request, file, key, exclusive);
	if (error)
		return error;
	(void)staging_unlink(request->fs->staging, directory->view, directory->key, name);
	struct staging_state state = staging_state(file);
	state.placed = staging_stat(file, &stat) == 0 && stat.st_nlink == 0;
	staging_set_state(file, &state);
	return 0;
}

static int rename_resolved(struct request *request, struct node *directory, const char *name,
			   const struct target *from, struct node *new_directory,
			   const char *new_name, const struct target *to, bool exclusive)
{
	struct filesystem *fs = request->fs;
	enum view view = directory->view;
	bool to_staging = to->kind == TARGET_STAGING || (to->staging_name && !to->file);
	if (to->kind == TARGET_INVALID || to->kind == TARGET_PREFIX)
		return request_refused(request, view, new_directory->key, EINVAL,
				       "rename to %s: not the name of a key", new_name);
	if (from->kind == TARGET_STAGING && to_staging)
		return staging_rename(fs->staging, view, directory->key, name, new_directory->key,
				      new_name, exclusive);
	if (from->kind == TARGET_STAGING)
		return place(request, directory, name, from->file, to->key, exclusive);
	if (!to_staging)
		return move_key(request, view, from->key, to->key, exclusive);
	return view == VIEW_DOCS || view == VIEW_OBJECTS
		       ? copy_out(request, new_directory, from->key, new_name, exclusive)
		       : EPERM;
}

static void op_rename(fuse_req_t fuse, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		      const char *new_name, unsigned int flags)
{
	struct request request;
	struct target from, to;
	request_begin(&request, fuse);
	struct node *directory = operation_node(&request, parent);
	struct node *new_directory = operation_node(&request, new_parent);
	int error = flags & ~(unsigned)RENAME_NOREPLACE ? EINVAL : 0;
	if (!error && (!directory || !new_directory || new_directory->type != NODE_DIRECTORY))
		error = EPERM;
	/* Never EXDEV: mv would unlink and copy. */
	if (!error && directory->view != new_directory->view)
		error = EOPNOTSUPP;
	if (!error)
		error = resolve_there(&request, directory, name, &from);
	if (!error) {
		error = tree_resolve(&request, new_directory, new_name, &to);
		if (!error) {
			error = rename_resolved(&request, directory, name, &from, new_directory,
						new_name, &to, flags & RENAME_NOREPLACE);
			target_release(&to);
		}
		target_release(&from);
	}
	operation_reply(&request, error);
}

/* Link the staging file of `node` to a name, or put it in a key's place. */
static int link_staging(struct request *request, struct node *node, struct node *directory,
			const char *name, struct fuse_entry_param *ret_entry)
{
	struct filesystem *fs = request->fs;
	struct target target;
	if (!node || node->type != NODE_STAGING || !directory || directory->type != NODE_DIRECTORY)
		return EPERM;
	if (node->view != directory->view)
		return EOPNOTSUPP;
	struct staging_file *file = staging_use(node->staging);
	if (!file)
		return ENOENT;
	int error = tree_resolve(request, directory, name, &target);
	if (error)
		goto out;
	if (target.file)
		error = EEXIST;
	else if (target.kind == TARGET_STAGING || target.staging_name)
		error = staging_link(fs->staging, file, directory->view, directory->key, name);
	else if (target.kind == TARGET_KEY)
		error = view_ops(directory->view)->place(request, file, target.key, true);
	else
		error = request_refused(request, directory->view, directory->key, EINVAL,
					"link to %s: not the name of a key", name);
	/* A key's name shows the staging file only until it is next used: it is looked up then. */
	if (!error)
		tree_entry(request, inodes_look_up_staging(fs->inodes, node->view, file),
			   ret_entry);
	target_release(&target);
out:
	staging_unref(file);
	return error;
}

static void op_link(fuse_req_t fuse, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
	struct request request;
	struct fuse_entry_param entry;
	request_begin(&request, fuse);
	int error = link_staging(&request, operation_node(&request, ino),
				 operation_node(&request, new_parent), new_name, &entry);
	if (error)
		operation_reply(&request, error);
	else if (fuse_reply_entry(fuse, &entry) != 0)
		inodes_forget(request.fs->inodes, entry.ino, 1);
}

static void op_symlink(fuse_req_t fuse, const char *link, fuse_ino_t parent, const char *name)
{
	(void)link;
	(void)parent;
	(void)name;
	(void)fuse_reply_err(fuse, EPERM);
}

static void op_mknod(fuse_req_t fuse, fuse_ino_t parent, const char *name, mode_t mode,
		     dev_t device)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)device;
	(void)fuse_reply_err(fuse, EPERM);
}

void operations_move(struct fuse_lowlevel_ops *ops)
{
	ops->unlink = op_unlink;
	ops->rename = op_rename;
	ops->link = op_link;
	ops->symlink = op_symlink;
	ops->mknod = op_mknod;
}
