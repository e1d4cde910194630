/* SPDX-License-Identifier: MIT */
#include "launcher/spawn.h"

#include "base/clock.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- All descendants of this process, found in /proc: process groups and sessions do not bind them,
 * and cgroups need rights that we do not have. */

struct process {
	pid_t pid, parent;
	unsigned long long born; /* tells two owners of one number apart */
	char state;
	int ours; /* 1: our child, 2: a child of one of these, ...; 0: nobody's of ours */
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
static void mark_ours(struct table *t, int (*spared)(void *user, pid_t pid), void *user)
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

			if (p->ours || (spared && spared(user, p->pid)))
				continue;
			parent = bsearch(&key, t->v, t->n, sizeof(*t->v), by_pid);
			if (p->parent == self)
				p->ours = 1;
			else if (parent && parent->ours)
				p->ours = parent->ours + 1;
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

static int by_depth(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->ours > y->ours) - (x->ours < y->ours);
}

/* Parents first, else one would see its child die, and tell of it or start another one. */
int gci_tree_kill(int (*spared)(void *user, pid_t pid), void *user)
{
	struct table t = {0};
	int found = 0;
	size_t i;

	read_table(&t);
	mark_ours(&t, spared, user);
	if (t.n)
		qsort(t.v, t.n, sizeof(*t.v), by_depth);
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
		found = gci_tree_kill(NULL, NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!found || gci_now_ns() >= end_ns)
			return found;
		gci_sleep_ns(GCI_NS_PER_MS);
	}
}

/* ---- Starting processes. */

struct child_error {
	int where; /* 1: directory, 2: program, 0: anything else */
	int error;
};

static struct rlimit fds_before; /* what children get back */

void gci_raise_fd_limit(void)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &fds_before))
		return;
	most = fds_before;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

int gci_pipe(int fds[2], struct gci_error *e)
{
	return pipe2(fds, O_CLOEXEC) ? gci_error_errno(e, "cannot make a pipe") : 0;
}

/* Moves what becomes 0 ... 3 out of the way first: one may stand where another has to go. */
static int place_fds(const int *fds)
{
	int moved[GCI_SPAWN_FDS], i;

	for (i = 0; i < GCI_SPAWN_FDS; i++) {
		int fd = fds[i] >= 0 ? fds[i] : i < 3 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;

		moved[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 64);
		if (moved[i] < 0 && (fd >= 0 || i < 3))
			return -1;
	}
	for (i = 0; i < GCI_SPAWN_FDS; i++) {
		if (moved[i] < 0)
			close(i);
		else if (dup2(moved[i], i) < 0)
			return -1;
	}
	return 0;
}

/* Signals came blocked through the fork. Those sent to the parent's process group meanwhile (Ctrl-C)
 * are the parent's to pass on: SIG_IGN discards the pending ones. */
static void reset_signals(void)
{
	struct sigaction ign = {.sa_handler = SIG_IGN}, dfl = {.sa_handler = SIG_DFL};
	int sig;

	for (sig = 1; sig < NSIG; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP)
			continue;
		sigaction(sig, &ign, NULL);
		sigaction(sig, &dfl, NULL);
	}
}

static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void child(const struct gci_spawn *s, pid_t parent, int error_fd)
{
	struct child_error err = {0};

	if (s->new_session ? setsid() < 0 : setpgid(0, 0))
		goto fail;
	reset_signals(); /* out of the parent's group, and before the death signal may be pending */
	if (s->death_signal) {
		prctl(PR_SET_PDEATHSIG, s->death_signal);
		if (getppid() != parent)
			_exit(1); /* it died before we asked */
	}
	unblock_signals();
	/* error_fd may be anywhere: keep it out of the way as well. */
	error_fd = fcntl(error_fd, F_DUPFD_CLOEXEC, 128);
	if (error_fd < 0 || place_fds(s->fds))
		goto fail;
	if (fds_before.rlim_max)
		setrlimit(RLIMIT_NOFILE, &fds_before);
	err.where = 1;
	if (s->cwd && chdir(s->cwd))
		goto fail;
	err.where = 2;
	execvp(s->argv[0], s->argv);
fail:
	err.error = errno;
	if (write(error_fd, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

int gci_cannot_run(const char *program, struct gci_error *e)
{
	const char *path = getenv("PATH");

	if (errno != ENOENT || strchr(program, '/'))
		return gci_error_errno(e, "cannot run %.200s", program);
	return gci_error_errno(
		e, "cannot run %.100s (PATH is %.300s)", program, path ? path : "not set");
}

static int explain(const struct gci_spawn *s, const struct child_error *err, struct gci_error *e)
{
	errno = err->error;
	if (err->where == 1)
		gci_error_errno(e, "cannot change to directory %s", s->cwd);
	else
		gci_cannot_run(s->argv[0], e);
	errno = err->error;
	return GCOLL_ERR_SYS;
}

int gci_spawn(const struct gci_spawn *s, pid_t *pid, struct gci_error *e)
{
	pid_t parent = getpid();
	struct child_error err;
	sigset_t all, before;
	int fds[2];
	ssize_t n;

	if (gci_pipe(fds, e))
		return GCOLL_ERR_SYS;
	/* No handler of ours may run in the child. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	*pid = fork();
	if (!*pid)
		child(s, parent, fds[1]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fds[1]);
	if (*pid < 0) {
		close(fds[0]);
		return gci_error_errno(e, "cannot start a process");
	}
	do
		n = read(fds[0], &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	close(fds[0]);
	if (n != sizeof(err))
		return 0; /* closed by a successful exec */
	waitpid(*pid, NULL, 0);
	return explain(s, &err, e);
}

/* ---- Pipes to processes, on a loop. */

struct sending {
	uv_write_t req;
	struct gci_buf b;
	void (*done)(uv_stream_t *to, size_t nbytes, int status);
};

static void on_written(uv_write_t *req, int status)
{
	struct sending *s = req->data;

	if (s->done)
		s->done(req->handle, s->b.len, status);
	gci_buf_free(&s->b);
	gci_free(s);
}

int gci_pipe_send(uv_stream_t *to, struct gci_buf *b,
	void (*done)(uv_stream_t *to, size_t nbytes, int status))
{
	struct sending *s = b->failed ? NULL : gci_calloc(1, sizeof(*s));
	uv_buf_t bytes;
	int rc = UV_ENOMEM;

	if (s) {
		s->b = *b;
		s->done = done;
		s->req.data = s;
		bytes = uv_buf_init((char *)s->b.data, (unsigned)s->b.len);
		rc = uv_write(&s->req, to, &bytes, 1, on_written);
	}
	if (rc) {
		gci_buf_free(b);
		gci_free(s);
	}
	memset(b, 0, sizeof(*b));
	return rc;
}

static void close_all(const int *fds, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int gci_pipe_spawn(uv_loop_t *loop, struct gci_spawn *s, uv_pipe_t *const p[3], pid_t *pid,
	struct gci_error *e)
{
	int ours[3] = {-1, -1, -1}, fds[2], i, rc = 0;

	*pid = 0;
	memset(s->fds, 0xff, sizeof(s->fds));
	for (i = 0; i < 3 && !rc; i++) {
		rc = gci_pipe(fds, e);
		if (rc)
			break;
		s->fds[i] = fds[i > 0];
		ours[i] = fds[!i];
	}
	if (!rc)
		rc = gci_spawn(s, pid, e);
	close_all(s->fds, 3);
	if (rc) {
		*pid = 0;
		close_all(ours, 3);
		return rc;
	}
	for (i = 0; i < 3; i++) {
		int bad = uv_pipe_init(loop, p[i], 0) || uv_pipe_open(p[i], ours[i]);

		if (bad)
			close(ours[i]);
		rc |= bad;
	}
	return rc ? gci_error_set(e, GCOLL_ERR_SYS, "cannot use a pipe") : 0;
}

void gci_pipe_drain(uv_pipe_t *p, uv_read_cb on_read)
{
	static char space[16384];
	uv_buf_t buf = uv_buf_init(space, sizeof(space));
	uv_os_fd_t fd;
	ssize_t n;

	while (!uv_is_closing((uv_handle_t *)p) && !uv_fileno((uv_handle_t *)p, &fd)) {
		n = read(fd, space, sizeof(space));
		if (n <= 0)
			return;
		on_read((uv_stream_t *)p, n, &buf);
	}
}
