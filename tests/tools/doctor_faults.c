/* SPDX-License-Identifier: MIT */
#include "tests/tools/doctor_faults.h"

#include <errno.h>

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
static void no_liburing(struct gct_facts *f)
{
	f->uring = ENOSYS;
	strcpy(f->uring_why, "gridcoll was built without liburing");
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
	strcpy(f->lab_tap, "no /dev/net/tun");
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

const struct doctor_fault doctor_faults[] = {
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
		"10.0 Gbit/s x 20.0 ms = 25.0 MB in flight on kyoto > tokyo; "
		"4 streams need 6.25 MB each; this allows 4.19 MB: 6.71 Gbit/s in all"},
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
	{no_liburing, "io_uring", GCT_ADVICE, "no: Function not implemented", "works", NULL, NULL,
		"built without liburing; gridcoll moves data without it"},
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
		"host backend: it needs root; tap backend: no /dev/net/tun; uml backend: no "
		"linux.uml"},
	/* 10 Gbit/s / 12000 bit */
	{small_mtu, "mtu", GCT_ADVICE, "1500", "9000", "ip link set eth0 mtu 9000", NULL,
		"10.0 Gbit/s in packets of 1500 B are 833333 a second"},
	{short_queue, "txqueuelen", GCT_ADVICE, "100", "1000", "ip link set eth0 txqueuelen 1000",
		NULL, "drops"},
	{no_gro, "offloads", GCT_ADVICE, "tso gso", "tso gso gro", "ethtool -K eth0 gro on", NULL,
		"without gro"},
	{slow_nic, "speed", GCT_PROBLEM, "1.00 Gbit/s", "10.0 Gbit/s", NULL, NULL, "grid file"},
};

const size_t ndoctor_faults = sizeof(doctor_faults) / sizeof(*doctor_faults);
