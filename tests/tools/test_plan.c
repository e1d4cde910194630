/* SPDX-License-Identifier: MIT
 * gridcoll plan as a person runs it. */
#include "tests/tools/jobs.h"
#include "tests/tools/xml.h"

#include "base/buf.h"
#include "base/mem.h"
#include "collectives/models/params_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define GRID "two.grid"

static const char grid[] = "[cluster a]\nhosts = local[0-1]\nnic = 1Gbit\nlan_delay = 50us\n"
			   "[cluster b]\nhosts = local[2-3]\nnic = 1Gbit\nlan_delay = 50us\n"
			   "[link a b]\nrate = 10Gbit\ndelay = 2ms\nqueue = 5MB\n";

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(in_scratch("%s", name), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void read_text(const char *name, struct gci_buf *out)
{
	FILE *f = fopen(in_scratch("%s", name), "r");
	char bytes[4096];
	size_t n;

	assert_non_null(f);
	while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0)
		gci_buf_put(out, bytes, n);
	fclose(f);
}

/* In the scratch directory; what it writes is in "out" and "err". */
static int run(const char *args)
{
	char *command = gci_asprintf("cd %s && %s %s >out 2>err", in_scratch("."), GRIDCOLL, args);
	int status;

	assert_non_null(command);
	write_text(GRID, grid);
	status = system(command);
	gci_free(command);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void assert_begins(const char *name, const char *begin)
{
	struct gci_buf text = {0};

	read_text(name, &text);
	if (strncmp(gci_buf_cstr(&text), begin, strlen(begin)) != 0)
		fail_msg("%s, expected %s...", gci_buf_cstr(&text), begin);
	gci_buf_free(&text);
}

static void assert_holds(const char *name, const char *what)
{
	struct gci_buf text = {0};

	read_text(name, &text);
	if (!strstr(gci_buf_cstr(&text), what))
		fail_msg("no \"%s\" in %s", what, gci_buf_cstr(&text));
	gci_buf_free(&text);
}

static void assert_lacks(const char *name, const char *what)
{
	struct gci_buf text = {0};

	read_text(name, &text);
	if (strstr(gci_buf_cstr(&text), what))
		fail_msg("\"%s\" in %s", what, gci_buf_cstr(&text));
	gci_buf_free(&text);
}

static const struct {
	const char *args, *message;
} wrongs[] = {
	{"plan", "gridcoll plan: no --grid, expected a grid file"},
	{"plan --grid " GRID, "gridcoll plan: no operation, expected bcast, "},
	{"plan bcst --grid " GRID " -b 1", "gridcoll plan: operation \"bcst\", expected bcast, "},
	{"plan bcast gather --grid " GRID " -b 1", "gridcoll plan: operation \"gather\", expected"},
	{"plan bcast --grid " GRID, "gridcoll plan: no --bytes, expected a size"},
	{"plan bcast --grid " GRID " -b x", "gridcoll plan: --bytes \"x\", expected a size"},
	{"plan bcast --grid none -b 1", "gridcoll plan: cannot read none: No such file"},
	{"plan bcast --grid " GRID " -b 1 -r 4",
		"gridcoll plan: --root \"4\", expected a rank from 0 to 3"},
	{"plan bcast --grid " GRID " -b 1 --print-schedule 4",
		"gridcoll plan: --print-schedule \"4\", expected a rank from 0 to 3"},
	{"plan bcast --grid " GRID " -b 1 -a fastest", "gridcoll plan: "},
	{"plan allgather --grid " GRID " -b 1 -a ring:degree=2", "gridcoll plan: "},
	{"plan bcast --grid " GRID " -b 1 --streams 0",
		"gridcoll plan: --streams \"0\", expected a number from 1 to 64"},
	{"plan bcast --grid " GRID " -b 1 --dilate 0",
		"gridcoll plan: --dilate \"0\", expected no or a number from 1"},
	{"plan bcast --grid " GRID " -b 1 --ports half",
		"gridcoll plan: --ports \"half\", expected shared, full-duplex or half-duplex"},
	{"plan --explain x --cold --grid " GRID,
		"gridcoll plan: --explain \"x\", expected no --cold or --ports"},
	{"plan bcast --grid " GRID " -b 1 --hosts other", "gridcoll plan: --hosts other: expected"},
	{"plan bcast --grid " GRID " -b 1 --gantt none/x",
		"gridcoll plan: cannot write none/x: No such file"},
	{"plan bcast --explain x --grid " GRID,
		"gridcoll plan: operation \"bcast\", expected none"},
	{"plan --explain x -b 1 --grid " GRID,
		"gridcoll plan: --explain \"x\", expected no --bytes"},
	{"plan --explain x -r 0 --grid " GRID,
		"gridcoll plan: --explain \"x\", expected no --bytes, --algorithm, --root"},
	{"plan --explain x --dilate no --grid " GRID, "gridcoll plan: --explain \"x\", expected no "
						      "--bytes, --algorithm, --root or --dilate"},
	{"plan --explain x --per-host 2 --grid " GRID,
		"gridcoll plan: --explain \"x\", expected no --hosts, -n or --per-host"},
	{"plan --explain x --table t --grid " GRID,
		"gridcoll plan: --explain \"x\", expected no --table or --print-schedule"},
	{"plan --explain x --print-schedule 0 --grid " GRID,
		"gridcoll plan: --explain \"x\", expected no --table or --print-schedule"},
	{"plan bcast --grid " GRID " -b 2048TiB",
		"gridcoll plan: --bytes \"2048TiB\", expected a size such as 512, 64KiB, 25MB or "
		"1GiB, at most 1024TiB"},
	{"plan --explain none --grid " GRID, "gridcoll plan: cannot read none: No such file"},
	{"plan --explain " GRID " --grid " GRID, "gridcoll plan: " GRID ":1: "},
	{"plan --bogus", "gridcoll plan: unknown option --bogus, see gridcoll plan --help"},
};

static void wrong_arguments(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
		assert_in_range(run(wrongs[i].args), 1, 2);
		assert_begins("err", wrongs[i].message);
		assert_begins("out", "");
	}
	/* Files that are not there are wrong arguments, too. */
	assert_int_equal(run("plan bcast --grid none -b 1"), 2);
	assert_int_equal(run("plan --explain none --grid " GRID), 2);
}

static json_t *load(const char *name)
{
	json_t *root = json_load_file(in_scratch("%s", name), JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(root);
	return root;
}

static uint64_t number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	assert_true(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

/* The ways come fastest first, the choice is what a job would do, nothing beats the limit; and
 * people read the same as programs. */
static void ranking(void **state)
{
	const json_t *ways, *choice;
	uint64_t before = 0;
	json_t *root;
	size_t i, n = 0;

	(void)state;
	assert_int_equal(run("plan bcast --grid " GRID " -b 4MiB --json"), 0);
	root = load("out");
	ways = json_object_get(root, "ways");
	choice = json_object_get(root, "choice");
	assert_int_equal(number(root, "bytes"), 4 << 20);
	assert_int_equal(number(root, "ranks"), 4);
	assert_true(number(root, "limit_ns") > 2000000);
	for (i = 0; i < json_array_size(ways); i++) {
		const json_t *w = json_array_get(ways, i);

		if (json_object_get(w, "not_run"))
			continue;
		assert_true(number(w, "predicted_ns") >= before);
		assert_true(number(w, "predicted_ns") >= number(root, "limit_ns"));
		assert_true(json_is_string(json_object_get(w, "why")));
		before = number(w, "predicted_ns");
		n++;
	}
	assert_true(n > 10);
	assert_true(
		json_equal(json_object_get(choice, "algorithm"), json_object_get(root, "usual")));
	assert_int_equal(run("plan bcast --grid " GRID " -b 4MiB"), 0);
	assert_begins("out", "bcast of 4.19 MB from rank 0 (local0), 4 ranks in 2 clusters\n");
	assert_holds("out", "\nfrom the grid file alone: nothing was measured");
	assert_holds("out", json_string_value(json_object_get(choice, "algorithm")));
	assert_begins("err", "");
	json_decref(root);
}

/* The fastest has too many segments to be simulated as a whole: the others are compared with the
 * fastest that has not. */
static void reasons_without_the_fastest(void **state)
{
	const json_t *ways;
	json_t *root;
	size_t i, n = 0;

	(void)state;
	write_text("many.grid", "[cluster a]\nhosts = k[1-16]\nnic = 1Gbit\nlan_delay = 50us\n"
				"[cluster b]\nhosts = t[1-16]\nnic = 1Gbit\nlan_delay = 50us\n"
				"[link a b]\nrate = 10Gbit\ndelay = 10ms\nqueue = 25MB\n");
	assert_int_equal(run("plan bcast --grid many.grid -b 32MiB --json"), 0);
	root = load("out");
	ways = json_object_get(root, "ways");
	assert_null(json_object_get(json_array_get(ways, 0), "why"));
	for (i = 1; i < json_array_size(ways); i++)
		n += json_is_string(json_object_get(json_array_get(ways, i), "why"));
	assert_true(n > 10);
	json_decref(root);
	assert_int_equal(run("plan bcast --grid many.grid -b 32MiB"), 0);
	assert_holds("out", " x the message");
	assert_holds("out", "\n      rank 0 (k1) sends ");
}

/* Each byte crosses the WAN once; the algorithm asked for is shown, not the best. */
static void asked_for(void **state)
{
	const json_t *links, *l;
	json_t *root;
	size_t i, wans = 0;

	(void)state;
	assert_int_equal(
		run("plan bcast --grid " GRID " -b 4MiB -a chain -j --print-schedule 1"), 0);
	root = load("out");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(root, "choice"), "algorithm")),
		"chain");
	links = json_object_get(root, "links");
	for (i = 0; i < json_array_size(links); i++) {
		l = json_array_get(links, i);
		if (json_equal(json_object_get(l, "from"), json_object_get(l, "to")))
			continue;
		assert_int_equal(number(l, "bytes"), 4 << 20);
		assert_int_equal(number(l, "senders"), 1);
		wans++;
	}
	assert_int_equal(wans, 1);
	assert_int_equal(json_array_size(json_object_get(root, "schedule")), 1 + 2);
	json_decref(root);
}

/* A lab's dilation slows the network, not the hosts: divided by it, times are shorter, if at all.
 */
static void dilated(void **state)
{
	uint64_t plain, slow;
	json_t *root;

	(void)state;
	assert_int_equal(run("plan bcast --grid " GRID " -b 256KiB -a chain -j"), 0);
	root = load("out");
	plain = number(json_object_get(root, "choice"), "predicted_ns");
	json_decref(root);
	assert_int_equal(run("plan bcast --grid " GRID " -b 256KiB -a chain -j --dilate 20"), 0);
	root = load("out");
	slow = number(json_object_get(root, "choice"), "predicted_ns");
	assert_int_equal(number(root, "dilation"), 20);
	json_decref(root);
	assert_in_range(slow, plain / 2, plain + plain / 100);
	assert_int_equal(run("plan bcast --grid " GRID " -b 256KiB --dilate no"), 0);
}

static uint64_t predicted(const char *args)
{
	json_t *root;
	uint64_t ns;

	assert_int_equal(run(args), 0);
	root = load("out");
	ns = number(json_object_get(root, "choice"), "predicted_ns");
	json_decref(root);
	return ns;
}

/* Connections have to be opened, a round trip and a half of 2 ms; two messages that come in at once
 * take turns; and a NIC that passes on what comes in, too. */
static void supposed(void **state)
{
	static const char chain[] = "plan bcast --grid " GRID " -b 4MiB -a chain:segment=64KiB -j";
	uint64_t warm = predicted(chain), cold, full, half;
	char args[200];

	(void)state;
	snprintf(args, sizeof(args), "%s --cold", chain);
	cold = predicted(args);
	assert_in_range(cold, warm + 6000000, 10 * warm);
	snprintf(args, sizeof(args), "%s --ports full-duplex", chain);
	full = predicted(args);
	assert_in_range(full, warm / 2, 2 * warm);
	snprintf(args, sizeof(args), "%s --ports half-duplex", chain);
	half = predicted(args);
	assert_in_range(half, full + full / 2, 3 * full);
	assert_int_equal(run("plan bcast --grid " GRID " -b 1 --cold --ports half-duplex"), 0);
	assert_holds("out", "connections are new; one message at a time, in or out");
}

/* What binds saves what it carries: a link alone, or all NICs together; and only packings know. */
static void upgrades(void **state)
{
	static const char narrow[] =
		"[cluster a]\nhosts = a[1-2]\nnic = 1Gbit\n[cluster b]\nhosts = b[1-2]\n"
		"nic = 1Gbit\n[link a b]\nrate = 100Mbit\ndelay = 10ms\n";

	(void)state;
	write_text("narrow", narrow);
	assert_int_equal(run("plan bcast --grid narrow -b 32MiB -a packed"), 0);
	assert_holds("out", "\nwhat would help: 10 % more on a > b saves ");
	assert_int_equal(run("plan bcast --grid narrow -b 32MiB -a packed --json"), 0);
	assert_holds("out", "\"upgrades\": [");
	assert_holds("out", "\"link\": \"a > b\"");
	assert_int_equal(run("plan alltoall --grid " GRID " -b 32MiB -a packed"), 0);
	assert_holds("out", "\nwhat would help: 10 % more for all NICs saves ");
	assert_int_equal(run("plan bcast --grid narrow -b 1KiB -a packed"), 0);
	assert_holds("out",
		"\nwhat would help: 10 % more for links, or for NICs, saves less than 1 %\n");
	assert_int_equal(run("plan bcast --grid narrow -b 32MiB -a binomial"), 0);
	assert_lacks("out", "what would help");
}

/* Those of another grid are told, and done without. */
static void bad_files(void **state)
{
	(void)state;
	write_text("bad", "{\"version\": 1,\n \"date\": 7}\n");
	assert_int_equal(run("plan bcast --grid " GRID " -b 1MiB --params bad"), 2);
	assert_begins("err", "gridcoll plan: bad:");
	assert_int_equal(run("plan bcast --grid " GRID " -b 1MiB --table bad"), 2);
	assert_begins("err", "gridcoll plan: bad:");
	assert_int_equal(run("plan bcast --grid " GRID " -b 1MiB --table none"), 2);
	assert_begins("err", "gridcoll plan: cannot read none: No such file or directory");
	write_text("foreign",
		"{\"version\": 1, \"date\": \"2026-03-01T12:00:00Z\",\n"
		" \"grid_digest\": \"0123456789abcdef\",\n \"ranks\": 4, \"clusters\": 2,\n"
		" \"operations\": {\"bcast\": [{\"nbytes\": 65536, \"algorithm\": \"tree\"}]}}\n");
	assert_int_equal(run("plan bcast --grid " GRID " -b 1MiB --table foreign"), 0);
	assert_begins("err", "gridcoll plan: warning: foreign:2: made for another grid");
	assert_holds("err", "gridcoll plan: warning: going on without a table\n");
	assert_holds("out", "\nchoice: packed, ");
}

/* Files that were made for this grid are used, and named. */
static void good_files(void **state)
{
	struct gci_params params;
	struct gci_error e = {0};
	struct gci_buf text = {0};
	struct gci_grid g;
	char *table;

	(void)state;
	assert_int_equal(gci_grid_parse(&g, grid, strlen(grid), GRID, &e), 0);
	assert_int_equal(gci_params_init(&params, &g, "2026-11-21T16:29:00Z"), 0);
	gci_params_print(&params, &text);
	write_text("params", gci_buf_cstr(&text));
	assert_int_equal(run("plan bcast --grid " GRID " -b 1MiB --params params"), 0);
	assert_begins("err", "");
	assert_holds("out", "\nfrom what was measured at 2026-11-21T16:29:00Z (params)\n");
	table = gci_asprintf("{\"version\": 1, \"date\": \"2026-03-01T12:00:00Z\", \"ranks\": 4,"
			     " \"clusters\": 2, \"grid_digest\": \"%016" PRIx64 "\","
			     " \"operations\": {\"bcast\": [{\"nbytes\": 65536, \"algorithm\":"
			     " \"binomial\"}]}}\n",
		gci_grid_digest(&g));
	write_text("table", table);
	assert_int_equal(run("plan bcast --grid " GRID " -b 1MiB --table table"), 0);
	assert_begins("err", "");
	assert_holds("out", "\nchoice: binomial, decided by table of 2026-03-01T12:00:00Z\n");
	assert_holds("out", "  without a table or an option, gridcoll takes ");
	/* It decides nothing about other operations. */
	assert_int_equal(run("plan gather --grid " GRID " -b 1MiB --table table"), 0);
	assert_begins("err",
		"gridcoll plan: warning: table has no decision on gather with 4 ranks in 2 "
		"clusters that can run it (it is of 4 in 2)");
	gci_free(table);
	gci_buf_free(&text);
	gci_params_free(&params);
	gci_grid_free(&g);
}

/* Where nothing has to be moved there is nothing to explain. */
static void nothing_to_do(void **state)
{
	struct gci_buf out = {0};
	int alone;

	(void)state;
	for (alone = 0; alone < 2; alone++) {
		assert_int_equal(run(alone ? "plan bcast --grid " GRID " -b 1MiB -n 1"
					   : "plan bcast --grid " GRID " -b 0"),
			0);
		read_text("out", &out);
		assert_non_null(strstr(gci_buf_cstr(&out), "\n  predicted "));
		assert_null(strstr(gci_buf_cstr(&out), "what bounds it"));
		assert_null(strstr(gci_buf_cstr(&out), "does not tell"));
		gci_buf_free(&out);
	}
}

static void chart(void **state)
{
	struct gci_buf svg = {0};
	const char *wrong;

	(void)state;
	assert_int_equal(run("plan allreduce --grid " GRID " -b 1MiB --gantt x.svg"), 0);
	read_text("x.svg", &svg);
	wrong = xml_wrong(gci_buf_cstr(&svg), svg.len);
	if (wrong)
		fail_msg("%s", wrong);
	assert_non_null(strstr(gci_buf_cstr(&svg), ">allreduce of 1.05 MB by "));
	assert_non_null(strstr(gci_buf_cstr(&svg), ">over a WAN"));
	gci_buf_free(&svg);
}

/* A run on this machine, recorded, beside what its grid promises. */
static void explained(void **state)
{
	struct job j = {0};
	json_t *root;

	(void)state;
	write_text("flat.grid", "[cluster local]\nhosts = local[0-3]\n");
	job_start(&j, NULL, "-n", "4", GRIDCOLL, "bench", "bcast", "-b", "1MiB", "-a",
		"chain:segment=64KiB", "-i", "2", "--trace", in_scratch("run.trace"), NULL);
	assert_int_equal(job_wait(&j), 0);
	job_free(&j);
	assert_int_equal(
		run("plan --explain run.trace --grid flat.grid --json --gantt run.svg"), 0);
	root = load("out");
	assert_int_equal(number(root, "bytes"), 1 << 20);
	assert_true(number(root, "measured_ns") > 0);
	assert_int_equal(json_array_size(json_object_get(root, "phases")), 1);
	assert_int_equal(
		number(json_array_get(json_object_get(root, "phases"), 0), "messages"), 3 * 16);
	json_decref(root);
	assert_holds("run.svg", ">bcast of 1.05 MB by chain:segment=65536: measured ");
	assert_int_equal(run("plan --explain run.trace --grid flat.grid"), 0);
	assert_holds("out", "\n1 inside local ");
	/* Of another grid, it tells nothing. */
	assert_int_equal(run("plan --explain run.trace --grid " GRID), 2);
	assert_begins("err", "gridcoll plan: run.trace was recorded on another grid than " GRID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wrong_arguments),
		TEST(ranking),
		TEST(reasons_without_the_fastest),
		TEST(asked_for),
		TEST(dilated),
		TEST(supposed),
		TEST(upgrades),
		TEST(bad_files),
		TEST(good_files),
		TEST(nothing_to_do),
		TEST(chart),
		TEST(explained),
	};

	unsetenv("GRIDCOLL_LAB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
