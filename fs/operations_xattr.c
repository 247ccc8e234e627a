/* SPDX-License-Identifier: MIT */
#include "operations.h"

#include <errno.h>
#include <string.h>

#include "view.h"

#define PREFIX "user.cairn."

static bool ours(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

static bool is_key(const struct node *node)
{
	return node->type == NODE_VERSION || node->type == NODE_LISTED ||
	       node->type == NODE_WRITING || node->type == NODE_LEASE;
}

static bool listed(const struct node *node, const char *name)
{
	for (const char *const *at = view_ops(node->view)->xattrs; *at; at++)
		if (strcmp(*at, name) == 0)
			return true;
	return false;
}

/* The etag of a version is its own; of a key whose version may change, the present one. */
static int get_etag(struct request *request, struct node *node, struct cairn_buffer *ret_value)
{
	const char *etag = node->etag;
	struct cairn_object object;
	cairn_object_init(&object);
	int error = 0;
	if (node->type != NODE_VERSION) {
		const struct cairn_get_options options = { .no_data = true };
		int status = cairn_store_get(request->fs->store, &request->call, node->key,
					     &options, &object);
		error = status == CAIRN_NOT_FOUND ? ENODATA
			: status		  ? request_failed(request, node->key, status, 0)
						  : 0;
		etag = object.version.etag;
	}
	if (!error && cairn_buffer_append(ret_value, etag, strlen(etag)))
		error = ENOMEM;
	cairn_object_release(&object);
	return error;
}

static int get(struct request *request, struct node *node, const char *name,
	       struct cairn_buffer *ret_value)
{
	if (!ours(name))
		return ENODATA;
	if (node->type == NODE_STAGING) {
		const struct staging_state state = staging_state(node->staging);
		const char *value = strcmp(name, PREFIX "if_match") == 0 ? state.if_match
				    : strcmp(name, PREFIX "etag") == 0	 ? state.etag
									 : "";
		if (!value[0])
			return ENODATA;
		return cairn_buffer_append(ret_value, value, strlen(value)) ? ENOMEM : 0;
	}
	if (!is_key(node))
		return ENODATA;
	if (strcmp(name, PREFIX "etag") == 0)
		return get_etag(request, node, ret_value);
	const struct view_ops *view = view_ops(node->view);
	return view->getxattr ? view->getxattr(request, node, name, ret_value) : ENODATA;
}

static void reply_value(struct request *request, int error, const struct cairn_buffer *value,
			size_t size)
{
	if (!error && size && value->size > size)
		error = ERANGE;
	if (error)
		operation_reply(request, error);
	else if (!size)
		(void)fuse_reply_xattr(request->fuse, value->size);
	else
		(void)fuse_reply_buf(request->fuse, value->data, value->size);
}

static void op_getxattr(fuse_req_t fuse, fuse_ino_t ino, const char *name, size_t size)
{
	struct request request;
	struct cairn_buffer value;
	request_begin(&request, fuse);
	cairn_buffer_init(&value, CAIRN_JSON_MAX);
	struct node *node = operation_node(&request, ino);
	reply_value(&request, node ? get(&request, node, name, &value) : ENOENT, &value, size);
	cairn_buffer_release(&value);
}

static void op_listxattr(fuse_req_t fuse, fuse_ino_t ino, size_t size)
{
	struct request request;
	struct cairn_buffer names;
	request_begin(&request, fuse);
	cairn_buffer_init(&names, 4096);
	struct node *node = operation_node(&request, ino);
	int status = 0;
	if (node && is_key(node)) {
		for (const char *const *at = view_ops(node->view)->xattrs; *at && !status; at++)
			status = cairn_buffer_append(&names, *at, strlen(*at) + 1);
	} else if (node && node->type == NODE_STAGING) {
		const struct staging_state state = staging_state(node->staging);
		if (state.etag[0])
			status = cairn_buffer_append(&names, PREFIX "etag",
						     strlen(PREFIX "etag") + 1);
	}
	reply_value(&request, !node ? ENOENT : status ? ENOMEM : 0, &names, size);
	cairn_buffer_release(&names);
}

/* What a staging file states of itself; listed names of keys that `cp -a` replays do nothing. */
static int set_staging(struct node *node, const char *name, struct cairn_slice value)
{
	struct staging_state state = staging_state(node->staging);
	char *at = strcmp(name, PREFIX "if_match") == 0 ? state.if_match
		   : strcmp(name, PREFIX "etag") == 0	? state.etag
							: NULL;
	if (!at)
		return listed(node, name) ? 0 : EPERM;
	if (value.size >= CAIRN_ETAG_SIZE || memchr(value.data ? value.data : "", '\0', value.size))
		return EINVAL;
	memset(at, 0, CAIRN_ETAG_SIZE);
	memcpy(at, value.data, value.size);
	staging_set_state(node->staging, &state);
	return 0;
}

static int set(struct request *request, struct node *node, const char *name,
	       struct cairn_slice value)
{
	if (!ours(name))
		return EOPNOTSUPP;
	if (node->type == NODE_STAGING)
		return set_staging(node, name, value);
	if (!is_key(node))
		return EPERM;
	if (listed(node, name))
		return 0;
	const struct view_ops *view = view_ops(node->view);
	return view->setxattr ? view->setxattr(request, node, name, value) : EPERM;
}

static void op_setxattr(fuse_req_t fuse, fuse_ino_t ino, const char *name, const char *value,
			size_t size, int flags)
{
	struct request request;
	(void)flags;
	request_begin(&request, fuse);
	struct node *node = operation_node(&request, ino);
	operation_reply(&request,
			node ? set(&request, node, name, (struct cairn_slice){ value, size })
			     : ENOENT);
}

static void op_removexattr(fuse_req_t fuse, fuse_ino_t ino, const char *name)
{
	struct request request;
	struct cairn_buffer value;
	request_begin(&request, fuse);
	cairn_buffer_init(&value, CAIRN_JSON_MAX);
	struct node *node = operation_node(&request, ino);
	int error = node ? get(&request, node, name, &value) : ENOENT;
	if (!error)
		error = node->type == NODE_STAGING
				? set_staging(node, name, (struct cairn_slice){ .data = "" })
				: EPERM;
	operation_reply(&request, error);
	cairn_buffer_release(&value);
}

void operations_xattr(struct fuse_lowlevel_ops *ops)
{
	ops->getxattr = op_getxattr;
	ops->setxattr = op_setxattr;
	ops->listxattr = op_listxattr;
	ops->removexattr = op_removexattr;
}
