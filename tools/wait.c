/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <cairn/objects.h>

static int print_version(struct tool *tool, const char *key, const struct cairn_version *version)
{
	if (!tool->arguments.json) {
		output_line(tool, cairn_slice_of(version->etag));
		return TOOL_DONE;
	}
	struct record record;
	record_init(&record);
	record_text(&record, "key", key);
	record_version(&record, version);
	return record_print(&record, tool, TOOL_DONE);
}

static int run_wait(struct tool *tool)
{
	const struct arguments *arguments = &tool->arguments;
	const char *key = arguments->operands[0];
	int exit_status = tool_open(tool, false);
	if (exit_status >= 0)
		return exit_status;
	/* To the engine 0 is its default; no patience at all is one look. */
	const struct cairn_wait_options options = {
		.timeout = arguments->patience ? arguments->patience : 1,
		.poll = arguments->poll,
		.changed_from = arguments->changed,
	};
	int64_t start = cairn_clock();
	struct cairn_object object;
	cairn_object_init(&object);
	int status = cairn_object_wait_for(tool->store, &tool->call, key, &options, &object);
	if (!status)
		exit_status = print_version(tool, key, &object.version);
	else
		exit_status = tool_fail(tool, status);
	/* Waited in vain is an answer; a store that does not answer in time is not. */
	if (status == CAIRN_TIMEOUT && arguments->patience >= 0 &&
	    cairn_clock() - start >= arguments->patience)
		exit_status = TOOL_LOST;
	cairn_object_release(&object);
	return exit_status;
}

static const struct option_spec options[] = {
	{ "changed", 0, "ETAG", OPTION_TEXT, OPTION_FIELD(changed),
	  "until the object is there with another etag than this" },
	{ "timeout", 0, "S", OPTION_PATIENCE, OPTION_FIELD(patience),
	  "give up after so many seconds (60), or 'inf'" },
	{ "poll", 0, "S", OPTION_SECONDS, OPTION_FIELD(poll), "seconds between two looks (1)" },
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json),
	  "print {\"key\",\"etag\",\"size\",\"modified\"}" },
	{ 0 },
};

const struct command command_wait = {
	.name = "wait",
	.synopsis = "KEY",
	.summary = "wait until an object is there, or has changed",
	.details =
		"Wait until the object KEY is there, and print its etag. Exit status 1: waited in\n"
		"vain. For the time that one look may take, write --timeout before the command.\n",
	.options = options,
	.operands_min = 1,
	.operands_max = 1,
	.run = run_wait,
};
