/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/key.h>

static int print_json(struct tool *tool, const struct cairn_entry *entry)
{
	struct record record;
	record_init(&record);
	record_text(&record, entry->is_prefix ? "prefix" : "key", entry->key);
	if (!entry->is_prefix) {
		record_integer(&record, "size", (int64_t)entry->size);
		record_time(&record, "modified", entry->modified);
		if (entry->etag)
			record_text(&record, "etag", entry->etag);
	}
	return record_print(&record, tool, TOOL_DONE);
}

static int print_entry(struct tool *tool, const struct cairn_entry *entry)
{
	if (tool->arguments.json)
		return print_json(tool, entry);
	if (tool->arguments.details && entry->is_prefix) {
		output_text(tool, "%12s  %-27s  ", "-", "-");
	} else if (tool->arguments.details) {
		char time[32];
		tool_time(entry->modified, time);
		output_text(tool, "%12" PRIu64 "  %-27s  ", entry->size, time);
	}
	/* With the NUL that ends it in memory. */
	if (tool->arguments.zero)
		output_bytes(tool, (struct cairn_slice){ entry->key, strlen(entry->key) + 1 });
	else
		output_line(tool, cairn_slice_of(entry->key));
	return TOOL_DONE;
}

/* Page by page, so that memory does not grow with the bucket. */
static int list(struct tool *tool, const char *prefix)
{
	const struct arguments *arguments = &tool->arguments;
	struct cairn_list_options options = {
		.delimited = !arguments->recursive,
		.names_only = !arguments->details && !arguments->json,
	};
	char *token = NULL;
	int exit_status = TOOL_DONE;
	do {
		struct cairn_listing listing;
		cairn_listing_init(&listing);
		options.token = token;
		int status = cairn_store_list(tool->store, &tool->call, prefix, &options, &listing);
		if (status)
			exit_status = tool_fail(tool, status);
		for (size_t i = 0; i < listing.count && exit_status == TOOL_DONE; i++) {
			if (!cairn_key_reserved(listing.entries[i].key))
				exit_status = print_entry(tool, &listing.entries[i]);
		}
		free(token);
		token = listing.token;
		listing.token = NULL;
		cairn_listing_release(&listing);
	} while (token && exit_status == TOOL_DONE && !tool->output_errno);
	free(token);
	return exit_status;
}

static int run_ls(struct tool *tool)
{
	if (tool->arguments.zero && tool->arguments.json)
		return tool_usage(tool, "-0 and --json exclude each other");
	int exit_status = tool_open(tool, false);
	if (exit_status >= 0)
		return exit_status;
	return list(tool, tool->arguments.operand_count ? tool->arguments.operands[0] : "");
}

static const struct option_spec options[] = {
	{ "long", 'l', NULL, OPTION_FLAG, OPTION_FIELD(details),
	  "size in bytes and time of the last write before each key" },
	{ "recursive", 'r', NULL, OPTION_FLAG, OPTION_FIELD(recursive),
	  "every key that begins with PREFIX" },
	{ "null", '0', NULL, OPTION_FLAG, OPTION_FIELD(zero),
	  "end each line with a NUL in place of a newline" },
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json),
	  "a line for each: {\"key\",\"size\",\"modified\",\"etag\"?} or {\"prefix\"}" },
	{ 0 },
};

const struct command command_ls = {
	.name = "ls",
	.synopsis = "[PREFIX]",
	.summary = "list keys",
	.details = "Print the keys that begin with PREFIX, one a line, whole and in byte\n"
		   "order; those that have a '/' behind it are summed up as one name up to\n"
		   "that '/'. A PREFIX that is a directory ends in '/'. Nothing found is no\n"
		   "failure.\n",
	.options = options,
	.operands_max = 1,
	.run = run_ls,
};
