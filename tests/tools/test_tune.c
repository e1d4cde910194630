/* SPDX-License-Identifier: MIT
 * gridcoll tune: what it prints, and the table it writes. */
#include "base/file.h"
#include "base/mem.h"
#include "collectives/tuner/table.h"
#include "tests/tools/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char grid_text[] = "[cluster k]\nhosts = k[1-3]\nnic = 1Gbit\nlan_delay = 50us\n"
				"[cluster t]\nhosts = t[1-3]\nnic = 1Gbit\nlan_delay = 50us\n"
				"[link k t]\nrate = 10Gbit\ndelay = 10ms\n";

static const char *write_text(const char *name, const char *text)
{
	const char *path = in_scratch("%s", name);

	make_text(path, text);
	return path;
}

/* Runs gridcoll tune with these arguments on so many ranks; its output, to be freed. */
static char *tune(const char *ranks, int status, const char *err, const char *const *args)
{
	const char *argv[32] = {"--quiet-prefix", "-n", ranks, GRIDCOLL, "tune"};
	struct job j = {0};
	char *out;
	int i;

	for (i = 0; args[i]; i++)
		argv[5 + i] = args[i];
	job_startv(&j, NULL, argv);
	assert_int_equal(job_wait(&j), status);
	assert_string_equal(job_err(&j), err);
	out = gci_strdup(job_out(&j));
	assert_non_null(out);
	job_free(&j);
	return out;
}

#define TUNE(ranks, err, ...) tune(ranks, 0, err, (const char *const[]){__VA_ARGS__, NULL})

static void read_table(struct gci_table *t, const char *path, uint64_t grid_digest)
{
	struct gci_buf text = {0};
	struct gci_error e = {0};

	assert_int_equal(gci_file_read(path, GCI_TABLE_MAX_TEXT, &text, &e), 0);
	if (gci_table_parse(t, (const char *)text.data, text.len, path, grid_digest, &e))
		fail_msg("%s", e.text);
	gci_buf_free(&text);
}

static void by_simulation_alone(void **state)
{
	char *grid = gci_strdup(write_text("g.grid", grid_text));
	char *file = gci_strdup(in_scratch("t.json"));
	struct gci_grid g;
	struct gci_table t;
	char *out;
	size_t i;

	(void)state;
	out = TUNE("1", "", "--simulated", "--grid", grid, "bcast", "allgather", "barrier", "-b",
		"1KiB,64KiB,4MiB", "-o", file);
	assert_non_null(strstr(out, "6 ranks in 2 clusters: 3 + 3"));
	assert_non_null(strstr(out, "predictions from the grid file alone"));
	assert_int_equal(gci_grid_parse(&g, grid_text, strlen(grid_text), "g", NULL), 0);
	read_table(&t, file, gci_grid_digest(&g));
	assert_int_equal(t.nranks, 6);
	assert_int_equal(t.nclusters, 2);
	assert_int_equal(t.nentries[GCI_BCAST], 3);
	assert_int_equal(t.nentries[GCI_ALLGATHER], 3);
	assert_int_equal(t.nentries[GCI_BARRIER], 1);
	assert_int_equal(t.nentries[GCI_REDUCE], 0);
	for (i = 0; i < 3; i++) {
		const struct gci_table_entry *e = &t.entries[GCI_BCAST][i];

		/* Not below the delay of the WAN, nor twice what it and the NIC take. */
		assert_true(e->predicted_ns > 10000000);
		assert_true(e->predicted_ns < 2 * (10000000 + e->nbytes * 8));
		assert_int_equal(e->measured_ns, 0);
	}
	gci_table_free(&t);
	gci_grid_free(&g);
	gci_free(out);
	gci_free(grid);
	gci_free(file);
}

/* Of predictions that are as good as the best one the longest segments are taken; but not before what
 * a job takes by itself, if that is predicted to be faster. */
static void the_best_is_not_behind_the_usual(void **state)
{
	char *grid = gci_strdup(write_text("two.grid",
		"[cluster a]\nhosts = a[1-4]\nnic = 1Gbit\nlan_delay = 50us\n"
		"[cluster b]\nhosts = b[1-4]\nnic = 1Gbit\nlan_delay = 50us\n"
		"[link a b]\nrate = 10Gbit\ndelay = 10ms\n"));
	char *out = TUNE("1", "", "--simulated", "--grid", grid, "bcast", "-b", "64KiB");
	double best, usual;
	char *line = strstr(out, "\nbcast of ");

	(void)state;
	assert_non_null(line);
	assert_int_equal(sscanf(line, "\nbcast of %*s kB %*s %lf ms - %lf ms ", &best, &usual), 2);
	assert_true(best <= usual);
	gci_free(out);
	gci_free(grid);
}

/* On this machine's own network, whose times mean nothing: but they are there, and the table is
 * taken. */
static void measured(void **state)
{
	char *file = gci_strdup(in_scratch("t.json")), *out;
	struct gci_table t;
	struct job j = {0};
	size_t i;

	(void)state;
	out = TUNE(
		"3", "", "bcast", "reduce", "-b", "4KiB,64KiB", "-m", "2", "-i", "1", "-o", file);
	assert_non_null(strstr(out, "3 ranks in 1 cluster"));
	gci_free(out);
	read_table(&t, file, 0);
	for (i = 0; i < 2; i++) {
		assert_true(t.entries[GCI_BCAST][i].measured_ns > 0);
		assert_true(t.entries[GCI_REDUCE][i].predicted_ns > 0);
	}
	gci_table_free(&t);
	job_start(&j, NULL, "-n", "3", "--quiet-prefix", "--table", file, GRIDCOLL, "bench",
		"bcast", "-b", "64KiB", "-i", "1", NULL);
	assert_int_equal(job_wait(&j), 0);
	assert_non_null(strstr(job_out(&j), "(table)"));
	job_free(&j);
	gci_free(file);
}

/* What nobody has measured is not written as if. */
static void predictions_are_no_measurements(void **state)
{
	char *file = gci_strdup(in_scratch("t.json")), *out;
	struct gci_table t;

	(void)state;
	out = TUNE("3", "", "bcast", "-b", "64KiB", "-m", "0", "-S", "simulate", "-o", file);
	gci_free(out);
	read_table(&t, file, 0);
	assert_int_equal(t.entries[GCI_BCAST][0].measured_ns, 0);
	assert_true(t.entries[GCI_BCAST][0].predicted_ns > 0);
	gci_table_free(&t);
	/* Nor does it beat what somebody has. */
	out = TUNE("3", "", "bcast", "-b", "64KiB", "-m", "0", "-a", "chain", "-S", "simulate,mgd",
		"-i", "1", "-o", file);
	gci_free(out);
	read_table(&t, file, 0);
	assert_true(t.entries[GCI_BCAST][0].measured_ns > 0);
	gci_table_free(&t);
	gci_free(file);
}

/* Nothing is left where the table would have been. */
static void no_file_without_a_table(void **state)
{
	char *file = gci_strdup(in_scratch("t.json")), *grid;

	(void)state;
	grid = gci_strdup(write_text("g.grid", grid_text));
	gci_free(tune("1", 2,
		"gridcoll tune: bcast: chain does not use \"degree=2\"\n"
		"gridcoll-run: rank 0 on local0 failed: exited with status 2\n",
		(const char *const[]){"--simulated", "--grid", grid, "bcast", "-a",
			"chain:degree=2", "-o", file, NULL}));
	assert_false(is_there(file));
	gci_free(tune("1", 2,
		"gridcoll-run: rank 0 on local0 failed: gridcoll tune: --streams \"banana\", "
		"expected a number from 1 to 64\n",
		(const char *const[]){
			"--simulated", "--grid", grid, "bcast", "-s", "banana", "-o", file, NULL}));
	assert_false(is_there(file));
	gci_free(grid);
	gci_free(file);
}

/* The line that begins with `name`: the ways it tried, and what it ran. */
static void row(const char *out, const char *name, unsigned *ways, unsigned *runs)
{
	char took[16], unit[8], begin[32];
	const char *line;

	snprintf(begin, sizeof(begin), "\n%s ", name);
	line = strstr(out, begin);
	if (!line || sscanf(line + strlen(begin), "%15s %7s %u %u", took, unit, ways, runs) != 4)
		fail_msg("no line of %s in:\n%s", name, out);
}

static void searches(void **state)
{
	unsigned ways[5], runs[5];
	char *out;

	(void)state;
	/* 9 segments of two algorithms: 1 KiB to 256 KiB; and one that has none. */
	out = TUNE("3", "", "bcast", "-b", "256KiB", "-a", "chain,binomial,vandegeijn", "-S",
		"exhaustive,halving,mgd,smgd,simulate", "-i", "1", "--least-segment", "1KiB");
	row(out, "exhaustive", &ways[0], &runs[0]);
	row(out, "halving", &ways[1], &runs[1]);
	row(out, "mgd", &ways[2], &runs[2]);
	row(out, "smgd", &ways[3], &runs[3]);
	row(out, "simulate", &ways[4], &runs[4]);
	assert_int_equal(ways[0], 19);
	assert_int_equal(runs[0], 2 * 19);
	assert_true(ways[1] >= 19);
	assert_in_range(ways[2], 3, 19);
	assert_in_range(ways[3], 3, 19);
	assert_int_equal(ways[4], 3);
	assert_int_equal(runs[4], 2 * 2 * 3);
	gci_free(out);
	/* What SMGD has seen one run of is measured for those that want all of them. */
	out = TUNE("3", "", "bcast", "-b", "256KiB", "-a", "chain,binomial,vandegeijn", "-S",
		"smgd,exhaustive", "-i", "1", "--least-segment", "1KiB");
	row(out, "smgd", &ways[3], &runs[3]);
	row(out, "exhaustive", &ways[0], &runs[0]);
	assert_in_range(runs[3], ways[3] + 1, 2 * ways[3]);
	assert_int_equal(runs[0], 2 * 19);
	gci_free(out);
}

/* The only other answer is that this network does not bear it. */
static void by_pipeline(void **state)
{
	char *grid = gci_strdup(write_text("g.grid", grid_text)), *out;
	unsigned ways, runs;

	(void)state;
	out = TUNE("1", "", "--simulated", "--grid", grid, "bcast", "-b", "64KiB", "-a",
		"chain,binary,vandegeijn", "-S", "exhaustive,pipeline", "--least-segment", "1KiB");
	row(out, "pipeline", &ways, &runs);
	/* Neighbours: k1-k2, k3-t1, t2-t3, all; across: k1-t1, all; 7 segments of 2 paths; 3. */
	assert_int_equal(ways, 4 + 2 + 14 + 3);
	gci_free(out);
	out = TUNE("4", "", "bcast", "-b", "4KiB", "-a", "chain,binomial", "-S", "pipeline", "-i",
		"1", "--least-segment", "1KiB");
	if (!strstr(out, "\npipeline    does not apply: pairs of ranks slow each other down\n"))
		row(out, "pipeline", &ways, &runs);
	gci_free(out);
	gci_free(grid);
}

static void compared(void **state)
{
	static const char *const names[] = {"sequential", "chain", "binary", "binomial"};
	char *out, best[16], unit[8];
	size_t i;

	(void)state;
	out = TUNE("3", "", "bcast", "-b", "32KiB", "-a", "sequential,chain,binary,binomial",
		"--compare", "-i", "1");
	for (i = 0; i < 4; i++) {
		const char *line = strstr(out, names[i]), *end;
		double magpie, simulated;

		assert_non_null(line);
		end = strchr(line, '\n');
		assert_non_null(end);
		assert_int_equal(sscanf(line, "%*s %15s %7s", best, unit), 2);
		while (end[-1] == ' ')
			end--;
		assert_int_equal(sscanf(end - 17, "%lf %lf", &magpie, &simulated), 2);
		assert_true(magpie > 0.0);
		/* It is one of those measured, of which the best is. */
		assert_true(simulated >= 0.995);
	}
	gci_free(out);
}

static void recorded(void **state)
{
	char *grid = gci_strdup(write_text("g.grid", grid_text));
	char *file = gci_strdup(in_scratch("t.json"));
	char *record = gci_strdup(write_text("r.json",
		"{\"version\": 1, \"operations\": [\n"
		"{\"operation\": \"bcast\", \"ranks\": 6, \"nbytes\": 65536, \"calls\": 120},\n"
		"{\"operation\": \"bcast\", \"ranks\": 3, \"nbytes\": 1024, \"calls\": 5},\n"
		"{\"operation\": \"gather\", \"ranks\": 6, \"nbytes\": 4096, \"calls\": 1}]}\n"));
	struct gci_table t;

	(void)state;
	gci_free(TUNE("1", "", "--simulated", "--grid", grid, "-R", record, "-o", file));
	read_table(&t, file, 0);
	assert_int_equal(t.nentries[GCI_BCAST], 1);
	assert_int_equal(t.entries[GCI_BCAST][0].nbytes, 65536);
	assert_int_equal(t.nentries[GCI_GATHER], 1);
	gci_table_free(&t);
	gci_free(grid);
	gci_free(file);
	gci_free(record);
}

/* Says so, with file and line. */
static void wrong_params(void **state)
{
	char *grid = gci_strdup(write_text("g.grid", grid_text));
	char *params = gci_strdup(write_text("p.json", "{\"version\": 1,\n\"date\": 3}\n"));
	struct job j = {0};

	(void)state;
	job_start(&j, NULL, "-n", "1", "--quiet-prefix", GRIDCOLL, "tune", "--simulated", "--grid",
		grid, "bcast", "-p", params, NULL);
	assert_int_equal(job_wait(&j), 2);
	if (!strstr(job_err(&j), params))
		fail_msg("%s", job_err(&j));
	job_free(&j);
	gci_free(grid);
	gci_free(params);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(by_simulation_alone),
		TEST(the_best_is_not_behind_the_usual),
		TEST(measured),
		TEST(predictions_are_no_measurements),
		TEST(no_file_without_a_table),
		TEST(searches),
		TEST(by_pipeline),
		TEST(compared),
		TEST(recorded),
		TEST(wrong_params),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
