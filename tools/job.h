/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_TOOLS_JOB_H
#define CAIRN_TOOLS_JOB_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include <cairn/error.h>

/*
 * A command in a process group of its own, so that it can be ended whole, and which nevertheless
 * has the terminal when we have it (as a shell does with its jobs).
 */
struct job {
	pid_t pid;    /* also its process group */
	int terminal; /* /dev/tty, -1 without one */
	bool stopped;
	bool ended;
	int wait_status; /* when it has ended */
	int stop_signal; /* when it is stopped */
};

/*
 * Start `argv` with the signal mask `mask`. It is killed when this process ends without waiting.
 * SIGTTOU must be blocked, SIGCHLD too. Returns 0, or an errno when it cannot be run.
 */
int job_start(struct job *job, char *const argv[], const sigset_t *mask);

/* See what has become of it since: stopped, continued, ended. Does not block. */
void job_poll(struct job *job);

/* Send `signal` to the whole group. */
void job_signal(const struct job *job, int signal);

/* True when it was stopped by its terminal (^Z, or reading in the background). */
bool job_suspended(const struct job *job);

/*
 * Take the terminal back and stop our own group, as the job is, so that the shell above sees it.
 * Returns when somebody continues us; the job is then still stopped.
 */
void job_suspend_ourselves(const struct job *job);

/* Give it the terminal if it is ours to give, and continue it. */
void job_resume(struct job *job);

/* Take the terminal back from a job that has ended, and close it. */
void job_release(struct job *job);

#endif
