/* SPDX-License-Identifier: MIT */

#include "tests/test.h"

#include "netem/labfile.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64], path[96];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/gridcoll-labfile-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/lab.json", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static void write_lab(void)
{
	static const char text[] = "[cluster a]\nhosts=h[1-2]\nnic=1Gbit\n[cluster b]\nhosts=x\n"
				   "[link a b]\ndelay=10ms\nrate=1Gbit\n";
	struct gci_lab_plan plan;
	struct gci_error e = {0};
	struct gci_grid g;

	assert_int_equal(gci_grid_parse(&g, text, strlen(text), "test", &e), 0);
	gci_grid_dilate(&g, 20);
	assert_int_equal(gci_lab_plan_make(&plan, &g, 1, (struct gci_lab_how){0, 1, 1}, &e), 0);
	assert_int_equal(gci_labfile_write(path, &plan, &g, 20, "uml", &e), 0);
	gci_lab_plan_free(&plan);
	gci_grid_free(&g);
}

/* The form that gridcoll-run and the benchmarks read. */
static void programs_find_what_they_need(void **state)
{
	json_t *root, *host, *link;
	struct gci_error e = {0};
	const char *grid;
	struct gci_grid g;

	(void)state;
	write_lab();
	root = json_load_file(path, 0, NULL);
	assert_non_null(root);
	assert_int_equal(json_integer_value(json_object_get(root, "version")), 1);
	assert_int_equal(json_integer_value(json_object_get(root, "dilation")), 20);
	assert_string_equal(json_string_value(json_object_get(root, "backend")), "uml");
	assert_int_equal(json_array_size(json_object_get(root, "hosts")), 3);
	host = json_array_get(json_object_get(root, "hosts"), 2);
	assert_string_equal(json_string_value(json_object_get(host, "name")), "x");
	assert_string_equal(json_string_value(json_object_get(host, "netns")), "gcl-x");
	assert_string_equal(json_string_value(json_object_get(host, "addr")), "10.2.0.1");
	link = json_array_get(json_object_get(root, "links"), 1);
	assert_string_equal(json_string_value(json_object_get(link, "from")), "b");
	assert_string_equal(json_string_value(json_object_get(link, "to")), "a");
	assert_string_equal(json_string_value(json_object_get(link, "netns")), "gcl-wan");
	assert_string_equal(json_string_value(json_object_get(link, "dev")), "wan-1-0");
	grid = json_string_value(json_object_get(root, "grid"));
	assert_int_equal(gci_grid_parse(&g, grid, strlen(grid), "lab.json", &e), 0);
	assert_true(g.clusters[0].nic_bps == 50000000);
	assert_true(g.links[0].delay_ns == 200000000);
	gci_grid_free(&g);
	json_decref(root);
}

static void ports_are_found(void **state)
{
	struct gci_error e = {0};
	struct gci_lab_port port;

	(void)state;
	write_lab();
	assert_int_equal(gci_labfile_port(path, "h2", &port, &e), 0);
	assert_string_equal(port.netns, "gcl-sw-a");
	assert_string_equal(port.dev, "p1");
	assert_int_equal(gci_labfile_port(path, "h3", &port, &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "host h3 is not in the lab"));
}

static void refused(const char *text, const char *why)
{
	struct gci_error e = {0};
	struct gci_lab_port port;
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_true(gci_labfile_port(path, "h", &port, &e) < 0);
	if (!strstr(e.text, why))
		fail_msg("\"%s\" does not say \"%s\"", e.text, why);
}

static void damaged_files_are_refused(void **state)
{
	struct gci_error e = {0};
	struct gci_lab_port port;

	(void)state;
	refused("", "expected a lab.json");
	refused("{\n\"hosts\": [", "lab.json:2:");
	refused("[]", "not in the lab");
	refused("{\"hosts\": 1}", "not in the lab");
	refused("{\"hosts\": [1, {}, {\"name\": 7}]}", "not in the lab");
	refused("{\"hosts\": [{\"name\": \"h\"}]}", "no port of host h");
	refused("{\"hosts\": [{\"name\": \"h\", \"port_netns\": \"n\", "
		"\"port\": \"a-name-longer-than-a-device-may-have\"}]}",
		"no port of host h");
	unlink(path);
	assert_int_equal(gci_labfile_port(path, "h", &port, &e), GCOLL_ERR_SYS);
	assert_non_null(strstr(e.text, "No such file"));
	write_lab();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_find_what_they_need),
		cmocka_unit_test(ports_are_found),
		cmocka_unit_test(damaged_files_are_refused),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
