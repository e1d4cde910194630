/* SPDX-License-Identifier: MIT */
#include "netem/guest_boot.h"

#include "base/clock.h"
#include "base/mem.h"
#include "netem/apply.h"
#include "netem/guest.h"
#include "netem/labfile.h"
#include "netem/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

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

/* /tmp stays the host's, so that what a command reads and leaves there is where its user looks. */
int gci_guest_mount(struct gci_error *e)
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

int gci_guest_read_file(
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

int gci_guest_build(int dirfd, struct gci_error *e)
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
