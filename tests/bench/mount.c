/* SPDX-License-Identifier: MIT */
/* Plain system calls on a mount: what shells and other programs do there. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static int prepare_view(struct job *job, const char *view)
{
	char path[4096];
	(void)snprintf(path, sizeof(path), "%s/%s/%s", job->where, view, job->tag);
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return bench_fail(path);
	job->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return job->directory < 0 ? bench_fail(path) : 0;
}

static int prepare_claims(struct job *job)
{
	return prepare_view(job, "claims");
}

static int write_new(struct job *job, const char *name, const char *text)
{
	int file = openat(job->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (file < 0 || write(file, text, strlen(text)) < 0 || close(file) != 0)
		return bench_fail(name);
	return 0;
}

/* As a shell's noclobber. */
static int claim(struct job *job, unsigned number)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "w%u-%06u", job->worker, number);
	return write_new(job, name, BENCH_VALUE "\n");
}

/* As ln: the value is there with the name. */
static int claim_by_link(struct job *job, unsigned number)
{
	char name[64], mine[64];
	(void)snprintf(name, sizeof(name), "w%u-%06u", job->worker, number);
	(void)snprintf(mine, sizeof(mine), ".w%u", job->worker);
	if (write_new(job, mine, BENCH_VALUE "\n") != 0)
		return -1;
	if (linkat(job->directory, mine, job->directory, name, 0) != 0 ||
	    unlinkat(job->directory, mine, 0) != 0)
		return bench_fail(name);
	return 0;
}

static int prepare_doc(struct job *job)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "w%u", job->worker);
	return prepare_view(job, "docs") != 0 ? -1 : write_new(job, name, "{\"n\":0}\n");
}

/* Read, write a staging file, rename: as `jq … k > .t && mv .t k` in one process. */
static int doc(struct job *job, unsigned number)
{
	char name[64], staging[64], text[128];
	(void)number;
	(void)snprintf(name, sizeof(name), "w%u", job->worker);
	(void)snprintf(staging, sizeof(staging), ".w%u", job->worker);
	int file = openat(job->directory, name, O_RDONLY | O_CLOEXEC);
	ssize_t got = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	if (got < 6)
		return bench_fail(name);
	close(file);
	text[got] = '\0';
	long value = strtol(text + strlen("{\"n\":"), NULL, 10);
	(void)snprintf(text, sizeof(text), "{\"n\":%ld}\n", value + 1);
	if (write_new(job, staging, text) != 0)
		return -1;
	if (renameat(job->directory, staging, job->directory, name) != 0)
		return bench_fail(name);
	return 0;
}

static int prepare_lease(struct job *job)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "w%u", job->worker);
	if (prepare_view(job, "leases") != 0)
		return -1;
	job->file = openat(job->directory, name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	return job->file < 0 ? bench_fail(name) : 0;
}

static int lease(struct job *job, unsigned number)
{
	(void)number;
	if (flock(job->file, LOCK_EX) != 0 || flock(job->file, LOCK_UN) != 0)
		return bench_fail("flock");
	return 0;
}

static int prepare_renew(struct job *job)
{
	if (prepare_lease(job) != 0)
		return -1;
	return flock(job->file, LOCK_EX) != 0 ? bench_fail("flock") : 0;
}

static int renew(struct job *job, unsigned number)
{
	(void)number;
	return fsetxattr(job->file, "user.cairn.renew", "1", 1, 0) != 0 ? bench_fail("renew") : 0;
}

const struct workload mount_workloads[] = {
	{ "mount-claim", prepare_claims, claim },
	{ "mount-claim-link", prepare_claims, claim_by_link },
	{ "mount-doc", prepare_doc, doc },
	{ "mount-lease", prepare_lease, lease },
	{ "mount-renew", prepare_renew, renew },
	{ 0 },
};
