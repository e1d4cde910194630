/* SPDX-License-Identifier: MIT
 * What files tell of the host, its network cards, and the rest of it: limits, clock,
 * processor, io_uring, BPF, what a lab needs. */
#include "base/units.h"
#include "tools/doctor/doctor.h"
#include "tools/doctor/impl.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Network cards. */

#define FAST_BPS   10000000000u /* from here on packets are too many to be small */
#define JUMBO      9000
#define FAST_QUEUE 1000

static struct gct_finding *of(const struct gct_nic *nic, const char *id, const char *what,
	enum gct_level level, struct gct_report *r)
{
	char name[64];

	snprintf(name, sizeof(name), "%s %s", nic->name, what);
	return gct_finding(r, level, id, name);
}

static int is_fast(const struct gct_nic *nic)
{
	return nic->speed_bps != GCT_UNKNOWN && nic->speed_bps >= FAST_BPS;
}

static void check_mtu(const struct gct_nic *nic, struct gct_report *r)
{
	int small = is_fast(nic) && nic->mtu < JUMBO;
	struct gct_finding *g = of(nic, "mtu", "MTU",
		nic->mtu == GCT_UNKNOWN ? GCT_NOT_KNOWN
		: small                 ? GCT_ADVICE
					: GCT_FINE,
		r);
	char rate[16];

	if (nic->mtu == GCT_UNKNOWN)
		return;
	gct_say(r, &g->is, "%" PRIu64, nic->mtu);
	if (!small)
		return;
	gct_say(r, &g->should, "%d", JUMBO);
	gct_say(r, &g->why,
		"%s in packets of %" PRIu64 " B are %" PRIu64
		" a second; larger ones cost less CPU, if every switch on the path takes them",
		gci_format_rate(nic->speed_bps, rate, sizeof(rate)), nic->mtu,
		nic->mtu ? nic->speed_bps / 8 / nic->mtu : 0);
	gct_say(r, &g->command, "ip link set %s mtu %d", nic->name, JUMBO);
}

static void check_queue(const struct gct_nic *nic, struct gct_report *r)
{
	int small = is_fast(nic) && nic->txqueuelen < FAST_QUEUE;
	struct gct_finding *g = of(nic, "txqueuelen", "txqueuelen",
		nic->txqueuelen == GCT_UNKNOWN ? GCT_NOT_KNOWN
		: small                        ? GCT_ADVICE
					       : GCT_FINE,
		r);

	if (nic->txqueuelen != GCT_UNKNOWN)
		gct_say(r, &g->is, "%" PRIu64, nic->txqueuelen);
	if (!small)
		return;
	gct_say(r, &g->should, "%d", FAST_QUEUE);
	gct_say(r, &g->why, "a queue of packets that short drops at the host itself");
	gct_say(r, &g->command, "ip link set %s txqueuelen %d", nic->name, FAST_QUEUE);
}

static void check_offloads(const struct gct_nic *nic, struct gct_report *r)
{
	static const char *const names[] = {"tso", "gso", "gro"};
	struct gct_finding *g = of(nic, "offloads", "offloads", GCT_FINE, r);
	char on[16] = "", off[32] = "", change[48] = "";
	int i, n = 0;

	for (i = 0; i < GCT_NOFFLOADS; i++) {
		char *list = nic->offload[i] > 0 ? on : off;
		size_t size = nic->offload[i] > 0 ? sizeof(on) : sizeof(off);

		if (nic->offload[i] < 0)
			continue;
		n++;
		snprintf(list + strlen(list), size - strlen(list), "%s%s", *list ? " " : "",
			names[i]);
		if (!nic->offload[i])
			snprintf(change + strlen(change), sizeof(change) - strlen(change), " %s on",
				names[i]);
	}
	g->level = !n ? GCT_NOT_KNOWN : *off ? GCT_ADVICE : GCT_FINE;
	if (!n)
		return;
	gct_say(r, &g->is, "%s", *on ? on : "none");
	if (!*off)
		return;
	gct_say(r, &g->should, "tso gso gro");
	gct_say(r, &g->why,
		"without %s the kernel handles each packet on its own instead of 64 KiB at a time",
		off);
	gct_say(r, &g->command, "ethtool -K %s%s", nic->name, change);
}

static void check_numa(const struct gct_nic *nic, const struct gct_facts *f, struct gct_report *r)
{
	struct gct_finding *g;

	if (f->nodes < 2 || nic->numa_node < 0)
		return;
	g = of(nic, "numa", "NUMA node", GCT_FINE, r);
	gct_say(r, &g->is, "%d of %d", nic->numa_node, f->nodes);
	gct_say(r, &g->why,
		"ranks that run on its node move data without crossing to another: numactl "
		"--cpunodebind=%d",
		nic->numa_node);
}

/* The grid file's word against the card's. */
static void check_speed(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	const struct gct_nic *best = NULL;
	struct gct_finding *g;
	char is[16], should[16];
	int i, slow;

	for (i = 0; i < f->nnics; i++)
		if (f->nics[i].speed_bps != GCT_UNKNOWN &&
			(!best || f->nics[i].speed_bps > best->speed_bps))
			best = &f->nics[i];
	if (!best || !n->nic_bps)
		return;
	slow = best->speed_bps < n->nic_bps;
	g = of(best, "speed", "speed", slow ? GCT_PROBLEM : GCT_FINE, r);
	gct_say(r, &g->is, "%s", gci_format_rate(best->speed_bps, is, sizeof(is)));
	if (!slow)
		return;
	gct_say(r, &g->should, "%s", gci_format_rate(n->nic_bps, should, sizeof(should)));
	gct_say(r, &g->why,
		"the grid file says so (nic); either the cable or port is not what it should be, "
		"or all that gridcoll predicts is");
}

void gct_check_nics(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	int i;

	check_speed(f, n, r);
	for (i = 0; i < f->nnics; i++) {
		check_mtu(&f->nics[i], r);
		check_queue(&f->nics[i], r);
		check_offloads(&f->nics[i], r);
		check_numa(&f->nics[i], f, r);
	}
}

/* ---- Facts that files tell. Every file may be missing, cut short or something else than expected:
 * what it would have told stays unknown. */

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

/* ---- the rest of the host */

#define OWN_FILES 64 /* of a rank, besides connections to others: its program's, the launcher's */

/* Bits of capabilities(7). */
#define CAP_NET_ADMIN (1ull << 12)
#define CAP_SYS_ADMIN (1ull << 21)
#define CAP_BPF       (1ull << 39)

static void say_files(struct gct_report *r, struct gct_finding *g, const struct gct_facts *f,
	uint64_t want, uint64_t connections)
{
	gct_say(r, &g->should, "%" PRIu64, want);
	gct_say(r, &g->why,
		"a rank that talks to all of the grid has %" PRIu64 " connections; alltoall does",
		connections);
	if (f->nofile_hard >= want && f->nofile_hard != GCT_UNKNOWN)
		gct_say(r, &g->command, "ulimit -n %" PRIu64, want);
	else
		gct_say(r, &g->command,
			"echo '* - nofile %" PRIu64 "' >/etc/security/limits.d/90-gridcoll.conf",
			want);
}

static void check_files(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	uint64_t soft = f->nofile_soft, want = n->connections + OWN_FILES;
	int unsure = soft == GCT_UNKNOWN || !n->has_grid;
	struct gct_finding *g = gct_finding(r,
		unsure         ? GCT_NOT_KNOWN
		: soft >= want ? GCT_FINE
			       : GCT_PROBLEM,
		"nofile", "open files");

	if (soft == GCT_UNLIMITED)
		gct_say(r, &g->is, "unlimited");
	else if (soft != GCT_UNKNOWN)
		gct_say(r, &g->is, "%" PRIu64, soft);
	if (!n->has_grid)
		gct_say(r, &g->why, "how many a rank needs follows from a grid: give --grid");
	else if (g->level == GCT_PROBLEM)
		say_files(r, g, f, want, n->connections);
	else
		gct_say(r, &g->why, "a rank of this grid needs at most %" PRIu64, want);
}

/* ---- clock */

static void check_clock_source(const struct gct_facts *f, struct gct_report *r)
{
	static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
	struct gct_finding *g =
		gct_finding(r, *f->clock ? GCT_FINE : GCT_NOT_KNOWN, "clocksource", "clock source");
	size_t i;

	if (*f->clock)
		gct_say(r, &g->is, "%s", f->clock);
	for (i = 0; i < sizeof(slow) / sizeof(*slow); i++) {
		if (strcmp(f->clock, slow[i]) != 0)
			continue;
		g->level = GCT_PROBLEM;
		gct_say(r, &g->should, "tsc, or kvm-clock in a virtual machine");
		gct_say(r, &g->why,
			"every look at the clock costs a microsecond or more in the kernel, and "
			"pacing and deadlines look often");
		gct_say(r, &g->command,
			"echo tsc >/sys/devices/system/clocksource/clocksource0/"
			"current_clocksource");
	}
}

static void check_sync(const struct gct_facts *f, struct gct_report *r)
{
	struct gct_finding *g = gct_finding(r,
		f->synced < 0 ? GCT_NOT_KNOWN
		: f->synced   ? GCT_FINE
			      : GCT_ADVICE,
		"clock_sync", "clock synchronisation");
	char error[16];

	if (f->synced > 0)
		gct_say(r, &g->is, "yes, within %s",
			gci_format_time(f->clock_error_us * 1000, error, sizeof(error)));
	if (f->synced)
		return;
	gct_say(r, &g->is, "none");
	gct_say(r, &g->should, "NTP or PTP");
	gct_say(r, &g->why,
		"gridcoll probe and bench measure one way's latency only between clocks that "
		"agree; without that they take half of the round trip");
	gct_say(r, &g->command, "apt-get install chrony");
}

static void check_governor(const struct gct_facts *f, struct gct_report *r)
{
	int fine = !*f->governor || !strcmp(f->governor, "performance");
	struct gct_finding *g =
		gct_finding(r, fine ? GCT_FINE : GCT_ADVICE, "governor", "CPU governor");

	gct_say(r, &g->is, "%s", *f->governor ? f->governor : "none: the CPU's own");
	if (fine)
		return;
	gct_say(r, &g->should, "performance");
	gct_say(r, &g->why,
		"a CPU that slows down while data is on its way is slow when it arrives");
	gct_say(r, &g->command, "cpupower frequency-set -g performance");
}

/* ---- encryption */

static void check_tls(const struct gct_facts *f, struct gct_report *r)
{
	struct gct_finding *g = gct_finding(r,
		f->aes < 0 ? GCT_NOT_KNOWN
		: f->aes   ? GCT_FINE
			   : GCT_ADVICE,
		"tls", "encryption");

	if (f->aes >= 0)
		gct_say(r, &g->is, "TLS in user space, %s AES", f->aes ? "with" : "without");
	if (f->aes)
		return;
	gct_say(r, &g->should, "with AES");
	gct_say(r, &g->why,
		"connections between clusters are encrypted, which costs twenty times as much "
		"without instructions for AES; a virtual machine may only not be shown them. On "
		"networks you trust: gridcoll-run --security auth");
}

/* For whoever wonders: it is not used, whatever there is. */
static void check_kernel_tls(const struct gct_facts *f, struct gct_report *r)
{
	static const char *const openssl[] = {
		"has none", "has it for sending only", "has it both ways"};
	struct gct_finding *g = gct_finding(
		r, f->tls_kernel < 0 ? GCT_NOT_KNOWN : GCT_FINE, "kernel_tls", "TLS in the kernel");

	if (f->tls_kernel < 0)
		return;
	gct_say(r, &g->is, "not used; the kernel %s, OpenSSL %s",
		f->tls_kernel ? "has none" : "has it", openssl[f->tls_openssl]);
	gct_say(r, &g->why,
		"OpenSSL 3.0, which Debian 12 has, decrypts TLS 1.3 in user space in any case");
}

/* ---- io_uring and BPF */

static const char *uring_cause(const struct gct_facts *f)
{
	uint64_t off = f->sysctl[GCT_URING_DISABLED];

	if (*f->uring_why)
		return f->uring_why;
	if (f->uring == ENOSYS)
		return "the kernel was built without it, or a container's seccomp filter hides it";
	if (off != GCT_UNKNOWN && off)
		return "kernel.io_uring_disabled forbids it";
	if (f->uring == EPERM)
		return "a container's seccomp filter forbids it, as Docker's does by default";
	return strerror(f->uring);
}

static void check_uring(const struct gct_facts *f, struct gct_report *r)
{
	uint64_t off = f->sysctl[GCT_URING_DISABLED];
	struct gct_finding *g = gct_finding(r,
		f->uring < 0 ? GCT_NOT_KNOWN
		: f->uring   ? GCT_ADVICE
			     : GCT_FINE,
		"io_uring", "io_uring");

	if (!f->uring)
		gct_say(r, &g->is, "works");
	if (f->uring <= 0)
		return;
	gct_say(r, &g->is, "no: %s", strerror(f->uring));
	gct_say(r, &g->should, "works");
	gct_say(r, &g->why, "%s; gridcoll moves data without it", uring_cause(f));
	if (off == GCT_UNKNOWN || !off)
		return;
	gct_say(r, &g->command, "sysctl -w kernel.io_uring_disabled=0");
	gct_say(r, &g->line, "kernel.io_uring_disabled = 0");
}

static void check_bpf(const struct gct_facts *f, struct gct_report *r)
{
	int may = (f->capabilities & CAP_SYS_ADMIN) ||
		  (f->capabilities & CAP_BPF && f->capabilities & CAP_NET_ADMIN);
	struct gct_finding *g =
		gct_finding(r, may && f->bpffs && f->btf ? GCT_FINE : GCT_ADVICE, "bpf", "BPF");

	gct_say(r, &g->is, "%s, %s, %s", may ? "allowed" : "not allowed", f->btf ? "BTF" : "no BTF",
		f->bpffs ? "bpffs" : "no bpffs");
	if (g->level == GCT_FINE)
		return;
	gct_say(r, &g->should, "allowed, BTF, bpffs");
	gct_say(r, &g->why,
		"eBPF programs can cap what all processes of a host send to a cluster together, "
		"and share what they count in bpffs; "
		"without them each connection is paced on its own%s",
		f->sysctl[GCT_BPF_DISABLED] == 1
			? " (kernel.unprivileged_bpf_disabled = 1 until the next boot)"
			: "");
	if (!may)
		gct_say(r, &g->command, "setcap cap_bpf,cap_net_admin+ep PROGRAM");
	else if (!f->bpffs)
		gct_say(r, &g->command, "mount -t bpf bpf /sys/fs/bpf");
	else
		gct_say(r, &g->why, "%s; BTF takes a kernel with CONFIG_DEBUG_INFO_BTF", g->why);
}

/* ---- labs */

static void check_modules(const struct gct_facts *f, struct gct_report *r)
{
	struct gct_finding *g = gct_finding(r, GCT_FINE, "modules", "kernel modules");
	char is[200] = "", missing[200] = "";
	int i, unknown = 0;

	for (i = 0; i < GCT_NMODULES; i++) {
		char *list = f->module[i] ? is : missing;
		const char *mark = f->module[i] < 0 ? "?" : "";

		unknown += f->module[i] < 0;
		snprintf(list + strlen(list), sizeof(is) - strlen(list), "%s%s%s", *list ? " " : "",
			gct_module_name((enum gct_module)i), mark);
	}
	g->level = *missing ? GCT_ADVICE : unknown ? GCT_NOT_KNOWN : GCT_FINE;
	gct_say(r, &g->is, "%s", *is ? is : "none");
	if (*missing) {
		gct_say(r, &g->should, "%s too", missing);
		gct_say(r, &g->why,
			"fq, tbf and htb shape traffic, netem emulates links in a lab, "
			"bbr keeps its rate where packets are lost");
	} else if (unknown) {
		gct_say(r, &g->why, "%s: only root can try those with a ?", g->is);
	}
}

static void check_lab(const struct gct_facts *f, struct gct_report *r)
{
	struct gct_finding *g = gct_finding(r,
		f->lab < 0 ? GCT_NOT_KNOWN
		: f->lab   ? GCT_FINE
			   : GCT_ADVICE,
		"lab", "gridcoll lab");
	static const char *const backends[] = {"host", "tap", "uml"};
	const char *const why[] = {f->lab_host, f->lab_tap, f->lab_uml};
	char all[3 * 220];
	int i, n = 0;

	if (f->lab < 0)
		return;
	gct_say(r, &g->is, "%s",
		!f->lab         ? "no"
		: !*f->lab_host ? "on this kernel"
		: !*f->lab_tap  ? "on this kernel, by links of its own"
				: "in a uml guest");
	for (i = 0; i < 3; i++)
		if (*why[i])
			n += snprintf(all + n, sizeof(all) - (size_t)n, "%s%s backend: %s",
				n ? "; " : "", backends[i], why[i]);
	if (n)
		gct_say(r, &g->why, "%s", all);
	if (f->lab)
		return;
	gct_say(r, &g->should, "on this kernel, or in a uml guest");
	gct_say(r, &g->command, "gridcoll lab doctor");
}

void gct_check_host(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r)
{
	check_files(f, n, r);
	check_clock_source(f, r);
	check_sync(f, r);
	check_governor(f, r);
	check_tls(f, r);
	check_kernel_tls(f, r);
	check_uring(f, r);
	check_bpf(f, r);
	check_modules(f, r);
	check_lab(f, r);
}
