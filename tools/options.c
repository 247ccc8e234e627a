/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec common_options[] = {
	{ "store", 0, "DIR-OR-URL", OPTION_TEXT, OPTION_FIELD(store),
	  "the bucket; default: CAIRNDB_STORAGE_TYPE, CAIRNDB_STORAGE_PATH, ..." },
	{ "timeout", 0, "S", OPTION_SECONDS, OPTION_FIELD(timeout),
	  "seconds that a call to the store may take (30)" },
	{ "help", 'h', NULL, OPTION_FLAG, OPTION_FIELD(help), "show this help and exit" },
	{ 0 },
};

#define OPTIONS_MAX  16
#define OPTION_FIRST 256  /* getopt's code of the first long option */
#define SECONDS_MAX  1e10 /* three hundred years */

/* All options of one command, its own first, in the form that getopt_long wants. */
struct option_set {
	const struct option_spec *specs[OPTIONS_MAX];
	size_t count;
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 4];
};

void arguments_init(struct arguments *arguments)
{
	*arguments = (struct arguments){
		.patience = 60 * TOOL_SECOND,
		.poll = TOOL_SECOND,
		.ttl = 60 * TOOL_SECOND,
		.attempts = 10,
	};
	cairn_buffer_init(&arguments->mount_options, 1 << 16);
}

static void option_set_add(struct option_set *set, const struct option_spec *specs)
{
	for (; specs && specs->name; specs++) {
		bool shadowed = false;
		for (size_t i = 0; i < set->count; i++)
			shadowed = shadowed || strcmp(set->specs[i]->name, specs->name) == 0;
		if (!shadowed && set->count < OPTIONS_MAX)
			set->specs[set->count++] = specs;
	}
}

static void option_set_make(struct option_set *set, const struct command *command)
{
	*set = (struct option_set){ .count = 0 };
	option_set_add(set, command->options);
	option_set_add(set, command->no_store ? &common_options[2] : common_options);
	/* `-`: operands come in order, so that those behind `--` can be told; `+`: stop at the
	 * first. */
	size_t at = 0;
	set->shorts[at++] = command->name ? '-' : '+';
	set->shorts[at++] = ':';
	for (size_t i = 0; i < set->count; i++) {
		const struct option_spec *spec = set->specs[i];
		set->longs[i] = (struct option){
			.name = spec->name,
			.has_arg = spec->value ? required_argument : no_argument,
			.val = OPTION_FIRST + (int)i,
		};
		if (!spec->letter)
			continue;
		set->shorts[at++] = spec->letter;
		if (spec->value)
			set->shorts[at++] = ':';
	}
}

static const struct option_spec *option_of_code(const struct option_set *set, int code)
{
	if (code >= OPTION_FIRST && (size_t)(code - OPTION_FIRST) < set->count)
		return set->specs[code - OPTION_FIRST];
	for (size_t i = 0; i < set->count; i++) {
		if (code && set->specs[i]->letter == code)
			return set->specs[i];
	}
	return NULL;
}

/* A decimal number of seconds, or `inf` where `forever` is allowed. */
static bool parse_seconds(const char *text, bool forever, int64_t *ret_time)
{
	if (forever && strcmp(text, "inf") == 0) {
		*ret_time = TOOL_FOREVER;
		return true;
	}
	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return false;
	char *end = NULL;
	double seconds = strtod(text, &end);
	if (*end || end == text || seconds > SECONDS_MAX)
		return false;
	int64_t time = (int64_t)(seconds * (double)TOOL_SECOND);
	if (time == 0 && !forever)
		return false;
	*ret_time = time;
	return true;
}

static bool parse_count(const char *text, unsigned *ret_count)
{
	char *end = NULL;
	errno = 0;
	unsigned long count = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || count < 1 || count > UINT_MAX)
		return false;
	*ret_count = (unsigned)count;
	return true;
}

/* Store an option's value. Returns -1 to go on. */
static int option_store(struct tool *tool, const struct option_spec *spec, const char *value)
{
	void *field = (char *)&tool->arguments + spec->field;
	switch (spec->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return -1;
	case OPTION_TEXT:
		*(const char **)field = value;
		return -1;
	case OPTION_SECONDS:
		if (parse_seconds(value, false, field))
			return -1;
		return tool_usage(tool, "--%s takes a number of seconds above 0, not '%s'",
				  spec->name, value);
	case OPTION_PATIENCE:
		if (parse_seconds(value, true, field))
			return -1;
		return tool_usage(tool, "--%s takes a number of seconds or 'inf', not '%s'",
				  spec->name, value);
	case OPTION_COUNT:
		if (parse_count(value, field))
			return -1;
		return tool_usage(tool, "--%s takes a number of 1 or more, not '%s'", spec->name,
				  value);
	case OPTION_LIST:
		if (!cairn_buffer_printf(field, "%s%s",
					 ((struct cairn_buffer *)field)->size ? "," : "", value))
			return -1;
		return tool_usage(tool, "--%s: the options are too long", spec->name);
	}
	return -1;
}

static int operand_add(struct tool *tool, const char *operand)
{
	struct arguments *arguments = &tool->arguments;
	if (arguments->operand_count == tool->command->operands_max)
		return tool_usage(tool, "'%s' is too much: it takes %s", operand,
				  tool->command->operands_max ? tool->command->synopsis
							      : "no operands");
	arguments->operands[arguments->operand_count++] = operand;
	return -1;
}

/* What getopt_long refused: say which option and why. */
static int option_wrong(struct tool *tool, const struct option_set *set, int code, char **argv)
{
	const struct option_spec *spec = option_of_code(set, optopt);
	if (code == ':' && spec)
		return tool_usage(tool, "option '--%s' needs a value: %s", spec->name, spec->value);
	if (spec)
		return tool_usage(tool, "option '--%s' takes no value", spec->name);
	if (optopt)
		return tool_usage(tool, "there is no option '-%c'", optopt);
	return tool_usage(tool, "there is no option '%s', or it is ambiguous", argv[optind - 1]);
}

/* After the options: what stands behind `--`, and whether all operands are there. */
static int parse_rest(struct tool *tool, int argc, char **argv)
{
	const struct command *command = tool->command;
	struct arguments *arguments = &tool->arguments;
	if (command->takes_command) {
		arguments->command = optind < argc ? argv + optind : NULL;
	} else {
		for (; optind < argc; optind++) {
			int exit_status = operand_add(tool, argv[optind]);
			if (exit_status >= 0)
				return exit_status;
		}
	}
	if (arguments->help)
		return -1;
	if (arguments->operand_count < command->operands_min)
		return tool_usage(tool, "an operand is missing: it takes %s", command->synopsis);
	if (command->takes_command && !arguments->command)
		return tool_usage(tool, "a command is missing: it takes %s", command->synopsis);
	return -1;
}

int options_parse(struct tool *tool, int argc, char **argv, int *ret_next)
{
	struct option_set set;
	option_set_make(&set, tool->command);
	opterr = 0;
	optind = 0;
	int code;
	while ((code = getopt_long(argc, argv, set.shorts, set.longs, NULL)) != -1) {
		const struct option_spec *spec = option_of_code(&set, code);
		int exit_status;
		if (code == 1)
			exit_status = operand_add(tool, optarg);
		else if (spec)
			exit_status = option_store(tool, spec, optarg);
		else
			exit_status = option_wrong(tool, &set, code, argv);
		if (exit_status >= 0)
			return exit_status;
	}
	if (tool->command->name)
		return parse_rest(tool, argc, argv);
	*ret_next = optind;
	return -1;
}

void options_help(struct tool *tool)
{
	const struct command *command = tool->command;
	struct option_set set;
	option_set_make(&set, command);
	output_text(tool, "usage: cairn %s%s[OPTION ...] %s\n\n%s\nOptions:\n",
		    command->name ? command->name : "", command->name ? " " : "", command->synopsis,
		    command->details);
	for (size_t i = 0; i < set.count; i++) {
		const struct option_spec *spec = set.specs[i];
		char letter[] = { '-', spec->letter, ',', ' ', '\0' };
		char name[64];
		(void)snprintf(name, sizeof(name), "%s--%s%s%s", spec->letter ? letter : "",
			       spec->name, spec->value ? " " : "", spec->value ? spec->value : "");
		output_text(tool, "  %-22s  %s\n", name, spec->help);
	}
}
