/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command *const commands[] = {
	&command_get,
	&command_put,
	&command_rm,
	&command_ls,
	&command_wait,
	&command_claim,
	&command_lease_acquire,
	&command_lease_renew,
	&command_lease_state,
	&command_lease_release,
	&command_lease_attach,
	&command_lease_run,
	&command_lease_show,
	&command_doc_get,
	&command_doc_update,
	&command_doc_delete,
	&command_mount,
	&command_umount,
	&command_status,
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const struct option_spec top_options[] = {
	{ "version", 'V', NULL, OPTION_FLAG, OPTION_FIELD(version), "print the version and exit" },
	{ 0 },
};

static const struct command command_top = {
	.synopsis = "COMMAND ...",
	.details =
		"Coordinate through a CairnDB bucket: objects, claims, leases and documents.\n"
		"`cairn COMMAND --help` tells more about each command.\n"
		"\n"
		"Exit status: 0 done or won; 1 lost, held, conflict, absent, or a COMMAND failed;\n"
		"2 wrong usage or input; 3 the storage failed or the outcome is unknown.\n"
		"Every failure of cairn itself is told on standard error in a line that begins\n"
		"with `cairn: `.\n",
	.options = top_options,
};

/* The commands whose name begins with the word `group`, or all. */
static void print_commands(struct tool *tool, const char *group)
{
	size_t length = strlen(group);
	output_text(tool, "\nCommands:\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		const char *name = commands[i]->name;
		if (length == 0 || (strncmp(name, group, length) == 0 && name[length] == ' '))
			output_text(tool, "  %-14s  %s\n", name, commands[i]->summary);
	}
}

static bool is_group(const char *word)
{
	return strcmp(word, "lease") == 0 || strcmp(word, "doc") == 0;
}

/* The command that the words begin with; *ret_words is how many are its name. */
static const struct command *command_find(char **words, int count, int *ret_words)
{
	const char *second = is_group(words[0]) && count > 1 ? words[1] : NULL;
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		const char *name = commands[i]->name;
		size_t length = strcspn(name, " ");
		if (strlen(words[0]) != length || strncmp(name, words[0], length) != 0)
			continue;
		if (name[length] == '\0' || (second && strcmp(name + length + 1, second) == 0)) {
			*ret_words = name[length] ? 2 : 1;
			return commands[i];
		}
	}
	return NULL;
}

/* The words name no command: say what is wrong, or show a group's help. */
static int command_missing(struct tool *tool, char **words, int count)
{
	if (!is_group(words[0]))
		return tool_usage(tool, "there is no command '%s'", words[0]);
	if (count < 2)
		return tool_usage(tool, "'%s' needs a second word, such as '%s'", words[0],
				  words[0][0] == 'l' ? "lease run" : "doc get");
	if (strcmp(words[1], "--help") != 0 && strcmp(words[1], "-h") != 0)
		return tool_usage(tool, "there is no command '%s %s'", words[0], words[1]);
	output_text(tool, "usage: cairn %s COMMAND ...\n", words[0]);
	print_commands(tool, words[0]);
	return TOOL_DONE;
}

static int run(struct tool *tool, int argc, char **argv)
{
	int next = 0;
	int exit_status = options_parse(tool, argc, argv, &next);
	if (exit_status >= 0)
		return exit_status;
	if (tool->arguments.version) {
		output_text(tool, "cairn %s\n", CAIRN_VERSION);
		return TOOL_DONE;
	}
	if (tool->arguments.help) {
		options_help(tool);
		print_commands(tool, "");
		return TOOL_DONE;
	}
	if (next >= argc)
		return tool_usage(tool, "a COMMAND is missing");
	int words = 0;
	const struct command *command = command_find(argv + next, argc - next, &words);
	if (!command)
		return command_missing(tool, argv + next, argc - next);
	tool->command = command;
	next += words - 1;
	exit_status = options_parse(tool, argc - next, argv + next, NULL);
	if (exit_status >= 0)
		return exit_status;
	if (tool->arguments.help) {
		options_help(tool);
		return TOOL_DONE;
	}
	return command->run(tool);
}

/* A closed descriptor 0, 1 or 2 must not become a file of the bucket: what writes there fails. */
static void occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
	}
}

int main(int argc, char **argv)
{
	occupy_standard_descriptors();
	(void)signal(SIGPIPE, SIG_IGN);
	struct tool tool = { .command = &command_top };
	arguments_init(&tool.arguments);
	int exit_status = tool_flush(&tool, run(&tool, argc, argv));
	cairn_store_free(tool.store);
	cairn_buffer_release(&tool.arguments.mount_options);
	return exit_status;
}
