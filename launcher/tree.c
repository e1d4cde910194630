/* SPDX-License-Identifier: MIT
 * All descendants of this process, found in /proc: process groups and sessions do not bind them,
 * and cgroups need rights that we do not have. */
#include "base/clock.h"
#include "base/mem.h"
#include "launcher/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct process {
	pid_t pid, parent;
	unsigned long long born; /* tells two owners of one number apart */
	char state;
	int ours;
};

struct table {
	struct process *v;
	size_t n, cap;
};

void gci_tree_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int look_up(pid_t pid, struct process *p)
{
	char path[32], text[1024], *after;
	ssize_t n;
	int fd, parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	after = strrchr(text, ')'); /* the name before it may hold anything */
	if (!after || sscanf(after + 1,
			      " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			      "%*d %*d %llu",
			      &p->state, &parent, &p->born) != 3)
		return -1;
	p->pid = pid;
	p->parent = parent;
	p->ours = 0;
	return 0;
}

static void read_table(struct table *t)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		int pid = atoi(d->d_name);

		if (pid <= 0 || gci_grow(&t->v, &t->cap, t->n + 1, sizeof(*t->v)))
			continue;
		if (!look_up(pid, &t->v[t->n]))
			t->n++;
	}
	if (dir)
		closedir(dir);
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Marks children of what is marked until no more are found; parents mostly stand before. */
static void mark_ours(struct table *t, int (*spared)(pid_t pid))
{
	pid_t self = getpid();
	size_t i;
	int more = 1;

	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), by_pid);
	while (more) {
		more = 0;
		for (i = 0; i < t->n; i++) {
			struct process *p = &t->v[i], key = {.pid = p->parent}, *parent;

			if (p->ours || (spared && spared(p->pid)))
				continue;
			parent = bsearch(&key, t->v, t->n, sizeof(*t->v), by_pid);
			p->ours = p->parent == self || (parent && parent->ours);
			more |= p->ours;
		}
	}
}

/* By a descriptor that keeps meaning the same process, whatever becomes of its number. */
static void kill_exactly(const struct process *p)
{
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	struct process now;

	if (fd < 0) {
		if (errno == ENOSYS)
			kill(p->pid, SIGKILL);
		return;
	}
	if (!look_up(p->pid, &now) && now.born == p->born)
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	close(fd);
}

int gci_tree_kill(int (*spared)(pid_t pid))
{
	struct table t = {0};
	int found = 0;
	size_t i;

	read_table(&t);
	mark_ours(&t, spared);
	for (i = 0; i < t.n; i++) {
		if (!t.v[i].ours || t.v[i].state == 'Z')
			continue;
		kill_exactly(&t.v[i]);
		found++;
	}
	gci_free(t.v);
	return found;
}

int gci_tree_end(uint64_t timeout_ns)
{
	uint64_t end_ns = gci_now_ns() + timeout_ns;
	int found;

	for (;;) {
		found = gci_tree_kill(NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!found || gci_now_ns() >= end_ns)
			return found;
		gci_sleep_ns(GCI_NS_PER_MS);
	}
}
