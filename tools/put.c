/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <cairn/key.h>
#include <cairn/objects.h>

static int put(struct tool *tool, const char *key, struct cairn_slice data)
{
	const struct cairn_put_options options = {
		.if_match = tool->arguments.if_match,
		.if_absent = tool->arguments.if_absent,
	};
	struct cairn_version version = { 0 };
	int status = cairn_object_put(tool->store, &tool->call, key, data, &options, &version);
	if (status)
		return tool_fail(tool, status);
	if (!tool->arguments.json) {
		output_line(tool, cairn_slice_of(version.etag));
		return TOOL_DONE;
	}
	struct record record;
	record_init(&record);
	record_text(&record, "key", key);
	record_text(&record, "etag", version.etag);
	record_integer(&record, "size", (int64_t)data.size);
	return record_print(&record, tool, TOOL_DONE);
}

static int run_put(struct tool *tool)
{
	const struct arguments *arguments = &tool->arguments;
	if (arguments->if_match && arguments->if_absent)
		return tool_usage(tool, "--if-match and --if-absent exclude each other");
	/* A wrong key is told before standard input is waited for. */
	int status = cairn_key_check(arguments->operands[0], &tool->call.error);
	if (status)
		return tool_fail(tool, status);
	struct cairn_buffer data;
	cairn_buffer_init(&data, TOOL_OBJECT_MAX);
	const char *path = arguments->operand_count > 1 ? arguments->operands[1] : "-";
	int exit_status = tool_read_file(tool, path, &data);
	if (exit_status < 0)
		exit_status = tool_open(tool, true);
	if (exit_status < 0)
		exit_status = put(tool, arguments->operands[0], cairn_buffer_slice(&data));
	cairn_buffer_release(&data);
	return exit_status;
}

static const struct option_spec options[] = {
	{ "if-match", 0, "ETAG", OPTION_TEXT, OPTION_FIELD(if_match),
	  "only in place of this version" },
	{ "if-absent", 0, NULL, OPTION_FLAG, OPTION_FIELD(if_absent), "only where there is none" },
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json), "print {\"key\",\"etag\",\"size\"}" },
	{ 0 },
};

const struct command command_put = {
	.name = "put",
	.synopsis = "KEY [FILE|-]",
	.summary = "write an object",
	.details =
		"Write FILE, or standard input, as the object KEY and print its etag. Exit status\n"
		"1: the condition did not hold, nothing is written.\n",
	.options = options,
	.operands_min = 1,
	.operands_max = 2,
	.run = run_put,
};
