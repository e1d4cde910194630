/* SPDX-License-Identifier: MIT
 * The rest of the host: limits, clock, processor, io_uring, BPF, what a lab needs. */
#include "base/units.h"
#include "tools/doctor_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
