/* SPDX-License-Identifier: MIT */
#include "netem/uml.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "netem/guest.h"
#include "netem/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

struct gci_uml_session {
	int used, ended;
	int fds[3];
	uint32_t credit;
	struct gci_uml_end end;
};

struct gci_uml {
	struct gci_keeper keeper;
	char *dir;
	int to_guest, from_guest, console;
	int ready, gone;
	uint64_t network_ns, all_ns;
	struct gci_buf received;
	struct gci_error failure;
	struct gci_buf log;   /* the last of what the console said */
	uint32_t jobs;        /* started so far */
	uint64_t sent, taken; /* bytes of frames, by the guest's own count */
	struct gci_uml_session sessions[GCI_MAX_SESSIONS];
};

/* ---- linux.uml, and how it is started */

#define UML_XSTATE_NBYTES 2696 /* what linux.uml keeps of a process's extended state */

int gci_self_path(char *out, size_t size, struct gci_error *e)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);

	if (n < 0)
		return gci_error_errno(e, "/proc/self/exe");
	out[n] = '\0';
	return 0;
}

/* Path of linux.uml into `out`, or GCOLL_ERR_UNSUPPORTED and how to get it. */
static int gci_uml_find(char *out, size_t size, struct gci_error *e)
{
	const char *path = getenv("PATH");

	for (path = path ? path : ""; *path; path += *path == ':') {
		size_t len = strcspn(path, ":");

		if (len && snprintf(out, size, "%.*s/linux.uml", (int)len, path) < (int)size &&
			!access(out, X_OK))
			return 0;
		path += len;
	}
	snprintf(out, size, "/usr/bin/linux.uml");
	if (!access(out, X_OK))
		return 0;
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
		"user-mode Linux is not there (no linux.uml in PATH), get it with: apt-get install "
		"user-mode-linux");
}

static int needs_xstate(void)
{
#ifdef __x86_64__
	unsigned a, b, c, d;

	return __get_cpuid_count(13, 0, &a, &b, &c, &d) && b > UML_XSTATE_NBYTES;
#else
	return 0;
#endif
}

/* The module for LD_PRELOAD: beside our program in a build directory, or where it is installed. */
static int find_xstate(char *out, size_t size, const char *self, struct gci_error *e)
{
	const char *slash = strrchr(self, '/');

	if (snprintf(out, size, "%.*s/../netem/" GCI_XSTATE_MODULE, (int)(slash - self), self) <
			(int)size &&
		!access(out, R_OK))
		return 0;
	if (snprintf(out, size, "%s", GCI_XSTATE_INSTALLED) < (int)size && !access(out, R_OK))
		return 0;
	return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
		"this processor has AMX, for which the guest needs %s, which is not there",
		GCI_XSTATE_INSTALLED);
}

/* Where the guest's memory, a sparse file, fits: /dev/shm is often small in containers. */
static const char *memory_dir(uint64_t mem_nbytes)
{
	struct statvfs v;

	if (!statvfs("/dev/shm", &v) && !(v.f_flag & ST_NOEXEC) &&
		(uint64_t)v.f_bavail * v.f_frsize >= mem_nbytes)
		return "/dev/shm";
	return "/tmp";
}

/* Starts the guest over `dir` (private, holds file "boot"): its console goes to `console`, its
 * serial line reads `line_in` and writes `line_out`. */
static int gci_uml_launch(struct gci_keeper *k, const char *dir, uint64_t mem_nbytes, int console,
	int line_in, int line_out, struct gci_error *e)
{
	char uml[4096], self[4096], preload[4096], mem[32], tmpdir[32];
	char init[4200], uml_dir[4200], arg[4200], home[4200], load[4200];
	char *argv[] = {uml, mem, (char *)"root=/dev/root", (char *)"rootfstype=hostfs",
		(char *)"rootflags=/", (char *)"rw", init, (char *)"quiet", (char *)"con=null",
		(char *)"con0=null,fd:2", (char *)"ssl=null", (char *)"ssl0=fd:3,fd:4",
		(char *)"umid=guest", uml_dir, (char *)"--", (char *)"lab", (char *)"guest", arg,
		NULL};
	char *env[] = {tmpdir, home, (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL, NULL};
	int null, rc = gci_uml_find(uml, sizeof(uml), e);

	rc = rc ? rc : gci_self_path(self, sizeof(self), e);
	if (!rc && needs_xstate()) {
		rc = find_xstate(preload, sizeof(preload), self, e);
		snprintf(load, sizeof(load), "LD_PRELOAD=%s", preload);
		env[3] = load;
	}
	if (rc)
		return rc;
	if (strpbrk(self, "\"\n") || strpbrk(dir, "\"\n"))
		return gci_error_set(
			e, GCOLL_ERR_UNSUPPORTED, "quotes in the path %s or %s", self, dir);
	snprintf(mem, sizeof(mem), "mem=%lluM", (unsigned long long)(mem_nbytes >> 20));
	snprintf(tmpdir, sizeof(tmpdir), "TMPDIR=%s", memory_dir(mem_nbytes));
	snprintf(init, sizeof(init), "init=\"%s\"", self);
	snprintf(uml_dir, sizeof(uml_dir), "uml_dir=%s/", dir);
	snprintf(arg, sizeof(arg), "\"%s\"", dir);
	snprintf(home, sizeof(home), "HOME=%s", dir);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	rc = gci_keeper_start(k,
		&(struct gci_keeper_job){
			dir, argv, env, {null, console, console}, {line_in, line_out}},
		e);
	close(null);
	return rc;
}

/* ---- With a guest that runs: frames to and from it, jobs' input and output, its console. */

#define CHUNK      (GCI_GUEST_MSG_WINDOW - GCI_GUEST_MSG_HEADER) /* of standard input per frame */
#define LOG_NBYTES 8192
#define MAX_EXTRA  16

/* Writes all, also to a descriptor that someone made non-blocking. */
static int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);
		struct pollfd pfd = {fd, POLLOUT, 0};

		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			poll(&pfd, 1, -1);
		} else if (errno != EINTR) {
			return -1;
		}
	}
	return 0;
}

/* Blocks until the line has taken it; a guest that is gone is found by the next pump. */
static void gci_uml_send_frame(
	struct gci_uml *u, enum gci_guest_msg_type type, unsigned id, const void *body, size_t len)
{
	struct gci_buf b = {0};

	gci_guest_msg_put(&b, type, id, body, len);
	if (b.failed || write_all(u->to_guest, b.data, b.len))
		u->gone = 1;
	u->sent += b.len;
	gci_buf_free(&b);
}

static void gci_uml_send_u32(
	struct gci_uml *u, enum gci_guest_msg_type type, unsigned id, uint32_t v)
{
	uint8_t body[4];

	gci_store_u32(body, v);
	gci_uml_send_frame(u, type, id, body, sizeof(body));
}

void gci_uml_signal(struct gci_uml *u, int id, int sig)
{
	uint8_t body = (uint8_t)sig;

	gci_uml_send_frame(u, GCI_GUEST_MSG_SIGNAL, (unsigned)id, &body, 1);
}

static void on_output(struct gci_uml *u, const struct gci_guest_msg *f, int which)
{
	struct gci_uml_session *s = &u->sessions[f->session];

	if (!s->used || s->fds[which] < 0 || !write_all(s->fds[which], f->body.data, f->body.len))
		return;
	/* Nobody reads any more: as a pipe would have it, the job gets SIGPIPE. */
	s->fds[which] = -1;
	gci_uml_signal(u, (int)f->session, SIGPIPE);
}

static void on_frame(struct gci_uml *u, const struct gci_guest_msg *f)
{
	struct gci_uml_session *s = &u->sessions[f->session];
	struct gci_reader body = f->body;
	uint64_t begin;

	switch (f->type) {
	case GCI_GUEST_MSG_READY:
		begin = gci_read_u64(&body);
		u->network_ns = gci_read_u64(&body) - begin;
		u->ready = 1;
		break;
	case GCI_GUEST_MSG_FAILED:
		gci_error_set(
			&u->failure, GCOLL_ERR_IO, "%.*s", (int)body.len, (const char *)body.data);
		break;
	case GCI_GUEST_MSG_TAKEN:
		u->taken += gci_read_u32(&body);
		break;
	case GCI_GUEST_MSG_CREDIT_GIVEN:
		s->credit += gci_read_u32(&body);
		break;
	case GCI_GUEST_MSG_OUT:
		on_output(u, f, 1);
		break;
	case GCI_GUEST_MSG_ERR:
		on_output(u, f, 2);
		break;
	case GCI_GUEST_MSG_EXIT:
		s->end.status = gci_read_u8(&body);
		s->end.busy = gci_read_u64(&body);
		s->end.total = gci_read_u64(&body);
		s->ended = 1;
		break;
	default:
		break;
	}
}

static void receive(struct gci_uml *u)
{
	uint8_t chunk[65536];
	ssize_t n = read(u->from_guest, chunk, sizeof(chunk));
	struct gci_guest_msg f;
	int len = 0;

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
		u->gone = 1;
		return;
	}
	if (n > 0)
		gci_buf_put(&u->received, chunk, (size_t)n);
	while ((len = gci_guest_msg_get(&u->received, &f)) > 0) {
		on_frame(u, &f);
		gci_buf_consume(&u->received, (size_t)len);
	}
	if (len < 0 || u->received.failed) {
		gci_error_set(&u->failure, GCOLL_ERR_IO, "garbage on the guest's serial line");
		u->gone = 1;
	}
}

static void read_console(struct gci_uml *u)
{
	char chunk[4096];
	ssize_t n = read(u->console, chunk, sizeof(chunk));

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
		close(u->console);
		u->console = -1;
	}
	if (n <= 0)
		return;
	if (gci_log_enabled(GCI_LOG_DEBUG))
		(void)!write(2, chunk, (size_t)n);
	gci_buf_put(&u->log, chunk, (size_t)n);
	if (u->log.len > LOG_NBYTES)
		gci_buf_consume(&u->log, u->log.len - LOG_NBYTES);
}

/* What the console said last, or of a panic. Good until the next call. */
static const char *gci_uml_last_words(struct gci_uml *u)
{
	static const char *const signs[] = {"Kernel panic", "failed, errno", "annot"};
	const char *log = gci_buf_cstr(&u->log), *at = NULL, *line;
	static char out[256];
	size_t i;

	for (i = 0; i < sizeof(signs) / sizeof(*signs) && !at; i++)
		at = strstr(log, signs[i]);
	for (line = log; !at && *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (line[strcspn(line, "\n")] && !line[strcspn(line, "\n") + 1])
			at = line;
	while (at && at > log && at[-1] != '\n')
		at--;
	snprintf(out, sizeof(out), "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
	return *out ? out : "it said nothing";
}

static int gone(struct gci_uml *u, struct gci_error *e)
{
	while (u->console >= 0) /* the rest of what it said: it is dead, so this ends */
		read_console(u);
	if (u->failure.status)
		return gci_error_set(e, GCOLL_ERR_IO, "%s", u->failure.text);
	return gci_error_set(e, GCOLL_ERR_IO,
		"the lab's guest %s: %s (GRIDCOLL_LOG=debug shows all)",
		u->ready ? "died" : "did not boot", gci_uml_last_words(u));
}

/* Input is not read from a terminal that belongs to another job: that would stop us. */
static int may_read(int fd)
{
	pid_t owner = tcgetpgrp(fd);

	return owner < 0 || owner == getpgrp();
}

/* How much of a job's input may be sent now. */
static size_t input_room(const struct gci_uml *u, const struct gci_uml_session *s)
{
	uint64_t ahead = u->sent - u->taken;

	if (!s->used || s->ended || s->fds[0] < 0 ||
		ahead + GCI_GUEST_MSG_HEADER >= GCI_GUEST_MSG_WINDOW)
		return 0;
	ahead = GCI_GUEST_MSG_WINDOW - GCI_GUEST_MSG_HEADER - ahead;
	return ahead < s->credit ? (size_t)ahead : s->credit;
}

static void read_input(struct gci_uml *u, unsigned id)
{
	struct gci_uml_session *s = &u->sessions[id];
	char chunk[CHUNK];
	size_t room = input_room(u, s);
	ssize_t n;

	if (!room) /* another job's input has just filled the line */
		return;
	n = read(s->fds[0], chunk, room);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		s->credit -= (uint32_t)n;
		gci_uml_send_frame(u, GCI_GUEST_MSG_IN, id, chunk, (size_t)n);
	} else {
		s->fds[0] = -1;
		gci_uml_send_frame(u, GCI_GUEST_MSG_IN_END, id, NULL, 0);
	}
}

int gci_uml_pump(
	struct gci_uml *u, struct pollfd *extra, int nextra, int timeout_ms, struct gci_error *e)
{
	struct pollfd fds[2 + GCI_MAX_SESSIONS + MAX_EXTRA];
	const int nown = 2 + GCI_MAX_SESSIONS;
	unsigned i;

	fds[0] = (struct pollfd){u->from_guest, POLLIN, 0};
	fds[1] = (struct pollfd){u->console, POLLIN, 0};
	for (i = 0; i < GCI_MAX_SESSIONS; i++) {
		const struct gci_uml_session *s = &u->sessions[i];
		int wanted = input_room(u, s) > 0;

		fds[2 + i] =
			(struct pollfd){wanted && may_read(s->fds[0]) ? s->fds[0] : -1, POLLIN, 0};
	}
	if (nextra > MAX_EXTRA)
		nextra = MAX_EXTRA;
	for (i = 0; i < (unsigned)nextra; i++)
		fds[nown + (int)i] = extra[i];
	if (poll(fds, (nfds_t)(nown + nextra), timeout_ms) < 0)
		return errno == EINTR ? 0 : gci_error_errno(e, "poll");
	for (i = 0; i < (unsigned)nextra; i++)
		extra[i].revents = fds[nown + (int)i].revents;
	if (fds[1].revents)
		read_console(u);
	for (i = 0; i < GCI_MAX_SESSIONS; i++)
		if (fds[2 + i].revents)
			read_input(u, i);
	if (fds[0].revents)
		receive(u);
	return u->gone || u->failure.status ? gone(u, e) : 0;
}

/* ---- A guest from its boot to its end, and jobs in it. */

#define BOOT_TIMEOUT_NS (120 * GCI_NS_PER_S)

int gci_uml_check(struct gci_error *e)
{
	char path[4096];

	return gci_uml_find(path, sizeof(path), e);
}

static int write_file(
	const char *dir, const char *name, const struct gci_buf *b, struct gci_error *e)
{
	char path[4200], tmp[4300];
	size_t done = 0;
	int fd, rc = 0;

	/* A new file each time: the guest caches what it has seen of an old one. */
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(tmp, sizeof(tmp), "%s.new", path);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return gci_error_errno(e, "%s", tmp);
	while (!rc && done < b->len) {
		ssize_t n = write(fd, b->data + done, b->len - done);

		if (n < 0 && errno != EINTR)
			rc = gci_error_errno(e, "%s", tmp);
		else if (n > 0)
			done += (size_t)n;
	}
	close(fd);
	if (!rc && rename(tmp, path))
		rc = gci_error_errno(e, "%s", path);
	return rc;
}

/* Files for the guest, pipes to it, and its processes. */
static int start(struct gci_uml *u, const struct gci_uml_options *o, struct gci_error *e)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, con[2] = {-1, -1};
	const char *tmp = getenv("TMPDIR");
	struct gci_buf boot = {0};
	int rc;

	u->dir = gci_asprintf("%s/gridcoll-lab-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	if (!u->dir)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	if (!mkdtemp(u->dir)) {
		rc = gci_error_errno(e, "%s", u->dir);
		gci_free(u->dir);
		u->dir = NULL;
		return rc;
	}
	gci_guest_boot_put(&boot, o->dilation, o->grid);
	rc = boot.failed ? gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory")
			 : write_file(u->dir, "boot", &boot, e);
	gci_buf_free(&boot);
	if (!rc && (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(con, O_CLOEXEC)))
		rc = gci_error_errno(e, "cannot make a pipe");
	if (!rc)
		rc = gci_uml_launch(&u->keeper, u->dir, o->mem_nbytes, con[1], in[0], out[1], e);
	close(in[0]);
	close(out[1]);
	close(con[1]);
	u->to_guest = in[1];
	u->from_guest = out[0];
	u->console = con[0];
	return rc;
}

static int wait_ready(struct gci_uml *u, int wake_fd, struct gci_error *e)
{
	uint64_t deadline = gci_now_ns() + BOOT_TIMEOUT_NS;
	struct pollfd wake = {wake_fd, POLLIN, 0};

	while (!u->ready) {
		int rc = gci_uml_pump(u, &wake, 1, 1000, e);

		if (rc)
			return rc;
		if (wake.revents)
			return gci_error_set(
				e, GCOLL_ERR_ABORTED, "stopped while the guest booted");
		if (gci_now_ns() > deadline)
			return gci_error_set(e, GCOLL_ERR_TIMEOUT,
				"the lab's guest is not up after %d s: %s",
				(int)(BOOT_TIMEOUT_NS / GCI_NS_PER_S), gci_uml_last_words(u));
	}
	return 0;
}

struct gci_uml *gci_uml_boot(
	const struct gci_uml_options *options, int wake_fd, struct gci_error *e)
{
	struct gci_uml *u = gci_calloc(1, sizeof(*u));
	uint64_t begin = gci_now_ns();

	if (!u) {
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
		return NULL;
	}
	u->to_guest = u->from_guest = u->console = -1;
	if (start(u, options, e) || wait_ready(u, wake_fd, e)) {
		gci_uml_stop(u);
		return NULL;
	}
	u->all_ns = gci_now_ns() - begin;
	return u;
}

void gci_uml_boot_times(const struct gci_uml *u, uint64_t *network_ns, uint64_t *all_ns)
{
	*network_ns = u->network_ns;
	*all_ns = u->all_ns;
}

int gci_uml_start(
	struct gci_uml *u, const struct gci_job *job, const int stdio[3], struct gci_error *e)
{
	struct gci_buf file = {0};
	char name[32];
	unsigned id = 0;
	int rc;

	while (id < GCI_MAX_SESSIONS && u->sessions[id].used)
		id++;
	if (id == GCI_MAX_SESSIONS)
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED, "%d commands run in the lab already",
			GCI_MAX_SESSIONS);
	gci_job_put(&file, job);
	snprintf(name, sizeof(name), "job-%u", u->jobs);
	rc = file.failed || file.len > GCI_JOB_MAX
		     ? gci_error_set(e, GCOLL_ERR_INVAL, "command and environment are too long")
		     : write_file(u->dir, name, &file, e);
	gci_buf_free(&file);
	if (rc)
		return rc;
	u->sessions[id] =
		(struct gci_uml_session){.used = 1, .fds = {stdio[0], stdio[1], stdio[2]}};
	gci_uml_send_u32(u, GCI_GUEST_MSG_START, id, u->jobs++);
	if (stdio[0] < 0)
		gci_uml_send_frame(u, GCI_GUEST_MSG_IN_END, id, NULL, 0);
	return (int)id;
}

int gci_uml_ended(struct gci_uml *u, int id, struct gci_uml_end *end)
{
	struct gci_uml_session *s = &u->sessions[id];

	if (!s->ended)
		return 0;
	*end = s->end;
	memset(s, 0, sizeof(*s));
	return 1;
}

void gci_uml_stop(struct gci_uml *u)
{
	if (!u)
		return;
	if (u->keeper.pid > 0)
		gci_keeper_stop(&u->keeper); /* removes the directory too */
	else if (u->dir)
		gci_remove_tree(u->dir);
	if (u->to_guest >= 0)
		close(u->to_guest);
	if (u->from_guest >= 0)
		close(u->from_guest);
	if (u->console >= 0)
		close(u->console);
	gci_buf_free(&u->received);
	gci_buf_free(&u->log);
	gci_free(u->dir);
	gci_free(u);
}
