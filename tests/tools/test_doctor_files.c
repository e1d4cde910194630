/* SPDX-License-Identifier: MIT
 * Facts from files, and the command that is given such files. */
#include "tests/tools/doctor_facts.h"
#include "tests/tools/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define GRIDCOLL getenv("GRIDCOLL")

/* A file below the scratch directory, with the directories above it. */
static void put(const char *path, const char *text)
{
	char full[512];
	const char *file = in_scratch("root%s", path);
	char *at;

	snprintf(full, sizeof(full), "%s", file);
	for (at = strchr(full + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(full, 0755);
		*at = '/';
	}
	make_text(full, text);
}

static const struct {
	const char *path, *text;
} files[] = {
	{"/proc/sys/kernel/hostname", "k1\n"},
	{"/proc/sys/kernel/osrelease", "6.1.0-9-amd64\n"},
	{"/proc/sys/kernel/io_uring_disabled", "2\n"},
	{"/proc/sys/kernel/unprivileged_bpf_disabled", "1\n"},
	{"/proc/sys/net/core/rmem_max", "212992\n"},
	{"/proc/sys/net/core/default_qdisc", "fq_codel\n"},
	{"/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"},
	{"/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"},
	{"/proc/sys/net/ipv4/tcp_sack", "1\n"},
	{"/proc/sys/net/ipv4/tcp_slow_start_after_idle", "1\n"},
	{"/proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"},
	{"/proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic\n"},
	{"/proc/self/limits",
		"Limit                     Soft Limit           Hard Limit           Units     \n"
		"Max cpu time              unlimited            unlimited            seconds   \n"
		"Max open files            1024                 unlimited            files     \n"},
	{"/proc/self/status", "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t0000008000001000\n"},
	{"/proc/mounts", "proc /proc proc rw 0 0\nbpf /sys/fs/bpf bpf rw,nosuid,mode=700 0 0\n"},
	{"/sys/kernel/btf/vmlinux", ""},
	{"/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"},
	{"/sys/devices/system/node/node0/cpulist", "0-3\n"},
	{"/sys/devices/system/node/node1/cpulist", "4-7\n"},
	{"/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse2 pclmulqdq ssse3 aes avx\n"},
	{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"},
	{"/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"},
	{"/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n"},
	{"/sys/class/net/lo/type", "772\n"},
	{"/sys/class/net/lo/operstate", "unknown\n"},
	{"/sys/class/net/eth1/type", "1\n"},
	{"/sys/class/net/eth1/operstate", "up\n"},
	{"/sys/class/net/eth1/mtu", "1500\n"},
	{"/sys/class/net/eth1/tx_queue_len", "1000\n"},
	{"/sys/class/net/eth1/speed", "10000\n"},
	{"/sys/class/net/eth1/device/numa_node", "1\n"},
	{"/sys/class/net/eth0/type", "1\n"},
	{"/sys/class/net/eth0/operstate", "up\n"},
	{"/sys/class/net/eth0/mtu", "9000\n"},
	{"/sys/class/net/eth0/speed", "-1\n"},
	{"/sys/class/net/eth0/device/numa_node", "-1\n"},
	{"/sys/class/net/eth2/type", "1\n"},
	{"/sys/class/net/eth2/operstate", "down\n"},
	{"/sys/class/net/br0/type", "1\n"},
	{"/sys/class/net/br0/operstate", "up\n"},
	{"/sys/module/sch_fq/refcnt", "0\n"},
	{"/lib/modules/6.1.0-9-amd64/modules.builtin", "kernel/net/sched/sch_tbf.ko\n"},
	{"/lib/modules/6.1.0-9-amd64/modules.dep",
		"kernel/net/sched/sch_netem.ko.xz:\nkernel/net/sched/sch_cake.ko.xz: "
		"kernel/net/sched/sch_htb.ko.xz\n"},
};

static void put_all(void)
{
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++)
		put(files[i].path, files[i].text);
}

static void facts(void **state)
{
	struct gct_facts f;

	(void)state;
	put_all();
	gct_facts_read(&f, in_scratch("root"));
	assert_string_equal(f.host, "k1");
	assert_string_equal(f.kernel, "6.1.0-9-amd64");
	assert_int_equal(f.sysctl[GCT_URING_DISABLED], 2);
	assert_int_equal(f.sysctl[GCT_RMEM_MAX], 212992);
	assert_true(f.sysctl[GCT_WMEM_MAX] == GCT_UNKNOWN);
	assert_int_equal(f.tcp_rmem[2], 6291456);
	assert_int_equal(f.tcp_wmem[0], 4096);
	assert_int_equal(f.tcp_wmem[2], 4194304);
	assert_string_equal(f.congestion, "cubic");
	assert_string_equal(f.congestions, "reno cubic");
	assert_string_equal(f.qdisc, "fq_codel");
	assert_int_equal(f.nofile_soft, 1024);
	assert_true(f.nofile_hard == GCT_UNLIMITED);
	assert_true(f.capabilities == (1ull << 39 | 1ull << 12));
	assert_true(f.bpffs && f.btf);
	assert_int_equal(f.nodes, 2);
	assert_int_equal(f.aes, 1);
	assert_string_equal(f.governor, "powersave");
	assert_string_equal(f.clock, "tsc");
	assert_int_equal(f.uring, -1);
	assert_int_equal(f.tls_kernel, -1);
}

static void network_cards(void **state)
{
	struct gct_facts f;

	(void)state;
	put_all();
	gct_facts_read(&f, in_scratch("root"));
	assert_int_equal(f.nnics, 2); /* no bridge, nothing without a cable */
	assert_string_equal(f.nics[0].name, "eth0");
	assert_string_equal(f.nics[1].name, "eth1");
	assert_true(f.nics[0].speed_bps == GCT_UNKNOWN);
	assert_int_equal(f.nics[0].mtu, 9000);
	assert_true(f.nics[0].txqueuelen == GCT_UNKNOWN);
	assert_int_equal(f.nics[0].numa_node, -1);
	assert_true(f.nics[1].speed_bps == 10000000000);
	assert_int_equal(f.nics[1].numa_node, 1);
}

static void kernel_modules(void **state)
{
	struct gct_facts f;

	(void)state;
	put_all();
	gct_facts_read(&f, in_scratch("root"));
	assert_int_equal(f.module[GCT_FQ], 1);    /* loaded */
	assert_int_equal(f.module[GCT_TBF], 1);   /* built in */
	assert_int_equal(f.module[GCT_NETEM], 1); /* to be loaded */
	assert_int_equal(f.module[GCT_HTB], 0);   /* named, but as what another one needs */
	assert_int_equal(f.module[GCT_BBR], 0);
	remove(in_scratch("root/lib/modules/6.1.0-9-amd64/modules.dep"));
	remove(in_scratch("root/lib/modules/6.1.0-9-amd64/modules.builtin"));
	gct_facts_read(&f, in_scratch("root"));
	assert_int_equal(f.module[GCT_NETEM], -1);
}

/* Whatever the files hold. */
static void nonsense(void **state)
{
	static const char *const texts[] = {"", "\n", "-1\n", "99999999999999999999999 x\n",
		"\xff\xfe\x01", "Max open files", "1 2", "a b c d e f g h i j k l m n o p q r s t"};
	struct gct_facts f;
	struct gct_needs n;
	char longest[3000];
	size_t i, k;

	(void)state;
	grid_needs(&n, FAT_GRID, "k1");
	memset(longest, '7', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (k = 0; k <= sizeof(texts) / sizeof(*texts); k++) {
		struct gct_report r = {0};

		for (i = 0; i < sizeof(files) / sizeof(*files); i++)
			put(files[i].path, k < sizeof(texts) / sizeof(*texts) ? texts[k] : longest);
		gct_facts_read(&f, in_scratch("root"));
		assert_int_equal(gct_doctor_check(&f, &n, &r), 0);
		assert_in_range(r.n, 15, 100);
		gct_report_free(&r);
	}
	gct_needs_free(&n);
}

static int doctor(const char *args, char *out, size_t size)
{
	char command[1000];
	FILE *f;
	size_t n;

	snprintf(command, sizeof(command), "%s doctor %s 2>&1", GRIDCOLL, args);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(out, 1, size - 1, f);
	out[n] = '\0';
	return WEXITSTATUS(pclose(f));
}

static void command(void **state)
{
	char args[600], out[20000];

	(void)state;
	put_all();
	make_text(in_scratch("my.grid"), FAT_GRID);
	snprintf(args, sizeof(args), "--root %s -g %s", in_scratch("root"), in_scratch("my.grid"));
	assert_int_equal(doctor(args, out, sizeof(out)), 1);
	assert_non_null(strstr(out, "problem  net.ipv4.tcp_rmem: up to 6.29 MB, should be up to "));
	assert_null(strstr(out, "all links count"));
	snprintf(args, sizeof(args), "--root %s -l", in_scratch("root"));
	assert_int_equal(doctor(args, out, sizeof(out)), 0);
	assert_non_null(strstr(out, "\nk1: 0 problems, "));
	snprintf(args, sizeof(args), "--root %s -g %s --host x1", in_scratch("root"),
		in_scratch("my.grid"));
	assert_int_equal(doctor(args, out, sizeof(out)), 2);
	assert_string_equal(out, "gridcoll doctor: --host \"x1\", expected a host of the grid\n");
	snprintf(args, sizeof(args), "--root %s -g %s -s 64", in_scratch("root"),
		in_scratch("my.grid"));
	assert_int_equal(doctor(args, out, sizeof(out)), 1);
	assert_non_null(strstr(out, "  kyoto > tokyo "));
	assert_non_null(strstr(out, " 64    391 kB\n")); /* so much each, and no more problem */
	assert_null(strstr(out, "problem  net.ipv4.tcp_rmem"));
	snprintf(args, sizeof(args), "--root %s -g %s -p /none", in_scratch("root"),
		in_scratch("my.grid"));
	assert_int_equal(doctor(args, out, sizeof(out)), 2);
	assert_string_equal(out, "gridcoll doctor: cannot read /none: No such file or directory\n");
	assert_int_equal(doctor("-s 65", out, sizeof(out)), 2);
	assert_int_equal(doctor("--grid /none", out, sizeof(out)), 2);
	assert_non_null(strstr(out, "gridcoll doctor: cannot read /none: No such file"));
	assert_int_equal(doctor("--root /nonexistent", out, sizeof(out)), 2);
	assert_string_equal(out, "gridcoll doctor: --root \"/nonexistent\", "
				 "expected a directory with proc or sys in it\n");
	make_dir(in_scratch("bare"));
	snprintf(args, sizeof(args), "--json --root %s", in_scratch("bare"));
	assert_int_equal(doctor(args, out, sizeof(out)), 2);
	assert_int_equal(doctor("now", out, sizeof(out)), 2);
	assert_int_equal(doctor("--json", out, sizeof(out)) & ~1, 0); /* this machine */
	assert_non_null(strstr(out, "\"id\": \"io_uring\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(facts, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(network_cards, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(kernel_modules, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(nonsense, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(command, scratch_make, scratch_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
