/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

/* Run cairnfs: beside this program, where the build tree has it, or from PATH. Returns on failure.
 */
static void exec_cairnfs(char **argv)
{
	static const char *const places[] = { "cairnfs", "../fs/cairnfs" };
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length > 0) {
		self[length] = '\0';
		const char *directory = dirname(self);
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			char path[PATH_MAX + 32];
			(void)snprintf(path, sizeof(path), "%s/%s", directory, places[i]);
			if (access(path, X_OK) == 0)
				(void)execv(path, argv);
		}
	}
	(void)execvp(argv[0], argv);
}

static int run_mount(struct tool *tool)
{
	const struct arguments *arguments = &tool->arguments;
	char *argv[6];
	size_t count = 0;
	argv[count++] = (char *)"cairnfs";
	for (size_t i = 0; i < arguments->operand_count; i++)
		argv[count++] = (char *)arguments->operands[i];
	if (arguments->mount_options.size) {
		argv[count++] = (char *)"-o";
		argv[count++] = arguments->mount_options.data;
	}
	argv[count] = NULL;
	exec_cairnfs(argv);
	return tool_say(TOOL_STORAGE, "cannot mount %s: cannot run cairnfs: %s",
			arguments->operands[arguments->operand_count - 1], strerror(errno));
}

static int run_umount(struct tool *tool)
{
	const char *mountpoint = tool->arguments.operands[0];
	const char *program = geteuid() == 0 ? "umount" : "fusermount3";
	char *as_root[] = { (char *)program, (char *)"--", (char *)mountpoint, NULL };
	char *as_user[] = { (char *)program, (char *)"-u", (char *)"--", (char *)mountpoint, NULL };
	pid_t pid = 0;
	int wait_status = 0;
	int failure = posix_spawnp(&pid, program, NULL, NULL, geteuid() == 0 ? as_root : as_user,
				   environ);
	if (failure)
		return tool_say(TOOL_STORAGE, "cannot unmount %s: cannot run %s: %s", mountpoint,
				program, strerror(failure));
	if (process_wait(pid, &wait_status))
		return tool_say(TOOL_STORAGE, "cannot unmount %s: lost touch with %s", mountpoint,
				program);
	if (wait_status == 0)
		return TOOL_DONE;
	char how[80];
	process_describe(wait_status, how);
	return tool_say(TOOL_STORAGE, "cannot unmount %s: %s %s", mountpoint, program, how);
}

static const struct option_spec options[] = {
	{ "options", 'o', "OPTIONS", OPTION_LIST, OPTION_FIELD(mount_options),
	  "options of cairnfs, separated by commas" },
	{ 0 },
};

const struct command command_mount = {
	.name = "mount",
	.synopsis = "[DIR-OR-URL] MOUNTPOINT",
	.summary = "mount a bucket",
	.details = "Mount the bucket DIR-OR-URL, by default the environment's, at MOUNTPOINT,\n"
		   "by running cairnfs; the exit status is that of cairnfs.\n",
	.options = options,
	.operands_min = 1,
	.operands_max = 2,
	.no_store = true,
	.run = run_mount,
};

const struct command command_umount = {
	.name = "umount",
	.synopsis = "MOUNTPOINT",
	.summary = "unmount a bucket",
	.details = "Unmount what is mounted at MOUNTPOINT.\n",
	.operands_min = 1,
	.operands_max = 1,
	.no_store = true,
	.run = run_umount,
};
