/* SPDX-License-Identifier: MIT */
#ifndef LEASES_PRIVATE_H
#define LEASES_PRIVATE_H

#include <sys/queue.h>

#include "leases.h"

/*
 * What leases/ keeps: a lease_key for each key with an open descriptor; in it the descriptors
 * (lease_open), their locks (lease_grant), the ownership periods that locks took (lease_period),
 * and the lock requests that wait (lease_waiter).
 *
 * Lock order: handle->mutex, lease_key.mutex, then leases.mutex and the pool's. No store call and
 * no reply under a lease_key's mutex.
 */

struct leases {
	pthread_mutex_t mutex; /* guards the tree and lease_key.users */
	void *keys;	       /* lease_key by name: a tree of search.h */
	bool ending;
	atomic_uint held, waiting; /* for status */
};

/* What whoever opened a descriptor has set for its next lock. Strings are owned. */
struct lease_settings {
	int64_t ttl; /* microseconds */
	bool no_steal;
	char *holder; /* NULL: random */
	char *attach; /* NULL: a period of its own */
};

/* One ownership period. It outlives its end, so that its descriptors know that they are fenced. */
struct lease_period {
	atomic_uint references;
	struct lease_key *key; /* counted */
	struct cairn_lease *lease;
	int64_t ttl;
	struct process opener; /* pid 0: not known */
	struct task heartbeat; /* while scheduled or running it counts a reference */
	/* guarded by key->mutex */
	enum lease_end {
		LEASE_RUNS,
		LEASE_LOST,
		LEASE_RELEASED, /* by user.cairn.release; the descriptor is locked on */
		LEASE_UNLOCKED,
	} end;
	unsigned grants;
	bool told;	      /* in the log, that it was lost */
	struct content *base; /* the state that the holder's kin last read; NULL: never */
};

/* One lock, and whose. */
struct lease_grant {
	TAILQ_ENTRY(lease_grant) next;
	struct lease_open *open;
	struct lock_owner owner;
	struct lease_period *period; /* counted */
};

/* What a descriptor is to its lease (handle->lease). */
struct lease_open {
	TAILQ_ENTRY(lease_open) next;
	struct lease_key *key; /* counted */
	struct handle *handle;
	struct lineage opener;
	bool created;	    /* by O_CREAT: its kin see the name though there is no document yet */
	int64_t fetched;    /* cairn_clock before handle->content was; guarded by handle->mutex */
	atomic_bool locked; /* since then: what was read before may be older than the lock */
	/* guarded by key->mutex */
	struct lease_settings settings;
	struct lease_period *period; /* counted: the last that a lock of it took, or NULL */
	int64_t closed;		     /* the last close of a duplicate */
};

struct lease_waiter;

struct lease_key {
	struct leases *leases;
	struct filesystem *fs;
	unsigned users; /* guarded by leases->mutex */

	pthread_mutex_t mutex; /* guards all below */
	TAILQ_HEAD(, lease_open) opens;
	TAILQ_HEAD(, lease_grant) grants;
	TAILQ_HEAD(, lease_waiter) waiters; /* first come, first served */
	bool trying;			    /* one of them asks the store for the lease */
	unsigned releasing;		    /* so many give it back */
	int64_t next_look, pause;	    /* when the first of them asks again; backoff */
	int64_t seen;			    /* the epoch that it saw last, or 0 */
	int64_t since;			    /* when this mount took the lease from others */
	struct task poll;
	bool polling; /* poll is scheduled or runs, and counts a user */
	char name[];
};

/* leases_keys.c */

/* The key `name`, one user more; NULL when there is none and it is not to be made, or no memory. */
struct lease_key *lease_key_get(struct filesystem *fs, const char *name, bool make);
struct lease_key *lease_key_ref(struct lease_key *key);
void lease_key_put(struct lease_key *key);

/* Make handle->lease. 0 or ENOMEM. */
int lease_open_new(struct request *request, struct handle *handle, bool created);
/* Its locks and waiters are gone already. */
void lease_open_free(struct lease_open *open);

/* 0 or ENOMEM; ret_copy is released with lease_settings_release. */
int lease_settings_copy(const struct lease_settings *settings, struct lease_settings *ret_copy);
void lease_settings_release(struct lease_settings *settings);

/* These need key->mutex. */

/* The lock that `open` has, the newest of several; or NULL. */
struct lease_grant *lease_grant_through(struct lease_key *key, const struct lease_open *open);
/*
 * The period that the asker is kin of: the nearest in its line that opened a descriptor which took
 * the lock. NULL without one. `open` (may be NULL) is the descriptor that it asks through.
 */
struct lease_period *lease_period_of(struct lease_key *key, const struct lineage *asker,
				     const struct lease_open *open);
/* The period runs and its own deadline is ahead; *ret_until (may be NULL): cairn_clock until. */
bool lease_period_holds(struct lease_period *period, int64_t *ret_until);

/* leases_heartbeat.c */

/*
 * A period of `lease` (owned from here on) for `open`, whose heart beats; key->mutex is not held.
 * NULL without memory: the lease is freed and runs out.
 */
struct lease_period *lease_period_new(struct lease_open *open, struct cairn_lease *lease,
				      int64_t ttl);
struct lease_period *lease_period_ref(struct lease_period *period);
void lease_period_unref(struct lease_period *period);

/* How it stands; key->mutex is held. */
enum lease_end lease_period_ended(struct lease_period *period);
/* It has ended so, unless it had before; key->mutex is held. True when it ran until now. */
bool lease_period_end(struct lease_period *period, enum lease_end how);
/*
 * It was found lost (not under the mutex): end it, and say `how` in the log, unless that was said
 * or the caller refuses something with a line of its own (NULL).
 */
void lease_period_lost(struct lease_period *period, const char *how);
/* Take back its heartbeat. */
void lease_period_quiet(struct lease_period *period);

/* Renew now. A cairn_status, CAIRN_LOST seen to as by lease_period_lost; `say`: in the log. */
int lease_period_renew(struct lease_period *period, struct cairn_call *call, bool say);

/* leases_take.c: asking the store */

#define LEASE_NEVER INT64_MAX

/* What a look at a lease that is held tells. */
struct lease_look {
	int64_t free_at; /* cairn_clock when its holder's deadline comes; LEASE_NEVER: not known */
	int64_t epoch;	 /* 0: not known */
};

/*
 * One look at the lease of `open`, and its period if it is free; no mutex is held. `absent`: there
 * is no document most probably. 0 with the period, CAIRN_HELD with ret_look, or a failure.
 */
int lease_take(struct request *request, struct lease_open *open,
	       const struct lease_settings *wanted, bool absent, struct lease_period **ret_period,
	       struct lease_look *ret_look);

/* Give the lease back. Unlocking succeeds in any case: a lease that stands runs out. */
void lease_give_back(struct request *request, struct lease_period *period);

/* leases_lock.c */

void lease_poll_init(struct lease_key *key);
/* Let the waiters look at once, if there are any; key->mutex is held. */
void lease_poll_hurry(struct lease_key *key);
/* The descriptor is closed: its locks end, its waiters' places are given up. */
void lease_unlock_all(struct request *request, struct lease_open *open);
/* The mount has ended, and the kernel has answered who waits: free what is left. */
void lease_waiters_free(struct lease_key *key);

/* leases.c */

/* Read the document of `name` (ret_document initialised here). 0, ENOENT, or an errno, logged. */
int lease_document(struct request *request, const char *name,
		   struct cairn_lease_document *ret_document);

/* Who is no kin of the holder's: a holder stands and its deadline is ahead. */
bool lease_document_holds(const struct cairn_lease_document *document);

/* What reads and bases call a state: its hash in hexadecimal digits. */
#define LEASE_STATE_VERSION 65
void lease_state_version(struct cairn_slice state, char ret_version[LEASE_STATE_VERSION]);

/* leases_xattr.c */
int leases_getxattr(struct request *request, struct node *node, const char *name,
		    struct cairn_buffer *ret_value);
int leases_setxattr(struct request *request, struct node *node, const char *name,
		    struct cairn_slice value);

#endif
