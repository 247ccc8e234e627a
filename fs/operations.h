/* SPDX-License-Identifier: MIT */
#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "filesystem.h"

/*
 * The FUSE operations, as libfuse calls them: each decodes, calls one helper that returns an errno,
 * and replies exactly once. Every file fills in its own.
 */
void operations_tree(struct fuse_lowlevel_ops *ops);  /* look-ups, attributes, directories */
void operations_file(struct fuse_lowlevel_ops *ops);  /* open files and locks */
void operations_move(struct fuse_lowlevel_ops *ops);  /* rename, link, unlink */
void operations_xattr(struct fuse_lowlevel_ops *ops); /* extended attributes */

/* The node of `ino`, which the kernel holds during its request. */
struct node *operation_node(struct request *request, fuse_ino_t ino);

/* Answer 0 or an errno. */
void operation_reply(struct request *request, int error);

#endif
