/* SPDX-License-Identifier: MIT
 * From facts to findings. */
#include "base/mem.h"
#include "tests/tools/doctor_facts.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(struct gct_report *r, const struct gct_facts *f, const struct gct_needs *n)
{
	*r = (struct gct_report){0};
	assert_int_equal(gct_doctor_check(f, n, r), 0);
}

static void nothing_to_change(void **state)
{
	struct gct_facts f;
	struct gct_needs n;
	struct gct_report r;
	size_t i;

	(void)state;
	good_facts(&f);
	grid_needs(&n, FAT_GRID, "k1");
	check(&r, &f, &n);
	for (i = 0; i < r.n; i++)
		if (r.list[i].level != GCT_FINE || r.list[i].should || r.list[i].command)
			fail_msg("%s: %s", r.list[i].what, gct_level_name(r.list[i].level));
	assert_in_range(r.n, 20, 100);
	gct_report_free(&r);
	gct_needs_free(&n);
}

/* ---- each fact that is not as it should be makes one finding */

static void no_sack(struct gct_facts *f)
{
	f->sysctl[GCT_SACK] = 0;
}
static void no_timestamps(struct gct_facts *f)
{
	f->sysctl[GCT_TIMESTAMPS] = 0;
}
static void no_scaling(struct gct_facts *f)
{
	f->sysctl[GCT_WINDOW_SCALING] = 0;
}
static void no_tuning(struct gct_facts *f)
{
	f->sysctl[GCT_MODERATE_RCVBUF] = 0;
}
static void metrics(struct gct_facts *f)
{
	f->sysctl[GCT_NO_METRICS_SAVE] = 0;
}
static void no_probing(struct gct_facts *f)
{
	f->sysctl[GCT_MTU_PROBING] = 0;
}
static void idle(struct gct_facts *f)
{
	f->sysctl[GCT_SLOW_START_AFTER_IDLE] = 1;
}
static void pfifo(struct gct_facts *f)
{
	strcpy(f->qdisc, "pfifo_fast");
}
static void reno(struct gct_facts *f)
{
	strcpy(f->congestion, "reno");
}
static void small_wmem(struct gct_facts *f)
{
	f->tcp_wmem[2] = 4 << 20;
}
static void small_rmem(struct gct_facts *f)
{
	f->tcp_rmem[2] = 6 << 20;
}
static void may_ask(struct gct_facts *f)
{
	f->tcp_wmem[2] = 4 << 20;
	f->sysctl[GCT_WMEM_MAX] = 4 << 20;
}
static void few_files(struct gct_facts *f)
{
	f->nofile_soft = f->nofile_hard = 64;
}
static void soft_limit(struct gct_facts *f)
{
	f->nofile_soft = 80;
}
static void hpet(struct gct_facts *f)
{
	strcpy(f->clock, "hpet");
}
static void unsynced(struct gct_facts *f)
{
	f->synced = 0;
}
static void powersave(struct gct_facts *f)
{
	strcpy(f->governor, "powersave");
}
static void seccomp(struct gct_facts *f)
{
	f->uring = EPERM;
}
static void no_aes(struct gct_facts *f)
{
	f->aes = 0;
}
static void uring_off(struct gct_facts *f)
{
	f->uring = EPERM;
	f->sysctl[GCT_URING_DISABLED] = 2;
}
static void no_caps(struct gct_facts *f)
{
	f->capabilities = 1ull << 39;
}
static void no_bpffs(struct gct_facts *f)
{
	f->bpffs = 0;
}
static void no_btf(struct gct_facts *f)
{
	f->btf = 0;
}
static void no_netem(struct gct_facts *f)
{
	f->module[GCT_NETEM] = 0;
}
static void no_lab(struct gct_facts *f)
{
	f->lab = 0;
	strcpy(f->lab_host, "it needs root");
	strcpy(f->lab_uml, "no linux.uml");
}
static void small_mtu(struct gct_facts *f)
{
	f->nics[0].mtu = 1500;
}
static void short_queue(struct gct_facts *f)
{
	f->nics[0].txqueuelen = 100;
}
static void no_gro(struct gct_facts *f)
{
	f->nics[0].offload[GCT_GRO] = 0;
}
static void slow_nic(struct gct_facts *f)
{
	f->nics[0].speed_bps = 1000000000;
}

static const struct {
	void (*spoil)(struct gct_facts *f);
	const char *id;
	enum gct_level level;
	const char *is, *should, *command, *line, *why;
} cases[] = {
	{no_sack, "tcp_sack", GCT_PROBLEM, "0", "1", "sysctl -w net.ipv4.tcp_sack=1",
		"net.ipv4.tcp_sack = 1", "per round trip"},
	{no_timestamps, "tcp_timestamps", GCT_ADVICE, "0", "1",
		"sysctl -w net.ipv4.tcp_timestamps=1", "net.ipv4.tcp_timestamps = 1", "34 s"},
	/* 64 KiB / 20 ms */
	{no_scaling, "tcp_window_scaling", GCT_PROBLEM, "0", "1",
		"sysctl -w net.ipv4.tcp_window_scaling=1", "net.ipv4.tcp_window_scaling = 1",
		"26.2 Mbit/s at 20.0 ms"},
	{no_tuning, "tcp_moderate_rcvbuf", GCT_PROBLEM, "0", "1",
		"sysctl -w net.ipv4.tcp_moderate_rcvbuf=1", "net.ipv4.tcp_moderate_rcvbuf = 1", ""},
	{metrics, "tcp_no_metrics_save", GCT_ADVICE, "0", "1",
		"sysctl -w net.ipv4.tcp_no_metrics_save=1", "net.ipv4.tcp_no_metrics_save = 1", ""},
	{no_probing, "tcp_mtu_probing", GCT_ADVICE, "0", "1",
		"sysctl -w net.ipv4.tcp_mtu_probing=1", "net.ipv4.tcp_mtu_probing = 1", ""},
	/* 14480 B x 2^9 = 7.4 MB */
	{idle, "tcp_slow_start_after_idle", GCT_PROBLEM, "1", "0",
		"sysctl -w net.ipv4.tcp_slow_start_after_idle=0",
		"net.ipv4.tcp_slow_start_after_idle = 0",
		"6.25 MB of a stream on kyoto > tokyo need 9 round trips of 20.0 ms: 180 ms"},
	{pfifo, "default_qdisc", GCT_ADVICE, "pfifo_fast", "fq",
		"sysctl -w net.core.default_qdisc=fq && tc qdisc replace dev eth0 root fq",
		"net.core.default_qdisc = fq", ""},
	{reno, "tcp_congestion_control", GCT_ADVICE, "reno", "cubic",
		"sysctl -w net.ipv4.tcp_congestion_control=cubic",
		"net.ipv4.tcp_congestion_control = cubic", "one packet a round trip"},
	/* 4 x 4.19 MB / 20 ms */
	{small_wmem, "tcp_wmem", GCT_PROBLEM, "up to 4.19 MB", "up to 12.6 MB",
		"sysctl -w net.ipv4.tcp_wmem='4096 16384 12582912'",
		"net.ipv4.tcp_wmem = 4096 16384 12582912",
		"10.0 Gbit/s x 20.0 ms = 25.0 MB in flight on kyoto > tokyo; 4 streams need 6.25 "
		"MB "
		"each; this allows 4.19 MB: 6.71 Gbit/s in all"},
	{small_rmem, "tcp_rmem", GCT_PROBLEM, "up to 6.29 MB", "up to 12.6 MB",
		"sysctl -w net.ipv4.tcp_rmem='4096 131072 12582912'",
		"net.ipv4.tcp_rmem = 4096 131072 12582912",
		"half of a buffer is window; this allows 3.15 MB: 5.03 Gbit/s in all"},
	{may_ask, "tcp_wmem", GCT_ADVICE, "up to 4.19 MB", "up to 12.6 MB",
		"sysctl -w net.ipv4.tcp_wmem='4096 16384 12582912'",
		"net.ipv4.tcp_wmem = 4096 16384 12582912", "sizes that gridcoll asks for do"},
	/* 2 in kyoto, 5 x 4 in tokyo */
	{few_files, "nofile", GCT_PROBLEM, "64", "86",
		"echo '* - nofile 86' >/etc/security/limits.d/90-gridcoll.conf", NULL,
		"has 22 connections"},
	{soft_limit, "nofile", GCT_PROBLEM, "80", "86", "ulimit -n 86", NULL, "22 connections"},
	{hpet, "clocksource", GCT_PROBLEM, "hpet", "tsc, or kvm-clock in a virtual machine",
		"echo tsc >/sys/devices/system/clocksource/clocksource0/current_clocksource", NULL,
		"microsecond"},
	{unsynced, "clock_sync", GCT_ADVICE, "none", "NTP or PTP", "apt-get install chrony", NULL,
		""},
	{powersave, "governor", GCT_ADVICE, "powersave", "performance",
		"cpupower frequency-set -g performance", NULL, ""},
	{no_aes, "tls", GCT_ADVICE, "TLS in user space, without AES", "with AES", NULL, NULL,
		"twenty times"},
	{seccomp, "io_uring", GCT_ADVICE, "no: Operation not permitted", "works", NULL, NULL,
		"seccomp"},
	{uring_off, "io_uring", GCT_ADVICE, "no: Operation not permitted", "works",
		"sysctl -w kernel.io_uring_disabled=0", "kernel.io_uring_disabled = 0",
		"kernel.io_uring_disabled forbids it"},
	{no_caps, "bpf", GCT_ADVICE, "not allowed, BTF, bpffs", "allowed, BTF, bpffs",
		"setcap cap_bpf,cap_net_admin+ep PROGRAM", NULL, "on its own"},
	{no_bpffs, "bpf", GCT_ADVICE, "allowed, BTF, no bpffs", "allowed, BTF, bpffs",
		"mount -t bpf bpf /sys/fs/bpf", NULL, ""},
	{no_btf, "bpf", GCT_ADVICE, "allowed, no BTF, bpffs", "allowed, BTF, bpffs", NULL, NULL,
		"CONFIG_DEBUG_INFO_BTF"},
	{no_netem, "modules", GCT_ADVICE, "sch_fq sch_tbf sch_htb tcp_bbr", "sch_netem too", NULL,
		NULL, "emulates"},
	{no_lab, "lab", GCT_ADVICE, "no", "on this kernel, or in a uml guest",
		"gridcoll lab doctor", NULL,
		"host backend: it needs root; uml backend: no linux.uml"},
	/* 10 Gbit/s / 12000 bit */
	{small_mtu, "mtu", GCT_ADVICE, "1500", "9000", "ip link set eth0 mtu 9000", NULL,
		"10.0 Gbit/s in packets of 1500 B are 833333 a second"},
	{short_queue, "txqueuelen", GCT_ADVICE, "100", "1000", "ip link set eth0 txqueuelen 1000",
		NULL, "drops"},
	{no_gro, "offloads", GCT_ADVICE, "tso gso", "tso gso gro", "ethtool -K eth0 gro on", NULL,
		"without gro"},
	{slow_nic, "speed", GCT_PROBLEM, "1.00 Gbit/s", "10.0 Gbit/s", NULL, NULL, "grid file"},
};

static void assert_text(const char *id, const char *is, const char *want)
{
	if (!is != !want || (is && strcmp(is, want)))
		fail_msg("%s: \"%s\", expected \"%s\"", id, is ? is : "(nothing)",
			want ? want : "(nothing)");
}

static void one_finding_each(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gct_facts f;
		struct gct_needs n;
		struct gct_report r;
		const struct gct_finding *g;

		good_facts(&f);
		cases[i].spoil(&f);
		grid_needs(&n, FAT_GRID, "k1");
		check(&r, &f, &n);
		g = &r.list[0]; /* the worst comes first */
		assert_string_equal(g->id, cases[i].id);
		assert_string_equal(gct_level_name(g->level), gct_level_name(cases[i].level));
		assert_int_equal(
			gct_report_count(&r, GCT_PROBLEM) + gct_report_count(&r, GCT_ADVICE), 1);
		assert_text(g->id, g->is, cases[i].is);
		assert_text(g->id, g->should, cases[i].should);
		assert_text(g->id, g->command, cases[i].command);
		assert_text(g->id, g->line, cases[i].line);
		if (!g->why || !strstr(g->why, cases[i].why))
			fail_msg("%s: %s", g->id, g->why);
		gct_report_free(&r);
		gct_needs_free(&n);
	}
}

/* Cubic loses against loss, bbr does not mind. */
static void lossy_links(void **state)
{
	static const char lossy[] =
		"[cluster a]\nhosts = a\nnic = 1Gbit\n[cluster b]\nhosts = b\nnic = 1Gbit\n"
		"[link a b]\nrate = 1Gbit\ndelay = 50ms\nloss = 0.1%\n";
	struct gct_facts f;
	struct gct_needs n;
	struct gct_report r;
	const struct gct_finding *g;

	(void)state;
	good_facts(&f);
	grid_needs(&n, lossy, "a");
	check(&r, &f, &n);
	/* sqrt(1.5 / 0.001) = 38.7 packets, 1.054 x (0.1 / 0.001)^0.75 = 33.3 for cubic: 4.49
	 * Mbit/s in each of four streams. */
	g = find(&r, "tcp_congestion_control");
	assert_int_equal(g->level, GCT_PROBLEM);
	assert_non_null(
		strstr(g->why, "at 0.1 % of packets on a > b a stream keeps up 4.49 Mbit/s, "
			       "4 of them 2 % of the rate"));
	assert_string_equal(
		g->command, "modprobe tcp_bbr && sysctl -w net.ipv4.tcp_congestion_control=bbr");
	gct_report_free(&r);
	f.module[GCT_BBR] = 0;
	check(&r, &f, &n);
	g = find(&r, "tcp_congestion_control");
	assert_null(g->command);
	assert_non_null(strstr(g->why, "tcp_bbr, which this one lacks"));
	gct_report_free(&r);
	strcpy(f.congestion, "bbr");
	check(&r, &f, &n);
	assert_int_equal(find(&r, "tcp_congestion_control")->level, GCT_FINE);
	gct_report_free(&r);
	gct_needs_free(&n);
}

/* What needs a grid says so; what is not known is no problem. */
static void without_a_grid(void **state)
{
	static const char *const ids[] = {"tcp_rmem", "tcp_wmem", "nofile"};
	struct gct_needs n = {.own_cluster = -1};
	struct gct_facts f;
	struct gct_report r;
	size_t i;

	(void)state;
	good_facts(&f);
	check(&r, &f, &n);
	assert_int_equal(gct_report_count(&r, GCT_NOT_KNOWN), 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(find(&r, ids[i])->level, GCT_NOT_KNOWN);
		assert_non_null(strstr(find(&r, ids[i])->why, "give --grid"));
	}
	gct_report_free(&r);
	gct_facts_read(&f, "/nowhere");
	check(&r, &f, &n);
	assert_int_equal(gct_report_count(&r, GCT_PROBLEM), 0);
	gct_report_free(&r);
}

static void needs_of_a_host(void **state)
{
	static const char three[] =
		"[cluster a]\nhosts = a1.example.org\nnic = 1Gbit\n[cluster b]\nhosts = b[1-4]\n"
		"[cluster c]\nhosts = c[1-9]\n[link a b]\nrate = 1Gbit\ndelay = 5ms\n"
		"[link a > c]\nrate = 100Mbit\ndelay = 50ms\nstreams = 7\n[link c > a]\nrate = "
		"1Gbit\ndelay = 50ms\n[link b c]\ndelay = 5ms\n";
	struct gct_needs n;

	(void)state;
	grid_needs(&n, three, "a1"); /* short for a1.example.org */
	assert_int_equal(n.own_cluster, 0);
	assert_int_equal(n.nlinks, 4);
	assert_int_equal(n.connections, 0 + 4 * 4 + 9 * 7);
	assert_string_equal(n.links[2].name, "a > c");
	assert_int_equal(n.links[2].flight.streams, 7);
	assert_int_equal(n.links[3].flight.streams, 7); /* both ways alike */
	assert_int_equal(n.links[2].flight.nbytes, 1250000);
	assert_int_equal(n.links[3].flight.nbytes, 12500000);
	assert_true(n.links[2].sends && !n.links[2].receives);
	gct_needs_free(&n);
	grid_needs(&n, three, "a1.example.com"); /* someone else */
	assert_int_equal(n.own_cluster, -1);
	assert_int_equal(n.nlinks, 6);
	assert_int_equal(n.connections, 4 * 4 + 9 * 7); /* the most of any: a1 */
	gct_needs_free(&n);
}

/* ---- how it is said */

static char *as_text(
	const struct gct_report *r, const struct gct_needs *n, const struct gct_facts *f, int lines)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	if (lines)
		gct_doctor_lines(r, "k1", out);
	else
		gct_doctor_text(r, n, f, out);
	fclose(out);
	return text;
}

static void spoil_all(struct gct_facts *f)
{
	size_t i;

	good_facts(f);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cases[i].spoil(f);
}

static void text_fits(void **state)
{
	struct gct_facts f;
	struct gct_needs n;
	struct gct_report r;
	char *text, *line, *save;

	(void)state;
	spoil_all(&f);
	grid_needs(&n, FAT_GRID, NULL);
	check(&r, &f, &n);
	text = as_text(&r, &n, &f, 0);
	assert_non_null(strstr(text, "k1, Linux 6.1.0, for my.grid (not one of its hosts: "));
	assert_non_null(strstr(text, "\n  kyoto > tokyo "));
	assert_non_null(strstr(text, "\nproblem  net.ipv4.tcp_sack: 0, should be 1\n"));
	assert_non_null(strstr(text, "\n         $ sysctl -w net.ipv4.tcp_sack=1\n"));
	assert_non_null(strstr(text, "\n  net.ipv4.tcp_sack = 1\n"));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strlen(line) > 79 && strncmp(line, "         $ ", 11))
			fail_msg("%s", line);
	free(text);
	text = as_text(&r, &n, &f, 1);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		assert_int_equal(strncmp(line, "k1: ", 4), 0);
	free(text);
	gct_report_free(&r);
	gct_needs_free(&n);
}

static void json_keys(void **state)
{
	struct gct_facts f;
	struct gct_needs n;
	struct gct_report r;
	struct gci_buf text = {0};
	json_error_t why;
	json_t *o, *g;

	(void)state;
	spoil_all(&f);
	grid_needs(&n, FAT_GRID, "k1");
	check(&r, &f, &n);
	assert_int_equal(gct_doctor_json(&r, &n, &f, &text), 0);
	o = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, &why);
	if (!o)
		fail_msg("%s", why.text);
	assert_string_equal(json_string_value(json_object_get(o, "host")), "k1");
	assert_string_equal(json_string_value(json_object_get(o, "grid")), "my.grid");
	assert_int_equal(json_integer_value(json_object_get(o, "problems")),
		gct_report_count(&r, GCT_PROBLEM));
	assert_int_equal(json_array_size(json_object_get(o, "findings")), r.n);
	g = json_array_get(json_object_get(o, "links"), 0);
	assert_int_equal(json_integer_value(json_object_get(g, "stream_bytes")), 6250000);
	g = json_array_get(json_object_get(o, "findings"), 0);
	assert_string_equal(json_string_value(json_object_get(g, "id")), r.list[0].id);
	assert_string_equal(json_string_value(json_object_get(g, "level")), "problem");
	assert_string_equal(json_string_value(json_object_get(g, "sysctl")), r.list[0].line);
	json_decref(o);
	gci_buf_free(&text);
	gct_report_free(&r);
	gct_needs_free(&n);
}

/* Every allocation fails once: an error, and nothing is left. */
static void out_of_memory(void **state)
{
	struct gct_facts f;
	struct gct_needs n;
	struct gct_report r;
	unsigned long i;
	int rc = -1;

	(void)state;
	spoil_all(&f);
	grid_needs(&n, FAT_GRID, "k1");
	for (i = 1; rc; i++) {
		r = (struct gct_report){0};
		gci_mem_fail_at(i);
		rc = gct_doctor_check(&f, &n, &r);
		assert_int_equal(rc, gci_mem_failed() ? GCOLL_ERR_NOMEM : 0);
		gci_mem_fail_at(0);
		gct_report_free(&r);
	}
	assert_in_range(i, 50, 1000);
	gct_needs_free(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_change),
		cmocka_unit_test(one_finding_each),
		cmocka_unit_test(lossy_links),
		cmocka_unit_test(without_a_grid),
		cmocka_unit_test(needs_of_a_host),
		cmocka_unit_test(text_fits),
		cmocka_unit_test(json_keys),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
