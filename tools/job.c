/* SPDX-License-Identifier: MIT */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool have_terminal(const struct job *job)
{
	return job->terminal >= 0 && tcgetpgrp(job->terminal) == getpgrp();
}

/* In the child: become the command. What fails is written to `report`. */
static _Noreturn void job_exec(char *const argv[], const sigset_t *mask, int terminal, pid_t parent,
			       int report)
{
	(void)setpgid(0, 0);
	if (terminal >= 0)
		(void)tcsetpgrp(terminal, getpid());
	/* Nobody would renew the lease, or end the command when it is lost. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	(void)execvp(argv[0], argv);
	int failure = errno;
	(void)!write(report, &failure, sizeof(failure));
	_exit(127);
}

int job_start(struct job *job, char *const argv[], const sigset_t *mask)
{
	*job = (struct job){ .terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY) };
	int report[2];
	if (pipe2(report, O_CLOEXEC) < 0)
		return errno;
	bool give = have_terminal(job);
	pid_t parent = getpid();
	job->pid = fork();
	if (job->pid == 0)
		job_exec(argv, mask, give ? job->terminal : -1, parent, report[1]);
	int failure = job->pid < 0 ? errno : 0;
	(void)close(report[1]);
	/* Closed by a successful exec, so that nothing is read. */
	if (!failure && read(report[0], &failure, sizeof(failure)) > 0)
		(void)waitpid(job->pid, NULL, 0);
	(void)close(report[0]);
	if (failure)
		job_release(job);
	return failure;
}

void job_poll(struct job *job)
{
	int status;
	while (!job->ended &&
	       waitpid(job->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == job->pid) {
		job->stopped = WIFSTOPPED(status);
		if (WIFSTOPPED(status))
			job->stop_signal = WSTOPSIG(status);
		job->ended = WIFEXITED(status) || WIFSIGNALED(status);
		if (job->ended)
			job->wait_status = status;
	}
}

void job_signal(const struct job *job, int signal)
{
	(void)kill(-job->pid, signal);
}

bool job_suspended(const struct job *job)
{
	return job->stopped && job->terminal >= 0 &&
	       (job->stop_signal == SIGTSTP || job->stop_signal == SIGTTIN ||
		job->stop_signal == SIGTTOU);
}

void job_suspend_ourselves(const struct job *job)
{
	if (tcgetpgrp(job->terminal) == job->pid)
		(void)tcsetpgrp(job->terminal, getpgrp());
	/* A session's leader has no shell above that would continue it. */
	if (getsid(0) != getpgrp())
		(void)kill(0, SIGSTOP);
}

void job_resume(struct job *job)
{
	if (have_terminal(job))
		(void)tcsetpgrp(job->terminal, job->pid);
	job->stopped = false;
	job_signal(job, SIGCONT);
}

void job_release(struct job *job)
{
	if (job->terminal < 0)
		return;
	if (job->pid > 0 && tcgetpgrp(job->terminal) == job->pid)
		(void)tcsetpgrp(job->terminal, getpgrp());
	(void)close(job->terminal);
	job->terminal = -1;
}
