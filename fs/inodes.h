/* SPDX-License-Identifier: MIT */
#ifndef INODES_H
#define INODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The inode table. An inode is one version of a key (DESIGN "An inode is one version of a key"):
 * nodes are found by identity (type, view, key, etag) and by nodeid; nodeids are never used again.
 */

enum view {
	VIEW_NONE, /* the root, .cairn */
	VIEW_CLAIMS,
	VIEW_LEASES,
	VIEW_DOCS,
	VIEW_OBJECTS,
	VIEW_COUNT,
};

enum node_type {
	NODE_ROOT,
	NODE_DIRECTORY, /* key: the prefix, "" or with its last `/` */
	NODE_VERSION,	/* one version of a key */
	NODE_LISTED,	/* what a listing said of a key: opening it answers ESTALE, so that it is
			   looked up */
	NODE_WRITING,	/* a new file that one descriptor writes */
	NODE_LEASE,	/* a lease key, whatever its version */
	NODE_STAGING,
	NODE_CONTROL_DIRECTORY,
	NODE_CONTROL, /* key: the file's name */
};

struct content;
struct staging_file;
struct inodes;

/* What is known of a node's file; of a version the last look-up's. */
struct node_facts {
	uint64_t size;	   /* bytes that a reader is shown */
	int64_t modified;  /* microseconds since 1970 */
	int64_t age;	   /* since then, by the store's clock, at `looked_up` */
	int64_t looked_up; /* cairn_clock */
};

struct node {
	uint64_t id;
	uint64_t inode; /* st_ino: the same for all versions of a key */
	enum node_type type;
	enum view view;
	struct staging_file *staging; /* NODE_STAGING: remembered, see staging_use */
	/* the table's own */
	struct node_facts facts;
	struct content *content; /* counted, may vanish */
	uint64_t lookups;
	unsigned pins;
	struct node *next_by_id, *next_by_identity;
	struct node *newer, *older; /* nodes with content, least recently used first */
	const char *etag;	    /* NODE_VERSION, else "" */
	char key[];
};

struct inodes *inodes_new(void);
void inodes_free(struct inodes *inodes);

/* The root's node: its nodeid is FUSE_ROOT_ID; never forgotten. */
struct node *inodes_root(struct inodes *inodes);

/*
 * The node with nodeid `id`, which the kernel holds for the time of its request. NULL only for a
 * nodeid that the kernel must not use any more.
 */
struct node *inodes_at(struct inodes *inodes, uint64_t id);

/*
 * The node of this identity, made if there is none, with one more look-up counted; NULL without
 * memory. A NODE_WRITING is always new. `facts` (may be NULL: all zero) replaces what was known.
 */
struct node *inodes_look_up(struct inodes *inodes, enum node_type type, enum view view,
			    const char *key, const char *etag, const struct node_facts *facts);

/* The one node of a staging file, as inodes_look_up; the node remembers `file`. */
struct node *inodes_look_up_staging(struct inodes *inodes, enum view view,
				    struct staging_file *file);

struct node_facts inodes_facts(struct inodes *inodes, struct node *node);

/* A writer has made the file `size` bytes large. */
void inodes_set_size(struct inodes *inodes, struct node *node, uint64_t size);

/* The kernel forgets `count` look-ups of `id`; also for an answer that did not reach it. */
void inodes_forget(struct inodes *inodes, uint64_t id, uint64_t count);

void inodes_pin(struct inodes *inodes, struct node *node);
void inodes_unpin(struct inodes *inodes, struct node *node);

/*
 * Keep `content` (counted anew; NULL: nothing) with the node for the open that usually follows a
 * look-up. Bounded over all nodes; the least recently used is dropped.
 */
void inodes_keep(struct inodes *inodes, struct node *node, struct content *content);

/*
 * What a look at a mutable node found (`content` may be NULL: nothing to show) at
 * facts->looked_up, before the store was asked; one that began later is not overwritten.
 */
void inodes_renew(struct inodes *inodes, struct node *node, const struct node_facts *facts,
		  struct content *content);

/* A reference to the node's content for the caller, or NULL. */
struct content *inodes_content(struct inodes *inodes, struct node *node);

/* How many nodes there are, for status. */
size_t inodes_count(struct inodes *inodes);

/* st_ino of `key` in `view`. */
uint64_t inode_number(enum view view, const char *key);

#endif
