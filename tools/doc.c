/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <cairn/doc.h>
#include <cairn/json.h>

#include "process.h"

static int print_document(struct tool *tool, const char *key, const struct cairn_object *object)
{
	if (!tool->arguments.json) {
		output_line(tool, cairn_buffer_slice(&object->data));
		return TOOL_DONE;
	}
	struct record record;
	record_init(&record);
	record_text(&record, "key", key);
	record_text(&record, "etag", object->version.etag);
	record_json(&record, "value", cairn_buffer_slice(&object->data));
	return record_print(&record, tool, TOOL_DONE);
}

static int run_get(struct tool *tool)
{
	const char *key = tool->arguments.operands[0];
	int exit_status = tool_open(tool, false);
	if (exit_status >= 0)
		return exit_status;
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_doc_get(tool->store, &tool->call, key, NULL, &object);
	exit_status = status ? tool_fail(tool, status) : print_document(tool, key, &object);
	cairn_object_release(&object);
	return exit_status;
}

static int update(struct tool *tool, struct cairn_slice create)
{
	const struct arguments *arguments = &tool->arguments;
	const char *key = arguments->operands[0];
	char *shell[4];
	struct process transform = { arguments->command, "update document", key, &tool->call };
	struct process check = { process_shell(arguments->check, shell), "check document", key,
				 &tool->call };
	const struct cairn_check hook = { process_check, &check };
	const struct cairn_doc_options options = {
		.create = create,
		.max_attempts = arguments->attempts,
		.check = arguments->check ? &hook : NULL,
	};
	struct cairn_object object;
	cairn_object_init(&object);
	int exit_status = tool_open(tool, true);
	if (exit_status < 0) {
		int status = cairn_doc_update(tool->store, &tool->call, key, &options,
					      process_transform, &transform, &object);
		exit_status = status ? tool_fail(tool, status) : print_document(tool, key, &object);
	}
	cairn_object_release(&object);
	return exit_status;
}

static int run_update(struct tool *tool)
{
	const char *text = tool->arguments.create;
	struct cairn_buffer create;
	cairn_buffer_init(&create, CAIRN_JSON_MAX);
	int exit_status = -1;
	if (text)
		exit_status = tool_json(tool, "--create", cairn_slice_of(text), &create);
	if (exit_status < 0)
		exit_status = update(tool, cairn_buffer_slice(&create));
	cairn_buffer_release(&create);
	return exit_status;
}

#define OPTION_JSON                                                                                \
	{                                                                                          \
		"json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json),                                  \
			"print {\"key\",\"etag\",\"value\"}"                                       \
	}

static const struct option_spec get_options[] = {
	OPTION_JSON,
	{ 0 },
};

const struct command command_doc_get = {
	.name = "doc get",
	.synopsis = "KEY",
	.summary = "print a document",
	.details = "Print the JSON document KEY as it is stored. Exit status 1: there is none.\n",
	.options = get_options,
	.operands_min = 1,
	.operands_max = 1,
	.run = run_get,
};

static const struct option_spec update_options[] = {
	{ "create", 0, "JSON", OPTION_TEXT, OPTION_FIELD(create),
	  "start from this value where there is no document" },
	{ "attempts", 0, "N", OPTION_COUNT, OPTION_FIELD(attempts),
	  "give up after so many lost races (10)" },
	{ "check", 0, "COMMAND", OPTION_TEXT, OPTION_FIELD(check),
	  "sh -c COMMAND judges each value, read and to be written, by its status" },
	OPTION_JSON,
	{ 0 },
};

const struct command command_doc_update = {
	.name = "doc update",
	.synopsis = "KEY -- COMMAND [ARGUMENT ...]",
	.summary = "pipe a document through a command",
	.details =
		"Run COMMAND with the document KEY on its standard input, replace the document by\n"
		"the JSON that it prints, and print that. If somebody else has replaced it in the\n"
		"meantime, COMMAND runs again on the new value: no update is lost. For example:\n"
		"\n"
		"  cairn doc update stats --create '{\"runs\":0}' -- jq '.runs += 1'\n"
		"\n"
		"Exit status 1: there is no document, COMMAND or the check failed, or all "
		"attempts\n"
		"were lost; nothing is written.\n",
	.options = update_options,
	.operands_min = 1,
	.operands_max = 1,
	.takes_command = true,
	.run = run_update,
};
