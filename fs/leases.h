/* SPDX-License-Identifier: MIT */
#ifndef LEASES_H
#define LEASES_H

#include "filesystem.h"

/* leases/: locks are acquisitions (DESIGN "leases/"). The view itself is leases_view in view.h. */

struct leases *leases_new(void);
/* The session has ended and the waiter pool has stopped. No lease is released. */
void leases_free(struct leases *leases);

/*
 * A name that a descriptor created without a document yet: its opener's kin see it. 0 with one
 * look-up counted, ENOENT to others.
 */
int leases_look_up_unmade(struct request *request, const char *key,
			  struct fuse_entry_param *ret_entry);

/* An open lease's attributes are to be asked for: make the node's facts at most 1 s old. */
int leases_refresh(struct request *request, struct node *node);

/* Whose lock it is: the description's (flock, OFD) or the process's (POSIX). */
struct lock_owner {
	bool flock;
	uint64_t owner; /* fuse_file_info.lock_owner */
};

/*
 * flock and fcntl on an open lease. `type` is F_WRLCK or F_UNLCK (F_RDLCK: EOPNOTSUPP, as is a part
 * of the file: the caller checks ranges). 0, EAGAIN, an errno, or DEFERRED: answered by the pool.
 */
int leases_lock(struct request *request, struct handle *handle, struct lock_owner owner, int type,
		bool wait);

/* F_GETLK: is it held by somebody else? 0 with *ret_held, or an errno. */
int leases_locked(struct request *request, struct handle *handle, struct lock_owner owner,
		  bool *ret_held);

/* A close of a duplicate: a POSIX lock of `owner` on the file ends. */
void leases_closed(struct request *request, struct handle *handle, uint64_t owner);

/* For status.json: leases held and requests that wait. */
void leases_count(struct leases *leases, unsigned *ret_held, unsigned *ret_waiting);

#endif
