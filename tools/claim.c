/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <string.h>

#include <cairn/claim.h>
#include <cairn/json.h>

static int print_claim(struct tool *tool, const char *key, const struct cairn_claim *claim)
{
	int exit_status = claim->won ? TOOL_DONE : TOOL_LOST;
	if (!tool->arguments.json) {
		output_line(tool, cairn_buffer_slice(&claim->value));
		return exit_status;
	}
	struct record record;
	record_init(&record);
	record_text(&record, "key", key);
	record_boolean(&record, "won", claim->won);
	record_json(&record, "value", cairn_buffer_slice(&claim->value));
	record_text(&record, "etag", claim->version.etag);
	return record_print(&record, tool, exit_status);
}

static int claim_value(struct tool *tool, struct cairn_slice value)
{
	const char *key = tool->arguments.operands[0];
	struct cairn_claim claim;
	cairn_claim_init(&claim);
	int exit_status = tool_open(tool, true);
	if (exit_status < 0) {
		int status = cairn_claim(tool->store, &tool->call, key, value, &claim);
		exit_status = status ? tool_fail(tool, status) : print_claim(tool, key, &claim);
	}
	cairn_claim_release(&claim);
	return exit_status;
}

static int run_claim(struct tool *tool)
{
	const char *text = tool->arguments.operands[1];
	struct cairn_buffer input, value;
	cairn_buffer_init(&input, CAIRN_JSON_MAX);
	cairn_buffer_init(&value, CAIRN_JSON_MAX);
	struct cairn_slice slice = cairn_slice_of(text);
	int exit_status = -1;
	if (strcmp(text, "-") == 0) {
		exit_status = tool_read_file(tool, text, &input);
		slice = cairn_buffer_slice(&input);
	}
	if (exit_status < 0)
		exit_status = tool_json(tool, "VALUE", slice, &value);
	if (exit_status < 0)
		exit_status = claim_value(tool, cairn_buffer_slice(&value));
	cairn_buffer_release(&value);
	cairn_buffer_release(&input);
	return exit_status;
}

static const struct option_spec options[] = {
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json),
	  "print {\"key\",\"won\",\"value\",\"etag\"}" },
	{ 0 },
};

const struct command command_claim = {
	.name = "claim",
	.synopsis = "KEY VALUE",
	.summary = "claim a key: exactly one claimant wins",
	.details = "Claim KEY with the JSON VALUE ('-': read from standard input) and print\n"
		   "the value that won. Exit status 0: this one won; 1: another one had won\n"
		   "before.\n",
	.options = options,
	.operands_min = 2,
	.operands_max = 2,
	.run = run_claim,
};
