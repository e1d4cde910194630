/* SPDX-License-Identifier: MIT */
#include "netem/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	(void)remove(path);
	return 0;
}

void gci_remove_tree(const char *dir)
{
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int idle_ticks(unsigned long long *idle, int n)
{
	FILE *f = fopen("/proc/stat", "re");
	unsigned long long v[4];
	char line[512];
	int cpu;

	memset(idle, 0, sizeof(*idle) * (size_t)n);
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "cpu%d %llu %llu %llu %llu", &cpu, &v[0], &v[1], &v[2], &v[3]) ==
				5 &&
			cpu >= 0 && cpu < n)
			idle[cpu] = v[3];
	fclose(f);
	return 0;
}

/* linux.uml and the processes whose system calls it does take turns, never run at the same time: on
 * one CPU their turns cost half. Takes the CPU that was idle most just now. */
static void stay_on_one_cpu(void)
{
	unsigned long long before[CPU_SETSIZE], after[CPU_SETSIZE], most = 0;
	int cpu, best = -1;
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) || idle_ticks(before, CPU_SETSIZE))
		return;
	usleep(100000);
	if (idle_ticks(after, CPU_SETSIZE))
		return;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && (best < 0 || after[cpu] - before[cpu] > most)) {
			best = cpu;
			most = after[cpu] - before[cpu];
		}
	if (best < 0)
		return;
	CPU_ZERO(&allowed);
	CPU_SET(best, &allowed);
	sched_setaffinity(0, sizeof(allowed), &allowed);
}

static void run_program(const struct gci_keeper_job *job, pid_t keeper)
{
	int fds[5] = {job->stdio[0], job->stdio[1], job->stdio[2], job->extra[0], job->extra[1]};
	sigset_t none;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(1);
	setpgid(0, 0);
	for (i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (i = 0; i < 5; i++) /* out of the way of 0 to 4 first */
		fds[i] = fcntl(fds[i], F_DUPFD, 16);
	for (i = 0; i < 5; i++)
		dup2(fds[i], i);
	syscall(SYS_close_range, 5u, ~0u, 0u);
	stay_on_one_cpu();
	execve(job->argv[0], job->argv, job->env);
	dprintf(2, "%s: %s\n", job->argv[0], strerror(errno));
	_exit(127);
}

static void ignore_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
	sigset_t none;
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Until the program or our parent ends. */
static void watch(pid_t pid, int lifeline)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd fds[2] = {{lifeline, POLLIN, 0}, {pidfd, POLLIN, 0}};
	int status;

	/* Nothing is written to the lifeline: it becomes readable at its end. Kernels without
	 * pidfd_open (before 5.3) are asked five times a second. */
	while (poll(fds, 2, pidfd < 0 ? 200 : -1) <= 0)
		if (pidfd < 0 && waitpid(pid, &status, WNOHANG) == pid)
			return;
}

static void keep(const struct gci_keeper_job *job, int lifeline)
{
	int null = open("/dev/null", O_RDWR);
	pid_t self = getpid(), pid;

	setsid();
	prctl(PR_SET_NAME, "gridcoll-keeper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	ignore_signals();
	pid = fork();
	if (!pid)
		run_program(job, self);
	/* Keep nothing of our parent's: not its output, not its pipes. */
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	dup2(lifeline, 3);
	syscall(SYS_close_range, 4u, ~0u, 0u);
	if (pid > 0) {
		watch(pid, 3);
		/* linux.uml is several processes, which share a group; those that lose their parent
		 * become our children. */
		kill(-pid, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
			kill(-pid, SIGKILL);
	}
	gci_remove_tree(job->dir);
	_exit(0);
}

int gci_keeper_start(struct gci_keeper *k, const struct gci_keeper_job *job, struct gci_error *e)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return gci_error_errno(e, "cannot make a pipe");
	k->pid = fork();
	if (!k->pid) {
		close(ends[1]);
		keep(job, ends[0]);
	}
	close(ends[0]);
	k->lifeline = ends[1];
	if (k->pid < 0) {
		close(ends[1]);
		return gci_error_errno(e, "cannot start a process");
	}
	return 0;
}

void gci_keeper_stop(struct gci_keeper *k)
{
	if (k->pid <= 0)
		return;
	close(k->lifeline);
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
	k->pid = 0;
}
