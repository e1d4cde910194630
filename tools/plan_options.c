/* SPDX-License-Identifier: MIT */
#include "base/units.h"
#include "tools/cases.h"
#include "tools/plan.h"
#include "tools/tools.h"
#include "transport/control.h"

#include <stdlib.h>
#include <string.h>

static const char help[] =
	"usage: gridcoll plan OPERATION --grid FILE --bytes N [options]\n"
	"       gridcoll plan --explain FILE --grid FILE [options]\n"
	"Predicts how long an operation takes by each algorithm, and why. Starts no job.\n"
	"  -g, --grid FILE           the grid (default: the lab's, in $GRIDCOLL_LAB)\n"
	"  -b, --bytes N             as in gridcoll bench, e.g. 32MiB\n"
	"  -a, --algorithm NAME      show this one, with parameters: chain:segment=64KiB\n"
	"  -p, --params FILE         what gridcoll probe measured\n"
	"  -t, --table FILE          what gridcoll tune decided\n"
	"  -r, --root RANK           of bcast, reduce, scatter and gather (default 0)\n"
	"  -n N, --hosts LIST, --per-host K\n"
	"                            which ranks there are, as in gridcoll-run\n"
	"  -s, --streams N           connections per WAN peer\n"
	"      --cold                connections are new\n"
	"      --ports MODEL         NICs: shared (default), full-duplex or half-duplex\n"
	"      --dilate K            as in a lab dilated by K; no (default)\n"
	"  -j, --json                for programs\n"
	"      --gantt FILE          who sends what to whom when, as a chart (SVG)\n"
	"      --print-schedule RANK this rank's steps, of the first window\n"
	"  -x, --explain FILE        a run that gridcoll bench --trace recorded, beside\n"
	"                            its prediction\n"
	"  -h, --help                this text\n"
	"example: gridcoll plan bcast --grid my.grid --bytes 32MiB --gantt bcast.svg\n";

enum { DILATE = 256, COLD, PORTS, GANTT, SCHEDULE, HOSTS, PER_HOST };

static const struct option longs[] = {{"grid", 1, NULL, 'g'}, {"bytes", 1, NULL, 'b'},
	{"algorithm", 1, NULL, 'a'}, {"params", 1, NULL, 'p'}, {"table", 1, NULL, 't'},
	{"root", 1, NULL, 'r'}, {"np", 1, NULL, 'n'}, {"hosts", 1, NULL, HOSTS},
	{"per-host", 1, NULL, PER_HOST}, {"streams", 1, NULL, 's'}, {"cold", 0, NULL, COLD},
	{"ports", 1, NULL, PORTS}, {"dilate", 1, NULL, DILATE}, {"json", 0, NULL, 'j'},
	{"gantt", 1, NULL, GANTT}, {"print-schedule", 1, NULL, SCHEDULE}, {"explain", 1, NULL, 'x'},
	{"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};

static int wrong(const char *what, const char *value, const char *expected)
{
	return gct_wrong("plan", "%s \"%s\", expected %s", what, value, expected);
}

static int number(const char *what, const char *value, uint64_t least, uint64_t most, uint32_t *out)
{
	uint64_t v;

	if (gci_parse_uint(value, most, &v) || v < least)
		return gct_wrong("plan", "%s \"%s\", expected a number from %llu to %llu", what,
			value, (unsigned long long)least, (unsigned long long)most);
	*out = (uint32_t)v;
	return 0;
}

static int number_option(struct gct_plan_options *o, int c, const char *value)
{
	uint32_t v = 0;
	int rc = 0;

	switch (c) {
	case 'r':
		rc = number("--root", value, 0, GCI_CTL_MAX_RANKS - 1, &v);
		o->root = v;
		o->has_root = 1;
		break;
	case 'n':
		rc = number("-n", value, 1, GCI_CTL_MAX_RANKS, &o->run.nranks);
		break;
	case PER_HOST:
		rc = number("--per-host", value, 1, GCI_CTL_MAX_RANKS, &o->run.per_host);
		break;
	case 's':
		rc = number("--streams", value, 1, 64, &o->streams);
		break;
	case SCHEDULE:
		rc = number("--print-schedule", value, 0, GCI_CTL_MAX_RANKS - 1, &v);
		o->schedule_of = v;
		break;
	case DILATE:
		o->dilation = 1;
		if (strcmp(value, "no") != 0)
			rc = number("--dilate", value, 1, 1000000, &o->dilation);
		break;
	}
	return rc;
}

static int ports(struct gct_plan_options *o, const char *value)
{
	static const char *const names[] = {[GCI_HOST_FAIR] = "shared",
		[GCI_HOST_FULL_DUPLEX] = "full-duplex",
		[GCI_HOST_HALF_DUPLEX] = "half-duplex"};
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(value, names[i])) {
			o->ports = (enum gci_host_model)i;
			return 0;
		}
	return wrong("--ports", value, "shared, full-duplex or half-duplex");
}

static int option(struct gct_plan_options *o, int c, const char *value)
{
	switch (c) {
	case 'g':
		o->run.grid = value;
		return 0;
	case 'b':
		o->has_nbytes = 1;
		if (gci_parse_bytes(value, &o->nbytes) || o->nbytes > GCT_MOST_NBYTES)
			return wrong("--bytes", value, GCT_NBYTES_EXPECTED);
		return 0;
	case 'a':
		o->algorithm = value;
		return 0;
	case 'p':
		o->params = value;
		return 0;
	case 't':
		o->table = value;
		return 0;
	case HOSTS:
		o->run.hosts = value;
		return 0;
	case 'j':
		o->json = 1;
		return 0;
	case COLD:
		o->cold = 1;
		return 0;
	case PORTS:
		return ports(o, value);
	case GANTT:
		o->gantt = value;
		return 0;
	case 'x':
		o->explain = value;
		return 0;
	default:
		return number_option(o, c, value);
	}
}

static int check(struct gct_plan_options *o, int argc, char **argv)
{
	const char *lab = getenv("GRIDCOLL_LAB");

	if (!o->run.grid && lab && *lab) {
		o->run.lab = lab;
		o->run.lab_from_environment = 1;
	}
	if (!o->run.grid && !o->run.lab)
		return gct_wrong(
			"plan", "no --grid, expected a grid file, see gridcoll plan --help");
	if (o->explain && argc)
		return wrong("operation", argv[0], "none: --explain FILE names it");
	if (o->explain && (o->has_nbytes || o->algorithm || o->has_root || o->dilation))
		return wrong("--explain", o->explain,
			"no --bytes, --algorithm, --root or --dilate with it: the file names them");
	if (o->explain && (o->run.hosts || o->run.nranks || o->run.per_host))
		return wrong("--explain", o->explain,
			"no --hosts, -n or --per-host with it: the file names them");
	if (o->explain && (o->cold || o->ports))
		return wrong("--explain", o->explain, "no --cold or --ports with it");
	if (o->explain && (o->table || o->schedule_of != UINT64_MAX))
		return wrong("--explain", o->explain, "no --table or --print-schedule with it");
	if (o->explain)
		return 0;
	if (argc != 1)
		return wrong("operation", argc ? argv[1] : "", "one, such as bcast");
	o->kind = gci_kind_find(argv[0]);
	if (o->kind < 0)
		return wrong("operation", argv[0],
			"bcast, reduce, allreduce, reduce_scatter, scatter, gather, allgather, "
			"alltoall or barrier");
	if (!o->has_nbytes && o->kind != GCI_BARRIER)
		return gct_wrong("plan", "no --bytes, expected " GCT_NBYTES_EXPECTED);
	return 0;
}

int gct_plan_parse(struct gct_plan_options *o, int argc, char **argv)
{
	int c, rc = 0;

	*o = (struct gct_plan_options){.kind = -1, .schedule_of = UINT64_MAX};
	optind = 1;
	while (!rc && (c = getopt_long(argc, argv, ":g:b:a:p:t:r:n:s:jx:h", longs, NULL)) != -1) {
		if (c == 'h') {
			gct_help(help);
			return -1;
		}
		if (c == '?' || c == ':')
			return gct_wrong_option("plan", argv, longs, c);
		rc = option(o, c, optarg);
	}
	return rc ? rc : check(o, argc - optind, argv + optind);
}
