/* SPDX-License-Identifier: MIT
 * gridcoll probe as its users run it: the file it writes is whole, of this grid, and holds every
 * link of it. */
#include "tests/tools/jobs.h"

#include "base/mem.h"
#include "collectives/models/params_json.h"
#include "tools/probe/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS 4

static const char grid_text[] = "[cluster a]\nhosts = localhost\n[cluster b]\nhosts = 127.0.0.1\n"
				"[link a b]\nrate = 1Gbit\ndelay = 1ms\n";

static char *read_text(const char *path, size_t *len)
{
	FILE *f = fopen(path, "re");
	char *text = gci_calloc(1, GCI_PARAMS_MAX_TEXT);

	assert_non_null(f);
	assert_non_null(text);
	*len = fread(text, 1, GCI_PARAMS_MAX_TEXT, f);
	fclose(f);
	return text;
}

static void read_params(struct gci_params *p, const char *path, const struct gci_grid *g)
{
	struct gci_error e = {0};
	size_t len;
	char *text = read_text(path, &len);

	if (gci_params_parse(p, text, len, path, g, &e))
		fail_msg("%s", e.text);
	gci_free(text);
}

static void assert_link(const struct gci_params_link *l, uint32_t streams)
{
	uint32_t most = 0;
	size_t i;

	assert_true(l->npoints >= 4);
	assert_int_equal(l->points[0].nbytes, 0);
	for (i = 0; i < l->npoints; i++) {
		const struct gci_params_point *p = &l->points[i];

		assert_true(p->os_ns > 0 && p->or_ns > 0);
		assert_true(p->gap_ns >= p->os_ns && p->gap_ns >= p->or_ns);
	}
	assert_true(l->nrates >= 1);
	for (i = 0; i < l->nrates; i++) {
		assert_true(l->rates[i].bps > 0);
		most = l->rates[i].streams;
	}
	assert_true(most <= streams);
	assert_true(l->nisends >= 1);
}

/* The grid that was measured is one, by which a job of the same hosts can be run. */
static void assert_found_grid(void)
{
	struct gci_error e = {0};
	struct gci_grid g;
	size_t len;
	char *text = read_text(in_scratch("found.grid"), &len);

	if (gci_grid_parse(&g, text, len, "found.grid", &e))
		fail_msg("%s", e.text);
	gci_free(text);
	assert_int_equal(g.nclusters, 1);
	assert_int_equal(g.nhosts, 2);
	assert_true(g.clusters[0].nic_bps > 0);
	assert_true(g.clusters[0].lan_delay_ns > 0);
	gci_grid_free(&g);
	RUN(0, "", "--grid", in_scratch("found.grid"), "true");
}

/* The last line tells of all that was done, and took so many seconds at least. */
static void assert_took_last(const char *out, double least_s)
{
	const char *took = strstr(out, "\ntook ");
	double s;

	assert_non_null(took);
	assert_ptr_equal(strchr(took + 1, '\n'), out + strlen(out) - 1);
	if (!least_s)
		return;
	s = strtod(took + strlen("\ntook "), NULL);
	if (!strstr(took, " s and ") || s < least_s)
		fail_msg("%s, expected at least %g s", took, least_s);
}

/* Two clusters of three ranks on this machine. */
static void all_links(void **state)
{
	struct gci_error e = {0};
	struct gci_params p;
	struct gci_grid g;
	struct job j = {0};
	char seconds[16], most[32];
	int a, b;

	(void)state;
	/* For four points of each of the four links. */
	snprintf(seconds, sizeof(seconds), "%ds", 12 * (test_patience() < 4 ? test_patience() : 4));
	snprintf(most, sizeof(most), " in at most %d.0 s and ", atoi(seconds));
	make_text(in_scratch("two.grid"), grid_text);
	assert_int_equal(gci_grid_parse(&g, grid_text, strlen(grid_text), "two.grid", &e), 0);
	job_start(&j, NULL, "--grid", in_scratch("two.grid"), "--per-host", "3", "--quiet-prefix",
		GRIDCOLL, "probe", "-o", in_scratch("out/two.params"), "--time", seconds, "--bytes",
		"256MiB", "--message", "512KiB", "--streams", "4", NULL);
	assert_int_equal(job_wait(&j), 1); /* there is no such directory */
	job_free(&j);
	make_dir(in_scratch("out"));
	job_start(&j, NULL, "--grid", in_scratch("two.grid"), "--per-host", "3", "--quiet-prefix",
		GRIDCOLL, "probe", "-o", in_scratch("out/two.params"), "--time", seconds, "--bytes",
		"256MiB", "--message", "512KiB", "--streams", "4", "--write-grid",
		in_scratch("found.grid"), NULL);
	if (job_wait(&j))
		fail_msg("%s", job_err(&j));
	assert_string_equal(job_err(&j), "");
	assert_non_null(strstr(
		job_out(&j), "6 ranks in 2 clusters: 4 links, one after the other, in at most "));
	assert_non_null(strstr(job_out(&j), most));
	assert_non_null(strstr(job_out(&j), "\na > b "));
	assert_non_null(strstr(job_out(&j), "L: half a round trip, "));
	assert_non_null(strstr(job_out(&j), "\npools of hosts, by the bandwidths of all pairs:\n"));
	assert_non_null(strstr(job_out(&j), "1 cluster by measurement"));
	assert_took_last(job_out(&j), 0);
	job_free(&j);
	assert_int_equal(entries(in_scratch("out")), 1); /* nothing temporary is left */
	assert_found_grid();
	read_params(&p, in_scratch("out/two.params"), &g);
	assert_int_equal(p.dilation, 1);
	assert_int_equal(p.latency, GCI_LATENCY_HALF_ROUND_TRIP);
	for (a = 0; a < 2; a++)
		for (b = 0; b < 2; b++)
			assert_link(gci_params_link(&p, a, b), a == b ? 1 : STREAMS);
	gci_params_free(&p);
	gci_grid_free(&g);
}

/* Little of both: what there is is written, the rest is missed and said. */
static void little(void **state)
{
	struct gci_params p;
	struct job j = {0};

	(void)state;
	/* It waits for a rank that comes late, too. */
	job_start(&j, NULL, "-n", "2", "--quiet-prefix", "sh", "-c",
		"[ $GRIDCOLL_RANK = 0 ] || sleep 2; exec \"$@\"", "-", GRIDCOLL, "probe",
		"--output", in_scratch("p"), "-b", "1MiB", "-t", "10s", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), "* the bytes did not suffice for all"));
	assert_took_last(job_out(&j), 1.5);
	job_free(&j);
	read_params(&p, in_scratch("p"), NULL);
	assert_true(p.links[0].npoints >= 1);
	gci_params_free(&p);
	/* Nobody to measure with. */
	job_start(&j, NULL, "-n", "1", "--quiet-prefix", GRIDCOLL, "probe", "-o", in_scratch("p"),
		NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), "not measured: it has one rank only"));
	job_free(&j);
	read_params(&p, in_scratch("p"), NULL);
	assert_int_equal(p.links[0].npoints, 0);
	gci_params_free(&p);
}

/* However many pairs of hosts there are, the links get their part. */
static void links_get_their_share(void **state)
{
	const uint64_t s = 1000000000, links = 4 * 15 * s;
	uint64_t pairs, all;

	(void)state;
	assert_int_equal(gct_probe_share(100, 3, 0), 100);
	for (pairs = 0; pairs < 10000000; pairs = 3 * pairs + 1) {
		all = (links + pairs * s / 2) * 20; /* dilated */
		assert_int_equal(gct_probe_share(all, links, pairs * s / 2), links * 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_get_their_share),
		TEST(all_links),
		TEST(little),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
