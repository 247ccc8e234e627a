/* SPDX-License-Identifier: MIT */
#include "reads.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Made-up families: a letter is a process, a string its lineage, "cbS" a child of b, itself a child
 * of S. Capitals live (a real child of ours stands for each), small letters have ended.
 */
#define LIVING 26
#define GONE   5000000 /* above the greatest pid that Linux allows */

static struct process living[LIVING];
static int hold[2];

static struct lineage family(const char *letters)
{
	struct lineage lineage = { .count = (unsigned)strlen(letters) };

	for (unsigned i = 0; i < lineage.count; i++) {
		if (letters[i] >= 'A' && letters[i] <= 'Z')
			lineage.chain[i] = living[letters[i] - 'A'];
		else
			lineage.chain[i] = (struct process){ .pid = GONE + letters[i], .start = 1 };
	}
	return lineage;
}

static pid_t bear(int wait_for)
{
	pid_t pid = fork();
	char byte;

	if (pid == 0) {
		close(hold[1]);
		_exit(read(wait_for, &byte, 1) != 0);
	}
	return pid;
}

static int set_up(void **state)
{
	struct lineage lineage;

	(void)state;
	if (pipe2(hold, O_CLOEXEC))
		return -1;
	for (size_t i = 0; i < LIVING; i++) {
		pid_t pid = bear(hold[0]);
		lineage_of(pid, &lineage);
		if (pid < 0 || lineage.count == 0)
			return -1;
		living[i] = lineage.chain[0];
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(hold[1]);
	for (size_t i = 0; i < LIVING; i++)
		if (waitpid(living[i].pid, NULL, 0) != living[i].pid)
			return -1;
	return 0;
}

#define READ(who, which)                                                                           \
	{                                                                                          \
		.lineage = (who), .version = (which)                                               \
	}
#define WRITE(who, which)                                                                          \
	{                                                                                          \
		.lineage = (who), .base = READS_VERSION, .version = (which)                        \
	}
#define NOTHING(who)                                                                               \
	{                                                                                          \
		.lineage = (who), .base = READS_NONE                                               \
	}
#define TANGLED(who)                                                                               \
	{                                                                                          \
		.lineage = (who), .base = READS_TANGLED                                            \
	}
#define RENAME(w, r, which)                                                                        \
	{                                                                                          \
		.lineage = (w), .renamer = (r), .base = READS_VERSION, .version = (which)          \
	}
#define REFUSE(w, r)                                                                               \
	{                                                                                          \
		.lineage = (w), .renamer = (r), .base = READS_NONE                                 \
	}

/* A READ has no base and no renamer, but a version; each other step asks for the base. */
struct step {
	const char *lineage, *renamer;
	enum reads_base base;
	const char *version;
};

struct story {
	const char *name;
	struct step steps[12];
};

static void run_step(struct reads *reads, const struct story *story, const struct step *step)
{
	struct lineage lineage = family(step->lineage);
	char version[READS_VERSION_SIZE] = "untouched", peeked[READS_VERSION_SIZE] = "untouched";

	if (step->base == READS_NONE && step->version) {
		reads_record(reads, "docs/k", &lineage, step->version);
		return;
	}
	struct lineage renamer = family(step->renamer ? step->renamer : "");
	bool peek = reads_peek(reads, "docs/k", &lineage, peeked);
	enum reads_base base =
		reads_base(reads, "docs/k", &lineage, step->renamer ? &renamer : NULL, version);
	const char *expected = base == READS_VERSION ? step->version : "untouched";
	if (base != step->base || !expected || strcmp(version, expected) != 0)
		fail_msg("%s: %s: base %d, version \"%s\"", story->name, step->lineage, base,
			 version);
	/* Peeking knows no renamer and does not wait, but never differs otherwise. */
	if (peek)
		assert_string_equal(peeked, expected);
	else if (!step->renamer)
		assert_int_not_equal(base, READS_VERSION);
}

static void run_stories(const struct story *stories, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct reads *reads = reads_new();
		assert_non_null(reads);
		for (const struct step *step = stories[i].steps; step->lineage; step++)
			run_step(reads, &stories[i], step);
		reads_free(reads);
	}
}

static void test_reads_idioms(void **state)
{
	(void)state;
	static const struct story stories[] = {
		{ "jq k > .t; mv .t k",
		  { READ("jS", "1"), RENAME("jS", "mS", "1"), READ("kS", "2"),
		    RENAME("kS", "nS", "2") } },
		{ "two jobs, jq and mv",
		  { READ("jA", "1"), READ("kB", "1"), RENAME("kB", "nB", "1"),
		    RENAME("jA", "mA", "1"), READ("lA", "2"), RENAME("lA", "oA", "2") } },
		{ "x=$(cat k); echo > .t; mv .t k",
		  { READ("cS", "1"), RENAME("S", "mS", "1"), READ("dS", "2"),
		    RENAME("S", "nS", "2") } },
		{ "two jobs, x=$(cat k)",
		  { READ("cAS", "1"), READ("dBS", "1"), RENAME("BS", "nBS", "1"), READ("eBS", "2"),
		    RENAME("AS", "mAS", "1"), RENAME("BS", "oBS", "2") } },
		{ "x=$(cat k | jq .) in a subshell of the job",
		  { READ("cbAS", "1"), RENAME("jAS", "mAS", "1") } },
		{ "sed -i twice, and its success",
		  { READ("aS", "1"), RENAME("aS", "aS", "1"), READ("aS", "2"), READ("bS", "3"),
		    RENAME("bS", "bS", "3") } },
		{ "an editor saves twice",
		  { READ("ES", "1"), RENAME("ES", "ES", "1"), READ("ES", "2"),
		    RENAME("ES", "ES", "2") } },
		{ "jq . k | sponge k", { READ("jS", "1"), WRITE("pS", "1") } },
		{ "(jq . k; x) | sponge k", { READ("jbS", "1"), WRITE("pS", "1") } },
		{ "( x=$(cat k); echo > .t ); mv .t k",
		  { READ("cpS", "1"), RENAME("pS", "mS", "1") } },
		{ "make -j: a shell a recipe line",
		  { READ("jaM", "1"), READ("kbM", "2"), RENAME("jaM", "maM", "1"),
		    RENAME("kbM", "nbM", "2") } },
		{ "setsid: the shell's parent is gone between read and write",
		  { READ("cAtS", "1"), RENAME("A", "mA", "1") } },
		{ "sudo: one more process in the line",
		  { READ("cS", "1"), RENAME("tsuS", "mS", "1") } },
		{ "the writer is a foreign namespace's, the renamer is not",
		  { READ("cS", "1"), RENAME("", "mS", "1") } },
		{ "the writer is no kin of the readers, the renamer is",
		  { READ("cS", "1"), RENAME("wX", "mS", "1") } },
		{ "rm k; then a create by its kin", { READ("rS", ""), WRITE("S", "") } },
	};

	run_stories(stories, sizeof(stories) / sizeof(stories[0]));
}

static void test_reads_rules(void **state)
{
	(void)state;
	static const struct story stories[] = {
		{ "nothing read", { NOTHING("S"), NOTHING(""), REFUSE("wS", "mS") } },
		{ "no kin", { READ("cS", "1"), NOTHING("T"), REFUSE("wT", "mT") } },
		{ "own child's reads are as near as one's own",
		  { READ("S", "1"), READ("cS", "2"), TANGLED("S") } },
		{ "the nearest counts, not the newest",
		  { READ("aS", "9"), READ("cAS", "2"), READ("bS", "9"), WRITE("AS", "2") } },
		{ "the last read of one reader counts",
		  { READ("PS", "1"), READ("PS", "2"), WRITE("PS", "2") } },
		{ "the same version read by several",
		  { READ("cS", "1"), READ("dS", "1"), WRITE("S", "1"), NOTHING("S") } },
		{ "polled with $(cat k): refused once",
		  { READ("cS", "1"), READ("dS", "2"), TANGLED("S"), NOTHING("S"), READ("eS", "2"),
		    WRITE("S", "2") } },
		{ "polled, but the editing process reads itself",
		  { READ("cS", "1"), READ("dS", "2"), READ("jS", "3"), RENAME("jS", "mS", "3") } },
		{ "another job that lives does not count",
		  { READ("AS", "1"), NOTHING("BS"), NOTHING("S"), READ("cS", "2"),
		    WRITE("S", "2") } },
		{ "a dead reader of a job that lives does not count",
		  { READ("cAS", "1"), NOTHING("BS"), NOTHING("S") } },
		{ "an ancestor's own read does", { READ("PS", "1"), WRITE("wAPS", "1") } },
		{ "an attempt uses its read up",
		  { READ("cS", "1"), WRITE("S", "1"), NOTHING("S"), REFUSE("S", "mS") } },
		{ "a new read of the same version is a new read",
		  { READ("PS", "1"), WRITE("PS", "1"), READ("PS", "1"), WRITE("PS", "1") } },
		{ "until mv .t k; do :; done, while another job reads and ends",
		  { READ("jA", "1"), READ("kbS", "1"), RENAME("jAS", "mAS", "1"), READ("lbS", "2"),
		    REFUSE("jAS", "nAS"), REFUSE("jAS", "oAS"), READ("nAS", "2"),
		    REFUSE("jAS", "oAS") } },
		{ "a tangled writer may not borrow either",
		  { READ("cAS", "1"), READ("dAS", "2"), READ("eS", "2"), TANGLED("AS"),
		    NOTHING("AS"), READ("fAS", "2"), WRITE("AS", "2") } },
		{ "a worker that has read for itself, then its parent reads for it",
		  { READ("WP", "1"), READ("P", "1"), WRITE("WP", "1"), NOTHING("WP"),
		    READ("P", "2"), WRITE("WP", "2"), NOTHING("WP") } },
		{ "a used-up writer is not saved by its renamer",
		  { READ("wT", "1"), WRITE("wT", "1"), READ("cS", "2"), REFUSE("wT", "mS") } },
		{ "the base may be absent, several times",
		  { READ("aS", ""), READ("bS", ""), WRITE("S", ""), NOTHING("S") } },
		{ "absent and a version tangle",
		  { READ("aS", ""), READ("bS", "1"), TANGLED("S") } },
	};

	run_stories(stories, sizeof(stories) / sizeof(stories[0]));
}

static void test_reads_keys_are_apart(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	struct lineage reader = family("S");
	char version[READS_VERSION_SIZE];
	assert_non_null(reads);
	reads_record(reads, "docs/a", &reader, "1");
	reads_record(reads, "docs/b", &reader, "2");
	reads_record(reads, "leases/a", &reader, "3");

	reads_forget(reads, "docs/b");
	reads_forget(reads, "docs/c");

	assert_true(reads_peek(reads, "docs/a", &reader, version));
	assert_string_equal(version, "1");
	assert_false(reads_peek(reads, "docs/b", &reader, version));
	assert_int_equal(reads_base(reads, "leases/a", &reader, NULL, version), READS_VERSION);
	assert_string_equal(version, "3");
	assert_false(reads_peek(reads, "leases/a", &reader, version));
	reads_free(reads);
}

static void test_reads_nobody(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	struct lineage nobody = { .count = 0 };
	char version[READS_VERSION_SIZE];
	assert_non_null(reads);
	reads_record(reads, "k", &nobody, "1");

	assert_int_equal(reads_base(reads, "k", NULL, NULL, version), READS_NONE);
	assert_int_equal(reads_base(reads, "k", &nobody, &nobody, version), READS_NONE);
	assert_false(reads_peek(reads, "k", &nobody, version));
	assert_false(reads_peek(reads, "k", NULL, version));
	reads_free(reads);
	reads_free(NULL);
}

static void test_reads_version_length(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	struct lineage reader = family("S");
	char longest[READS_VERSION_SIZE], too_long[READS_VERSION_SIZE + 1],
		version[READS_VERSION_SIZE];
	assert_non_null(reads);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	memset(too_long, 'x', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = '\0';

	reads_record(reads, "k", &reader, longest);
	assert_true(reads_peek(reads, "k", &reader, version));
	assert_string_equal(version, longest);
	/* What cannot be kept still was the reader's last read. */
	reads_record(reads, "k", &reader, too_long);
	assert_false(reads_peek(reads, "k", &reader, version));
	reads_record(reads, "other", &reader, too_long);
	assert_false(reads_peek(reads, "other", &reader, version));
	reads_free(reads);
}

/* Of many lone readers; their children ask, so that nobody else is as near. */
static struct lineage lone(unsigned number)
{
	return (struct lineage){ 1, { { GONE + 1000 + (pid_t)number, 1 } } };
}

static void test_reads_bounded_by_key(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	char version[READS_VERSION_SIZE];
	assert_non_null(reads);

	for (unsigned i = 0; i < 65; i++) {
		struct lineage reader = lone(i);
		reads_record(reads, "k", &reader, "1");
		reader = lone(0);
		if (i == 32) /* touched again: no longer the oldest */
			reads_record(reads, "k", &reader, "2");
	}

	for (unsigned i = 0; i < 65; i++) {
		struct lineage reader = lone(i);
		assert_int_equal(reads_peek(reads, "k", &reader, version), i != 1);
		if (i != 1)
			assert_string_equal(version, i ? "1" : "2");
	}
	reads_free(reads);
}

static void test_reads_used_are_forgotten_first(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	char version[READS_VERSION_SIZE];
	struct lineage slow = lone(0);
	assert_non_null(reads);
	reads_record(reads, "k", &slow, "1");

	for (unsigned i = 1; i < 500; i++) {
		struct lineage fast = lone(i);
		reads_record(reads, "k", &fast, "2");
		assert_int_equal(reads_base(reads, "k", &fast, NULL, version), READS_VERSION);
	}

	assert_int_equal(reads_base(reads, "k", &slow, NULL, version), READS_VERSION);
	assert_string_equal(version, "1");
	reads_free(reads);
}

/* A poller fills the table: others keep their reads, and its own tangle stays one. */
static void test_reads_polled(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	char version[READS_VERSION_SIZE];
	struct lineage poller = family("S"), slow = lone(0);
	assert_non_null(reads);
	reads_record(reads, "k", &slow, "1");

	for (unsigned i = 1; i < 500; i++) {
		struct lineage cat = lone(i);
		cat.chain[cat.count++] = poller.chain[0];
		reads_record(reads, "k", &cat, i == 1 ? "1" : "2");
	}

	assert_int_equal(reads_base(reads, "k", &slow, NULL, version), READS_VERSION);
	assert_string_equal(version, "1");
	assert_int_equal(reads_base(reads, "k", &poller, NULL, version), READS_TANGLED);
	reads_free(reads);
}

/* `until mv .t k; do sleep 1; done` stays refused however much others read meanwhile. */
static void test_reads_used_hide_for_long(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	char version[READS_VERSION_SIZE];
	struct lineage jq = family("jAS"), mv = family("mAS");
	assert_non_null(reads);
	reads_record(reads, "k", &jq, "1");
	assert_int_equal(reads_base(reads, "k", &jq, &mv, version), READS_VERSION);

	for (unsigned i = 0; i < 500; i++) {
		struct lineage cat = lone(i);
		cat.chain[cat.count++] = family(i % 3 ? "A" : "S").chain[0];
		if (i % 3)
			cat.chain[cat.count++] = family("S").chain[0];
		reads_record(reads, "k", &cat, "2");
		assert_int_equal(reads_base(reads, "k", &jq, &mv, version), READS_NONE);
		if (i % 15 == 0) /* another job's attempt */
			assert_int_not_equal(reads_base(reads, "k", &cat, NULL, version),
					     READS_NONE);
	}
	reads_free(reads);
}

/* The oldest goes with those that it would tangle with. */
static void test_reads_pairs_are_forgotten_whole(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	char version[READS_VERSION_SIZE];
	assert_non_null(reads);

	for (unsigned i = 0; i < 66; i++) {
		struct lineage cat = lone(i);
		cat.chain[cat.count++] = lone(1000 + i / 2).chain[0];
		reads_record(reads, "k", &cat, i % 2 ? "2" : "1");
	}

	for (unsigned i = 0; i < 33; i++) {
		struct lineage shell = lone(1000 + i);
		assert_int_equal(reads_base(reads, "k", &shell, NULL, version),
				 i ? READS_TANGLED : READS_NONE);
	}
	reads_free(reads);
}

static void test_reads_bounded_in_all(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	char version[READS_VERSION_SIZE], key[32];
	unsigned known = 0;
	assert_non_null(reads);

	for (unsigned i = 0; i < 20000; i++) {
		struct lineage reader = lone(i % 50);
		snprintf(key, sizeof(key), "docs/%u", i / 50);
		reads_record(reads, key, &reader, "1");
	}

	for (unsigned i = 0; i < 20000; i++) {
		struct lineage reader = lone(i % 50);
		snprintf(key, sizeof(key), "docs/%u", i / 50);
		bool found = reads_peek(reads, key, &reader, version);
		assert_true(found || i < 20000 - 16384 + 50);
		known += found;
	}
	assert_in_range(known, 16384 - 50, 16384);
	reads_free(reads);
}

/* jq closes its output and exits: sponge, seeing the end, may be quicker than the exit. */
static void test_reads_wait_for_filters(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	struct lineage shell, jq, sponge;
	char version[READS_VERSION_SIZE];
	assert_non_null(reads);
	lineage_of(getpid(), &shell);
	sponge = shell;
	memmove(sponge.chain + 1, shell.chain, shell.count * sizeof(shell.chain[0]));
	sponge.chain[0] = family("p").chain[0];
	sponge.count++;

	for (int i = 0; i < 30; i++) {
		int input[2];
		assert_int_equal(pipe2(input, O_CLOEXEC), 0);
		pid_t pid = fork();
		char byte;
		assert_true(pid >= 0);
		if (pid == 0) {
			close(input[1]);
			_exit(read(input[0], &byte, 1) != 0);
		}
		close(input[0]);
		lineage_of(pid, &jq);
		reads_record(reads, "k", &jq, "1");
		close(input[1]);
		assert_int_equal(reads_base(reads, "k", &sponge, NULL, version), READS_VERSION);
		assert_string_equal(version, "1");
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	reads_free(reads);
}

/* A monitor that lives on is waited for once, whatever it reads later. */
static void test_reads_wait_once(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	struct lineage monitor = family("MS"), writer = family("wS");
	char version[READS_VERSION_SIZE];
	struct timespec before, after;
	assert_non_null(reads);
	reads_record(reads, "k", &monitor, "1");

	clock_gettime(CLOCK_MONOTONIC, &before);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(reads_base(reads, "k", &writer, NULL, version), READS_NONE);
		reads_record(reads, "k", &monitor, "2");
	}
	clock_gettime(CLOCK_MONOTONIC, &after);

	assert_in_range(after.tv_sec - before.tv_sec, 0, 12); /* not 100 times 250 ms */
	reads_free(reads);
}

struct worker {
	struct reads *reads;
	unsigned number;
	unsigned wrong;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct lineage self = lone(worker->number);
	char version[READS_VERSION_SIZE], mine[32];

	for (unsigned i = 0; i < 2000; i++) {
		snprintf(mine, sizeof(mine), "%u-%u", worker->number, i);
		reads_record(worker->reads, "shared", &self, mine);
		reads_record(worker->reads, "dropped", &self, mine);
		if (!reads_peek(worker->reads, "shared", &self, version) ||
		    strcmp(version, mine) != 0)
			worker->wrong++;
		if (reads_base(worker->reads, "shared", &self, NULL, version) != READS_VERSION ||
		    strcmp(version, mine) != 0)
			worker->wrong++;
		if (reads_base(worker->reads, "shared", &self, NULL, version) != READS_NONE)
			worker->wrong++;
		reads_forget(worker->reads, "dropped");
	}
	return NULL;
}

static void test_reads_threads(void **state)
{
	(void)state;
	struct reads *reads = reads_new();
	struct worker workers[4];
	pthread_t threads[4];
	assert_non_null(reads);

	for (unsigned i = 0; i < 4; i++) {
		workers[i] = (struct worker){ .reads = reads, .number = i };
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}

	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(workers[i].wrong, 0);
	}
	reads_free(reads);
}

static void test_reads_refused_until_read_again(void **state)
{
	(void)state;
	const struct lineage shell = { .count = 1, .chain = { { .pid = 900001, .start = 1 } } };
	const struct lineage first = { .count = 2,
				       .chain = { { .pid = 900002, .start = 2 }, shell.chain[0] } };
	const struct lineage second = { .count = 2,
					.chain = { { .pid = 900003, .start = 3 }, shell.chain[0] } };
	char version[READS_VERSION_SIZE];
	struct reads *reads = reads_new();
	reads_record(reads, "k", &first, "v1");

	reads_refuse(reads, "k", &shell);

	assert_int_equal(reads_base(reads, "k", &shell, NULL, version), READS_REFUSED);
	assert_int_equal(reads_base(reads, "k", &second, NULL, version), READS_REFUSED);
	reads_record(reads, "k", &second, "v2");
	assert_int_equal(reads_base(reads, "k", &shell, NULL, version), READS_VERSION);
	assert_string_equal(version, "v2");
	assert_int_equal(reads_base(reads, "k", &shell, NULL, version), READS_NONE);
	reads_free(reads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_idioms),
		cmocka_unit_test(test_reads_rules),
		cmocka_unit_test(test_reads_keys_are_apart),
		cmocka_unit_test(test_reads_nobody),
		cmocka_unit_test(test_reads_version_length),
		cmocka_unit_test(test_reads_bounded_by_key),
		cmocka_unit_test(test_reads_used_are_forgotten_first),
		cmocka_unit_test(test_reads_polled),
		cmocka_unit_test(test_reads_used_hide_for_long),
		cmocka_unit_test(test_reads_pairs_are_forgotten_whole),
		cmocka_unit_test(test_reads_bounded_in_all),
		cmocka_unit_test(test_reads_wait_for_filters),
		cmocka_unit_test(test_reads_wait_once),
		cmocka_unit_test(test_reads_threads),
		cmocka_unit_test(test_reads_refused_until_read_again),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
