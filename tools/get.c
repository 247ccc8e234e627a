/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <cairn/objects.h>

static int print_json(struct tool *tool, const char *key, const struct cairn_object *object)
{
	struct record record;
	record_init(&record);
	record_text(&record, "key", key);
	record_version(&record, &object->version);
	record_bytes(&record, "data", cairn_buffer_slice(&object->data));
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
	int status = cairn_object_get(tool->store, &tool->call, key, NULL, &object);
	if (status) {
		exit_status = tool_fail(tool, status);
	} else if (tool->arguments.json) {
		exit_status = print_json(tool, key, &object);
	} else {
		output_bytes(tool, cairn_buffer_slice(&object.data));
		exit_status = TOOL_DONE;
	}
	cairn_object_release(&object);
	return exit_status;
}

static const struct option_spec options[] = {
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json),
	  "print {\"key\",\"etag\",\"size\",\"modified\",\"data\"}, data in base64" },
	{ 0 },
};

const struct command command_get = {
	.name = "get",
	.synopsis = "KEY",
	.summary = "print an object",
	.details =
		"Print the bytes of the object KEY, as they are. Exit status 1: there is none.\n",
	.options = options,
	.operands_min = 1,
	.operands_max = 1,
	.run = run_get,
};
