/* SPDX-License-Identifier: MIT */
#include "netem/guest.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/terminal.h"
#include "netem/apply.h"
#include "netem/cpu.h"
#include "netem/guest_msg.h"
#include "netem/labfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* ---- Loading kernel modules by path, without depmod and modprobe: in the guest they lie where the
 * distribution put them, not where modprobe looks. */

static int load_file(const char *dir, const char *path, struct gci_error *e)
{
	char full[4096];
	int fd, rc = 0;

	if (snprintf(full, sizeof(full), "%s/%s", dir, path) >= (int)sizeof(full))
		return gci_error_set(e, GCOLL_ERR_INVAL, "path too long: %s", path);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return gci_error_errno(e, "%s", full);
	if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
		rc = gci_error_errno(e, "cannot load %s", full);
	close(fd);
	return rc;
}

/* "kernel/net/802/stp.ko: kernel/net/llc/llc.ko ...": what it needs is loaded last to first. */
static int load_line(const char *dir, char *line, struct gci_error *e)
{
	char *paths[64], *save = NULL, *p;
	int n = 0, rc = 0;

	for (p = strtok_r(line, ": \n", &save); p && n < 64; p = strtok_r(NULL, ": \n", &save))
		paths[n++] = p;
	while (n-- > 0 && !rc)
		rc = load_file(dir, paths[n], e);
	return rc;
}

/* Whether this line of modules.dep is about module `name`. */
static int is_about(const char *line, const char *name)
{
	const char *end = strchr(line, ':');
	const char *base = end;
	size_t len = strlen(name);

	if (!end)
		return 0;
	while (base > line && base[-1] != '/')
		base--;
	return !strncmp(base, name, len) && !strncmp(base + len, ".ko", 3) && base + len + 3 <= end;
}

/* Loads NULL-terminated `names` ("sch_netem") and what they need from `dir`, which has a
 * modules.dep. One that is not there is passed over: the kernel may have it built in, and what uses
 * it fails with a better message. */
static int gci_modules_load(const char *dir, const char *const *names, struct gci_error *e)
{
	char path[4096], *line = NULL;
	size_t cap = 0;
	int rc = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/modules.dep", dir);
	f = fopen(path, "re");
	if (!f)
		return gci_error_errno(e, "%s", path);
	for (; *names && !rc; names++) {
		rewind(f);
		while (!rc && getline(&line, &cap, f) > 0)
			if (is_about(line, *names)) {
				rc = load_line(dir, line, e);
				break;
			}
	}
	free(line);
	fclose(f);
	return rc;
}

/* ---- The guest's start: from a bare kernel to a lab. */

#define MOST_KTHREADS 200 /* whose ids come before those of programs */

static const struct mounting {
	const char *type, *at, *options;
	int needed;
} mountings[] = {
	{"proc", "/proc", NULL, 1},
	{"sysfs", "/sys", NULL, 1},
	{"devtmpfs", "/dev", NULL, 0}, /* the kernel has done so before us */
	{"devpts", "/dev/pts", "ptmxmode=0666", 0},
	{"tmpfs", "/dev/shm", "mode=1777", 0},
	{"tmpfs", "/run", "mode=755", 1},
	{"bpf", "/sys/fs/bpf", NULL, 0},
	{"cgroup2", "/sys/fs/cgroup", NULL, 0},
};

/* Mounts what programs expect and sets limits. /tmp stays the host's, so that what a command reads and
 * leaves there is where its user looks. */
static int gci_guest_mount(struct gci_error *e)
{
	struct rlimit files = {65536, 65536};
	size_t i;

	for (i = 0; i < sizeof(mountings) / sizeof(*mountings); i++) {
		const struct mounting *m = &mountings[i];

		mkdir(m->at, 0755);
		if (mount(m->type, m->at, m->type, MS_NOSUID, m->options) && m->needed &&
			errno != EBUSY)
			return gci_error_errno(e, "cannot mount %s", m->at);
	}
	mkdir("/run/gridcoll", 0755);
	mkdir("/run/netns", 0755);
	mkdir("/run/lock", 01777); /* else shaping's marks would stay in this machine's /tmp */
	mkdir("/run/tmp", 01777);
	(void)!symlink("/proc/self/fd", "/dev/fd");
	(void)!symlink("/proc/self/fd/0", "/dev/stdin");
	(void)!symlink("/proc/self/fd/1", "/dev/stdout");
	(void)!symlink("/proc/self/fd/2", "/dev/stderr");
	setrlimit(RLIMIT_NOFILE, &files);
	/* Some programs refuse the name "(none)". */
	if (sethostname("gridcoll-lab", 12))
		return gci_error_errno(e, "cannot set the host name");
	return 0;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, text, strlen(text));
	close(fd);
}

/* What is not kept per namespace. A burst of small packets may be longer than the default backlog
 * of 1000 between two veths, where it would be lost in silence. */
static void set_global_sysctls(void)
{
	char mem[96];
	unsigned long pages = (unsigned long)sysconf(_SC_PHYS_PAGES);

	write_file("/proc/sys/net/core/rmem_max", "33554432");
	write_file("/proc/sys/net/core/wmem_max", "33554432");
	write_file("/proc/sys/net/core/netdev_max_backlog", "100000");
	snprintf(mem, sizeof(mem), "%lu %lu %lu", pages / 8, pages / 4, pages / 2);
	write_file("/proc/sys/net/ipv4/tcp_mem", mem);
	write_file("/proc/sys/kernel/printk", "1");
	/* User-mode Linux 6.12 (Debian 13) loses its memory's lists soon after a ring is made, and
	 * libuv makes one for each loop. Kernels before 6.6 have no such file. */
	write_file("/proc/sys/kernel/io_uring_disabled", "2");
}

/* "ksoftirqd/0" and the like. */
static int is_softirqd(int pid)
{
	char path[40], name[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (f) {
		(void)!fgets(name, sizeof(name), f);
		fclose(f);
	}
	return !strncmp(name, "ksoftirqd/", 10);
}

/* Links and switches go on while hosts are busy. What the network has to do that one interrupt
 * leaves over is done by a thread of the kernel; as one among so many ranks it came milliseconds
 * late, and the bottleneck lost as much of its rate. */
static void put_network_first(void)
{
	const struct sched_param first = {.sched_priority = 1};
	int pid;

	for (pid = 2; pid < MOST_KTHREADS; pid++)
		if (is_softirqd(pid))
			sched_setscheduler(pid, SCHED_FIFO, &first);
}

/* All of a small file in `dirfd`, which is opened before gci_guest_mount: mounts may hide it. */
static int gci_guest_read_file(
	int dirfd, const char *name, size_t max, struct gci_buf *out, struct gci_error *e)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC), rc = 0;
	char chunk[16384];
	ssize_t n = 1;

	if (fd < 0)
		return gci_error_errno(e, "file %s of the lab", name);
	while (!rc && (n = read(fd, chunk, sizeof(chunk))) > 0) {
		gci_buf_put(out, chunk, (size_t)n);
		if (out->failed || out->len > max)
			rc = gci_error_set(e, GCOLL_ERR_NOMEM, "file %s is too long", name);
	}
	if (n < 0)
		rc = gci_error_errno(e, "file %s of the lab", name);
	close(fd);
	return rc;
}

static uint64_t longest_delay_ns(const struct gci_grid *g)
{
	uint64_t d = 0;
	int i;

	for (i = 0; i < g->nlinks; i++)
		if (g->links[i].delay_ns > d)
			d = g->links[i].delay_ns;
	return d;
}

static int build_grid(const char *text, uint32_t dilation, struct gci_error *e)
{
	struct gci_lab_plan plan = {0};
	struct gci_grid g;
	int rc = gci_grid_parse(&g, text, strlen(text), "grid", e);

	if (rc)
		return rc;
	rc = gci_lab_plan_make(
		&plan, &g, dilation, (struct gci_lab_how){0, 1, gci_lab_has_cubic()}, e);
	if (!rc)
		rc = gci_lab_apply(&plan, e);
	if (!rc)
		rc = gci_lab_wait(&plan, 20 * GCI_NS_PER_S + 8 * longest_delay_ns(&g), e);
	if (!rc)
		rc = gci_labfile_write(GCI_GUEST_LAB, &plan, &g, dilation, "uml", e);
	if (!rc)
		gci_labfile_name_hosts(&plan);
	gci_lab_plan_free(&plan);
	gci_grid_free(&g);
	return rc;
}

static int load_modules(struct gci_error *e)
{
	static const char *const names[] = {"veth", "bridge", "sch_netem", "sch_fq", "sch_tbf",
		"sch_htb", "sch_ingress", "cls_matchall", "act_mirred", "ifb", "cls_bpf", "tcp_bbr",
		"tun", "ipv6", "tls", NULL};
	struct utsname u;
	char dir[256];

	uname(&u);
	snprintf(dir, sizeof(dir), "/usr/lib/uml/modules/%s", u.release);
	if (access(dir, F_OK))
		snprintf(dir, sizeof(dir), "/lib/modules/%s", u.release);
	return gci_modules_load(dir, names, e);
}

/* Loads modules and builds what file "boot" in `dirfd` describes. */
static int gci_guest_build(int dirfd, struct gci_error *e)
{
	static const char *const lo_up[] = {"ip", "link", "set", "lo", "up", NULL};
	struct gci_buf file = {0};
	struct gci_reader r;
	uint32_t version, dilation;
	char *grid = NULL;
	int rc = gci_guest_read_file(dirfd, "boot", GCI_GUEST_BOOT_MAX, &file, e);

	if (rc)
		goto out;
	r = (struct gci_reader){file.data, file.len, 0};
	version = gci_read_u32(&r);
	dilation = gci_read_u32(&r);
	grid = gci_read_str(&r, GCI_GRID_MAX_TEXT);
	if (version != GCI_GUEST_BOOT_VERSION || r.failed) {
		rc = gci_error_set(e, GCOLL_ERR_PROTO, "file boot of the lab is damaged");
		goto out;
	}
	set_global_sysctls();
	put_network_first();
	rc = load_modules(e);
	if (!rc)
		rc = gci_lab_tool_run(lo_up, NULL, e);
	if (!rc && *grid)
		rc = build_grid(grid, dilation, e);
out:
	gci_free(grid);
	gci_buf_free(&file);
	return rc;
}

/* ---- Jobs in the guest, and what is said on the line. */

struct session {
	pid_t pid; /* 0: free */
	int in, out, err;
	int in_ended;
	int exited, status;
	struct gci_buf input; /* not yet taken by the job; at most GCI_GUEST_MSG_CREDIT */
	uint64_t busy, total; /* CPU ticks at its start */
};

struct guest {
	int line; /* the serial line */
	int dirfd;
	int children; /* signalfd for SIGCHLD */
	struct gci_buf received;
	struct session sessions[GCI_MAX_SESSIONS];
};

/* Blocks while the outside does not read: that is the job's back pressure too. */
static void send_frame(
	struct guest *g, enum gci_guest_msg_type type, unsigned id, const void *body, size_t len)
{
	struct gci_buf b = {0};
	size_t done = 0;

	gci_guest_msg_put(&b, type, id, body, len);
	while (!b.failed && done < b.len) {
		ssize_t n = write(g->line, b.data + done, b.len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			break;
	}
	gci_buf_free(&b);
}

static void send_u32(struct guest *g, enum gci_guest_msg_type type, unsigned id, uint32_t v)
{
	uint8_t body[4];

	gci_store_u32(body, v);
	send_frame(g, type, id, body, sizeof(body));
}

static void fail(struct guest *g, const char *text)
{
	send_frame(g, GCI_GUEST_MSG_FAILED, 0, text, strlen(text));
}

/* In the child. */
static void run_job(const struct gci_job *job, const int fds[3])
{
	char terminal[GCI_TERMINAL_SIZE];
	sigset_t none;
	int i;

	setsid();
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (i = 0; i < 3; i++)
		dup2(fds[i], i);
	if (chdir(job->cwd)) {
		fprintf(stderr, "gridcoll lab: %s: %s\n", job->cwd, strerror(errno));
		_exit(126);
	}
	clearenv();
	for (i = 0; job->env[i]; i++)
		putenv(job->env[i]);
	setenv("GRIDCOLL_LAB", GCI_GUEST_LAB, 1);
	if (getenv(GCI_TERMINAL) && !gci_terminal_name(STDERR_FILENO, terminal))
		setenv(GCI_TERMINAL, terminal, 1);
	setenv("TMPDIR", "/run/tmp", 1);
	/* Sockets on the host's disks cannot be connected to from here. */
	setenv("XDG_RUNTIME_DIR", "/run/tmp", 1);
	execvp(job->argv[0], job->argv);
	fprintf(stderr, "gridcoll lab: %s: %s\n", job->argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void exit_session(struct guest *g, unsigned id, int status)
{
	struct session *s = &g->sessions[id];
	uint8_t body[17] = {(uint8_t)status};
	uint64_t busy, total;

	gci_cpu_read(&busy, &total);
	gci_store_u64(body + 1, busy - s->busy);
	gci_store_u64(body + 9, total - s->total);
	sync(); /* what jobs wrote through mappings */
	if (s->in >= 0)
		close(s->in);
	if (s->out >= 0)
		close(s->out);
	if (s->err >= 0)
		close(s->err);
	gci_buf_free(&s->input);
	memset(s, 0, sizeof(*s));
	send_frame(g, GCI_GUEST_MSG_EXIT, id, body, sizeof(body));
}

static int start_child(struct guest *g, struct session *s, const struct gci_job *job)
{
	int in[2], out[2], err[2], i;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		return -1; /* out of descriptors: this guest is beyond use, and will be ended */
	s->pid = fork();
	if (!s->pid)
		run_job(job, (int[]){in[0], out[1], err[1]});
	close(in[0]);
	close(out[1]);
	close(err[1]);
	s->in = in[1];
	s->out = out[0];
	s->err = err[0];
	for (i = 0; i < 3; i++)
		fcntl((int[]){s->in, s->out, s->err}[i], F_SETFL, O_NONBLOCK);
	(void)g;
	return s->pid < 0 ? -1 : 0;
}

static void start_session(struct guest *g, unsigned id, uint32_t number)
{
	struct session *s = &g->sessions[id];
	struct gci_error e = {0};
	struct gci_buf file = {0};
	struct gci_job job = {0};
	struct gci_reader r;
	char name[32];

	memset(s, 0, sizeof(*s));
	s->in = s->out = s->err = -1;
	gci_cpu_read(&s->busy, &s->total);
	snprintf(name, sizeof(name), "job-%u", number);
	if (gci_guest_read_file(g->dirfd, name, GCI_JOB_MAX, &file, &e)) {
		send_frame(g, GCI_GUEST_MSG_ERR, id, e.text, strlen(e.text));
		exit_session(g, id, 126);
	} else {
		r = (struct gci_reader){file.data, file.len, 0};
		if (gci_job_get(&r, &job) || start_child(g, s, &job))
			exit_session(g, id, 126);
		else
			send_u32(g, GCI_GUEST_MSG_CREDIT_GIVEN, id, GCI_GUEST_MSG_CREDIT);
	}
	gci_job_free(&job);
	gci_buf_free(&file);
}

/* Gives the job what it takes of its input, and the outside credit for as much. */
static void feed(struct guest *g, unsigned id)
{
	struct session *s = &g->sessions[id];
	ssize_t n = 0;

	if (s->in < 0)
		return;
	if (s->input.len) {
		n = write(s->in, s->input.data, s->input.len);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			/* The job does not want it: take and drop what comes. */
			n = (ssize_t)s->input.len;
			close(s->in);
			s->in = -1;
		}
	}
	if (n > 0) {
		gci_buf_consume(&s->input, (size_t)n);
		send_u32(g, GCI_GUEST_MSG_CREDIT_GIVEN, id, (uint32_t)n);
	}
	if (s->in_ended && !s->input.len && s->in >= 0) {
		close(s->in);
		s->in = -1;
	}
}

static void take_input(struct guest *g, unsigned id, const struct gci_guest_msg *f)
{
	struct session *s = &g->sessions[id];

	if (f->type == GCI_GUEST_MSG_IN_END)
		s->in_ended = 1;
	else if (s->in < 0)
		send_u32(g, GCI_GUEST_MSG_CREDIT_GIVEN, id, (uint32_t)f->body.len);
	else if (s->input.len + f->body.len <= GCI_GUEST_MSG_CREDIT)
		gci_buf_put(&s->input, f->body.data, f->body.len);
	feed(g, id);
}

/* Hands on up to one frame of output; 0 when there is none now. */
static int drain_some(struct guest *g, unsigned id, int *fd, enum gci_guest_msg_type type)
{
	char chunk[GCI_GUEST_MSG_MAX];
	ssize_t n = *fd < 0 ? 0 : read(*fd, chunk, sizeof(chunk));

	if (n > 0) {
		send_frame(g, type, id, chunk, (size_t)n);
		return 1;
	}
	if (n == 0 && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return 0;
}

static void reap(struct guest *g)
{
	struct signalfd_siginfo si;
	int status;
	unsigned i;
	pid_t pid;

	while (read(g->children, &si, sizeof(si)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (i = 0; i < GCI_MAX_SESSIONS; i++)
			if (g->sessions[i].pid == pid) {
				g->sessions[i].exited = 1;
				g->sessions[i].status = WIFEXITED(status) ? WEXITSTATUS(status)
									  : 128 + WTERMSIG(status);
			}
	for (i = 0; i < GCI_MAX_SESSIONS; i++) {
		struct session *s = &g->sessions[i];

		if (!s->exited)
			continue;
		/* All it wrote is in the pipes; what children in the background still write is not
		 * waited for. */
		while (drain_some(g, i, &s->out, GCI_GUEST_MSG_OUT))
			;
		while (drain_some(g, i, &s->err, GCI_GUEST_MSG_ERR))
			;
		exit_session(g, i, s->status);
	}
}

static void on_frame(struct guest *g, const struct gci_guest_msg *f)
{
	struct session *s = &g->sessions[f->session];
	struct gci_reader body = f->body;
	int sig;

	if (f->type == GCI_GUEST_MSG_STOP) {
		sync();
		reboot(RB_POWER_OFF);
	} else if (f->type == GCI_GUEST_MSG_START && !s->pid) {
		start_session(g, f->session, gci_read_u32(&body));
	} else if (!s->pid) {
		return; /* crossed its exit on the way */
	} else if (f->type == GCI_GUEST_MSG_SIGNAL) {
		sig = gci_read_u8(&body);
		kill(-s->pid, sig);
	} else {
		take_input(g, f->session, f);
	}
}

static void receive(struct guest *g)
{
	uint8_t chunk[4096];
	ssize_t n = read(g->line, chunk, sizeof(chunk));
	struct gci_guest_msg f;
	int len;

	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		reboot(RB_POWER_OFF); /* the outside is gone */
	if (n <= 0)
		return;
	send_u32(g, GCI_GUEST_MSG_TAKEN, 0, (uint32_t)n);
	gci_buf_put(&g->received, chunk, (size_t)n);
	while ((len = gci_guest_msg_get(&g->received, &f)) > 0) {
		on_frame(g, &f);
		gci_buf_consume(&g->received, (size_t)len);
	}
	if (len < 0 || g->received.failed) {
		fail(g, "garbage on the guest's serial line");
		reboot(RB_POWER_OFF);
	}
}

static void serve(struct guest *g)
{
	struct pollfd fds[2 + 3 * GCI_MAX_SESSIONS];
	unsigned i;

	for (;;) {
		fds[0] = (struct pollfd){g->line, POLLIN, 0};
		fds[1] = (struct pollfd){g->children, POLLIN, 0};
		for (i = 0; i < GCI_MAX_SESSIONS; i++) {
			const struct session *s = &g->sessions[i];
			struct pollfd *p = &fds[2 + 3 * i];

			p[0] = (struct pollfd){s->pid && s->input.len ? s->in : -1, POLLOUT, 0};
			p[1] = (struct pollfd){s->pid ? s->out : -1, POLLIN, 0};
			p[2] = (struct pollfd){s->pid ? s->err : -1, POLLIN, 0};
		}
		if (poll(fds, 2 + 3 * GCI_MAX_SESSIONS, -1) < 0)
			continue;
		for (i = 0; i < GCI_MAX_SESSIONS; i++) {
			struct session *s = &g->sessions[i];
			const struct pollfd *p = &fds[2 + 3 * i];

			if (p[0].revents)
				feed(g, i);
			if (p[1].revents)
				drain_some(g, i, &s->out, GCI_GUEST_MSG_OUT);
			if (p[2].revents)
				drain_some(g, i, &s->err, GCI_GUEST_MSG_ERR);
		}
		if (fds[1].revents)
			reap(g);
		if (fds[0].revents)
			receive(g);
	}
}

static int open_line(void)
{
	int fd = open("/dev/ttyS0", O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios t;

	if (fd < 0 || tcgetattr(fd, &t))
		return -1;
	cfmakeraw(&t);
	return tcsetattr(fd, TCSANOW, &t) ? -1 : fd;
}

int gci_guest_main(const char *dir)
{
	struct guest g = {0};
	struct gci_error e = {0};
	uint64_t start = gci_now_ns();
	uint8_t ready[16];
	sigset_t chld;

	if (getpid() != 1) {
		fprintf(stderr,
			"gridcoll lab guest: only for the first process of the lab's guest\n");
		return 2;
	}
	g.dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (gci_guest_mount(&e))
		fprintf(stderr, "%s\n", e.text);
	g.line = open_line();
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (!e.status && g.dirfd >= 0 && g.line >= 0)
		gci_guest_build(g.dirfd, &e);
	else
		gci_error_errno(&e, "the guest's serial line or %s", dir);
	if (e.status) {
		fprintf(stderr, "%s\n", e.text);
		fail(&g, e.text);
		tcdrain(g.line);
		reboot(RB_POWER_OFF);
	}
	sigprocmask(SIG_BLOCK, &chld, NULL);
	g.children = signalfd(-1, &chld, SFD_NONBLOCK | SFD_CLOEXEC);
	gci_store_u64(ready, start);
	gci_store_u64(ready + 8, gci_now_ns());
	send_frame(&g, GCI_GUEST_MSG_READY, 0, ready, sizeof(ready));
	serve(&g);
	return 1;
}
