/* SPDX-License-Identifier: MIT */
#ifndef TREE_H
#define TREE_H

#include "filesystem.h"

/* Names, attributes and directories: what is the same in every view. */

/* What a name in a directory of a view stands for. */
struct target {
	enum {
		TARGET_KEY,	/* the key `key`, there or not; it may be a prefix as well */
		TARGET_PREFIX,	/* only the prefix `key` (with its `/`), beside an object of that
				   name */
		TARGET_STAGING, /* the staging file `file`, or with NULL the free name of one */
		TARGET_INVALID, /* no key has that name */
	} kind;
	bool staging_name; /* by its form a staging file's, or by a glob and no key is asked for */
	struct staging_file *file; /* counted; target_release */
	char key[CAIRN_KEY_MAX + 2];
};

/* 0 with ret_target, or ENAMETOOLONG. */
int tree_resolve(struct request *request, const struct node *directory, const char *name,
		 struct target *ret_target);
void target_release(struct target *target);

/* The node of `name`, one look-up counted, with what an entry's answer says. 0 or an errno. */
int tree_look_up(struct request *request, struct node *directory, const char *name,
		 struct fuse_entry_param *ret_entry);

/* Fill an entry's answer for `node`, whose look-up is counted already. */
void tree_entry(struct request *request, struct node *node, struct fuse_entry_param *ret_entry);

/* The attributes of `node`, and for how long the kernel may keep them. */
int tree_attributes(struct request *request, struct node *node, struct stat *ret_stat,
		    double *ret_timeout);

int tree_make_directory(struct request *request, struct node *directory, const char *name,
			struct fuse_entry_param *ret_entry);
int tree_remove_directory(struct request *request, struct node *directory, const char *name);

/* The entries of the root, by index; NULL behind the last. */
const char *tree_top_name(size_t index, enum node_type *ret_type, enum view *ret_view);

/* An open directory: a listing taken at opendir, or anew at offset 0. */
struct directory;
int directory_open(struct directory **ret_directory);
void directory_free(struct directory *directory);
/*
 * Fill `buffer` with entries from `offset` on, with look-ups counted when `plus`. *ret_used 0 at
 * the end. 0 or an errno.
 */
int directory_read(struct request *request, struct directory *directory, struct node *node,
		   char *buffer, size_t size, off_t offset, bool plus, size_t *ret_used);

#endif
