/* SPDX-License-Identifier: MIT */
#include "lease.h"

#include <inttypes.h>

#include <cairn/json.h>
#include <cairn/timestamp.h>

#include "process.h"

int lease_print(struct tool *tool, struct cairn_lease *lease, bool with_holder)
{
	char deadline[32];
	tool_time(cairn_lease_deadline(lease), deadline);
	if (!tool->arguments.json) {
		output_text(tool, "epoch %" PRId64 " deadline %s", cairn_lease_epoch(lease),
			    deadline);
		if (with_holder)
			output_text(tool, " holder %s", cairn_lease_holder(lease));
		output_text(tool, "\n");
		return TOOL_DONE;
	}
	struct record record;
	record_init(&record);
	record_text(&record, "key", tool->arguments.operands[0]);
	record_integer(&record, "epoch", cairn_lease_epoch(lease));
	if (with_holder)
		record_text(&record, "holder", cairn_lease_holder(lease));
	record_text(&record, "deadline", deadline);
	struct cairn_buffer state;
	cairn_buffer_init(&state, CAIRN_JSON_MAX);
	if (!record.status)
		record.status = cairn_lease_state(lease, &state);
	record_json(&record, "state", cairn_buffer_slice(&state));
	cairn_buffer_release(&state);
	return record_print(&record, tool, TOOL_DONE);
}

int lease_attach(struct tool *tool, bool writes, struct cairn_lease **ret_lease)
{
	const struct arguments *arguments = &tool->arguments;
	if (!arguments->holder)
		return tool_usage(tool, "--holder H is missing: the holder string that the "
					"acquisition printed");
	int exit_status = tool_open(tool, writes);
	if (exit_status >= 0)
		return exit_status;
	int status = cairn_lease_attach(tool->store, &tool->call, arguments->operands[0],
					arguments->holder, arguments->ttl, ret_lease);
	return status ? tool_fail(tool, status) : -1;
}

static int run_acquire(struct tool *tool)
{
	const struct arguments *arguments = &tool->arguments;
	const char *key = arguments->operands[0];
	char *shell[4];
	struct process transition = { process_shell(arguments->transition, shell), "acquire lease",
				      key, &tool->call };
	const struct cairn_lease_options options = {
		.ttl = arguments->ttl,
		.holder = arguments->holder,
		.no_steal = arguments->no_steal,
		.transition = arguments->transition ? process_transform : NULL,
		.context = &transition,
	};
	int exit_status = tool_open(tool, true);
	if (exit_status >= 0)
		return exit_status;
	struct cairn_lease *lease = NULL;
	int status = cairn_lease_acquire(tool->store, &tool->call, key, &options, &lease);
	if (status)
		return tool_fail(tool, status);
	exit_status = lease_print(tool, lease, true);
	cairn_lease_free(lease);
	return exit_status;
}

static int run_renew(struct tool *tool)
{
	struct cairn_lease *lease = NULL;
	int exit_status = lease_attach(tool, true, &lease);
	if (exit_status >= 0)
		return exit_status;
	int status = cairn_lease_renew(lease, &tool->call);
	exit_status = status ? tool_fail(tool, status) : lease_print(tool, lease, false);
	cairn_lease_free(lease);
	return exit_status;
}

static int run_attach(struct tool *tool)
{
	struct cairn_lease *lease = NULL;
	int exit_status = lease_attach(tool, false, &lease);
	if (exit_status >= 0)
		return exit_status;
	exit_status = lease_print(tool, lease, false);
	cairn_lease_free(lease);
	return exit_status;
}

static int run_release(struct tool *tool)
{
	const char *text = tool->arguments.state;
	struct cairn_lease *lease = NULL;
	struct cairn_buffer state;
	cairn_buffer_init(&state, CAIRN_JSON_MAX);
	int exit_status = -1;
	if (text)
		exit_status = tool_json(tool, "--state", cairn_slice_of(text), &state);
	if (exit_status < 0)
		exit_status = lease_attach(tool, true, &lease);
	if (exit_status < 0) {
		const struct cairn_slice slice = cairn_buffer_slice(&state);
		int status = cairn_lease_release(lease, &tool->call, text ? &slice : NULL);
		exit_status = status ? tool_fail(tool, status) : TOOL_DONE;
	}
	cairn_lease_free(lease);
	cairn_buffer_release(&state);
	return exit_status;
}

/* The holder string is a credential: it is not shown. */
static int print_document(struct tool *tool, const struct cairn_lease_document *document)
{
	bool ahead = document->deadline > cairn_timestamp_now();
	const char *word = !document->held ? "free" : ahead ? "held" : "expired";
	char deadline[32];
	tool_time(document->deadline, deadline);
	if (!tool->arguments.json) {
		output_text(tool, "%s epoch %" PRId64 " deadline %s state ", word, document->epoch,
			    deadline);
		output_line(tool, cairn_buffer_slice(&document->state));
		return TOOL_DONE;
	}
	struct record record;
	record_init(&record);
	record_text(&record, "key", tool->arguments.operands[0]);
	record_text(&record, "status", word);
	record_integer(&record, "epoch", document->epoch);
	record_text(&record, "deadline", deadline);
	record_json(&record, "state", cairn_buffer_slice(&document->state));
	return record_print(&record, tool, TOOL_DONE);
}

static int run_show(struct tool *tool)
{
	int exit_status = tool_open(tool, false);
	if (exit_status >= 0)
		return exit_status;
	struct cairn_lease_document document;
	cairn_lease_document_init(&document);
	int status =
		cairn_lease_read(tool->store, &tool->call, tool->arguments.operands[0], &document);
	exit_status = status ? tool_fail(tool, status) : print_document(tool, &document);
	cairn_lease_document_release(&document);
	return exit_status;
}

static const struct option_spec acquire_options[] = {
	{ "ttl", 0, "S", OPTION_SECONDS, OPTION_FIELD(ttl), "seconds until it runs out (60)" },
	{ "holder", 0, "H", OPTION_TEXT, OPTION_FIELD(holder),
	  "the holder string; default: a random one" },
	{ "no-steal", 0, NULL, OPTION_FLAG, OPTION_FIELD(no_steal),
	  "a lease that ran out without release counts as held" },
	{ "transition", 0, "COMMAND", OPTION_TEXT, OPTION_FIELD(transition),
	  "sh -c COMMAND makes the new state of the present one; if it fails, nothing is "
	  "acquired" },
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json),
	  "print {\"key\",\"epoch\",\"holder\",\"deadline\",\"state\"}" },
	{ 0 },
};

const struct command command_lease_acquire = {
	.name = "lease acquire",
	.synopsis = "KEY",
	.summary = "acquire a lease",
	.details =
		"Acquire the lease KEY and print its epoch (the fencing token), its deadline and "
		"the\n"
		"holder string, with which `lease renew`, `state` and `release` act on it. It is\n"
		"held after this command has ended, until it is released or runs out. Exit status\n"
		"1: somebody else holds it.\n",
	.options = acquire_options,
	.operands_min = 1,
	.operands_max = 1,
	.run = run_acquire,
};

static const struct option_spec renew_options[] = {
	{ "holder", 0, "H", OPTION_TEXT, OPTION_FIELD(holder), "the holder string (needed)" },
	{ "ttl", 0, "S", OPTION_SECONDS, OPTION_FIELD(ttl), "seconds until it runs out (60)" },
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json),
	  "print {\"key\",\"epoch\",\"deadline\",\"state\"}" },
	{ 0 },
};

const struct command command_lease_renew = {
	.name = "lease renew",
	.synopsis = "KEY",
	.summary = "move a lease's deadline",
	.details = "Move the deadline of the lease KEY, which H holds, to --ttl from now. Exit\n"
		   "status 1: H does not hold it (any more).\n",
	.options = renew_options,
	.operands_min = 1,
	.operands_max = 1,
	.run = run_renew,
};

static const struct option_spec attach_options[] = {
	{ "holder", 0, "H", OPTION_TEXT, OPTION_FIELD(holder), "the holder string (needed)" },
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json),
	  "print {\"key\",\"epoch\",\"deadline\",\"state\"}" },
	{ 0 },
};

const struct command command_lease_attach = {
	.name = "lease attach",
	.synopsis = "KEY",
	.summary = "check that a holder holds a lease",
	.details = "Print epoch and deadline of the lease KEY if H holds it; nothing is\n"
		   "written. Exit status 1: H does not hold it (any more).\n",
	.options = attach_options,
	.operands_min = 1,
	.operands_max = 1,
	.run = run_attach,
};

static const struct option_spec release_options[] = {
	{ "holder", 0, "H", OPTION_TEXT, OPTION_FIELD(holder), "the holder string (needed)" },
	{ "state", 0, "JSON", OPTION_TEXT, OPTION_FIELD(state),
	  "the final state; default: as it is" },
	{ 0 },
};

const struct command command_lease_release = {
	.name = "lease release",
	.synopsis = "KEY",
	.summary = "release a lease",
	.details = "Release the lease KEY, which H holds. Exit status 1: H does not hold it\n"
		   "(any more).\n",
	.options = release_options,
	.operands_min = 1,
	.operands_max = 1,
	.run = run_release,
};

static const struct option_spec show_options[] = {
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json),
	  "print {\"key\",\"status\",\"epoch\",\"deadline\",\"state\"}" },
	{ 0 },
};

const struct command command_lease_show = {
	.name = "lease show",
	.synopsis = "KEY",
	.summary = "print what a lease's document says",
	.details = "Print whether the lease KEY is held, expired (its deadline has passed,\n"
		   "nobody has taken it) or free, its epoch, its deadline and its state; never\n"
		   "the holder string. Exit status 1: there is no such lease.\n",
	.options = show_options,
	.operands_min = 1,
	.operands_max = 1,
	.run = run_show,
};
