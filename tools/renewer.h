/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_TOOLS_RENEWER_H
#define CAIRN_TOOLS_RENEWER_H

#include <pthread.h>

#include <cairn/lease.h>

/*
 * A thread that renews a lease when asked to. A renewal may block for long, and meanwhile somebody
 * must watch the command, the signals and the deadline.
 */
struct renewer {
	struct cairn_lease *lease;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t asked;
	bool stop;
	bool busy;     /* a renewal is wanted, under way, or its result not taken */
	bool done;     /* its result is here */
	int64_t until; /* cairn_clock: give up */
	int status;
	struct cairn_error error;
	int event; /* eventfd, readable when a result is here */
};

/* Start the thread for `lease`, which must outlive it. 0, CAIRN_IO or CAIRN_NO_MEMORY. */
int renewer_start(struct renewer *renewer, struct cairn_lease *lease) CAIRN_MUST_USE;

/* Ask for a renewal that gives up at `until` (cairn_clock), unless one is under way. */
void renewer_ask(struct renewer *renewer, int64_t until);

/* A result that has come since: true with its status and, on failure, its error. */
bool renewer_take(struct renewer *renewer, int *ret_status, struct cairn_error *ret_error);

/* Cancel what is under way and end the thread. */
void renewer_stop(struct renewer *renewer);

#endif
