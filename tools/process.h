/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_TOOLS_PROCESS_H
#define CAIRN_TOOLS_PROCESS_H

#include <sys/types.h>

#include <cairn/buffer.h>
#include <cairn/error.h>
#include <cairn/store.h>

/* A COMMAND of the user's that judges or changes a value. */
struct process {
	char *const *argv;  /* NULL-terminated, argv[0] looked up in PATH */
	const char *action; /* for messages: "update document" */
	const char *key;
	struct cairn_call
		*call; /* whose deadline the time of a command does not count for; or NULL */
};

/* The argv that runs `text` by sh -c; good as long as `storage` and `text` are. */
char *const *process_shell(const char *text, char *storage[4]);

/*
 * Run the command with `input` on its standard input and append what it prints to `output`; NULL:
 * its standard output is our standard error. Both directions flow at once, whatever their size; a
 * command need not read its input. Returns 0, CAIRN_ABORTED when it ended with another status than
 * 0 or printed more than the limit, CAIRN_INVALID when there is no such command, or CAIRN_IO.
 */
int process_filter(const struct process *process, struct cairn_slice input,
		   struct cairn_buffer *output, struct cairn_error *error) CAIRN_MUST_USE;

/*
 * A cairn_transform: the present value (or null) and a newline in, the new value out. `context` is
 * a struct process. CAIRN_ABORTED also when the command prints no JSON.
 */
int process_transform(void *context, struct cairn_slice current, struct cairn_buffer *ret_next,
		      struct cairn_error *error);

/* A struct cairn_check's function: the value and a newline in; status 0 accepts it. */
int process_check(void *context, struct cairn_slice value, struct cairn_error *error);

/* waitpid(2) until `pid` has ended, whatever signals come. CAIRN_IO when it is no child. */
int process_wait(pid_t pid, int *ret_wait_status) CAIRN_MUST_USE;

/* How a process ended, in words: "exited with status 3", "was ended by signal 9 (Killed)". */
void process_describe(int wait_status, char ret_text[static 80]);

#endif
