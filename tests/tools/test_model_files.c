/* SPDX-License-Identifier: MIT */
#include "tests/tools/files.h"

#include "base/buf.h"
#include "base/mem.h"
#include "collectives/models/params_json.h"
#include "tools/lib/model_files.h"

#include <stdio.h>
#include <string.h>

static const char grid[] = "[cluster a]\nhosts=a[1-2]\n[cluster b]\nhosts=b\n[link a b]\n"
			   "rate=1Gbit\ndelay=1ms\n";

/* A file of a grid of which one latency was measured. */
static void write_params(const char *path, const struct gci_grid *g)
{
	struct gci_buf text = {0};
	struct gci_params p;

	assert_int_equal(gci_params_init(&p, g, "2026-11-21T16:29:00Z"), 0);
	p.links[p.nclusters - 1].latency_ns = 1000; /* from the first to the last */
	gci_params_print(&p, &text);
	make_text(path, gci_buf_cstr(&text));
	gci_params_free(&p);
	gci_buf_free(&text);
}

static void in_the_times_of_the_grid(void **state)
{
	const char *grid_path = in_scratch("my.grid"), *path = in_scratch("my.params");
	struct gci_error e = {0};
	struct gci_params p;
	struct gci_grid g;

	(void)state;
	make_text(grid_path, grid);
	assert_int_equal(gct_read_grid(grid_path, &g, &e), 0);
	assert_int_equal(g.nhosts, 3);
	write_params(path, &g);
	assert_int_equal(gct_read_params(path, &g, &p, &e), 0);
	assert_int_equal(gci_params_link(&p, 0, 1)->latency_ns, 1000);
	gci_params_free(&p);
	gci_grid_dilate(&g, 20);
	assert_int_equal(gct_read_params(path, &g, &p, &e), 0);
	assert_int_equal(gci_params_link(&p, 0, 1)->latency_ns, 20000);
	gci_params_free(&p);
	gci_grid_free(&g);
	assert_int_equal(e.status, 0);
}

static void refused_file(
	int rc, struct gci_error *e, int status, const char *path, const char *text)
{
	char want[512];

	snprintf(want, sizeof(want), "%s%s%s", status == GCOLL_ERR_SYS ? "cannot read " : "", path,
		text);
	assert_int_equal(rc, status);
	assert_string_equal(e->text, want);
	gci_error_clear(e);
}

static void refused(void **state)
{
	const char *path = in_scratch("a.params"), *none = in_scratch("none");
	const char *dir = in_scratch("dir");
	struct gci_error e = {0};
	struct gci_params p;
	struct gci_grid g, other;

	(void)state;
	assert_int_equal(gci_grid_parse(&g, grid, sizeof(grid) - 1, "g", &e), 0);
	refused_file(gct_read_params(none, &g, &p, &e), &e, GCOLL_ERR_SYS, none,
		": No such file or directory");
	make_dir(dir);
	refused_file(gct_read_params(dir, &g, &p, &e), &e, GCOLL_ERR_SYS, dir, ": Is a directory");
	make_text(path, "");
	refused_file(gct_read_params(path, &g, &p, &e), &e, GCOLL_ERR_PARSE, path,
		":1: '[' or '{' expected near end of file, expected JSON");
	refused_file(gct_read_grid(path, &other, &e), &e, GCOLL_ERR_PARSE, path,
		":1: no cluster, expected at least one [cluster NAME]");
	assert_int_equal(gci_grid_parse(&other, "[cluster a]\nhosts=x\n", 20, "g", &e), 0);
	write_params(path, &other);
	assert_int_equal(gct_read_params(path, &g, &p, &e), GCOLL_ERR_INVAL);
	assert_non_null(strstr(e.text, "measured on another grid"));
	gci_grid_free(&g);
	gci_grid_free(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			in_the_times_of_the_grid, scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(refused, scratch_make, scratch_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
