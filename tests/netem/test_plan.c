/* SPDX-License-Identifier: MIT */

#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "netem/plan.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gci_lab_how NETEM = {0, 1, 1};

static void read_file(const char *dir, const char *name, struct gci_buf *out)
{
	char path[4096];
	FILE *f;
	int c;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("cannot read %s", path);
	while ((c = getc(f)) != EOF)
		gci_buf_put_u8(out, (uint8_t)c);
	fclose(f);
}

static void read_golden(const char *name, struct gci_buf *out)
{
	read_file(getenv("GRIDCOLL_TEST_GOLDEN"), name, out);
}

static void parse(struct gci_grid *g, const char *text)
{
	struct gci_error e = {0};

	if (gci_grid_parse(g, text, strlen(text), "test", &e))
		fail_msg("%s", e.text);
}

/* Names the first line that differs: whole plans are long. */
static void compare(const char *name, const char *got, const char *want)
{
	int line = 1;
	size_t i;

	for (i = 0; got[i] && got[i] == want[i]; i++)
		line += got[i] == '\n';
	if (got[i] == want[i])
		return;
	while (i && got[i - 1] != '\n')
		i--;
	fail_msg("%s:%d:\nexpected %.*s\n     got %.*s", name, line, (int)strcspn(want + i, "\n"),
		want + i, (int)strcspn(got + i, "\n"), got + i);
}

static void check_golden(
	const char *grid, uint32_t dilation, struct gci_lab_how how, const char *name)
{
	struct gci_buf text = {0}, want = {0}, got = {0};
	struct gci_lab_plan plan;
	struct gci_error e = {0};
	struct gci_grid g;
	char file[64];

	snprintf(file, sizeof(file), "%s.grid", grid);
	read_golden(file, &text);
	snprintf(file, sizeof(file), "%s.plan", name);
	read_golden(file, &want);
	parse(&g, gci_buf_cstr(&text));
	gci_grid_dilate(&g, dilation);
	if (gci_lab_plan_make(&plan, &g, dilation, how, &e))
		fail_msg("%s", e.text);
	gci_lab_plan_print(&plan, &got);
	compare(file, gci_buf_cstr(&got), gci_buf_cstr(&want));
	gci_lab_plan_free(&plan);
	gci_grid_free(&g);
	gci_buf_free(&text);
	gci_buf_free(&want);
	gci_buf_free(&got);
}

static void one_cluster(void **state)
{
	(void)state;
	check_golden("one", 1, NETEM, "one");
}

static void two_clusters(void **state)
{
	(void)state;
	check_golden("two", 1, NETEM, "two");
}

/* Packets and bursts stay those of the undilated rate. */
static void two_clusters_dilated(void **state)
{
	(void)state;
	check_golden("two", 20, NETEM, "two-dilated");
}

/* Links are TAP devices, and the emulator's to shape. */
static void two_clusters_by_taps(void **state)
{
	(void)state;
	check_golden("two", 1, (struct gci_lab_how){1, 0, 0}, "two-taps");
}

/* Each direction with its own rate, delay, loss and limit per connection. */
static void three_unequal_clusters(void **state)
{
	(void)state;
	check_golden("three", 1, NETEM, "three");
}

/* The grid files that come with the lab. */
static void shipped_grids(void **state)
{
	const char *path = getenv("GRIDCOLL_GRIDS");
	DIR *dir = opendir(path);
	struct gci_lab_plan plan;
	struct gci_error e = {0};
	struct gci_grid g;
	struct dirent *file;
	int n = 0;

	(void)state;
	assert_non_null(dir);
	while ((file = readdir(dir))) {
		struct gci_buf text = {0};

		if (!strstr(file->d_name, ".grid"))
			continue;
		read_file(path, file->d_name, &text);
		parse(&g, gci_buf_cstr(&text));
		if (!gci_grid_is_simple(&g)) /* the kernel's netem has no shared wires */
			assert_int_equal(
				gci_lab_plan_make(&plan, &g, 1, NETEM, NULL), GCOLL_ERR_INVAL);
		if (gci_lab_plan_make(&plan, &g, 1,
			    gci_grid_is_simple(&g) ? NETEM : (struct gci_lab_how){1, 0, 0}, &e))
			fail_msg("%s: %s", file->d_name, e.text);
		assert_int_equal(plan.nhosts, g.nhosts);
		gci_lab_plan_free(&plan);
		gci_grid_free(&g);
		gci_buf_free(&text);
		n++;
	}
	closedir(dir);
	assert_true(n > 0);
}

static void hosts_and_wires(void **state)
{
	struct gci_lab_plan plan;
	struct gci_error e = {0};
	struct gci_grid g;

	(void)state;
	parse(&g, "[cluster a]\nhosts=h[1-300]\n[cluster b]\nhosts=x\n[link a b]\ndelay=1ms\n");
	assert_int_equal(gci_lab_plan_make(&plan, &g, 1, NETEM, &e), 0);
	assert_int_equal(plan.nhosts, 301);
	assert_string_equal(plan.hosts[0].addr, "10.1.0.1");
	assert_string_equal(plan.hosts[254].addr, "10.1.0.255");
	assert_string_equal(plan.hosts[255].addr, "10.1.1.0");
	assert_string_equal(plan.hosts[299].netns, "gcl-h300");
	assert_string_equal(plan.hosts[300].addr, "10.2.0.1");
	assert_string_equal(plan.hosts[300].port_netns, "gcl-sw-b");
	assert_int_equal(plan.nwires, 2);
	assert_string_equal(plan.wires[1].dev, "wan-1-0");
	assert_int_equal(plan.nnetns, 301 + 2 + 1);
	gci_lab_plan_free(&plan);
	gci_grid_free(&g);
}

static void refused(const char *text, const char *why)
{
	struct gci_lab_plan plan;
	struct gci_error e = {0};
	struct gci_grid g;

	parse(&g, text);
	assert_int_equal(gci_lab_plan_make(&plan, &g, 1, NETEM, &e), GCOLL_ERR_INVAL);
	if (!strstr(e.text, why))
		fail_msg("\"%s\" does not say \"%s\"", e.text, why);
	assert_null(plan.steps);
	gci_grid_free(&g);
}

static void what_the_lab_cannot_hold(void **state)
{
	(void)state;
	refused("[cluster a]\nhosts=wan\n[cluster b]\nhosts=x\n[link a b]\ndelay=1ms\n",
		"host name \"wan\"");
	refused("[cluster a]\nhosts=sw-a\n", "host name \"sw-a\"");
	refused("[cluster a]\nhosts=h[1-1001]\n",
		"cluster a has 1001 hosts, expected at most 1000");
	refused("[cluster a]\nhosts=h\n[cluster b]\nhosts=x\n[link a b]\ndelay=201s\n",
		"link a > b: delay longer");
	refused("[cluster a]\nhosts=h\nlan_delay=201s\n", "cluster a: lan_delay longer");
	refused("[cluster a]\nhosts=h\nnic=999bit\n", "host h: a rate below 1 kbit/s");
	refused("[cluster a]\nhosts=h\n[cluster b]\nhosts=x\n[link a b]\nrate=1bit\n",
		"link a > b: a rate below 1 kbit/s");
	refused("[cluster a]\nhosts=h\n[cluster b]\nhosts=x\n[link a b]\nflow_rate=7bit\n",
		"link a > b: a rate below 1 kbit/s");
}

static uint32_t dilation_late(const char *text, uint64_t late_ns)
{
	struct gci_grid g;
	uint32_t k;

	parse(&g, text);
	k = gci_lab_choose_dilation(&g, GCI_LAB_GUEST_BPS, late_ns);
	gci_grid_free(&g);
	return k;
}

static uint32_t dilation(const char *text)
{
	return dilation_late(text, 0);
}

static void dilation_fits_the_cpu(void **state)
{
	(void)state;
	assert_int_equal(dilation("[cluster a]\nhosts=h[1-16]\nnic=1Gbit\n"), 16);
	assert_int_equal(dilation("[cluster a]\nhosts=h[1-8]\nnic=1100Mbit\n"), 9);
	assert_int_equal(dilation("[cluster a]\nhosts=h\nnic=1Gbit\n"), 1);
	assert_int_equal(dilation("[cluster a]\nhosts=h[1-9]\n"), 1);
	/* What goes between clusters counts twice: no more than hosts or links can send. */
	assert_int_equal(
		dilation("[cluster a]\nhosts=h[1-8]\nnic=1Gbit\n[cluster b]\nhosts=x[1-8]\n"
			 "nic=1Gbit\n[link a b]\nrate=10Gbit\ndelay=10ms\n"),
		32);
	assert_int_equal(
		dilation("[cluster a]\nhosts=h[1-8]\nnic=1Gbit\n[cluster b]\nhosts=x[1-8]\n"
			 "nic=1Gbit\n[link a b]\nrate=2Gbit\ndelay=10ms\n"),
		20);
}

/* A lab's links that are late are so by a small part of their delays, if it is slow enough. */
static void dilation_hides_what_is_late(void **state)
{
	static const char two[] = "[cluster a]\nhosts=h\nnic=1Mbit\n[cluster b]\nhosts=x\n"
				  "[cluster c]\nhosts=y\n[link a b]\ndelay=10ms\n"
				  "[link a c]\ndelay=20ms\n[link b c]\n";

	(void)state;
	assert_int_equal(dilation_late(two, 0), 1);
	assert_int_equal(dilation_late(two, 1000000), 1);
	assert_int_equal(dilation_late(two, 1100000), 2);
	assert_int_equal(dilation_late(two, 5500000), 6);
	assert_int_equal(dilation_late(two, 500000000), 20);
	assert_int_equal(dilation_late("[cluster a]\nhosts=h[1-2]\nnic=1Mbit\n", 500000000), 1);
}

/* TCP's first time-out is a second and does not dilate: 10 ms allow 45, whatever the CPU wants. */
static void dilation_keeps_round_trips_short(void **state)
{
	(void)state;
	assert_int_equal(dilation("[cluster a]\nhosts=h[1-99]\nnic=10Gbit\n[cluster b]\nhosts=x\n"
				  "[link a b]\ndelay=10ms\n"),
		45);
	assert_int_equal(dilation("[cluster a]\nhosts=h[1-99]\nnic=10Gbit\n[cluster b]\nhosts=x\n"
				  "[link a b]\ndelay=2s\n"),
		1);
}

static void lack_of_memory_anywhere(void **state)
{
	struct gci_lab_plan plan;
	struct gci_grid g;
	unsigned long n = 0;
	int rc;

	(void)state;
	parse(&g, "[cluster a]\nhosts=h[1-2]\nnic=1Gbit\n[cluster b]\nhosts=x\n"
		  "[link a b]\ndelay=1ms\nrate=1Gbit\n");
	do {
		struct gci_error e = {0};

		gci_mem_fail_at(++n);
		rc = gci_lab_plan_make(&plan, &g, 1, NETEM, &e);
		assert_int_equal(rc, gci_mem_failed() ? GCOLL_ERR_NOMEM : 0);
		gci_lab_plan_free(&plan);
	} while (rc);
	gci_mem_fail_at(0);
	assert_true(n > 20);
	gci_grid_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_cluster),
		cmocka_unit_test(two_clusters),
		cmocka_unit_test(two_clusters_dilated),
		cmocka_unit_test(two_clusters_by_taps),
		cmocka_unit_test(three_unequal_clusters),
		cmocka_unit_test(shipped_grids),
		cmocka_unit_test(hosts_and_wires),
		cmocka_unit_test(what_the_lab_cannot_hold),
		cmocka_unit_test(dilation_fits_the_cpu),
		cmocka_unit_test(dilation_hides_what_is_late),
		cmocka_unit_test(dilation_keeps_round_trips_short),
		cmocka_unit_test(lack_of_memory_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
