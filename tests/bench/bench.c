/* SPDX-License-Identifier: MIT */
/*
 * bench WORKLOAD DIRECTORY TAG COUNT PROCESSES: so many processes do COUNT operations in all on
 * keys in TAG/; prints operations a second, from the moment that all are prepared until the last is
 * done.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int bench_fail(const char *what)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	return -1;
}

static const struct workload *find(const char *name)
{
	const struct workload *const tables[] = { raw_workloads, library_workloads,
						  mount_workloads };
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct workload *workload = tables[i]; workload->name; workload++)
			if (strcmp(workload->name, name) == 0)
				return workload;
	return NULL;
}

static int work(const struct workload *workload, struct job *job, unsigned count,
		pthread_barrier_t *barrier)
{
	int failed = workload->prepare(job);
	(void)pthread_barrier_wait(barrier);
	for (unsigned i = 0; i < count && !failed; i++)
		failed = workload->once(job, i);
	return failed ? 1 : 0;
}

static pthread_barrier_t *barrier_new(unsigned processes)
{
	pthread_barrier_t *barrier = mmap(NULL, sizeof(*barrier), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t attributes;
	if (barrier == MAP_FAILED)
		return NULL;
	(void)pthread_barrierattr_init(&attributes);
	(void)pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	(void)pthread_barrier_init(barrier, &attributes, processes + 1);
	return barrier;
}

static int measure(const struct workload *workload, struct job *job, unsigned count,
		   unsigned processes)
{
	pthread_barrier_t *barrier = barrier_new(processes);
	if (!barrier)
		return bench_fail("mmap");
	for (job->worker = 0; job->worker < processes; job->worker++) {
		pid_t pid = fork();
		if (pid < 0)
			return bench_fail("fork");
		if (pid == 0)
			_exit(work(workload, job, count / processes, barrier));
	}
	(void)pthread_barrier_wait(barrier);
	int64_t start = cairn_clock();
	int failed = 0, status;
	while (wait(&status) > 0)
		failed |= status;
	double seconds = (double)(cairn_clock() - start) / 1e6;
	if (!failed)
		printf("%.1f\n", count / processes * processes / seconds);
	return failed ? -1 : 0;
}

/* A prefix of `count` keys as a bucket's directory has them: each with its lock file. */
static int fill(const char *directory, unsigned count)
{
	int at = open(directory, O_RDONLY | O_DIRECTORY);
	if (at < 0)
		return bench_fail(directory);
	for (unsigned i = 0; i < count; i++) {
		char name[32];
		(void)snprintf(name, sizeof(name), ".key-%06u.lock", i);
		int lock = openat(at, name, O_RDONLY | O_CREAT, 0755);
		(void)snprintf(name, sizeof(name), "key-%06u", i);
		int file = openat(at, name, O_WRONLY | O_CREAT | O_EXCL, 0666);
		if (lock < 0 || file < 0 || write(file, BENCH_VALUE, sizeof(BENCH_VALUE) - 1) < 0)
			return bench_fail(name);
		close(lock);
		close(file);
	}
	close(at);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "fill") == 0)
		return fill(argv[2], (unsigned)strtoul(argv[3], NULL, 10)) ? 1 : 0;
	const struct workload *workload = argc == 6 ? find(argv[1]) : NULL;
	unsigned processes = workload ? (unsigned)strtoul(argv[5], NULL, 10) : 0;
	if (!processes) {
		fprintf(stderr, "usage: bench WORKLOAD DIRECTORY TAG COUNT PROCESSES\n"
				"       bench fill DIRECTORY COUNT\n");
		return 2;
	}
	struct job job = { .where = argv[2], .tag = argv[3], .directory = -1, .file = -1 };
	return measure(workload, &job, (unsigned)strtoul(argv[4], NULL, 10), processes) ? 1 : 0;
}
