/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A name and its value a line, what lies within others indented below them. */
static void print_value(struct tool *tool, const char *name, const json_t *value, int indent)
{
	output_text(tool, "%*s%s", indent, "", name);
	if (json_is_object(value)) {
		output_text(tool, "\n");
		const char *member;
		json_t *inner;
		json_object_foreach((json_t *)value, member, inner)
			print_value(tool, member, inner, indent + 2);
	} else if (json_is_array(value)) {
		output_text(tool, "\n");
		size_t i;
		json_t *inner;
		json_array_foreach(value, i, inner) print_value(tool, "-", inner, indent + 2);
	} else if (json_is_string(value)) {
		output_text(tool, ": %s\n", json_string_value(value));
	} else {
		char *text = json_dumps(value, JSON_ENCODE_ANY);
		output_text(tool, ": %s\n", text ? text : "?");
		free(text);
	}
}

static void print_status(struct tool *tool, const json_t *status)
{
	const char *name;
	json_t *value;
	if (tool->arguments.json) {
		char *text = json_dumps(status, JSON_COMPACT);
		output_line(tool, cairn_slice_of(text ? text : "null"));
		free(text);
		return;
	}
	json_object_foreach((json_t *)status, name, value) print_value(tool, name, value, 0);
}

static int mount_status(struct tool *tool, const char *mountpoint)
{
	char path[PATH_MAX + 32];
	(void)snprintf(path, sizeof(path), "%.*s/.cairn/status.json", PATH_MAX, mountpoint);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return tool_say(TOOL_LOST, "no bucket is mounted at %s", mountpoint);
	if (fd < 0)
		return tool_say(TOOL_STORAGE, "cannot read %s: %s", path, strerror(errno));
	json_error_t error;
	json_t *status = json_loadfd(fd, 0, &error);
	(void)close(fd);
	int exit_status = TOOL_DONE;
	if (json_is_object(status))
		print_status(tool, status);
	else
		exit_status = tool_say(TOOL_STORAGE, "cannot read %s: %s", path, error.text);
	json_decref(status);
	return exit_status;
}

/* Is the store there and does it take guarded writes? The answer in words into `status`. */
static int probe(struct tool *tool, json_t *status)
{
	cairn_store_free(tool->store);
	tool->store = NULL;
	int exit_status = tool_open(tool, true);
	int result = CAIRN_OK;
	if (exit_status < 0)
		result = cairn_store_probe(tool->store, &tool->call);
	bool writable = exit_status < 0 && !result;
	(void)json_object_set_new(status, "writable", json_boolean(writable));
	(void)json_object_set_new(
		status, "probe", writable ? json_string("ok") : json_string(tool->call.error.text));
	if (exit_status >= 0)
		return exit_status;
	/* What the probe finds wrong is the store's fault, whatever its kind. */
	return result ? tool_say(TOOL_STORAGE, "%s", tool->call.error.text) : TOOL_DONE;
}

static int store_status(struct tool *tool)
{
	/* First as a reader: asking after a bucket must not make one. */
	int exit_status = tool_open(tool, false);
	if (exit_status >= 0)
		return exit_status;
	json_t *status = json_object();
	struct cairn_space space;
	(void)json_object_set_new(status, "store", json_string(tool->store->name));
	(void)json_object_set_new(status, "kind", json_string(tool->store->capabilities.kind));
	if (!cairn_store_space(tool->store, &tool->call, &space) && space.total != UINT64_MAX) {
		(void)json_object_set_new(status, "bytes_total",
					  json_integer((json_int_t)space.total));
		(void)json_object_set_new(status, "bytes_available",
					  json_integer((json_int_t)space.available));
	}
	exit_status = probe(tool, status);
	print_status(tool, status);
	json_decref(status);
	return exit_status;
}

static int run_status(struct tool *tool)
{
	const struct arguments *arguments = &tool->arguments;
	if (arguments->operand_count && arguments->store)
		return tool_usage(tool, "MOUNTPOINT and --store exclude each other");
	return arguments->operand_count ? mount_status(tool, arguments->operands[0])
					: store_status(tool);
}

static const struct option_spec options[] = {
	{ "json", 0, NULL, OPTION_FLAG, OPTION_FIELD(json), "print one JSON object" },
	{ 0 },
};

const struct command command_status = {
	.name = "status",
	.synopsis = "[MOUNTPOINT]",
	.summary = "tell how a mount or a bucket is",
	.details =
		"Print what the mount at MOUNTPOINT says of itself; or, without one, what the "
		"bucket\n"
		"is and whether it keeps the preconditions of writes (which writes a key and "
		"deletes\n"
		"it). Exit status 1: nothing is mounted there; 3: the bucket cannot be written.\n",
	.options = options,
	.operands_max = 1,
	.run = run_status,
};
