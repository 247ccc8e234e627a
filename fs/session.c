/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "operations.h"

/* FUSE_PARALLEL_DIROPS and FUSE_HANDLE_KILLPRIV_V2 in struct fuse_init_out. */
#define INIT_FLAGS    ((UINT32_C(1) << 18) | (UINT32_C(1) << 28))
#define INIT_FLAGS_AT 12 /* bytes behind the reply's header: major, minor, max_readahead */
#define THREADS	      64

static struct {
	void (*ready)(void *context);
	void *context;
	bool negotiated;
} session;

static void op_init(void *userdata, struct fuse_conn_info *connection)
{
	(void)userdata;
	connection->want |= connection->capable &
			    (FUSE_CAP_DONT_MASK | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_POSIX_LOCKS |
			     FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
			     FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS);
	connection->want &= ~(unsigned)(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_HANDLE_KILLPRIV);
	connection->max_write = 1 << 20;
	session.ready(session.context);
}

static ssize_t io_read(int fd, void *buffer, size_t size, void *userdata)
{
	(void)userdata;
	return read(fd, buffer, size);
}

/*
 * libfuse 3.14.0 knows FUSE_CAP_PARALLEL_DIROPS but never passes it on, so look-ups in a directory
 * are serial; nor does it know HANDLE_KILLPRIV_V2, without which each write asks for
 * security.capability. The first reply of a session is INIT's: the flags are added to it.
 */
static ssize_t io_writev(int fd, struct iovec *vectors, int count, void *userdata)
{
	(void)userdata;
	if (!session.negotiated && count == 2 &&
	    vectors[1].iov_len >= INIT_FLAGS_AT + sizeof(uint32_t)) {
		uint32_t flags;
		char *at = (char *)vectors[1].iov_base + INIT_FLAGS_AT;
		memcpy(&flags, at, sizeof(flags));
		flags |= INIT_FLAGS;
		memcpy(at, &flags, sizeof(flags));
		session.negotiated = true;
	}
	return writev(fd, vectors, count);
}

static ssize_t io_splice_receive(int in, off_t *in_offset, int out, off_t *out_offset, size_t size,
				 unsigned int flags, void *userdata)
{
	(void)userdata;
	return splice(in, in_offset, out, out_offset, size, flags);
}

static ssize_t io_splice_send(int in, off_t *in_offset, int out, off_t *out_offset, size_t size,
			      unsigned int flags, void *userdata)
{
	(void)userdata;
	return splice(in, in_offset, out, out_offset, size, flags);
}

/* A dead daemon's mountpoint answers ENOTCONN: take it away first. */
static void clear_dead_mount(const char *mountpoint)
{
	struct stat stat_before;
	if (stat(mountpoint, &stat_before) == 0 || errno != ENOTCONN)
		return;
	pid_t child = fork();
	if (child == 0) {
		execlp("fusermount3", "fusermount3", "-u", "-z", "-q", "--", mountpoint,
		       (char *)NULL);
		_exit(127);
	}
	if (child > 0)
		(void)waitpid(child, NULL, 0);
}

static int mount_arguments(struct filesystem *fs, struct fuse_args *arguments)
{
	char *options = NULL, name[600];
	/* A comma in the name would end it; the kernel shows it in /proc/mounts. */
	snprintf(name, sizeof(name), "subtype=cairnfs,fsname=%s", fs->store->name);
	for (char *at = name + strlen("subtype=cairnfs,"); *at; at++)
		if (*at == ',' || *at == '\\' || *at == '\n')
			*at = '_';
	if (fuse_opt_add_opt(&options, name) != 0 ||
	    (fs->options.allow_other &&
	     fuse_opt_add_opt(&options, "allow_other,default_permissions") != 0) ||
	    (fs->options.mount_options &&
	     fuse_opt_add_opt(&options, fs->options.mount_options) != 0) ||
	    fuse_opt_add_arg(arguments, "cairnfs") != 0 || fuse_opt_add_arg(arguments, "-o") != 0 ||
	    fuse_opt_add_arg(arguments, options) != 0) {
		free(options);
		return -1;
	}
	free(options);
	return 0;
}

static int serve(struct filesystem *fs)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	if (!config)
		return -1;
	fuse_loop_cfg_set_max_threads(config, THREADS);
	fuse_loop_cfg_set_clone_fd(config, 0);
	/* A positive result is the signal that ended the loop: an orderly end. */
	int result = fuse_session_loop_mt(fs->session, config);
	fuse_loop_cfg_destroy(config);
	/* The loop has reset it: libfuse would complain about answers that come too late. */
	fuse_session_exit(fs->session);
	return result < 0 ? -1 : 0;
}

int session_run(struct filesystem *fs, void (*ready)(void *context), void *context)
{
	static const struct fuse_custom_io io = { .read = io_read,
						  .writev = io_writev,
						  .splice_receive = io_splice_receive,
						  .splice_send = io_splice_send };
	struct fuse_lowlevel_ops ops = { .init = op_init };
	struct fuse_args arguments = FUSE_ARGS_INIT(0, NULL);
	int result = -1;
	session.ready = ready;
	session.context = context;
	operations_tree(&ops);
	operations_file(&ops);
	operations_move(&ops);
	operations_xattr(&ops);
	clear_dead_mount(fs->options.mountpoint);
	if (mount_arguments(fs, &arguments) != 0)
		goto out;
	fs->session = fuse_session_new(&arguments, &ops, sizeof(ops), fs);
	if (!fs->session)
		goto out;
	if (fuse_set_signal_handlers(fs->session) != 0)
		goto out;
	if (fuse_session_mount(fs->session, fs->options.mountpoint) == 0) {
		if (fuse_session_custom_io(fs->session, &io, fuse_session_fd(fs->session)) == 0)
			result = serve(fs);
		fuse_session_unmount(fs->session);
	}
	fuse_remove_signal_handlers(fs->session);
out:
	fuse_opt_free_args(&arguments);
	return result;
}
