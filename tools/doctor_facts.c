/* SPDX-License-Identifier: MIT
 * Facts that files tell. Every file may be missing, cut short or something else than expected: what
 * it would have told stays unknown. */
#include "tools/doctor.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const sysctls[GCT_NSYSCTLS] = {"net.core.rmem_max", "net.core.wmem_max",
	"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_no_metrics_save",
	"net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_timestamps",
	"net.ipv4.tcp_sack", "net.ipv4.tcp_moderate_rcvbuf", "kernel.io_uring_disabled",
	"kernel.unprivileged_bpf_disabled"};

const char *gct_sysctl_name(enum gct_sysctl s)
{
	return sysctls[s];
}

static const char *const modules[GCT_NMODULES] = {
	"sch_fq", "sch_netem", "sch_tbf", "sch_htb", "tcp_bbr"};

const char *gct_module_name(enum gct_module m)
{
	return modules[m];
}

static FILE *open_file(const char *root, const char *path)
{
	char full[4096];

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return NULL;
	return fopen(full, "re");
}

/* The first line, without its end and blanks around it; "" where there is none. */
static void read_line(const char *root, const char *path, char *out, size_t size)
{
	FILE *f = open_file(root, path);
	char line[512] = "", *at = line;

	*out = '\0';
	if (!f)
		return;
	if (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		at += strspn(at, " \t");
		snprintf(out, size, "%.*s", (int)size - 1, at);
	}
	fclose(f);
}

/* Up to n numbers of the first line; those that are not there are unknown. */
static void read_numbers(const char *root, const char *path, uint64_t *v, int n)
{
	char line[512], *at = line, *end;
	int i;

	read_line(root, path, line, sizeof(line));
	for (i = 0; i < n; i++) {
		at += strspn(at, " \t");
		v[i] = GCT_UNKNOWN;
		if (*at < '0' || *at > '9')
			continue;
		v[i] = strtoull(at, &end, 10);
		at = end;
	}
}

static uint64_t read_number(const char *root, const char *path)
{
	uint64_t v;

	read_numbers(root, path, &v, 1);
	return v;
}

static int exists(const char *root, const char *path)
{
	char full[4096];

	return snprintf(full, sizeof(full), "%s%s", root, path) < (int)sizeof(full) &&
	       !access(full, F_OK);
}

static void read_sysctls(struct gct_facts *f, const char *root)
{
	char path[128], *at;
	int i;

	for (i = 0; i < GCT_NSYSCTLS; i++) {
		snprintf(path, sizeof(path), "/proc/sys/%s", sysctls[i]);
		for (at = path + strlen("/proc/sys/"); *at; at++)
			*at = *at == '.' ? '/' : *at;
		f->sysctl[i] = read_number(root, path);
	}
	read_numbers(root, "/proc/sys/net/ipv4/tcp_rmem", f->tcp_rmem, 3);
	read_numbers(root, "/proc/sys/net/ipv4/tcp_wmem", f->tcp_wmem, 3);
	read_line(root, "/proc/sys/net/ipv4/tcp_congestion_control", f->congestion,
		sizeof(f->congestion));
	read_line(root, "/proc/sys/net/ipv4/tcp_available_congestion_control", f->congestions,
		sizeof(f->congestions));
	read_line(root, "/proc/sys/net/core/default_qdisc", f->qdisc, sizeof(f->qdisc));
}

/* "Max open files            1024                 4096                 files" */
static uint64_t limit(const char *s)
{
	return !strcmp(s, "unlimited") ? GCT_UNLIMITED : strtoull(s, NULL, 10);
}

static void read_limits(struct gct_facts *f, const char *root)
{
	FILE *file = open_file(root, "/proc/self/limits");
	char line[256], soft[32], hard[32];

	f->nofile_soft = f->nofile_hard = GCT_UNKNOWN;
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Max open files %31s %31s", soft, hard) == 2) {
			f->nofile_soft = limit(soft);
			f->nofile_hard = limit(hard);
		}
	if (file)
		fclose(file);
}

static void read_bpf(struct gct_facts *f, const char *root)
{
	FILE *status = open_file(root, "/proc/self/status");
	FILE *mounts = open_file(root, "/proc/mounts");
	char line[1024], type[64];

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "CapEff: %" SCNx64, &f->capabilities);
	while (mounts && fgets(line, sizeof(line), mounts))
		f->bpffs |= sscanf(line, "%*s %*s %63s", type) == 1 && !strcmp(type, "bpf");
	f->btf = exists(root, "/sys/kernel/btf/vmlinux");
	if (status)
		fclose(status);
	if (mounts)
		fclose(mounts);
}

/* ---- modules */

/* Whether modules.builtin or modules.dep, of lines such as "kernel/net/sched/sch_fq.ko.xz: ...",
 * has it; -1: there is no such file. */
static int listed(const char *root, const char *path, const char *name)
{
	FILE *f = open_file(root, path);
	char *line = NULL, *slash, want[64];
	size_t cap = 0;
	int found = 0;

	if (!f)
		return -1;
	snprintf(want, sizeof(want), "/%s.ko", name);
	while (!found && getline(&line, &cap, f) > 0) {
		line[strcspn(line, ":\n")] = '\0';
		slash = strrchr(line, '/');
		found = slash && !strncmp(slash, want, strlen(want));
	}
	free(line);
	fclose(f);
	return found;
}

static int find_module(const char *root, const char *name)
{
	char path[256], release[65];
	int builtin, loadable;

	snprintf(path, sizeof(path), "/sys/module/%s", name);
	if (exists(root, path))
		return 1;
	read_line(root, "/proc/sys/kernel/osrelease", release, sizeof(release));
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.builtin", release);
	builtin = listed(root, path, name);
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", release);
	loadable = listed(root, path, name);
	if (builtin < 0 && loadable < 0)
		return -1;
	return builtin == 1 || loadable == 1;
}

static int has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	const char *at;

	for (at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return 1;
	return 0;
}

static void read_modules(struct gct_facts *f, const char *root)
{
	int i;

	for (i = 0; i < GCT_NMODULES; i++)
		f->module[i] = find_module(root, modules[i]);
	if (has_word(f->congestions, "bbr"))
		f->module[GCT_BBR] = 1;
	if (!strcmp(f->qdisc, "fq"))
		f->module[GCT_FQ] = 1;
}

/* ---- directories */

/* Calls `each` for every entry of root/path that begins with `prefix`. */
static void each_entry(struct gct_facts *f, const char *root, const char *path, const char *prefix,
	void (*each)(struct gct_facts *f, const char *root, const char *name))
{
	char full[4096];
	struct dirent *d;
	DIR *dir;

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return;
	dir = opendir(full);
	while (dir && (d = readdir(dir)))
		if (*d->d_name != '.' && !strncmp(d->d_name, prefix, strlen(prefix)))
			each(f, root, d->d_name);
	if (dir)
		closedir(dir);
}

static void add_node(struct gct_facts *f, const char *root, const char *name)
{
	(void)root;
	f->nodes += name[4] >= '0' && name[4] <= '9';
}

static void add_governor(struct gct_facts *f, const char *root, const char *name)
{
	char path[400], governor[32];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%.255s/cpufreq/scaling_governor",
		name);
	read_line(root, path, governor, sizeof(governor));
	if (*governor && (!*f->governor || !strcmp(f->governor, "performance")))
		memcpy(f->governor, governor, sizeof(governor));
}

static uint64_t nic_number(const char *root, const char *nic, const char *what)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/net/%.15s/%s", nic, what);
	return read_number(root, path);
}

/* Ethernet that is up; "down", "lowerlayerdown" and so on are not. */
static int is_up(const char *root, const char *nic)
{
	char path[128], state[32];

	snprintf(path, sizeof(path), "/sys/class/net/%.15s/operstate", nic);
	read_line(root, path, state, sizeof(state));
	return nic_number(root, nic, "type") == 1 &&
	       (!strcmp(state, "up") || !strcmp(state, "unknown"));
}

static void add_nic(struct gct_facts *f, const char *root, const char *name)
{
	struct gct_nic *n = &f->nics[f->nnics];
	char path[128];
	uint64_t v;

	if (f->nnics == GCT_MOST_NICS || strlen(name) >= sizeof(n->name) || !is_up(root, name))
		return;
	*n = (struct gct_nic){.numa_node = -1, .offload = {-1, -1, -1}};
	snprintf(n->name, sizeof(n->name), "%.15s", name);
	n->mtu = nic_number(root, name, "mtu");
	n->txqueuelen = nic_number(root, name, "tx_queue_len");
	v = nic_number(root, name, "speed"); /* Mbit/s; "-1" for none */
	n->speed_bps = v < 100000000 ? v * 1000000 : GCT_UNKNOWN;
	v = nic_number(root, name, "device/numa_node");
	n->numa_node = v < 4096 ? (int)v : -1;
	snprintf(path, sizeof(path), "/sys/class/net/%.15s/device", name);
	n->physical = exists(root, path);
	f->nnics++;
}

/* What x86 and ARM call instructions for AES, and for the multiplications of GCM. */
static void read_aes(struct gct_facts *f, const char *root)
{
	FILE *file = open_file(root, "/proc/cpuinfo");
	char *line = NULL;
	size_t size = 0;

	f->aes = -1;
	while (file && f->aes < 0 && getline(&line, &size, file) > 0)
		if (!strncmp(line, "flags", 5) || !strncmp(line, "Features", 8))
			f->aes = strstr(line, " aes") &&
				 (strstr(line, " pclmulqdq") || strstr(line, " pmull"));
	free(line);
	if (file)
		fclose(file);
}

static int by_name(const void *a, const void *b)
{
	const struct gct_nic *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Bridges, tunnels and the like pass through the cards: where there are cards, these count. */
static void keep_physical(struct gct_facts *f)
{
	int i, n = 0;

	for (i = 0; i < f->nnics; i++)
		if (f->nics[i].physical)
			f->nics[n++] = f->nics[i];
	if (n)
		f->nnics = n;
	qsort(f->nics, (size_t)f->nnics, sizeof(*f->nics), by_name);
}

void gct_facts_read(struct gct_facts *f, const char *root)
{
	memset(f, 0, sizeof(*f));
	f->uring = f->tls_kernel = f->synced = f->lab = -1;
	read_line(root, "/proc/sys/kernel/hostname", f->host, sizeof(f->host));
	read_line(root, "/proc/sys/kernel/osrelease", f->kernel, sizeof(f->kernel));
	read_line(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		f->clock, sizeof(f->clock));
	read_sysctls(f, root);
	read_limits(f, root);
	read_bpf(f, root);
	read_modules(f, root);
	read_aes(f, root);
	each_entry(f, root, "/sys/devices/system/node", "node", add_node);
	each_entry(f, root, "/sys/devices/system/cpu", "cpu", add_governor);
	each_entry(f, root, "/sys/class/net", "", add_nic);
	keep_physical(f);
}
