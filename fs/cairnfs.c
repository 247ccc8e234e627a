/* SPDX-License-Identifier: MIT */
/* cairnfs: mount a CairnDB bucket. */
#include "filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leases.h"
#include "session.h"

#define POOL_THREADS 4

/* What the child tells the parent once the mount works. */
struct readiness {
	struct filesystem *fs;
	int pipe; /* -1 in the foreground */
};

static void detach(struct filesystem *fs)
{
	int null = open("/dev/null", O_RDWR);
	log_to_syslog(fs->log);
	if (null < 0)
		return;
	for (int fd = 0; fd < 3; fd++)
		(void)dup2(null, fd);
	if (null > 2)
		close(null);
}

static void ready(void *context)
{
	struct readiness *readiness = context;
	if (readiness->pipe < 0)
		return;
	(void)!write(readiness->pipe, "", 1);
	close(readiness->pipe);
	readiness->pipe = -1;
	detach(readiness->fs);
}

static int complain(const char *what, const struct cairn_error *error)
{
	fprintf(stderr, "cairnfs: %s: %s\n", what,
		error->text[0] ? error->text : cairn_status_name(error->status));
	return 1;
}

/* The bucket, checked: one that does not keep its preconditions is never written to. */
static int open_store(struct filesystem *fs, struct cairn_error *error)
{
	const struct cairn_store_options options = { .timeout = fs->options.timeout,
						     .read_only = fs->options.ro };
	struct cairn_call call = { .deadline = cairn_clock() + fs->options.timeout };
	int status = cairn_store_open(fs->options.where, &options, &fs->store, error);
	if (status)
		return error->status = status;
	if (fs->options.ro)
		return 0;
	status = cairn_store_probe(fs->store, &call);
	*error = call.error;
	return error->status = status;
}

static int run(struct filesystem *fs, struct readiness *readiness)
{
	struct cairn_error error = { 0 };
	struct stat stat_there;
	int exit_status = 1;
	if (stat(fs->options.mountpoint, &stat_there) != 0 && errno != ENOTCONN) {
		fprintf(stderr, "cairnfs: mountpoint %s: %s\n", fs->options.mountpoint,
			strerror(errno));
		return 1;
	}
	if (open_store(fs, &error))
		return complain("cannot mount the bucket", &error);
	int status = staging_new(fs->options.cache_dir, fs->options.staging_max,
				 fs->options.staging, &fs->staging, &error);
	if (status) {
		error.status = status;
		return complain("cannot keep staging files", &error);
	}
	fs->inodes = inodes_new();
	fs->reads = reads_new();
	fs->leases = leases_new();
	fs->waiters = waiters_new(POOL_THREADS);
	fs->mounted = cairn_timestamp_now();
	if (!fs->inodes || !fs->reads || !fs->leases || !fs->waiters)
		fprintf(stderr, "cairnfs: out of memory or threads\n");
	else if (session_run(fs, ready, readiness) == 0)
		exit_status = 0;
	return exit_status;
}

static void release(struct filesystem *fs)
{
	if (fs->waiters)
		waiters_stop(fs->waiters);
	if (fs->leases)
		leases_free(fs->leases);
	waiters_free(fs->waiters);
	if (fs->session)
		fuse_session_destroy(fs->session);
	inodes_free(fs->inodes);
	if (fs->reads)
		reads_free(fs->reads);
	staging_free(fs->staging);
	cairn_store_free(fs->store);
	log_free(fs->log);
	options_release(&fs->options);
}

/* The parent waits until the mount works or the child has failed, whose words are on stderr. */
static int wait_for_child(pid_t child, int pipe)
{
	char byte;
	ssize_t got;
	do
		got = read(pipe, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		return 0;
	int status = 0;
	(void)waitpid(child, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
}

/* Fork before any thread is there. 0 in the child with the pipe to tell, else the exit status. */
static int background(struct readiness *readiness, bool *ret_parent)
{
	int ends[2];
	*ret_parent = true;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return 1;
	pid_t child = fork();
	if (child < 0) {
		fprintf(stderr, "cairnfs: fork: %s\n", strerror(errno));
		return 1;
	}
	if (child > 0) {
		close(ends[1]);
		return wait_for_child(child, ends[0]);
	}
	close(ends[0]);
	*ret_parent = false;
	readiness->pipe = ends[1];
	(void)setsid();
	return 0;
}

int main(int argc, char **argv)
{
	static struct filesystem fs;
	struct readiness readiness = { .fs = &fs, .pipe = -1 };
	bool parent = false;
	int status = options_parse(argc, argv, &fs.options);
	if (!status && fs.options.help)
		fputs(options_help, stdout);
	else if (!status && fs.options.version)
		printf("cairnfs %s\n", CAIRN_VERSION);
	if (status || fs.options.help || fs.options.version)
		goto out;
	(void)signal(SIGPIPE, SIG_IGN);
	if (!fs.options.foreground)
		status = background(&readiness, &parent);
	if (parent)
		goto out;
	fs.log = log_new();
	status = fs.log ? run(&fs, &readiness) : 1;
out:
	release(&fs);
	return status;
}
