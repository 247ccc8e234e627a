/* SPDX-License-Identifier: MIT */
#include "lineage.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A child that has done its part and lives until it is released. */
struct child {
	pid_t pid;
	int hold;   /* closed: it may end */
	pid_t told; /* a number that its part returned */
};

static void hold_on(int hold)
{
	char byte;

	while (read(hold, &byte, 1) < 0 && errno == EINTR)
		continue;
}

/* Only async-signal-safe calls in `part`: the test may have threads. It is given the hold. */
static struct child start(pid_t (*part)(int hold))
{
	int hold[2], ready[2];
	struct child child = { 0 };

	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		close(hold[1]);
		pid_t told = part ? part(hold[0]) : 0;
		if (write(ready[1], &told, sizeof(told)) != sizeof(told))
			_exit(1);
		hold_on(hold[0]);
		_exit(0);
	}
	close(hold[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &child.told, sizeof(child.told)), sizeof(child.told));
	close(ready[0]);
	child.hold = hold[1];
	return child;
}

static void release(struct child child)
{
	close(child.hold);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
}

static struct process process_of_pid(pid_t pid)
{
	struct lineage lineage;

	lineage_of(pid, &lineage);
	assert_true(lineage.count > 0);
	assert_int_equal(lineage.chain[0].pid, pid);
	return lineage.chain[0];
}

static void test_lineage_of_self(void **state)
{
	(void)state;
	struct lineage self;

	lineage_of(getpid(), &self);

	assert_true(self.count > 0);
	assert_int_equal(self.chain[0].pid, getpid());
	if (getppid() > 1)
		assert_int_equal(self.chain[1].pid, getppid());
	for (unsigned i = 0; i < self.count; i++) {
		assert_true(self.chain[i].pid > 1);
		assert_true(self.chain[i].start > 0);
		if (i)
			assert_true(self.chain[i].start <= self.chain[i - 1].start);
	}
}

static void test_lineage_of_nobody(void **state)
{
	(void)state;
	struct child child = start(NULL);
	release(child);
	const pid_t nobody[] = { 0, -1, 1, child.pid };

	for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		struct lineage lineage = { .count = 7 };
		lineage_of(nobody[i], &lineage);
		assert_int_equal(lineage.count, 0);
	}
}

static void *thread_lineage(void *ret)
{
	/* In /proc/TID/status a newline of the name could pass for the line that is looked for. */
	prctl(PR_SET_NAME, "\nTgid:\t7");
	assert_int_not_equal(gettid(), getpid());
	lineage_of(gettid(), ret);
	return NULL;
}

static void test_lineage_of_thread(void **state)
{
	(void)state;
	struct lineage of_process, of_thread;
	pthread_t thread;
	lineage_of(getpid(), &of_process);

	assert_int_equal(pthread_create(&thread, NULL, thread_lineage, &of_thread), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);

	assert_int_equal(of_thread.count, of_process.count);
	for (unsigned i = 0; i < of_process.count; i++) {
		assert_int_equal(of_thread.chain[i].pid, of_process.chain[i].pid);
		assert_int_equal(of_thread.chain[i].start, of_process.chain[i].start);
	}
}

static pid_t take_name_1(int hold)
{
	(void)hold;
	return prctl(PR_SET_NAME, "a) b (c");
}

static pid_t take_name_2(int hold)
{
	(void)hold;
	return prctl(PR_SET_NAME, ") Z 1 1 1 1 4 (");
}

static pid_t take_name_3(int hold)
{
	(void)hold;
	return prctl(PR_SET_NAME, "\n)\n");
}

static void test_lineage_odd_names(void **state)
{
	(void)state;
	pid_t (*const names[])(int hold) = { take_name_1, take_name_2, take_name_3 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct child child = start(names[i]);
		struct lineage lineage;
		lineage_of(child.pid, &lineage);
		assert_true(lineage.count >= 2);
		assert_int_equal(lineage.chain[0].pid, child.pid);
		assert_int_equal(lineage.chain[1].pid, getpid());
		assert_true(process_alive(lineage.chain[0]));
		assert_false(process_stopped(lineage.chain[0]));
		release(child);
	}
}

/* The grandchild holds on by itself, its parent's end or not. */
static pid_t bear_grandchild(int hold)
{
	pid_t pid = fork();

	if (pid == 0) {
		hold_on(hold);
		_exit(0);
	}
	return pid;
}

static void test_lineage_tree(void **state)
{
	(void)state;
	struct child child = start(bear_grandchild);
	struct child uncle = start(NULL);
	struct lineage self, nephew, other;
	unsigned a, b;

	lineage_of(getpid(), &self);
	lineage_of(child.told, &nephew);
	lineage_of(uncle.pid, &other);

	assert_int_equal(nephew.count, self.count + 2);
	assert_int_equal(nephew.chain[0].pid, child.told);
	assert_int_equal(nephew.chain[1].pid, child.pid);
	assert_int_equal(nephew.chain[2].pid, getpid());
	assert_true(lineage_contains(&nephew, self.chain[0]));
	assert_false(lineage_contains(&self, nephew.chain[0]));
	assert_true(lineage_common(&nephew, &other, &a, &b));
	assert_int_equal(a, 2);
	assert_int_equal(b, 1);
	assert_true(lineage_common(&self, &nephew, &a, &b));
	assert_int_equal(a, 0);
	assert_int_equal(b, 2);
	release(uncle);
	release(child);
}

static void test_lineage_reparented(void **state)
{
	(void)state;
	struct lineage lineage;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	struct child child = start(bear_grandchild);
	assert_int_equal(kill(child.pid, SIGKILL), 0);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);

	lineage_of(child.told, &lineage);

	assert_true(lineage.count >= 2);
	assert_int_equal(lineage.chain[0].pid, child.told);
	assert_int_equal(lineage.chain[1].pid, getpid());
	close(child.hold);
	assert_int_equal(waitpid(child.told, NULL, 0), child.told);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

/* Told: the last of a line of descendants. */
static pid_t bear_line(int hold)
{
	int ready[2];
	pid_t last = 0;

	if (pipe2(ready, O_CLOEXEC))
		return -1;
	for (int i = 0; i < LINEAGE_MAX + 4; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return -1;
		if (pid == 0)
			continue;
		if (i == 0) {
			close(ready[1]);
			return read(ready[0], &last, sizeof(last)) == sizeof(last) ? last : -1;
		}
		hold_on(hold);
		_exit(0);
	}
	last = getpid();
	if (write(ready[1], &last, sizeof(last)) != sizeof(last))
		_exit(1);
	hold_on(hold);
	_exit(0);
}

static void test_lineage_deep(void **state)
{
	(void)state;
	struct child child = start(bear_line);
	struct lineage lineage;
	assert_true(child.told > 0);

	lineage_of(child.told, &lineage);

	assert_int_equal(lineage.count, LINEAGE_MAX);
	assert_int_equal(lineage.chain[0].pid, child.told);
	assert_false(lineage_contains(&lineage, process_of_pid(child.pid)));
	release(child);
}

static void test_lineage_common_table(void **state)
{
	(void)state;
	static const struct lineage none, line = { 3, { { 30, 3 }, { 20, 2 }, { 10, 1 } } };
	static const struct {
		struct lineage other;
		bool common;
		unsigned at, at_other;
	} table[] = {
		{ { 3, { { 30, 3 }, { 20, 2 }, { 10, 1 } } }, true, 0, 0 },
		{ { 1, { { 10, 1 } } }, true, 2, 0 },
		{ { 3, { { 31, 3 }, { 20, 2 }, { 10, 1 } } }, true, 1, 1 },
		{ { 4, { { 40, 4 }, { 30, 3 }, { 20, 2 }, { 10, 1 } } }, true, 0, 1 },
		/* The same pid at another time is another process. */
		{ { 2, { { 20, 9 }, { 10, 1 } } }, true, 2, 1 },
		{ { 1, { { 20, 9 } } }, false, 9, 9 },
		{ { 2, { { 5, 1 }, { 6, 1 } } }, false, 9, 9 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		unsigned a = 9, b = 9;
		assert_int_equal(lineage_common(&line, &table[i].other, &a, &b), table[i].common);
		assert_int_equal(a, table[i].at);
		assert_int_equal(b, table[i].at_other);
		assert_false(lineage_common(&none, &table[i].other, &a, &b));
	}
	assert_true(lineage_contains(&line, (struct process){ 20, 2 }));
	assert_false(lineage_contains(&line, (struct process){ 20, 3 }));
	assert_false(lineage_contains(&none, (struct process){ 0 }));
}

static void test_process_alive(void **state)
{
	(void)state;
	siginfo_t info;
	struct child child = start(NULL);
	struct process process = process_of_pid(child.pid);
	struct process reused = { .pid = process.pid, .start = process.start - 1 };

	assert_true(process_alive(process));
	assert_false(process_alive(reused));
	close(child.hold);
	assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
	assert_false(process_alive(process)); /* a zombie */
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	assert_false(process_alive(process));
}

/* Who sees the end of a pipe that an exit closed must not see the process alive. */
static void test_process_exiting(void **state)
{
	(void)state;

	for (int i = 0; i < 200; i++) {
		int hold[2], output[2];
		char byte;
		assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
		assert_int_equal(pipe2(output, O_CLOEXEC), 0);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			close(hold[1]);
			hold_on(hold[0]);
			_exit(0);
		}
		close(output[1]);
		struct process process = process_of_pid(pid);
		close(hold[0]);
		close(hold[1]);
		assert_int_equal(read(output[0], &byte, 1), 0);
		assert_false(process_alive(process));
		close(output[0]);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
}

static void *hold_thread(void *hold)
{
	hold_on(*(int *)hold);
	_exit(0);
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	const char *end = strrchr(text, ')');
	assert_non_null(end);
	return end[2];
}

static void test_process_alive_without_leader(void **state)
{
	(void)state;
	int hold[2];
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		static pthread_t thread;
		close(hold[1]);
		if (pthread_create(&thread, NULL, hold_thread, &hold[0]))
			_exit(1);
		pthread_exit(NULL);
	}
	close(hold[0]);
	while (state_of(pid) != 'Z')
		sched_yield();

	struct process process = process_of_pid(pid);
	assert_true(process_alive(process));

	close(hold[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(process_alive(process));
}

static void test_process_stopped(void **state)
{
	(void)state;
	struct child child = start(NULL);
	struct process process = process_of_pid(child.pid);
	struct process reused = { .pid = process.pid, .start = process.start + 1 };
	assert_false(process_stopped(process));

	assert_int_equal(kill(child.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(child.pid, NULL, WUNTRACED), child.pid);
	assert_true(process_stopped(process));
	assert_true(process_alive(process));
	assert_false(process_stopped(reused));

	assert_int_equal(kill(child.pid, SIGCONT), 0);
	assert_int_equal(waitpid(child.pid, NULL, WCONTINUED), child.pid);
	assert_false(process_stopped(process));
	release(child);
	assert_false(process_stopped(process));
}

static bool put(const char *folder, const char *file, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t written = write(fd, text, strlen(text));
	close(fd);
	return written == (ssize_t)strlen(text);
}

/* Where a cgroup can be made (as root, mostly): paused by its parent's freezing as by its own. */
static void test_process_frozen(void **state)
{
	(void)state;
	static const struct {
		const char *mount, *file, *freeze, *thaw;
	} table[] = {
		{ "/sys/fs/cgroup", "cgroup.freeze", "1", "0" },
		{ "/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0" },
		{ "/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED" },
	};
	unsigned tried = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char outer[128], inner[160], pid[16];
		snprintf(outer, sizeof(outer), "%s/cairn-test-%d", table[i].mount, (int)getpid());
		snprintf(inner, sizeof(inner), "%s/inner", outer);
		if (mkdir(outer, 0755))
			continue;
		struct child child = start(NULL);
		struct process process = process_of_pid(child.pid);
		snprintf(pid, sizeof(pid), "%d", (int)child.pid);
		if (mkdir(inner, 0755) == 0 && put(inner, "cgroup.procs", pid) &&
		    put(outer, table[i].file, table[i].thaw)) {
			assert_false(process_stopped(process));
			assert_true(put(outer, table[i].file, table[i].freeze));
			while (!process_stopped(process))
				sched_yield();
			assert_true(process_alive(process));
			assert_true(put(outer, table[i].file, table[i].thaw));
			while (process_stopped(process))
				sched_yield();
			tried++;
		}
		release(child);
		rmdir(inner);
		rmdir(outer);
	}
	if (!tried)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lineage_of_self),
		cmocka_unit_test(test_lineage_of_nobody),
		cmocka_unit_test(test_lineage_of_thread),
		cmocka_unit_test(test_lineage_odd_names),
		cmocka_unit_test(test_lineage_tree),
		cmocka_unit_test(test_lineage_reparented),
		cmocka_unit_test(test_lineage_deep),
		cmocka_unit_test(test_lineage_common_table),
		cmocka_unit_test(test_process_alive),
		cmocka_unit_test(test_process_exiting),
		cmocka_unit_test(test_process_alive_without_leader),
		cmocka_unit_test(test_process_stopped),
		cmocka_unit_test(test_process_frozen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
