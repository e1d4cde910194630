/* SPDX-License-Identifier: MIT */
#include "netem/tap.h"

#include "base/mem.h"
#include "netem/apply.h"
#include "netem/host.h"
#include "netem/labfile.h"
#include "netem/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKET GCI_HOST_DIR "/links.sock"
_Static_assert(GCI_WIRES_MAX_HOPS >= GCI_GRID_MAX_ROUTE + 2, "a route and two uplinks");

#define MOST_ASKED    4096
#define MOST_ANSWERED (4u << 20)

struct gci_tap {
	struct gci_lab_plan plan;
	struct gci_grid grid;          /* dilated */
	struct gci_wire_model *models; /* [wire] */
	struct gci_emulator *emulator; /* NULL: one cluster */
	int listener;
};

/* ---- a place of our own */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -1;
	rc = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	close(fd);
	return rc;
}

/* Root of a user namespace, which is nobody else outside than before. With a network of its own: one
 * may not come back to that of others. */
static int become_root(struct gci_error *e)
{
	static const char *const lo_up[] = {"ip", "link", "set", "lo", "up", NULL};
	unsigned uid = geteuid(), gid = getegid();
	char map[32];
	int rc;

	if (!uid)
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return gci_error_errno(e, "it needs root, or user namespaces");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	rc = write_file("/proc/self/uid_map", map) || write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", gid);
	if (rc || write_file("/proc/self/gid_map", map))
		return gci_error_errno(e, "cannot map user %u into a user namespace", uid);
	return gci_lab_tool_run(lo_up, NULL, e);
}

/* An empty directory in the place of one that others have. */
static int cover(const char *dir, struct gci_error *e)
{
	if (mkdir(dir, 0755) && errno != EEXIST)
		return gci_error_errno(e, "cannot make %s", dir);
	if (mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"))
		return gci_error_errno(e, "cannot mount on %s", dir);
	return 0;
}

/* Others' names of namespaces, and what `gridcoll lab up` wrote, are out of sight from here on. */
static int retire(struct gci_error *e)
{
	int rc = become_root(e);

	if (rc)
		return rc;
	if (unshare(CLONE_NEWNS))
		return gci_error_errno(e, "cannot make a mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return gci_error_errno(e,
			"cannot keep mounts to ourselves (where this is a chroot, its "
			"directory must be a mount point: mount --bind DIR DIR)");
	/* Who is not root cannot make directories in /run; nothing in a lab needs the others there. */
	if ((access(GCI_NETNS_DIR, F_OK) || access(GCI_HOST_DIR, F_OK)) && access("/run", W_OK))
		rc = cover("/run", e);
	rc = rc ? rc : cover(GCI_NETNS_DIR, e);
	return rc ? rc : cover(GCI_HOST_DIR, e);
}

/* ---- whether it works here */

static int try_all(struct gci_error *e)
{
	static const char *const version[] = {"ip", "-V", NULL};
	static const char *const links[] = {"ip", "-batch", "-", NULL};
	static const char *const tbf[] = {"tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate",
		"1mbit", "burst", "16384", "limit", "65536", NULL};
	struct gci_error why = {0};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return gci_error_errno(e, "cannot open /dev/net/tun");
	close(fd);
	if (gci_lab_tool_run(version, NULL, NULL))
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"ip and tc are not there, get them with: apt-get install iproute2");
	if (retire(e))
		return e->status;
	if (unshare(CLONE_NEWNET))
		return gci_error_errno(e, "cannot make a network namespace");
	if (gci_lab_tool_run(links,
		    "link add v0 type veth peer name v1\nlink add br0 type bridge\n"
		    "tuntap add dev w0 mode tap vnet_hdr\n",
		    &why) ||
		gci_lab_tool_run(tbf, NULL, &why))
		return gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"this kernel has no veth, bridge, tun or sch_tbf (%s)", why.text);
	return 0;
}

/* In a child, which alone enters what is made for the trial. */
int gci_tap_check(struct gci_error *e)
{
	struct gci_error why = {0};
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return gci_error_errno(e, "cannot make a pipe");
	pid = fork();
	if (!pid) {
		int rc = try_all(&why);

		n = write(ends[1], why.text, sizeof(why.text));
		_exit(n < 0 || rc);
	}
	close(ends[1]);
	n = read(ends[0], why.text, sizeof(why.text) - 1);
	close(ends[0]);
	if (pid < 0)
		return gci_error_errno(e, "cannot start a process");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!status)
		return 0;
	return gci_error_set(
		e, GCOLL_ERR_UNSUPPORTED, "%s", n > 0 ? why.text : "it cannot be tried");
}

/* ---- up and down */

/* Each link's route, and the devices at its ends: that by which packets leave, of the same number; and
 * where they come out, which is that of the link back. */
static int start_wires(struct gci_tap *t, struct gci_error *e)
{
	const struct gci_grid *g = &t->grid;
	int n = g->nlinks, i;
	struct gci_emulator_tap *taps = gci_calloc((size_t)n, sizeof(*taps));
	struct gci_emulator_way *ways = gci_calloc((size_t)n, sizeof(*ways));
	struct gci_emulator_config c = {taps, ways, t->models, n, n, g->nwires, 1};

	for (i = 0; taps && ways && i < n; i++) {
		const struct gci_link *l = &g->links[i];
		struct gci_emulator_way *w = &ways[i];

		taps[i] = (struct gci_emulator_tap){
			t->plan.wires[i].entry_netns, t->plan.wires[i].entry};
		w->from = i;
		w->to = (int)(gci_grid_link(g, l->to, l->from) - g->links);
		w->nwires = l->nroute;
		memcpy(w->wires, g->routes + l->route, (size_t)l->nroute * sizeof(*w->wires));
	}
	if (taps && ways)
		t->emulator = gci_emulator_start(&c, e);
	else
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	gci_free(taps);
	gci_free(ways);
	return t->emulator ? 0 : e->status;
}

static int listen_for_requests(struct gci_tap *t, struct gci_error *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = SOCKET};

	t->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->listener < 0 || bind(t->listener, (struct sockaddr *)&a, sizeof(a)) ||
		listen(t->listener, 16))
		return gci_error_errno(e, "cannot listen at " SOCKET);
	return 0;
}

static int copy_grid(struct gci_tap *t, const struct gci_grid *g, struct gci_error *e)
{
	struct gci_buf text = {0};
	int i, rc;

	gci_grid_print(g, &text);
	rc = text.failed ? gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory")
			 : gci_grid_parse(&t->grid, gci_buf_cstr(&text), text.len, "grid", e);
	gci_buf_free(&text);
	if (rc)
		return rc;
	t->models = gci_calloc((size_t)g->nwires, sizeof(*t->models));
	if (!t->models)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < t->grid.nwires; i++)
		t->models[i] = gci_lab_wire_model(&t->grid, &t->grid.wires[i]);
	return 0;
}

static int build(
	struct gci_tap *t, const struct gci_grid *g, uint32_t dilation, struct gci_error *e)
{
	struct gci_lab_how how = {1, gci_host_has_qdisc("fq") == 1, gci_lab_has_cubic()};
	uint64_t longest = 0;
	int i, rc = gci_lab_plan_make(&t->plan, g, dilation, how, e);

	for (i = 0; i < g->nlinks; i++)
		longest = g->links[i].delay_ns > longest ? g->links[i].delay_ns : longest;
	rc = rc ? rc : copy_grid(t, g, e);
	rc = rc ? rc : gci_lab_apply(&t->plan, e);
	if (!rc && g->nlinks)
		rc = start_wires(t, e);
	rc = rc ? rc : listen_for_requests(t, e);
	rc = rc ? rc : gci_lab_wait(&t->plan, 20 * GCI_NS_PER_S + 8 * longest, e);
	rc = rc ? rc : gci_labfile_write(GCI_HOST_LAB, &t->plan, g, dilation, "tap", e);
	if (!rc)
		gci_labfile_name_hosts(&t->plan);
	return rc;
}

struct gci_tap *gci_tap_up(const struct gci_grid *g, uint32_t dilation, struct gci_error *e)
{
	struct gci_tap *t = gci_calloc(1, sizeof(*t));
	struct gci_emulator_gauge gauge;

	if (!t) {
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
		return NULL;
	}
	t->listener = -1;
	if (!retire(e) && !build(t, g, dilation, e))
		return t;
	gci_tap_end(t, &gauge);
	return NULL;
}

/* ---- links while it runs */

void gci_tap_change(struct gci_tap *t, const struct gci_weather_change *c)
{
	gci_weather_apply(c, &t->models[c->wire]);
	if (t->emulator) /* one cluster: nothing passes its wires */
		gci_emulator_set(t->emulator, c->wire, &t->models[c->wire]);
}

int gci_tap_fd(const struct gci_tap *t)
{
	return t->listener;
}

/* A line a wire. */
static void put_counts(struct gci_tap *t, struct gci_buf *out)
{
	int i;

	for (i = 0; t->emulator && i < t->grid.nwires; i++) {
		const struct gci_link *w = &t->grid.wires[i];
		struct gci_wire_counts c = gci_emulator_counts(t->emulator, i);

		gci_buf_printf(out,
			"%s > %s: %" PRIu64 " packets in, %" PRIu64 " out (%" PRIu64
			" bytes), dropped: %" PRIu64 " by the full queue, %" PRIu64
			" by CoDel, %" PRIu64 " lost; %" PRIu64 " duplicated, %" PRIu64
			" corrupted, %" PRIu64 " reordered; queue at most %" PRIu64 " bytes\n",
			gci_grid_end(&t->grid, w->from), gci_grid_end(&t->grid, w->to), c.entered,
			c.passed, c.nbytes, c.overflowed, c.early, c.lost, c.duplicated,
			c.corrupted, c.reordered, c.queue_most_nbytes);
	}
}

/* What is asked, by nobody but root of this lab, is one line. */
static void answer(struct gci_tap *t, const char *request, struct gci_buf *out)
{
	struct gci_weather w;
	struct gci_error e = {0};
	char *line = *request ? gci_asprintf("0s %s", request) : NULL;
	size_t i;

	if (!*request) {
		put_counts(t, out);
	} else if (!line) {
		gci_buf_printf(out, "!out of memory");
	} else if (gci_weather_parse(&w, line, strlen(line), "links", &t->grid, &e)) {
		gci_buf_printf(out, "!%s", e.text);
	} else {
		gci_weather_dilate(&w, t->grid.dilation);
		for (i = 0; i < w.nchanges; i++)
			gci_tap_change(t, &w.changes[i]);
		gci_weather_free(&w);
	}
	gci_free(line);
}

void gci_tap_serve(struct gci_tap *t)
{
	struct timeval patience = {1, 0};
	struct gci_buf out = {0};
	char request[MOST_ASKED];
	ssize_t n;
	int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	n = recv(fd, request, sizeof(request) - 1, 0);
	if (n > 0 && request[n - 1] == '\n') {
		request[n - 1] = '\0';
		answer(t, request, &out);
		if (!out.failed && out.len)
			(void)!send(fd, out.data, out.len, MSG_NOSIGNAL);
	}
	gci_buf_free(&out);
	close(fd);
}

int gci_tap_ask(const char *request, struct gci_buf *out, struct gci_error *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = SOCKET};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *line = gci_asprintf("%s\n", request);
	uint8_t chunk[4096];
	ssize_t n = -1;

	if (!line || strlen(line) >= MOST_ASKED)
		gci_error_set(e, GCOLL_ERR_INVAL, "more than %d characters", MOST_ASKED);
	else if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)))
		gci_error_set(e, GCOLL_ERR_UNSUPPORTED,
			"this lab's links are not gridcoll's own (its backend is not tap)");
	else if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
		gci_error_errno(e, SOCKET);
	else
		while ((n = recv(fd, chunk, sizeof(chunk), 0)) > 0 && out->len < MOST_ANSWERED)
			gci_buf_put(out, chunk, (size_t)n);
	gci_free(line);
	if (fd >= 0)
		close(fd);
	if (!e->status && n < 0)
		gci_error_errno(e, SOCKET);
	if (!e->status && out->len && *out->data == '!')
		gci_error_set(e, GCOLL_ERR_INVAL, "%s", gci_buf_cstr(out) + 1);
	return e->status;
}

/* ---- processes */

/* Passes on what is not the terminal's, which all in the foreground hear themselves. */
static void be_first(pid_t job)
{
	siginfo_t si;
	sigset_t all;
	int status;
	pid_t pid;

	sigfillset(&all);
	for (;;) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == job)
				_exit(WIFEXITED(status) ? WEXITSTATUS(status)
							: 128 + WTERMSIG(status));
		if (sigwaitinfo(&all, &si) > 0 && si.si_signo != SIGCHLD && si.si_code != SI_KERNEL)
			kill(job, si.si_signo);
	}
}

void gci_leave_group(void)
{
	int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (terminal < 0)
		setpgid(0, 0);
	else
		close(terminal);
}

pid_t gci_tap_fork(struct gci_error *e)
{
	sigset_t all, before;
	int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	pid_t pid = unshare(CLONE_NEWPID) ? -1 : fork();

	if (pid < 0)
		gci_error_errno(e, "cannot make a namespace of processes");
	if (pid) {
		/* Later children are like us again. In a user namespace there can be none. */
		(void)!setns(own, CLONE_NEWPID);
		close(own);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	gci_leave_group();
	/* Without it (some containers refuse) it shows the processes outside. */
	if (!unshare(CLONE_NEWNS))
		mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (pid < 0)
		_exit(126);
	if (pid)
		be_first(pid);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return 0;
}

void gci_tap_end(struct gci_tap *t, struct gci_emulator_gauge *gauge)
{
	size_t i;

	for (i = 0; i < t->plan.nnetns; i++)
		gci_netns_remove(t->plan.netns[i], NULL);
	memset(gauge, 0, sizeof(*gauge));
	if (t->emulator)
		gci_emulator_gauge(t->emulator, gauge);
	gci_emulator_stop(t->emulator);
	if (t->listener >= 0)
		close(t->listener);
	gci_grid_free(&t->grid);
	gci_free(t->models);
	gci_lab_plan_free(&t->plan);
	gci_free(t);
}
