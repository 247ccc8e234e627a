/* SPDX-License-Identifier: MIT */
#include "lease.h"

#include <cairn/json.h>

#include "process.h"

static int print_state(struct tool *tool, struct cairn_slice state)
{
	if (!tool->arguments.json) {
		output_line(tool, state);
		return TOOL_DONE;
	}
	struct record record;
	record_init(&record);
	record_text(&record, "key", tool->arguments.operands[0]);
	record_json(&record, "state", state);
	return record_print(&record, tool, TOOL_DONE);
}

/* As the holder: guarded by epoch and holder. Returns -1, or an exit status. */
static int update_held(struct tool *tool, struct process *process, struct cairn_buffer *ret_state)
{
	struct cairn_lease *lease = NULL;
	int exit_status = lease_attach(tool, true, &lease);
	if (exit_status >= 0)
		return exit_status;
	int status = cairn_lease_update_state(lease, &tool->call, process_transform, process);
	if (!status)
		status = cairn_lease_state(lease, ret_state);
	cairn_lease_free(lease);
	return status ? tool_fail(tool, status) : -1;
}

/* From outside: whoever holds it goes on. Returns -1, or an exit status. */
static int update_outside(struct tool *tool, struct process *process,
			  struct cairn_buffer *ret_state)
{
	int exit_status = tool_open(tool, true);
	if (exit_status >= 0)
		return exit_status;
	int status = cairn_lease_cooperative_write(tool->store, &tool->call, process->key,
						   process_transform, process, ret_state);
	return status ? tool_fail(tool, status) : -1;
}

static int run_state(struct tool *tool)
{
	const struct arguments *arguments = &tool->arguments;
	struct process process = { arguments->command, "change the state of lease",
				   arguments->operands[0], &tool->call };
	struct cairn_buffer state;
	cairn_buffer_init(&state, CAIRN_JSON_MAX);
	int exit_status = arguments->holder ? update_held(tool, &process, &state)
					    : update_outside(tool, &process, &state);
	if (exit_status < 0)
		exit_status = print_state(tool, cairn_buffer_slice(&state));
	cairn_buffer_release(&state);
	return exit_status;
}

static const struct option_spec options[] = {
	{ "holder", 0, "H", OPTION_TEXT, OPTION_FIELD(holder),
	  "write as the holder; default: from outside (a cooperative write)" },
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json), "print {\"key\",\"state\"}" },
	{ 0 },
};

const struct command command_lease_state = {
	.name = "lease state",
	.synopsis = "KEY -- COMMAND [ARGUMENT ...]",
	.summary = "pipe a lease's state through a command",
	.details =
		"Run COMMAND with the state of the lease KEY on its standard input, replace the\n"
		"state by the JSON that it prints, and print that; epoch, holder and deadline "
		"stay.\n"
		"COMMAND runs again if somebody else was faster. Exit status 1: H does not hold "
		"the\n"
		"lease, there is no lease, or COMMAND failed; nothing is written.\n",
	.options = options,
	.operands_min = 1,
	.operands_max = 1,
	.takes_command = true,
	.run = run_state,
};
