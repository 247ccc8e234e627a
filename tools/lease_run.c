/* SPDX-License-Identifier: MIT */
#include "lease.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/timestamp.h>

#include "job.h"
#include "process.h"
#include "renewer.h"

#define MILLISECOND ((int64_t)1000)
#define NEVER	    INT64_MAX

/*
 * The command's time is over by our own clock (CLOCK_BOOTTIME, which a suspended machine does not
 * stop): SIGTERM comes a sixth of the ttl before the deadline, at most 10 s, SIGKILL a
 * twenty-fourth, at most 1 s. When it is too late for that, SIGKILL follows SIGTERM after LATE.
 */
#define LATE (500 * MILLISECOND)

struct runner {
	struct tool *tool;
	const char *key;
	struct cairn_lease *lease;
	struct job job;
	struct renewer renewer;
	sigset_t mask;	  /* as we were started with */
	int signals;	  /* signalfd */
	int timer;	  /* timerfd */
	int64_t retry_at; /* when to renew again after a failure; 0: the last one succeeded */
	bool renewing;	  /* a renewal is under way */
	bool ending;
	int64_t kill_at; /* while ending; NEVER: done */
	int failure;	 /* why it is ended, an enum cairn_status; 0: it ended by itself */
	struct cairn_error error;
};

static int64_t minimum(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t boot_clock(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * TOOL_SECOND + now.tv_nsec / 1000;
}

static void signals_of_interest(sigset_t *set)
{
	static const int forwarded[] = { SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCHLD };
	(void)sigemptyset(set);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		(void)sigaddset(set, forwarded[i]);
}

/* A signal that wants to end us has come while all are blocked: cairn_call's cancelled(). */
static bool interrupted(void *context)
{
	(void)context;
	sigset_t pending;
	(void)sigpending(&pending);
	return sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT) ||
	       sigismember(&pending, SIGHUP);
}

/* Wait until the lease looks free, or `until`, when a last attempt is due: 0, or a failure. */
static int wait_for_release(struct runner *runner, int64_t until, int64_t *pause)
{
	struct tool *tool = runner->tool;
	struct cairn_lease_document document;
	cairn_lease_document_init(&document);
	int status = CAIRN_OK;
	while (!status && cairn_clock() < until) {
		status = cairn_lease_read(tool->store, &tool->call, runner->key, &document);
		int64_t left = document.deadline - cairn_timestamp_now();
		if (status || !document.held || left <= 0)
			break;
		/* All that wait must not look at the same time. */
		int64_t jittered = *pause / 2 + arc4random_uniform((uint32_t)*pause);
		*pause = minimum(*pause * 2, 2 * TOOL_SECOND);
		int64_t wake = cairn_clock() + minimum(jittered, left + MILLISECOND);
		status = cairn_call_sleep(&tool->call, minimum(wake, until));
	}
	cairn_lease_document_release(&document);
	return status == CAIRN_NOT_FOUND ? CAIRN_OK : status;
}

/* Acquire the lease, waiting for it as long as --wait allows. */
static int acquire(struct runner *runner)
{
	struct tool *tool = runner->tool;
	const struct cairn_lease_options options = { .ttl = tool->arguments.ttl };
	int64_t patience = tool->arguments.wait;
	int64_t until = patience == TOOL_FOREVER ? NEVER : cairn_clock() + patience;
	int64_t pause = 100 * MILLISECOND;
	for (;;) {
		int status = cairn_lease_acquire(tool->store, &tool->call, runner->key, &options,
						 &runner->lease);
		if (status != CAIRN_HELD || cairn_clock() >= until)
			return status;
		status = wait_for_release(runner, until, &pause);
		if (status)
			return status;
	}
}

/* When the command gets SIGTERM, and SIGKILL, unless a renewal comes before. */
static int64_t term_time(struct runner *runner)
{
	return cairn_lease_own_deadline(runner->lease) -
	       minimum(runner->tool->arguments.ttl / 6, 10 * TOOL_SECOND);
}

static int64_t kill_time(struct runner *runner)
{
	return cairn_lease_own_deadline(runner->lease) -
	       minimum(runner->tool->arguments.ttl / 24, TOOL_SECOND);
}

static int64_t renewal_time(struct runner *runner)
{
	if (runner->retry_at)
		return runner->retry_at;
	/* The deadline lies a ttl behind the last renewal. */
	int64_t ttl = runner->tool->arguments.ttl;
	return cairn_lease_own_deadline(runner->lease) - (ttl - ttl / 3);
}

/* End the command's whole group, for the reason `status`, which runner->error tells. */
static void end_command(struct runner *runner, int status, int64_t now)
{
	if (runner->ending)
		return;
	runner->ending = true;
	runner->failure = status;
	int64_t last = kill_time(runner);
	runner->kill_at = now < last ? minimum(last, now + 10 * TOOL_SECOND) : now + LATE;
	job_signal(&runner->job, SIGTERM);
	/* A stopped process sees no SIGTERM. */
	job_signal(&runner->job, SIGCONT);
}

/* A renewal has ended. What is lost is lost; anything else is tried again until time is over. */
static void renewed(struct runner *runner, int status, const struct cairn_error *error)
{
	runner->retry_at = 0;
	if (!status)
		return;
	int64_t now = boot_clock();
	runner->error = *error;
	if (status == CAIRN_LOST) {
		end_command(runner, status, now);
		return;
	}
	int64_t pause = minimum(runner->tool->arguments.ttl / 20, TOOL_SECOND);
	runner->retry_at = now + pause / 2 + arc4random_uniform((uint32_t)pause);
}

/* Renew here and now: the command is stopped and waits for the answer. */
static void renew_at_once(struct runner *runner)
{
	struct cairn_call call = { 0 };
	int status = cairn_lease_renew(runner->lease, &call);
	renewed(runner, status, &call.error);
}

/*
 * The command was stopped at its terminal: so are we, until somebody continues us. Before it goes
 * on, the lease must be ours again.
 */
static void suspend(struct runner *runner)
{
	job_suspend_ourselves(&runner->job);
	renew_at_once(runner);
	job_resume(&runner->job);
}

/* Why there was no renewal in time; told in runner->error. */
static int out_of_time(struct runner *runner, int64_t now)
{
	/* Without a renewal, or past the deadline, it is we or the command who slept. */
	if (now >= cairn_lease_own_deadline(runner->lease) ||
	    (!runner->renewing && !runner->retry_at))
		return cairn_error_set(&runner->error, CAIRN_LOST,
				       "lease run %s: the lease ran out while it was stopped",
				       runner->key);
	if (runner->retry_at)
		return runner->error.status;
	return cairn_error_set(&runner->error, CAIRN_TIMEOUT,
			       "lease run %s: the store has not answered the renewal in time",
			       runner->key);
}

/* What is due by the clock. Returns when to look again, by CLOCK_BOOTTIME. */
static int64_t due(struct runner *runner)
{
	int64_t now = boot_clock();
	if (runner->ending) {
		if (now >= runner->kill_at) {
			job_signal(&runner->job, SIGKILL);
			runner->kill_at = NEVER;
		}
		return runner->kill_at;
	}
	/* A stopped process loses its lease, as one that hangs does; it cannot do harm meanwhile.
	 */
	if (runner->job.stopped)
		return NEVER;
	if (now >= term_time(runner)) {
		int status = out_of_time(runner, now);
		end_command(runner, status, now);
		return runner->kill_at;
	}
	if (now < renewal_time(runner))
		return minimum(renewal_time(runner), term_time(runner));
	runner->renewing = true;
	renewer_ask(&runner->renewer, cairn_clock() + kill_time(runner) - now);
	return term_time(runner);
}

static void handle_signals(struct runner *runner)
{
	struct signalfd_siginfo info;
	while (read(runner->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo != SIGCHLD)
			job_signal(&runner->job, (int)info.ssi_signo);
	}
	job_poll(&runner->job);
	if (job_suspended(&runner->job))
		suspend(runner);
}

static void arm(const struct runner *runner, int64_t time)
{
	struct itimerspec timer = { 0 };
	if (time != NEVER) {
		/* A time of 0 would disarm it. */
		timer.it_value.tv_sec = time / TOOL_SECOND;
		timer.it_value.tv_nsec = time % TOOL_SECOND * 1000 + 1;
	}
	(void)timerfd_settime(runner->timer, TFD_TIMER_ABSTIME, &timer, NULL);
}

/* Watch over the command until it has ended. */
static void supervise(struct runner *runner)
{
	while (!runner->job.ended) {
		arm(runner, due(runner));
		struct pollfd events[] = {
			{ .fd = runner->signals, .events = POLLIN },
			{ .fd = runner->timer, .events = POLLIN },
			{ .fd = runner->renewer.event, .events = POLLIN },
		};
		if (poll(events, 3, -1) < 0)
			continue;
		uint64_t expirations;
		(void)!read(runner->timer, &expirations, sizeof(expirations));
		int status;
		struct cairn_error error;
		if (renewer_take(&runner->renewer, &status, &error)) {
			runner->renewing = false;
			renewed(runner, status, &error);
		}
		handle_signals(runner);
	}
}

/* What the command's end means for us. */
static int finish(struct runner *runner)
{
	struct tool *tool = runner->tool;
	struct cairn_call call = { 0 };
	int wait_status = runner->job.wait_status;
	int exit_status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
						   : WEXITSTATUS(wait_status);
	/*
	 * Also after a failure: if nobody has taken the lease, others need not wait for its end;
	 * but trying for longer than until then would gain nothing.
	 */
	int64_t left = cairn_lease_own_deadline(runner->lease) - boot_clock();
	left = left < TOOL_SECOND ? TOOL_SECOND : minimum(left, tool->store->timeout);
	call.deadline = cairn_clock() + left;
	int status = cairn_lease_release(runner->lease, &call, NULL);
	if (runner->failure) {
		char how[80];
		process_describe(wait_status, how);
		return tool_say(tool_exit_of(runner->failure),
				"%s; so the command was ended and %s", runner->error.text, how);
	}
	if (status == CAIRN_LOST) {
		tool->call.error = call.error;
		return tool_fail(tool, status);
	}
	if (status)
		(void)tool_say(exit_status, "%s; the lease runs out by itself", call.error.text);
	return exit_status;
}

/* Put what the command's children may need into its environment. */
static bool export_lease(struct runner *runner)
{
	char epoch[32];
	(void)snprintf(epoch, sizeof(epoch), "%" PRId64, cairn_lease_epoch(runner->lease));
	return setenv("CAIRN_LEASE_EPOCH", epoch, 1) == 0 &&
	       setenv("CAIRN_LEASE_KEY", runner->key, 1) == 0 &&
	       setenv("CAIRN_LEASE_HOLDER", cairn_lease_holder(runner->lease), 1) == 0;
}

/* The lease is held: run the command under it. */
static int run_command(struct runner *runner)
{
	struct tool *tool = runner->tool;
	sigset_t signals;
	signals_of_interest(&signals);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	runner->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	runner->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	int exit_status;
	struct cairn_call call = { 0 };
	int failure = 0;
	if (runner->signals < 0 || runner->timer < 0 || !export_lease(runner))
		failure = errno;
	if (!failure)
		failure = job_start(&runner->job, tool->arguments.command, &runner->mask);
	if (failure) {
		exit_status = tool_say(TOOL_USAGE, "cannot run %s: %s", tool->arguments.command[0],
				       strerror(failure));
		(void)!cairn_lease_release(runner->lease, &call, NULL);
		return exit_status;
	}
	int status = renewer_start(&runner->renewer, runner->lease);
	if (status) {
		(void)cairn_error_set(&runner->error, status, "cannot renew '%s': no thread",
				      runner->key);
		end_command(runner, status, boot_clock());
		job_signal(&runner->job, SIGKILL);
		while (!runner->job.ended)
			job_poll(&runner->job);
	} else {
		supervise(runner);
		renewer_stop(&runner->renewer);
	}
	job_release(&runner->job);
	/* Those of its group that took no notice of SIGTERM. */
	if (runner->ending)
		job_signal(&runner->job, SIGKILL);
	return finish(runner);
}

static int run_run(struct tool *tool)
{
	struct runner runner = {
		.tool = tool,
		.key = tool->arguments.operands[0],
		.signals = -1,
		.timer = -1,
	};
	int exit_status = tool_open(tool, true);
	if (exit_status >= 0)
		return exit_status;
	/*
	 * From here on signals wait: one that comes between the acquisition and the command must
	 * not leave a lease behind. SIGTTOU: so that we may give the terminal away and take it
	 * back.
	 */
	sigset_t blocked;
	signals_of_interest(&blocked);
	(void)sigaddset(&blocked, SIGTTOU);
	(void)sigdelset(&blocked, SIGTSTP);
	(void)sigprocmask(SIG_BLOCK, &blocked, &runner.mask);
	tool->call.cancelled = interrupted;
	int status = acquire(&runner);
	tool->call.cancelled = NULL;
	if (!status)
		exit_status = run_command(&runner);
	else if (status != CAIRN_CANCELLED)
		exit_status = tool_fail(tool, status);
	/* Whoever sent a signal while we waited sees us end by it. */
	(void)sigprocmask(SIG_SETMASK, &runner.mask, NULL);
	if (status == CAIRN_CANCELLED)
		exit_status = tool_fail(tool, status);
	cairn_lease_free(runner.lease);
	if (runner.signals >= 0)
		(void)close(runner.signals);
	if (runner.timer >= 0)
		(void)close(runner.timer);
	return exit_status;
}

static const struct option_spec options[] = {
	{ "ttl", 0, "S", OPTION_SECONDS, OPTION_FIELD(ttl),
	  "seconds that the lease outlives a lost runner (60); it is renewed" },
	{ "wait", 0, "S", OPTION_PATIENCE, OPTION_FIELD(wait),
	  "wait so many seconds for a lease that is held (0), or 'inf'" },
	{ 0 },
};

const struct command command_lease_run = {
	.name = "lease run",
	.synopsis = "KEY -- COMMAND [ARGUMENT ...]",
	.summary = "run a command while holding a lease",
	.details = "Acquire the lease KEY, run COMMAND, renew the lease at a third of its ttl,\n"
		   "release it when COMMAND has ended. COMMAND finds CAIRN_LEASE_EPOCH (the\n"
		   "fencing token), CAIRN_LEASE_KEY and CAIRN_LEASE_HOLDER in its environment.\n"
		   "If the lease is lost, or cannot be renewed, COMMAND's process group is\n"
		   "ended before the deadline: SIGTERM, then SIGKILL. SIGTERM, SIGINT, SIGHUP\n"
		   "and SIGTSTP are forwarded to it. While COMMAND is stopped (^Z), the lease\n"
		   "is not renewed.\n"
		   "\n"
		   "Exit status: that of COMMAND, 128+N when signal N ended it. cairn's own\n"
		   "failures are told in a line that begins with `cairn: `: 1 held or lost; 2\n"
		   "usage, or COMMAND cannot be run; 3 storage.\n",
	.options = options,
	.operands_min = 1,
	.operands_max = 1,
	.takes_command = true,
	.run = run_run,
};
