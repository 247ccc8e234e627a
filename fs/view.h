/* SPDX-License-Identifier: MIT */
#ifndef VIEW_H
#define VIEW_H

#include "filesystem.h"

/*
 * One of the protocols on the key space: claims/, leases/, docs/, objects/. Operations return 0,
 * a positive errno, or (open, lock) DEFERRED when the request was kept. None is NULL unless said.
 */
struct view_ops {
	const char *name;	   /* of its directory */
	bool json;		   /* shows canonical JSON and a newline */
	const char *const *xattrs; /* listed on every key; ends with NULL */

	/*
	 * What a reader is shown of `object` (its data is consumed): appended to ret_bytes (empty,
	 * its limit set). EINVAL when it is not what the view needs; the caller decides whether to
	 * log.
	 */
	int (*show)(struct cairn_object *object, struct cairn_buffer *ret_bytes,
		    struct cairn_error *error);

	/* Open the version (or lease) of handle->node for what handle->flags say. */
	int (*open)(struct request *request, struct handle *handle, struct fuse_file_info *file);

	/* Create `key`, which was not there. handle->node is set by the caller: see
	 * `mutable_nodes`. */
	int (*create)(struct request *request, const char *key, struct handle *handle);

	/* Bytes for a READ; NULL: handle->content as it is. *ret_part is good until the reply. */
	int (*read)(struct request *request, struct handle *handle, size_t size, off_t offset,
		    struct cairn_slice *ret_part);

	int (*write)(struct request *request, struct handle *handle, const char *data, size_t size,
		     off_t offset);
	int (*truncate)(struct request *request, struct node *node, struct handle *handle,
			off_t size);
	/* At each close of a duplicate and at fsync: commit what is complete. */
	int (*flush)(struct request *request, struct handle *handle);
	/* The last close; the handle is freed afterwards. */
	void (*release)(struct request *request, struct handle *handle);

	int (*unlink)(struct request *request, const char *key);
	/* A staging file is linked (exclusive) or renamed onto `key`. */
	int (*place)(struct request *request, struct staging_file *file, const char *key,
		     bool exclusive);
	/* Rename key onto key; exclusive: RENAME_NOREPLACE. */
	int (*move)(struct request *request, const char *from, const char *to, bool exclusive);

	/* xattrs of a key beside user.cairn.etag. ENODATA; ret_value is empty. May be NULL. */
	int (*getxattr)(struct request *request, struct node *node, const char *name,
			struct cairn_buffer *ret_value);
	int (*setxattr)(struct request *request, struct node *node, const char *name,
			struct cairn_slice value);
	bool mutable_nodes; /* a key is one NODE_LEASE, not a node for each version */
};

extern const struct view_ops claims_view, leases_view, docs_view, objects_view;

/* By number; NULL for VIEW_NONE. */
const struct view_ops *view_ops(enum view view);

/* Parts that views share. */

/*
 * Read `key` for a reader of `view`, conditional on `if_match` (may be NULL): its version and, when
 * it is no larger than what is fetched whole, what a reader is shown (else *ret_content is NULL).
 * 0, ENOENT, ESTALE (another version), EFBIG, EINVAL, or the store's failure, logged.
 */
int view_fetch(struct request *request, enum view view, const char *key, const char *if_match,
	       struct cairn_version *ret_version, struct content **ret_content);

/* What a replacement must find in its key's place. */
struct base {
	enum {
		BASE_UNSTATED, /* nothing is known of what the new content was made from */
		BASE_ANY,      /* whatever is there */
		BASE_ABSENT,
		BASE_VERSION, /* the version `etag` */
	} kind;
	char etag[CAIRN_ETAG_SIZE];
	bool read;	 /* it is what was read before */
	bool exclusive;	 /* of BASE_ABSENT: to find something is EEXIST, not a lost race */
	const char *why; /* in words, when the store finds something else */
};

/*
 * What a staging file states of itself: user.cairn.if_match, or user.cairn.etag that was copied
 * along, which counts if `key` exists at all (one request). 0, or the store's failure, logged.
 */
int view_stated_base(struct request *request, struct staging_file *file, const char *key,
		     struct base *ret_base);

/*
 * An exclusive placement of what was made from a version of `key`: EEXIST where there is one (mv(1)
 * then renames without the flag), and where it went EBUSY, logged: no put-if-absent brings it back.
 */
int view_refuse_exclusive(struct request *request, enum view view, const char *key);

/* The canonical JSON and a newline: the `show` of the JSON views. */
int view_show_json(struct cairn_object *object, struct cairn_buffer *ret_bytes,
		   struct cairn_error *error);

/* The staging file's content as canonical JSON in ret_value (initialised here). Logged. */
int view_staged_json(struct request *request, enum view view, struct staging_file *file,
		     const char *key, struct cairn_buffer *ret_value);

/* For operations that a view never allows. */
int view_refuse_unlink(struct request *request, const char *key);
int view_refuse_move(struct request *request, const char *from, const char *to, bool exclusive);

/* Text that is written in pieces. */
void text_init(struct text *text);
void text_release(struct text *text);
void text_clear(struct text *text);
/* Put `data` at `offset`, which is not behind the end. 0, EINVAL (a hole), EFBIG, ENOMEM. */
int text_write(struct text *text, const char *data, size_t size, off_t offset);
int text_truncate(struct text *text, off_t size);
/* The value, once it is complete or (`ended`) would be if the text ended here; data NULL: none. */
struct cairn_slice text_value(const struct text *text, bool ended);
/* Nothing but white space stands behind the complete value. */
bool text_ends_there(const struct text *text);

#endif
