/* SPDX-License-Identifier: MIT */
#include "tests/harness.h"

#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_JOBS 64 /* at once */

static pid_t live[MAX_JOBS]; /* jobs that nobody has waited for; 0: a free place */
static pid_t owner;          /* the process that started them */

const char *env_path(const char *name)
{
	const char *path = getenv(name);

	if (!path)
		fail_msg("%s is not set: run me by meson test", name);
	return path;
}

const char *peer(void)
{
	return env_path("GRIDCOLL_TEST_PEER");
}

const char *long_sleep(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "9999.%d", (int)getpid());
	return text;
}

static int reap(pid_t pid, int *status, int flags)
{
	int got = waitpid(pid, status, flags), i;

	for (i = 0; i < MAX_JOBS && got; i++)
		if (live[i] == pid)
			live[i] = 0;
	return got;
}

static int any_live(void)
{
	int i, status, any = 0;

	for (i = 0; i < MAX_JOBS; i++)
		any |= live[i] && !reap(live[i], &status, WNOHANG);
	return any;
}

void jobs_end(void)
{
	static const int signals[] = {SIGTERM, SIGKILL};
	size_t s;
	int i;

	for (s = 0; s < 2 && owner == getpid(); s++) {
		uint64_t end_ns = gci_now_ns() + 10 * GCI_NS_PER_S;

		for (i = 0; any_live() && i < MAX_JOBS; i++)
			if (live[i])
				kill(live[i], signals[s]);
		while (any_live() && gci_now_ns() < end_ns)
			gci_sleep_ns(GCI_NS_PER_MS);
	}
}

static void remember(pid_t pid)
{
	int i;

	if (!owner)
		atexit(jobs_end);
	owner = getpid();
	for (i = 0; i < MAX_JOBS && live[i]; i++)
		;
	assert_true(i < MAX_JOBS);
	live[i] = pid;
}

/* As in a terminal's foreground, whoever runs the tests: a shell's background job ignores SIGINT,
 * nohup's SIGHUP. The job does not outlive the test. */
static void set_signals(pid_t parent)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(99);
}

void job_startv(struct job *j, const char *input, const char *const *argv)
{
	const char *self = env_path("GRIDCOLL_RUN"), *all[32] = {self};
	pid_t parent = getpid();
	int n;

	for (n = 0; argv[n]; n++)
		all[n + 1] = argv[n];
	memset(&j->out_text, 0, sizeof(j->out_text));
	memset(&j->err_text, 0, sizeof(j->err_text));
	j->out = memfd_create("out", MFD_CLOEXEC);
	j->err = memfd_create("err", MFD_CLOEXEC);
	assert_true(j->out >= 0 && j->err >= 0);
	fflush(NULL);
	j->pid = fork();
	assert_true(j->pid >= 0);
	if (j->own_group) /* on both sides: true before either goes on */
		setpgid(j->pid, j->pid);
	if (j->pid) {
		remember(j->pid);
		return;
	}
	set_signals(parent);
	dup2(open(input ? input : "/dev/null", O_RDONLY), 0);
	dup2(j->keep_out ? j->keep_out : j->out, 1);
	dup2(j->err, 2);
	execv(self, (char *const *)(uintptr_t)all);
	_exit(99);
}

static void load(int fd, struct gci_buf *b)
{
	char bytes[65536];
	ssize_t n;

	while ((n = pread(fd, bytes, sizeof(bytes), (off_t)b->len)) > 0)
		gci_buf_put(b, bytes, (size_t)n);
}

const char *job_out(struct job *j)
{
	load(j->out, &j->out_text);
	return gci_buf_cstr(&j->out_text);
}

const char *job_err(struct job *j)
{
	load(j->err, &j->err_text);
	return gci_buf_cstr(&j->err_text);
}

void job_expect_silence(struct job *j, const char *last)
{
	const char *err = job_err(j), *at = strstr(err, last);

	assert_non_null(strstr(err, ": no sign of life for 1 s; dead after 4 s\n"));
	if (!at)
		assert_string_equal(err, last);
	else
		assert_string_equal(at, last);
}

void job_free(struct job *j)
{
	close(j->out);
	close(j->err);
	gci_buf_free(&j->out_text);
	gci_buf_free(&j->err_text);
}

void run_job(const char *const *argv, int status, const char *message)
{
	struct job j = {0};
	int got;

	job_startv(&j, NULL, argv);
	got = job_wait(&j);
	if (got != status)
		print_error("%s", job_err(&j));
	assert_int_equal(got, status);
	assert_string_equal(job_err(&j), message);
	job_free(&j);
}

int test_patience(void)
{
	const char *times = getenv("GRIDCOLL_TEST_PATIENCE");
	int n = times ? atoi(times) : 1;

	return n > 1 ? n : 1;
}

/* How long a job may take before it is said to hang. */
static uint64_t patience_ns(void)
{
	return 60 * GCI_NS_PER_S * (uint64_t)test_patience();
}

int job_wait(struct job *j)
{
	uint64_t end_ns = gci_now_ns() + patience_ns();
	int status;

	while (!reap(j->pid, &status, WNOHANG)) {
		if (gci_now_ns() > end_ns) {
			kill(j->pid, SIGKILL);
			reap(j->pid, &status, 0);
			fail_msg("gridcoll-run did not end; it had said:\n%s%s", job_out(j),
				job_err(j));
		}
		gci_sleep_ns(GCI_NS_PER_MS);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void await(struct job *j, const char *(*said)(struct job *), const char *text)
{
	uint64_t end_ns = gci_now_ns() + patience_ns();
	int status;

	while (!strstr(said(j), text)) {
		if (gci_now_ns() > end_ns) {
			kill(j->pid, SIGKILL);
			reap(j->pid, &status, 0);
			fail_msg("no \"%s\" in what gridcoll-run said:\n%s%s", text, job_out(j),
				job_err(j));
		}
		gci_sleep_ns(5 * GCI_NS_PER_MS);
	}
}

void job_await(struct job *j, const char *text)
{
	await(j, job_out, text);
}

void job_await_err(struct job *j, const char *text)
{
	await(j, job_err, text);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char *sorted(const char *text)
{
	static char out[65536], copy[65536];
	char *lines[4096], *line, *save;
	size_t n = 0, i, at = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (line = strtok_r(copy, "\n", &save); line && n < 4096;
		line = strtok_r(NULL, "\n", &save))
		lines[n++] = line;
	if (n)
		qsort(lines, n, sizeof(*lines), by_text);
	out[0] = '\0';
	for (i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, sizeof(out) - at, "%s\n", lines[i]);
	return out;
}

int processes(const char *what)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	char path[64], text[4096];
	int found = 0, fd;
	ssize_t n, i;

	assert_non_null(dir);
	while ((d = readdir(dir))) {
		int pid = atoi(d->d_name);

		if (pid <= 0 || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
		fd = open(path, O_RDONLY);
		n = fd < 0 ? 0 : read(fd, text, sizeof(text));
		if (fd >= 0)
			close(fd);
		for (i = 0; i < n; i++)
			text[i] = text[i] ? text[i] : ' ';
		if (n > 0 && memmem(text, (size_t)n, what, strlen(what)))
			found++;
	}
	closedir(dir);
	return found;
}

void await_processes(const char *what, int n)
{
	uint64_t end_ns = gci_now_ns() + patience_ns();

	while (processes(what) != n) {
		if (gci_now_ns() > end_ns)
			fail_msg("%d processes of %s, expected %d", processes(what), what, n);
		gci_sleep_ns(5 * GCI_NS_PER_MS);
	}
}

void need_adoption(void)
{
	int adopts;

	if (prctl(PR_GET_CHILD_SUBREAPER, &adopts))
		skip();
}

int run_shell(const char *fmt, ...)
{
	char command[2048];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	assert_in_range(n, 1, sizeof(command) - 1);
	return system(command);
}
