/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <cairn/objects.h>

/* A delete does not tell whether there was anything: 0 or CAIRN_NOT_FOUND. */
static int check_present(struct tool *tool, const char *key)
{
	const struct cairn_get_options options = { .no_data = true };
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_object_get(tool->store, &tool->call, key, &options, &object);
	cairn_object_release(&object);
	return status;
}

static int run_rm(struct tool *tool)
{
	const char *key = tool->arguments.operands[0];
	const struct cairn_delete_options options = { .if_match = tool->arguments.if_match };
	int exit_status = tool_open(tool, true);
	if (exit_status >= 0)
		return exit_status;
	int status = check_present(tool, key);
	if (!status)
		status = cairn_object_delete(tool->store, &tool->call, key, &options);
	return status ? tool_fail(tool, status) : TOOL_DONE;
}

static const struct option_spec options[] = {
	{ "if-match", 0, "ETAG", OPTION_TEXT, OPTION_FIELD(if_match), "only this version" },
	{ 0 },
};

const struct command command_rm = {
	.name = "rm",
	.synopsis = "KEY",
	.summary = "delete an object",
	.details = "Delete the object KEY. Exit status 1: there is none, or it has another\n"
		   "etag.\n",
	.options = options,
	.operands_min = 1,
	.operands_max = 1,
	.run = run_rm,
};

const struct command command_doc_delete = {
	.name = "doc delete",
	.synopsis = "KEY",
	.summary = "delete a document",
	.details = "Delete the document KEY, whatever its version. Exit status 1: there is\n"
		   "none.\n",
	.operands_min = 1,
	.operands_max = 1,
	.run = run_rm,
};
