/* SPDX-License-Identifier: MIT */
/* The system calls of the directory store, and nothing else: what a put cannot be faster than. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int prepare(struct job *job)
{
	char path[4096];
	(void)snprintf(path, sizeof(path), "%s/%s", job->where, job->tag);
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return bench_fail(path);
	job->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return job->directory < 0 ? bench_fail(path) : 0;
}

static int write_temporary(struct job *job, const char *name)
{
	int file = openat(job->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (file < 0 || write(file, BENCH_VALUE, sizeof(BENCH_VALUE) - 1) < 0 || fsync(file) != 0)
		return bench_fail(name);
	return close(file);
}

static int put(struct job *job, unsigned number)
{
	char name[64], lock_name[64], temporary[64];
	(void)snprintf(name, sizeof(name), "w%u-%06u", job->worker, number);
	(void)snprintf(lock_name, sizeof(lock_name), ".w%u-%06u.lock", job->worker, number);
	(void)snprintf(temporary, sizeof(temporary), ".w%u-%06u.tmp", job->worker, number);
	int lock = openat(job->directory, lock_name, O_RDONLY | O_CREAT | O_CLOEXEC, 0755);
	if (lock < 0 || flock(lock, LOCK_EX) != 0)
		return bench_fail(lock_name);
	int there = openat(job->directory, name, O_RDONLY | O_CLOEXEC);
	if (there >= 0 || errno != ENOENT)
		return bench_fail(name);
	if (write_temporary(job, temporary) != 0 ||
	    renameat(job->directory, temporary, job->directory, name) != 0)
		return bench_fail(name);
	return close(lock);
}

static int put_synced(struct job *job, unsigned number)
{
	if (put(job, number) != 0)
		return -1;
	return fsync(job->directory) != 0 ? bench_fail(job->tag) : 0;
}

const struct workload raw_workloads[] = {
	{ "raw-claim", prepare, put },
	{ "raw-claim-synced", prepare, put_synced },
	{ 0 },
};
