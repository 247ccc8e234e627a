/* SPDX-License-Identifier: MIT */
#ifndef WAITERS_H
#define WAITERS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The waiter pool: what must happen later (a poll for a lock or a value, a heartbeat) runs here,
 * never in a FUSE thread, which the answer that is waited for may need (DESIGN "The house").
 */
struct waiters;

/*
 * Something to be done once at `due`. Embedded in its owner. run() is called from a pool thread
 * with no lock held, and may schedule the task again or free its owner.
 */
struct task {
	void (*run)(struct task *task);
	int64_t due;  /* cairn_clock; the pool's while scheduled */
	int position; /* in the pool's heap, 0: not scheduled. Zero at first */
};

/* `threads` threads run tasks. NULL without memory or threads. */
struct waiters *waiters_new(unsigned threads);

/* Run nothing more, wait for what runs, free. Scheduled tasks are left to their owners. */
void waiters_stop(struct waiters *waiters);
void waiters_free(struct waiters *waiters);

/* Run `task` at `due`; one that is scheduled already is moved there. False: out of memory, or
 * stopped. */
bool waiters_schedule(struct waiters *waiters, struct task *task, int64_t due);

/* Bring a scheduled task forward to `due` if it was due later; one that is not scheduled stays so.
 */
void waiters_hurry(struct waiters *waiters, struct task *task, int64_t due);

/* Take `task` back; false when it was not scheduled: not yet, or it runs or has run. */
bool waiters_cancel(struct waiters *waiters, struct task *task);

#endif
