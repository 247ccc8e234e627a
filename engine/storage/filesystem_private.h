/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_FILESYSTEM_PRIVATE_H
#define CAIRN_FILESYSTEM_PRIVATE_H

/* The directory store's parts among themselves; FORMAT "Filesystem backend" is their law. */

#include "storage/store_private.h"

#include <sys/stat.h>

#include <limits.h>

struct etag_cache;

struct filesystem_store {
	struct cairn_store store;
	int root; /* the root directory; every path is resolved beneath it */
	struct etag_cache *etags;
};

/* Longest name whose lock file `.{name}.lock` can exist. */
#define FILESYSTEM_NAME_MAX (NAME_MAX - 6)

/* The status that stands for `error`, an errno, here. The one place that translates. */
int filesystem_status(int error);

/*
 * Describe a system call's failure (errno `error`) in call->error and return its status.
 * `doing` and `key` make the sentence: "writing a/b". A deleted root is CAIRN_IO, whatever failed.
 */
int filesystem_fail(const struct filesystem_store *filesystem, struct cairn_call *call, int error,
		    const char *doing, const char *key);

/* CAIRN_IO, described in the same way, when the root has been deleted. */
int filesystem_check_root(const struct filesystem_store *filesystem, struct cairn_call *call,
			  const char *doing, const char *key) CAIRN_MUST_USE;

/* Can `key` lie in a directory? 0, CAIRN_INVALID or CAIRN_NAME_TOO_LONG. */
int filesystem_key_check(struct cairn_call *call, const char *key) CAIRN_MUST_USE;

/* The same for the directory of a prefix, which ends in `/`. */
int filesystem_prefix_check(struct cairn_call *call, const char *prefix) CAIRN_MUST_USE;

/* openat2 beneath `directory`, through no symbolic link. An fd, or -1 and errno. */
int filesystem_open(int directory, const char *path, int flags);

/* Where a key lies, and its lock. */
struct filesystem_place {
	int directory;	  /* owned unless it is the root */
	int lock;	  /* owned, or -1 */
	const char *name; /* the last segment, in the key */
};

/*
 * Open the directory that `key` lies in. `make`: made durably if missing; else CAIRN_NOT_FOUND
 * when there is none, also when an object stands in its way. Leave with filesystem_leave.
 */
int filesystem_enter(struct filesystem_store *filesystem, struct cairn_call *call, const char *key,
		     bool make, struct filesystem_place *ret_place) CAIRN_MUST_USE;

/*
 * Take the key's lock, shared with Python processes, waiting at most until the call's deadline.
 * CAIRN_NOT_FOUND: the directory has been removed meanwhile; enter again.
 */
int filesystem_lock(struct filesystem_store *filesystem, struct cairn_call *call, const char *key,
		    struct filesystem_place *place) CAIRN_MUST_USE;

/* Unlock and close. */
void filesystem_leave(const struct filesystem_store *filesystem, struct filesystem_place *place);

/* The lock file's name, FILESYSTEM_NAME_MAX allowing. */
void filesystem_lock_name(const char *name, char ret_name[NAME_MAX + 1]);

/* Version but the etag: size, times, nonce (FORMAT hazard 1: the file's inode and time). */
void filesystem_version(const struct stat *status, struct cairn_version *ret_version);

/* Refuse what is no regular file. `found`: its status. */
int filesystem_check_type(struct cairn_call *call, const char *key,
			  const struct stat *found) CAIRN_MUST_USE;

/* The get of `key` in the open file `file`: version and data, conditions checked. */
int filesystem_read(struct filesystem_store *filesystem, struct cairn_call *call, const char *key,
		    int file, const struct cairn_get_options *options,
		    struct cairn_object *ret_object) CAIRN_MUST_USE;

/* Etags of big files that were hashed before. NULL: no memory. */
struct etag_cache *filesystem_etags_new(void);
void filesystem_etags_free(struct etag_cache *cache);

/* cairn_store_ops.get and .list */
int filesystem_get(struct cairn_store *store, struct cairn_call *call, const char *key,
		   const struct cairn_get_options *options, struct cairn_object *ret_object);
int filesystem_list(struct cairn_store *store, struct cairn_call *call, const char *prefix,
		    const struct cairn_list_options *options, struct cairn_listing *ret_listing);

#endif
