/* SPDX-License-Identifier: MIT */
#ifndef BENCH_H
#define BENCH_H

#include <cairn/cairn.h>

/* One process's part in a measurement. */
struct job {
	const char *where; /* the bucket's directory, or the mountpoint */
	const char *tag;   /* the directory that this run's keys lie in */
	unsigned worker;   /* 0, 1, … */
	int directory;	   /* of the workload */
	int file;	   /* of the workload, -1 */
	struct cairn_store *store;
	struct cairn_lease *lease;
};

/* What is measured: `once` is called with 0, 1, 2, … Both return 0, or say what failed and return
 * -1. */
struct workload {
	const char *name;
	int (*prepare)(struct job *job);
	int (*once)(struct job *job, unsigned number);
};

/* The tables end with a NULL name. */
extern const struct workload raw_workloads[];	  /* the directory store's system calls alone */
extern const struct workload library_workloads[]; /* libcairn */
extern const struct workload mount_workloads[];	  /* system calls on a mount */

/* Say what failed, with errno, and return -1. */
int bench_fail(const char *what);

/* Every workload writes this where it needs a value. */
#define BENCH_VALUE "{\"run_id\":\"run-000042\",\"host\":\"worker-7\"}"

#endif
