/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/json.h>

#define PIECE ((size_t)1 << 16)

/* A running command and our ends of its pipes, -1 when closed. */
struct pipes {
	pid_t pid;
	int input;
	int output;
};

char *const *process_shell(const char *text, char *storage[4])
{
	/* execv's argv is not const for historical reasons alone. */
	storage[0] = (char *)"sh";
	storage[1] = (char *)"-c";
	storage[2] = (char *)text;
	storage[3] = NULL;
	return storage;
}

void process_describe(int wait_status, char ret_text[static 80])
{
	if (WIFSIGNALED(wait_status))
		(void)snprintf(ret_text, 80, "was ended by signal %d (%s)", WTERMSIG(wait_status),
			       strsignal(WTERMSIG(wait_status)));
	else
		(void)snprintf(ret_text, 80, "exited with status %d", WEXITSTATUS(wait_status));
}

int process_wait(pid_t pid, int *ret_wait_status)
{
	while (waitpid(pid, ret_wait_status, 0) < 0) {
		if (errno != EINTR)
			return CAIRN_IO;
	}
	return CAIRN_OK;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* Start argv with `in` and `out` as its standard input and output. Returns an errno. */
static int spawn(char *const argv[], int in, int out, pid_t *ret_pid)
{
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	sigset_t defaults;
	int failure = posix_spawnattr_init(&attributes);
	if (failure)
		return failure;
	failure = posix_spawn_file_actions_init(&actions);
	if (failure)
		goto out_attributes;
	/* We ignore SIGPIPE, and that would be inherited: `| head` would never end a command. */
	(void)sigemptyset(&defaults);
	(void)sigaddset(&defaults, SIGPIPE);
	failure = posix_spawnattr_setsigdefault(&attributes, &defaults);
	if (!failure)
		failure = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	if (!failure)
		failure = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (!failure)
		failure = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!failure)
		failure = posix_spawnp(ret_pid, argv[0], &actions, &attributes, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
out_attributes:
	(void)posix_spawnattr_destroy(&attributes);
	return failure;
}

static int start(const struct process *process, bool collect, struct pipes *ret_pipes,
		 struct cairn_error *error)
{
	int in[2] = { -1, -1 };
	int out[2] = { -1, -1 };
	*ret_pipes = (struct pipes){ .input = -1, .output = -1 };
	int failure = 0;
	if (pipe2(in, O_CLOEXEC) < 0 || (collect && pipe2(out, O_CLOEXEC) < 0))
		failure = errno;
	if (!failure)
		failure = spawn(process->argv, in[0], collect ? out[1] : STDERR_FILENO,
				&ret_pipes->pid);
	close_end(&in[0]);
	close_end(&out[1]);
	ret_pipes->input = in[1];
	ret_pipes->output = out[0];
	if (!failure)
		return CAIRN_OK;
	close_end(&ret_pipes->input);
	close_end(&ret_pipes->output);
	return cairn_error_set(error, CAIRN_INVALID, "%s %s: cannot run %s: %s", process->action,
			       process->key, process->argv[0], strerror(failure));
}

/* Write what the pipe takes now. A reader that has had enough is no failure. */
static void feed(struct pipes *pipes, struct cairn_slice *input)
{
	ssize_t count = write(pipes->input, input->data, input->size);
	if (count >= 0) {
		input->data += count;
		input->size -= (size_t)count;
	}
	if (input->size == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
		close_end(&pipes->input);
}

/* Read what is there. CAIRN_TOO_BIG beyond the limit. */
static int drain(struct pipes *pipes, struct cairn_buffer *output)
{
	char piece[PIECE];
	ssize_t count = read(pipes->output, piece, sizeof(piece));
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return CAIRN_OK;
	if (count < 0)
		return CAIRN_IO;
	if (count == 0)
		close_end(&pipes->output);
	return cairn_buffer_append(output, piece, (size_t)count);
}

/* Move bytes both ways until both are done: one direction alone would block on large values. */
static int converse(struct pipes *pipes, struct cairn_slice input, struct cairn_buffer *output)
{
	(void)fcntl(pipes->input, F_SETFL, O_NONBLOCK);
	while (pipes->input >= 0 || pipes->output >= 0) {
		struct pollfd ends[] = {
			{ .fd = pipes->input, .events = POLLOUT },
			{ .fd = pipes->output, .events = POLLIN },
		};
		if (poll(ends, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return CAIRN_IO;
		}
		if (ends[0].revents)
			feed(pipes, &input);
		int status = ends[1].revents ? drain(pipes, output) : CAIRN_OK;
		if (status)
			return status;
	}
	return CAIRN_OK;
}

int process_filter(const struct process *process, struct cairn_slice input,
		   struct cairn_buffer *output, struct cairn_error *error)
{
	struct pipes pipes;
	int status = start(process, output, &pipes, error);
	if (status)
		return status;
	status = converse(&pipes, input, output);
	close_end(&pipes.input);
	close_end(&pipes.output);
	if (status)
		(void)kill(pipes.pid, SIGKILL);
	int wait_status = 0;
	int waited = process_wait(pipes.pid, &wait_status);
	if (status == CAIRN_TOO_BIG)
		return cairn_error_set(error, CAIRN_ABORTED,
				       "%s %s: %s printed more than %zu bytes; nothing is "
				       "written",
				       process->action, process->key, process->argv[0],
				       output->limit);
	if (status || waited)
		return cairn_error_set(error, CAIRN_IO, "%s %s: lost touch with %s",
				       process->action, process->key, process->argv[0]);
	if (wait_status == 0)
		return CAIRN_OK;
	char how[80];
	process_describe(wait_status, how);
	return cairn_error_set(error, CAIRN_ABORTED, "%s %s: %s %s; nothing is written",
			       process->action, process->key, process->argv[0], how);
}

/* process_filter with a newline behind the value, as every text of a shell has. */
static int filter_line(const struct process *process, struct cairn_slice value,
		       struct cairn_buffer *output, struct cairn_error *error)
{
	int64_t start_time = cairn_clock();
	struct cairn_buffer line;
	cairn_buffer_init(&line, value.size + 1);
	int status = cairn_buffer_append(&line, value.data, value.size);
	if (!status)
		status = cairn_buffer_append(&line, "\n", 1);
	if (status)
		(void)cairn_error_set(error, status, "%s %s: out of memory", process->action,
				      process->key);
	else
		status = process_filter(process, cairn_buffer_slice(&line), output, error);
	cairn_buffer_release(&line);
	/* The timeout is the store's; a command may think for as long as it wants. */
	if (process->call && process->call->deadline)
		process->call->deadline += cairn_clock() - start_time;
	return status;
}

int process_transform(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		      struct cairn_error *error)
{
	const struct process *process = context;
	struct cairn_buffer printed;
	cairn_buffer_init(&printed, CAIRN_JSON_MAX);
	struct cairn_error reason = { 0 };
	int status = filter_line(process, current.data ? current : cairn_slice_of("null"), &printed,
				 error);
	if (status)
		goto out;
	/* What is wrong with it is told here: to the engine it would be a wrong argument. */
	status = cairn_json_canonical(printed.data ? printed.data : "", printed.size, ret_next,
				      &reason);
	if (status)
		status = cairn_error_set(error, CAIRN_ABORTED,
					 "%s %s: %s printed no JSON value (%s); nothing is "
					 "written",
					 process->action, process->key, process->argv[0],
					 reason.text[0] ? reason.text : cairn_status_name(status));
out:
	cairn_buffer_release(&printed);
	return status;
}

int process_check(void *context, struct cairn_slice value, struct cairn_error *error)
{
	return filter_line(context, value, NULL, error);
}
