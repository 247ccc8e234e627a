/* SPDX-License-Identifier: MIT */
#ifndef CAIRN_TOOLS_COMMON_H
#define CAIRN_TOOLS_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/buffer.h>
#include <cairn/store.h>

/* What every subcommand of `cairn` ends with; documented in cairn(1). */
enum tool_exit {
	TOOL_DONE = 0,
	TOOL_LOST = 1,	  /* lost, held, conflict, absent, or a COMMAND said no */
	TOOL_USAGE = 2,	  /* the command line or the input is wrong */
	TOOL_STORAGE = 3, /* the store failed, or the outcome is unknown */
};

/* A number of seconds without end, where an option takes `inf`. */
#define TOOL_FOREVER (-1)

#define TOOL_SECOND  ((int64_t)1000000)

/* Largest object that `put` takes and `get` shows: what one PUT of S3 carries. */
#define TOOL_OBJECT_MAX ((size_t)5 << 30)

/* What the command line said. Times are in microseconds. */
struct arguments {
	const char *store; /* NULL: from the environment */
	int64_t timeout;   /* of one call to the store; 0: the store's own */
	bool help;
	bool version;
	bool json;
	const char *if_match;
	bool if_absent;
	bool details;
	bool recursive;
	bool zero;
	const char *changed;
	int64_t patience; /* how long to wait for a key, or TOOL_FOREVER */
	int64_t poll;
	int64_t ttl;
	int64_t wait; /* how long to wait for a lease, or TOOL_FOREVER */
	const char *holder;
	bool no_steal;
	const char *transition;
	const char *state;
	const char *create;
	unsigned attempts;
	const char *check;
	struct cairn_buffer mount_options; /* -o, joined by commas */
	const char *operands[2];
	size_t operand_count;
	char **command; /* behind `--`, NULL-terminated; NULL: none */
};

/* One invocation. */
struct tool {
	const struct command *command;
	struct arguments arguments;
	struct cairn_store *store; /* owned; opened by tool_open */
	struct cairn_call call;
	int output_errno; /* the first failure to write standard output */
};

enum option_kind {
	OPTION_FLAG,	 /* bool */
	OPTION_TEXT,	 /* const char * */
	OPTION_SECONDS,	 /* int64_t, microseconds, above 0 */
	OPTION_PATIENCE, /* int64_t, microseconds, 0 or above, or `inf` */
	OPTION_COUNT,	 /* unsigned, 1 or above */
	OPTION_LIST,	 /* struct cairn_buffer, joined by commas */
};

/* One option: getopt_long's table and the help text are made of these. */
struct option_spec {
	const char *name;  /* long, without dashes; NULL ends a table */
	char letter;	   /* short, or 0 */
	const char *value; /* the value's name in the help; NULL for a flag */
	enum option_kind kind;
	size_t field; /* offset in struct arguments */
	const char *help;
};

#define OPTION_FIELD(member) offsetof(struct arguments, member)

struct command {
	const char *name;		   /* "get", "lease acquire"; NULL: cairn itself */
	const char *synopsis;		   /* operands, as the help shows them */
	const char *summary;		   /* one line, for the list of commands */
	const char *details;		   /* paragraphs, for its own help */
	const struct option_spec *options; /* its own; NULL: none */
	size_t operands_min;
	size_t operands_max;
	bool takes_command;	       /* needs `-- COMMAND` */
	bool no_store;		       /* knows neither --store nor --timeout */
	int (*run)(struct tool *tool); /* returns the exit status */
};

extern const struct command command_get, command_put, command_rm, command_ls, command_wait,
	command_claim, command_lease_acquire, command_lease_renew, command_lease_state,
	command_lease_release, command_lease_attach, command_lease_run, command_lease_show,
	command_doc_get, command_doc_update, command_doc_delete, command_mount, command_umount,
	command_status;

/* Set the defaults of all options. */
void arguments_init(struct arguments *arguments);

/*
 * Parse `argv` (argv[0] is the command's last word) into `tool->arguments`. Returns -1 to go on,
 * else the exit status, everything being said. For cairn itself (no name) parsing stops at the
 * first operand, whose index is *ret_next.
 */
int options_parse(struct tool *tool, int argc, char **argv, int *ret_next);

/* Print the help of tool->command on standard output. */
void options_help(struct tool *tool);

/*
 * Open the store. Commands that only read pass false, so that nothing is created.
 * Returns -1 to go on, else the exit status, everything being said.
 */
int tool_open(struct tool *tool, bool writes);

/* Say what call.error says, as failure `status`, and return the exit status that stands for it. */
int tool_fail(struct tool *tool, int status);

/* The exit status that stands for an enum cairn_status. */
int tool_exit_of(int status);

/* Print `cairn: …` on standard error and return `exit_status`. */
int tool_say(int exit_status, const char *format, ...) CAIRN_PRINTF(2, 3);

/* A wrong command line: `cairn: COMMAND: …` with a pointer to the help. Returns TOOL_USAGE. */
int tool_usage(struct tool *tool, const char *format, ...) CAIRN_PRINTF(2, 3);

/*
 * Append the canonical form of the JSON `text`, which the user calls `what`, to `out` (limit
 * CAIRN_JSON_MAX). Returns -1, or an exit status, everything being said.
 */
int tool_json(struct tool *tool, const char *what, struct cairn_slice text,
	      struct cairn_buffer *out);

/*
 * Read the file `path` (`-`: standard input) into `out` up to its limit. Returns -1, or an exit
 * status, everything being said.
 */
int tool_read_file(struct tool *tool, const char *path, struct cairn_buffer *out);

/* Standard output; a failure is remembered, and told at the end by tool_flush. */
void output_bytes(struct tool *tool, struct cairn_slice bytes);
void output_text(struct tool *tool, const char *format, ...) CAIRN_PRINTF(2, 3);
void output_line(struct tool *tool, struct cairn_slice bytes);

/* Flush standard output. Returns `exit_status`, or TOOL_STORAGE when writing failed. */
int tool_flush(struct tool *tool, int exit_status);

/*
 * One JSON object of --json. Values that jansson cannot hold (integers of any size, NaN, lone
 * surrogates) go through unharmed, so it is written as text.
 */
struct record {
	struct cairn_buffer text;
	int status; /* the first failure; the rest is skipped */
};

void record_init(struct record *record);
void record_text(struct record *record, const char *name, const char *text);
void record_bytes(struct record *record, const char *name, struct cairn_slice bytes);
void record_json(struct record *record, const char *name, struct cairn_slice json);
void record_integer(struct record *record, const char *name, int64_t value);
void record_boolean(struct record *record, const char *name, bool value);
void record_time(struct record *record, const char *name, int64_t time);
void record_version(struct record *record, const struct cairn_version *version);

/* Print the object and a newline, and release it. Returns `exit_status`, or TOOL_STORAGE. */
int record_print(struct record *record, struct tool *tool, int exit_status);

/* `time` (microseconds since 1970) as text; out of range, its number. */
void tool_time(int64_t time, char ret_text[static 32]);

#endif
