/* SPDX-License-Identifier: MIT */
#include "base/units.h"
#include "collectives/tuner/candidates.h"
#include "tools/tools.h"
#include "tools/tune.h"

#include <string.h>

#define LONGEST_LIST 100 /* of candidates to measure */

static const char help[] =
	"usage: gridcoll-run ... gridcoll tune OPERATION... [options]\n"
	"       gridcoll tune --simulated --grid FILE OPERATION... [options]\n"
	"Finds the best algorithm and parameters for each operation and size: simulates\n"
	"what formulas find promising, and measures the best of that on the ranks of a\n"
	"job.\n"
	"  -b, --bytes LIST       sizes, as gridcoll bench has them (default 1MiB)\n"
	"  -a, --algorithm LIST   only these, in all segments; with parameters: as given\n"
	"  -m, --measure N        measure the N best by simulation (default 3), and what\n"
	"                         a job without a table does\n"
	"  -i, --iters N          warm iterations of each (default 3)\n"
	"  -S, --search LIST      instead of that, or beside it, search methods and\n"
	"                         segments: simulate, exhaustive, halving, mgd,\n"
	"                         smgd, pipeline\n"
	"      --least-segment B  the shortest that is searched (default 4KiB)\n"
	"      --compare          for each algorithm: best segment as measured, by\n"
	"                         MagPIe's formulas and by simulation\n"
	"  -p, --params FILE      the grid's measured parameters, of gridcoll probe\n"
	"  -R, --recorded FILE    the operations and sizes of a recorded run\n"
	"  -o, --output FILE      write the decisions as a table for gridcoll-run\n"
	"  -r, --root RANK        of bcast, reduce, scatter and gather (default 0)\n"
	"  -s, --streams N        connections per WAN peer\n"
	"      --simulated        measure nothing: no job is needed\n"
	"  -g, --grid FILE        with --simulated: the grid, a rank on each host\n"
	"  -h, --help             this text\n"
	"example: gridcoll tune --simulated -g my.grid bcast -b 64KiB,8MiB -o my.table\n"
	"         gridcoll-run --grid my.grid --table my.table ./a.out\n";

static const char *const names[GCT_NSEARCHES] = {
	"simulate", "exhaustive", "halving", "mgd", "smgd", "pipeline"};

const char *gct_search_name(enum gct_search search)
{
	return names[search];
}

static int wrong(const char *what, const char *value, const char *expected)
{
	return gct_wrong_value("tune", what, value, expected);
}

static int add_search(struct gct_tune_options *o, const char *name)
{
	int i, k;

	for (k = 0; k < GCT_NSEARCHES && strcmp(names[k], name) != 0; k++)
		;
	if (k == GCT_NSEARCHES)
		return wrong(
			"--search", name, "simulate, exhaustive, halving, mgd, smgd or pipeline");
	for (i = 0; i < o->nsearches; i++)
		if (o->searches[i] == (enum gct_search)k)
			return 0;
	o->searches[o->nsearches++] = (enum gct_search)k;
	return 0;
}

static int parse_searches(struct gct_tune_options *o, char *list)
{
	char *save = NULL, *p;
	int rc = 0;

	o->nsearches = 0;
	for (p = strtok_r(list, ",", &save); p && !rc; p = strtok_r(NULL, ",", &save))
		rc = add_search(o, p);
	return rc || o->nsearches ? rc : add_search(o, "");
}

static int parse_number(
	const char *what, const char *value, uint64_t most, const char *expected, uint64_t *out)
{
	return gci_parse_uint(value, most, out) ? wrong(what, value, expected) : 0;
}

static int parse_least(struct gct_tune_options *o, const char *value)
{
	if (!gci_parse_bytes(value, &o->least_segment) && o->least_segment)
		return 0;
	return wrong("--least-segment", value, GCI_BYTES_EXPECTED);
}

static int parse_streams(struct gct_tune_options *o, const char *value)
{
	if (!gci_parse_uint(value, 64, &o->streams) && o->streams)
		return 0;
	return wrong("--streams", value, "a number from 1 to 64");
}

static int parse_option(struct gct_tune_options *o, int c, char *value)
{
	switch (c) {
	case 'b':
		return gct_parse_sizes("tune", value, o->sizes, &o->nsizes);
	case 'a':
		return gct_parse_algorithms("tune", value, o->algorithms, &o->nalgorithms);
	case 'S':
		return parse_searches(o, value);
	case 'L':
		return parse_least(o, value);
	case 'm':
		return parse_number(
			"--measure", value, LONGEST_LIST, "a number from 0 to 100", &o->measure);
	case 'i':
		if (!strcmp(value, "0"))
			return wrong("--iters", value, "a number from 1 to 1000000");
		return parse_number(
			"--iters", value, 1000000, "a number from 1 to 1000000", &o->iterations);
	case 'r':
		return parse_number("--root", value, GCI_GRID_MAX_HOSTS, "a rank", &o->root);
	case 'p':
		o->params = value;
		return 0;
	case 'R':
		o->recorded = value;
		return 0;
	case 'o':
		o->output = value;
		return 0;
	case 'g':
		o->grid = value;
		return 0;
	case 's':
		return parse_streams(o, value);
	case 'C':
		o->compare = 1;
		return 0;
	default: /* 'Z' */
		o->simulated = 1;
		return 0;
	}
}

/* What does not go together. */
static int check(const struct gct_tune_options *o)
{
	if (o->simulated && !o->grid)
		return gct_wrong("tune", "--simulated needs the grid: --grid FILE");
	if (o->grid && !o->simulated)
		return gct_wrong("tune", "--grid is for --simulated: a job has a grid");
	if (o->simulated && o->compare)
		return gct_wrong("tune", "--compare measures: not with --simulated");
	if (o->compare && o->output)
		return gct_wrong("tune", "--compare makes no table: not with --output");
	if (o->recorded && o->nkinds)
		return gct_wrong("tune", "operation \"%s\": those of --recorded are tuned",
			gci_kind_name(o->kinds[0]));
	return 0;
}

int gct_tune_parse(struct gct_tune_options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"bytes", 1, NULL, 'b'}, {"algorithm", 1, NULL, 'a'},
		{"measure", 1, NULL, 'm'}, {"iters", 1, NULL, 'i'}, {"search", 1, NULL, 'S'},
		{"least-segment", 1, NULL, 'L'}, {"compare", 0, NULL, 'C'},
		{"params", 1, NULL, 'p'}, {"recorded", 1, NULL, 'R'}, {"output", 1, NULL, 'o'},
		{"root", 1, NULL, 'r'}, {"streams", 1, NULL, 's'}, {"simulated", 0, NULL, 'Z'},
		{"grid", 1, NULL, 'g'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c, rc = 0;

	*o = (struct gct_tune_options){.sizes = {1 << 20},
		.nsizes = 1,
		.iterations = 3,
		.measure = 3,
		.least_segment = GCI_LEAST_SEGMENT};
	optind = 1;
	while (!rc &&
		(c = getopt_long(argc, argv, ":b:a:m:i:S:p:R:o:r:s:g:h", longs, NULL)) != -1) {
		if (c == 'h') {
			gct_help(help);
			return -1;
		}
		if (c == '?' || c == ':')
			return gct_wrong_option("tune", argv, longs, c);
		rc = parse_option(o, c, optarg);
	}
	if (!rc && (optind < argc || !o->recorded))
		rc = gct_parse_operations(
			"tune", argc - optind, argv + optind, o->kinds, &o->nkinds);
	return rc ? rc : check(o);
}
