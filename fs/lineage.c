/* SPDX-License-Identifier: MIT */
#include "lineage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* include/linux/sched.h of the kernel; in the flags of /proc/PID/stat since ever. */
#define PF_EXITING 0x4

/* What we use of /proc/PID/stat. */
struct status {
	char state;
	pid_t parent;
	unsigned long flags;
	long threads;
	uint64_t start;
	bool leader; /* the process itself, not another thread of it */
};

/* Reads up to size - 1 bytes and terminates them. Returns 0 or -errno. */
static int read_text(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	ssize_t length = read(fd, ret, size - 1);
	int error = errno;
	close(fd);
	if (length < 0)
		return -error;
	ret[length] = '\0';
	return 0;
}

static int read_proc(pid_t pid, const char *file, char *ret, size_t size)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return read_text(path, ret, size);
}

/* Returns 0, or -errno: -ENOENT or -ESRCH for a process that is gone. */
static int read_status(pid_t pid, struct status *ret)
{
	char text[1024];
	int error = read_proc(pid, "stat", text, sizeof(text));
	if (error)
		return error;
	/* The name may hold anything, a parenthesis too; nothing behind it does. */
	char *at = strrchr(text, ')');
	if (!at || at[1] != ' ' || !at[2])
		return -EPROTO;
	ret->state = at[2];
	at += 3;

	for (unsigned field = 4; field <= 38; field++) {
		char *end;
		/* Some are signed: they wrap, and come back by the conversion. */
		unsigned long long value = strtoull(at, &end, 10);
		if (end == at)
			return -EPROTO;
		at = end;
		switch (field) {
		case 4:
			ret->parent = (pid_t)value;
			break;
		case 9:
			ret->flags = (unsigned long)value;
			break;
		case 20:
			ret->threads = (long)value;
			break;
		case 22:
			ret->start = value;
			break;
		case 38: /* the exit signal: the kernel tells threads from leaders by it, too */
			ret->leader = (int)value != -1;
			break;
		}
	}
	return 0;
}

/* The process of a thread, 0 when it is gone. */
static pid_t process_of(pid_t tid)
{
	char text[512];

	if (read_proc(tid, "status", text, sizeof(text)))
		return 0;
	/* The name, in the line before, has its newlines escaped. */
	const char *at = strstr(text, "\nTgid:");
	return at ? (pid_t)strtol(at + strlen("\nTgid:"), NULL, 10) : 0;
}

/*
 * The parent's pid, and its status. While we look, it may end and leave `pid` to init or a
 * subreaper, and its own pid to another process, which then is younger than its supposed child.
 */
static pid_t parent_of(struct process process, struct status *status, struct status *ret)
{
	for (int attempt = 0; attempt < 4; attempt++) {
		if (status->parent <= 1)
			return 0;
		if (read_status(status->parent, ret) == 0 && ret->start <= process.start)
			return status->parent;
		if (read_status(process.pid, status) || status->start != process.start)
			return 0;
	}
	return 0;
}

void lineage_of(pid_t tid, struct lineage *ret)
{
	struct status status, parent;
	pid_t pid = tid;

	ret->count = 0;
	if (tid <= 1 || read_status(pid, &status))
		return;
	if (!status.leader) {
		pid = process_of(tid);
		if (pid <= 0 || read_status(pid, &status))
			return;
	}
	while (pid > 1) {
		struct process process = { .pid = pid, .start = status.start };
		ret->chain[ret->count++] = process;
		if (ret->count == LINEAGE_MAX)
			return;
		pid = parent_of(process, &status, &parent);
		status = parent;
	}
}

static bool ending(const struct status *status)
{
	return strchr("ZXx", status->state) || status->flags & PF_EXITING;
}

/* Whether a thread of it goes on when the leader, the thread that is the process, has ended. */
static bool thread_alive(pid_t pid)
{
	char path[48];
	bool alive = false;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);
	if (!tasks)
		return errno != ENOENT;
	for (struct dirent *task; !alive && (task = readdir(tasks));) {
		struct status status;
		pid_t tid = (pid_t)strtol(task->d_name, NULL, 10);
		alive = tid > 0 && read_status(tid, &status) == 0 && !ending(&status);
	}
	closedir(tasks);
	return alive;
}

bool process_alive(struct process process)
{
	struct status status;

	int error = read_status(process.pid, &status);
	if (error)
		return error != -ENOENT && error != -ESRCH;
	if (status.start != process.start)
		return false;
	return !ending(&status) || (status.threads > 1 && thread_alive(process.pid));
}

static bool file_tells(const char *mount, const char *group, const char *file, const char *what)
{
	char path[4096], text[256];

	int length = snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s/%s", mount, group, file);
	if (length < 0 || (size_t)length >= sizeof(path))
		return false;
	return read_text(path, text, sizeof(text)) == 0 && strstr(text, what);
}

static bool frozen(pid_t pid)
{
	char text[8192];

	if (read_proc(pid, "cgroup", text, sizeof(text)))
		return false;
	/* Lines of ID:CONTROLLERS:PATH; version 2 names no controllers. */
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		controllers++;
		if (strcmp(group, "/") == 0)
			continue; /* the root cannot be frozen */
		if (!*controllers) {
			if (file_tells("", group, "cgroup.events", "frozen 1") ||
			    file_tells("/unified", group, "cgroup.events", "frozen 1"))
				return true;
		} else if (strcmp(controllers, "freezer") == 0) {
			if (file_tells("/freezer", group, "freezer.state", "FROZEN") ||
			    file_tells("/freezer", group, "freezer.state", "FREEZING"))
				return true;
		}
	}
	return false;
}

bool process_stopped(struct process process)
{
	struct status status;

	if (read_status(process.pid, &status) || status.start != process.start)
		return false;
	return status.state == 'T' || status.state == 't' || frozen(process.pid);
}

static bool same(struct process a, struct process b)
{
	return a.pid == b.pid && a.start == b.start;
}

bool lineage_contains(const struct lineage *lineage, struct process process)
{
	for (unsigned i = 0; i < lineage->count; i++)
		if (same(lineage->chain[i], process))
			return true;
	return false;
}

bool lineage_common(const struct lineage *a, const struct lineage *b, unsigned *ret_at_a,
		    unsigned *ret_at_b)
{
	for (unsigned i = 0; i < a->count; i++) {
		for (unsigned j = 0; j < b->count; j++) {
			if (same(a->chain[i], b->chain[j])) {
				*ret_at_a = i;
				*ret_at_b = j;
				return true;
			}
		}
	}
	return false;
}
