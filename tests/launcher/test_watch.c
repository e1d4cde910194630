/* SPDX-License-Identifier: MIT
 * The file of --stats: what is not in it is said, and the job's end tells. */
#include "tests/test.h"

#include "base/clock.h"
#include "launcher/watch.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char grid_text[] = "[cluster kyoto]\nhosts = k1\n"
				"[cluster tokyo]\nhosts = t1\n"
				"[link kyoto tokyo]\nrate = 1Gbit\ndelay = 10ms\n";

static char path[] = "/tmp/gridcoll-watch-XXXXXX";
static uv_loop_t loop;
static struct gci_placement plan;
static struct gci_watch watch;

static void on_drained(struct gci_sink *s)
{
	(void)s;
}

/* A job of two clusters, of whose traffic something is known. */
static int begin(void **state)
{
	static uint32_t hosts[] = {0, 1};
	static const char *names[] = {"k1", "t1"};
	static char none[] = "x", *argv[] = {none, NULL};
	struct gci_options o = {.stats = path, .argv = argv};
	struct gci_ctl_report m = {.cluster = 1, .connections = 1};
	struct gci_rdv_reports reports;
	struct gci_error e = {0};

	(void)state;
	assert_int_equal(
		gci_grid_parse(&plan.grid, grid_text, strlen(grid_text), "test.grid", &e), 0);
	plan.size = 2;
	plan.hosts = hosts;
	plan.names = names;
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_int_equal(gci_watch_open(&watch, &o, &plan, &loop, on_drained, &e), 0);
	m.end_bin = gci_wall_ns() / GCI_BIN_NS;
	m.sum.sent_nbytes = 1000;
	reports = gci_watch_reports(&watch);
	reports.report(reports.user, 0, &m);
	return 0;
}

static int end(void **state)
{
	(void)state;
	uv_close((uv_handle_t *)&watch.timer, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	close(watch.file.fd);
	gci_output_free(&watch.file.o);
	gci_buf_free(&watch.file.writing);
	gci_traffic_free(watch.traffic);
	gci_grid_free(&plan.grid);
	return 0;
}

/* How many lines the file has in the end. */
static int lines(void)
{
	int c, n = 0;
	FILE *f;

	gci_watch_end(&watch);
	uv_run(&loop, UV_RUN_DEFAULT);
	f = fopen(path, "r");
	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void all_is_there(void **state)
{
	(void)state;
	assert_in_range(lines(), 1, 10);
	assert_false(gci_watch_failed(&watch));
}

/* A disk that is so slow that what waits for it has no end. */
static void too_slow(void **state)
{
	static char waiting[1 << 20];
	int i;

	(void)state;
	for (i = 0; i < 16; i++)
		gci_buf_put(&watch.file.o.out, waiting, sizeof(waiting));
	assert_int_equal(lines(), 0);
	assert_true(gci_watch_failed(&watch));
}

static void *no_memory(size_t n)
{
	(void)n;
	return NULL;
}

static void out_of_memory(void **state)
{
	(void)state;
	json_set_alloc_funcs(no_memory, free);
	assert_int_equal(lines(), 0);
	json_set_alloc_funcs(malloc, free);
	assert_true(gci_watch_failed(&watch));
}

/* Reports had no room: their lines have too little. */
static void reports_are_lost(void **state)
{
	(void)state;
	watch.traffic->failed = 1;
	assert_in_range(lines(), 1, 10);
	assert_true(gci_watch_failed(&watch));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_is_there, begin, end),
		cmocka_unit_test_setup_teardown(too_slow, begin, end),
		cmocka_unit_test_setup_teardown(out_of_memory, begin, end),
		cmocka_unit_test_setup_teardown(reports_are_lost, begin, end),
	};
	int fd = mkstemp(path), failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
