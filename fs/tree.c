/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "leases.h"
#include "view.h"

/*
 * How long the kernel keeps the attributes of a version, which never change, and of a staging file,
 * which only this kernel changes.
 */
#define KEPT_TIMEOUT 60.0

static const struct {
	const char *name;
	enum view view;
	enum node_type type;
} top[] = {
	{ "claims", VIEW_CLAIMS, NODE_DIRECTORY },
	{ "leases", VIEW_LEASES, NODE_DIRECTORY },
	{ "docs", VIEW_DOCS, NODE_DIRECTORY },
	{ "objects", VIEW_OBJECTS, NODE_DIRECTORY },
	{ ".cairn", VIEW_NONE, NODE_CONTROL_DIRECTORY },
};

const char *tree_top_name(size_t index, enum node_type *ret_type, enum view *ret_view)
{
	if (index >= sizeof(top) / sizeof(top[0]))
		return NULL;
	*ret_type = top[index].type;
	*ret_view = top[index].view;
	return top[index].name;
}

static void append_slash(char key[CAIRN_KEY_MAX + 2])
{
	size_t size = strlen(key);
	key[size] = '/';
	key[size + 1] = '\0';
}

static bool hidden(const struct filesystem *fs, enum view view, const char *key)
{
	return !(fs->options.raw && view == VIEW_OBJECTS) && cairn_key_reserved(key);
}

int tree_resolve(struct request *request, const struct node *directory, const char *name,
		 struct target *ret_target)
{
	struct filesystem *fs = request->fs;
	*ret_target = (struct target){ .kind = TARGET_STAGING };
	ret_target->file = staging_find(fs->staging, directory->view, directory->key, name);
	enum staging_name form = staging_name(fs->staging, name);
	ret_target->staging_name = form != STAGING_NO;
	if (ret_target->file || form == STAGING_YES)
		return 0;
	struct cairn_buffer segment;
	enum cairn_name_kind kind = CAIRN_NAME_SEGMENT;
	cairn_buffer_init(&segment, 3 * CAIRN_KEY_MAX);
	int status = cairn_name_decode(name, &segment, &kind);
	int error = 0;
	if (status == CAIRN_INVALID) {
		ret_target->kind = TARGET_INVALID;
	} else if (status) {
		error = cairn_status_errno(status == CAIRN_TOO_BIG ? CAIRN_NAME_TOO_LONG : status);
	} else if (strlen(directory->key) + segment.size > CAIRN_KEY_MAX) {
		error = request_refused(request, directory->view, directory->key, ENAMETOOLONG,
					"a key below it with a name of %zu bytes is over %d bytes",
					strlen(name), CAIRN_KEY_MAX);
	} else {
		ret_target->kind = kind == CAIRN_NAME_PREFIX ? TARGET_PREFIX : TARGET_KEY;
		snprintf(ret_target->key, sizeof(ret_target->key), "%s%.*s%s", directory->key,
			 (int)segment.size, segment.data ? segment.data : "",
			 kind == CAIRN_NAME_PREFIX ? "/" : "");
	}
	cairn_buffer_release(&segment);
	return error;
}

void target_release(struct target *target)
{
	staging_unref(target->file);
}

static void fill(const struct filesystem *fs, struct stat *stat, mode_t type, uint64_t inode,
		 uint64_t size, int64_t modified)
{
	mode_t bits = (type == S_IFDIR ? 0777 : 0666) & ~fs->options.umask;
	*stat = (struct stat){
		.st_ino = inode,
		.st_mode = type | (fs->options.ro ? bits & ~(mode_t)0222 : bits),
		.st_nlink = type == S_IFDIR ? 2 : 1,
		.st_uid = fs->options.uid,
		.st_gid = fs->options.gid,
		.st_size = (off_t)size,
		.st_blocks = (blkcnt_t)((size + 511) / 512),
		.st_blksize = 4096,
	};
	stat->st_mtim.tv_sec = modified / 1000000;
	stat->st_mtim.tv_nsec = modified % 1000000 * 1000;
	stat->st_atim = stat->st_ctim = stat->st_mtim;
}

/* Of a file that was placed, its inode alone is left: until the name is looked up again. */
static int staging_attributes(struct node *node, struct stat *ret_stat)
{
	struct staging_file *file = staging_use(node->staging);
	int error = file ? staging_stat(file, ret_stat) : 0;
	if (!file)
		*ret_stat = (struct stat){ .st_mode = staging_state(node->staging).mode };
	ret_stat->st_ino = node->inode;
	staging_unref(file);
	return error;
}

int tree_attributes(struct request *request, struct node *node, struct stat *ret_stat,
		    double *ret_timeout)
{
	struct filesystem *fs = request->fs;
	struct node_facts facts = inodes_facts(fs->inodes, node);
	bool keeps = node->type == NODE_VERSION || node->type == NODE_STAGING;
	*ret_timeout = keeps ? KEPT_TIMEOUT : 0;
	switch (node->type) {
	case NODE_ROOT:
	case NODE_DIRECTORY:
	case NODE_CONTROL_DIRECTORY:
		fill(fs, ret_stat, S_IFDIR, node->inode, 0, fs->mounted);
		return 0;
	case NODE_STAGING:
		return staging_attributes(node, ret_stat);
	case NODE_CONTROL:
		return control_attributes(request, node, ret_stat);
	case NODE_LEASE:
	case NODE_VERSION:
	case NODE_LISTED:
	case NODE_WRITING:
		break;
	}
	fill(fs, ret_stat, S_IFREG, node->inode, facts.size, facts.modified);
	return 0;
}

void tree_entry(struct request *request, struct node *node, struct fuse_entry_param *ret_entry)
{
	*ret_entry = (struct fuse_entry_param){ .ino = node->id, .generation = 1 };
	(void)tree_attributes(request, node, &ret_entry->attr, &ret_entry->attr_timeout);
}

static int found(struct request *request, struct node *node, struct fuse_entry_param *ret_entry)
{
	if (!node)
		return ENOMEM;
	tree_entry(request, node, ret_entry);
	return 0;
}

/* The prefix `prefix` as a directory. */
static int look_up_prefix(struct request *request, enum view view, const char *prefix,
			  struct fuse_entry_param *ret_entry)
{
	struct filesystem *fs = request->fs;
	if (hidden(fs, view, prefix))
		return ENOENT;
	if (strlen(prefix) > CAIRN_KEY_MAX)
		return ENOENT;
	int status = cairn_store_prefix_exists(fs->store, &request->call, prefix);
	if (status == CAIRN_NOT_FOUND && staging_below(fs->staging, view, prefix))
		status = 0; /* deleted by another host while staging files stand in it */
	if (status)
		return status == CAIRN_NOT_FOUND ? ENOENT
						 : request_failed(request, prefix, status, 0);
	return found(request, inodes_look_up(fs->inodes, NODE_DIRECTORY, view, prefix, "", NULL),
		     ret_entry);
}

static int look_up_key(struct request *request, enum view view, const char *key,
		       struct fuse_entry_param *ret_entry)
{
	struct filesystem *fs = request->fs;
	const struct view_ops *ops = view_ops(view);
	struct cairn_version version;
	struct content *content = NULL;
	size_t size = strlen(key);
	/* An empty object `a/` is the directory itself; the engine's own keys are not shown. */
	if (!size || hidden(fs, view, key))
		return ENOENT;
	int64_t before = cairn_clock();
	int error = view_fetch(request, view, key, NULL, &version, &content);
	if (error)
		return error;
	if (!version.size && key[size - 1] == '/') {
		content_unref(content);
		return ENOENT;
	}
	struct node_facts facts = {
		.size = content ? content->bytes.size : version.size,
		.modified = version.modified,
		.age = version.age,
		.looked_up = ops->mutable_nodes ? before : cairn_clock(),
	};
	struct node *node = inodes_look_up(
		fs->inodes, ops->mutable_nodes ? NODE_LEASE : NODE_VERSION, view, key,
		ops->mutable_nodes ? "" : version.etag, ops->mutable_nodes ? NULL : &facts);
	if (node && ops->mutable_nodes)
		inodes_renew(fs->inodes, node, &facts, content);
	else if (node)
		inodes_keep(fs->inodes, node, content);
	content_unref(content);
	return found(request, node, ret_entry);
}

/* Is there an object of the prefix's name, beside which the prefix is called NAME%? */
static bool beside_object(struct request *request, enum view view, const char *prefix)
{
	struct fuse_entry_param entry;
	char key[CAIRN_KEY_MAX + 2];
	snprintf(key, sizeof(key), "%.*s", (int)strlen(prefix) - 1, prefix);
	if (request->fs->store->capabilities.real_directories ||
	    look_up_key(request, view, key, &entry) != 0)
		return false;
	inodes_forget(request->fs->inodes, entry.ino, 1);
	return true;
}

/* A directory bucket cannot hold it, so that nothing has that name: the last segment tells. */
static bool impossible(const struct filesystem *fs, const char *key)
{
	const char *slash = strrchr(key, '/'), *segment = slash ? slash + 1 : key;
	return fs->store->capabilities.real_directories && (!*segment || *segment == '.');
}

static int look_up_in_view(struct request *request, struct node *directory, const char *name,
			   struct fuse_entry_param *ret_entry)
{
	struct filesystem *fs = request->fs;
	struct target target;
	int error = tree_resolve(request, directory, name, &target);
	if (error)
		return error;
	error = ENOENT;
	if (target.kind == TARGET_STAGING && target.file) {
		error = found(request,
			      inodes_look_up_staging(fs->inodes, directory->view, target.file),
			      ret_entry);
	} else if (target.kind == TARGET_PREFIX) {
		/* Only beside an object; otherwise the prefix goes by the plain name. */
		if (beside_object(request, directory->view, target.key))
			error = look_up_prefix(request, directory->view, target.key, ret_entry);
	} else if (target.kind == TARGET_KEY && !impossible(fs, target.key)) {
		error = look_up_key(request, directory->view, target.key, ret_entry);
		if (error == ENOENT && directory->view == VIEW_LEASES)
			error = leases_look_up_unmade(request, target.key, ret_entry);
		if (error == ENOENT) {
			append_slash(target.key);
			error = look_up_prefix(request, directory->view, target.key, ret_entry);
		}
	}
	target_release(&target);
	return error;
}

int tree_look_up(struct request *request, struct node *directory, const char *name,
		 struct fuse_entry_param *ret_entry)
{
	struct inodes *inodes = request->fs->inodes;
	if (directory->type == NODE_DIRECTORY)
		return look_up_in_view(request, directory, name, ret_entry);
	if (directory->type == NODE_CONTROL_DIRECTORY)
		return control_knows(name) ? found(request,
						   inodes_look_up(inodes, NODE_CONTROL, VIEW_NONE,
								  name, "", NULL),
						   ret_entry)
					   : ENOENT;
	if (directory->type != NODE_ROOT)
		return ENOTDIR;
	for (size_t i = 0; i < sizeof(top) / sizeof(top[0]); i++)
		if (strcmp(top[i].name, name) == 0)
			return found(request,
				     inodes_look_up(inodes, top[i].type, top[i].view, "", "", NULL),
				     ret_entry);
	return ENOENT;
}

/* The prefix that the name of a new or old directory stands for. 0 or an errno. */
static int prefix_of(struct request *request, struct node *directory, const char *name,
		     char ret_prefix[CAIRN_KEY_MAX + 2])
{
	struct target target;
	if (directory->type != NODE_DIRECTORY)
		return EPERM;
	int error = tree_resolve(request, directory, name, &target);
	if (error)
		return error;
	if (target.kind == TARGET_KEY)
		append_slash(target.key);
	else if (target.kind != TARGET_PREFIX ||
		 !beside_object(request, directory->view, target.key))
		error = target.file ? ENOTDIR : EINVAL;
	if (!error && hidden(request->fs, directory->view, target.key))
		error = EPERM;
	memcpy(ret_prefix, target.key, sizeof(target.key));
	target_release(&target);
	return error;
}

int tree_make_directory(struct request *request, struct node *directory, const char *name,
			struct fuse_entry_param *ret_entry)
{
	struct filesystem *fs = request->fs;
	char prefix[CAIRN_KEY_MAX + 2];
	int error = prefix_of(request, directory, name, prefix);
	if (error == ENOTDIR)
		return EEXIST;
	if (error)
		return error == EINVAL
			       ? request_refused(request, directory->view, directory->key, EINVAL,
						 "make directory %s: not the name of a key", name)
			       : error;
	int status = cairn_store_prefix_make(fs->store, &request->call, prefix);
	if (status)
		return request_failed(request, prefix, status, 0);
	return found(request,
		     inodes_look_up(fs->inodes, NODE_DIRECTORY, directory->view, prefix, "", NULL),
		     ret_entry);
}

int tree_remove_directory(struct request *request, struct node *directory, const char *name)
{
	struct filesystem *fs = request->fs;
	char prefix[CAIRN_KEY_MAX + 2];
	int error = prefix_of(request, directory, name, prefix);
	if (error)
		return error == EINVAL ? ENOENT : error;
	if (staging_below(fs->staging, directory->view, prefix))
		return ENOTEMPTY;
	int status = cairn_store_prefix_remove(fs->store, &request->call, prefix);
	return status ? request_failed(request, prefix, status, 0) : 0;
}
