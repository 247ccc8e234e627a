/* SPDX-License-Identifier: MIT */
#ifndef CAIRNFS_LINEAGE_H
#define CAIRNFS_LINEAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Who asks, and from whom it descends: FUSE tells a thread id, /proc the rest (DESIGN.md, Kin). */

/* One process for all time: a pid comes back, a pid with its start time does not. */
struct process {
	pid_t pid;
	uint64_t start; /* clock ticks after boot: field 22 of /proc/PID/stat */
};

#define LINEAGE_MAX 48

struct lineage {
	unsigned count;
	struct process
		chain[LINEAGE_MAX]; /* the process itself, then its parents; pid 1 left out */
};

/*
 * The process that thread `tid` belongs to, and its ancestors; beyond LINEAGE_MAX they are left
 * out. count is 0 for tid 0 (another pid namespace), a thread that is gone, and pid 1. A few
 * microseconds an ancestor; reads only /proc.
 */
void lineage_of(pid_t tid, struct lineage *ret);

/*
 * Whether the process can still act: same start time, and not a zombie, dead or exiting (its files
 * are closed before it becomes a zombie) unless other threads of it live on. True when /proc
 * cannot be read for another reason than that it is gone.
 */
bool process_alive(struct process process);

/*
 * Whether it is paused: stopped by a signal or a tracer, or in a frozen cgroup (v2, or v1's
 * freezer; both report what an ancestor imposes). False once it is gone.
 */
bool process_stopped(struct process process);

bool lineage_contains(const struct lineage *lineage, struct process process);

/*
 * The lowest common ancestor, a process itself included: its index in each chain. False without
 * one; pid 1 makes no kin.
 */
bool lineage_common(const struct lineage *a, const struct lineage *b, unsigned *ret_at_a,
		    unsigned *ret_at_b);

#endif
