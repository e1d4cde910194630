/* SPDX-License-Identifier: MIT */
#include "launcher/options.h"

#include "base/clock.h"
#include "base/nics.h"
#include "base/units.h"
#include "shaping/budget.h"
#include "shaping/ladder.h"
#include "transport/control.h"
#include "transport/path.h"
#include "transport/security.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
	GRID = 256,
	PER_HOST,
	HOSTS,
	LAB,
	TABLE,
	TIMERS,
	INTERFACES,
	PORT_RANGE,
	QUIET,
	START,
	SURVIVE,
	SHRINK,
	REMOTE,
	DATA_PATH,
	CONGESTION,
	SECURITY,
	PARAMS,
	PACE,
	BUDGET,
	STATS,
	DRY,
	AGENT,
	NETNS,
	HELP,
	VERSION
};

static const struct option longs[] = {
	{"np", required_argument, NULL, 'n'},
	{"grid", required_argument, NULL, GRID},
	{"per-host", required_argument, NULL, PER_HOST},
	{"hosts", required_argument, NULL, HOSTS},
	{"lab", required_argument, NULL, LAB},
	{"table", required_argument, NULL, TABLE},
	{"timers", required_argument, NULL, TIMERS},
	{"interfaces", required_argument, NULL, INTERFACES},
	{"port-range", required_argument, NULL, PORT_RANGE},
	{"quiet-prefix", no_argument, NULL, QUIET},
	{"start-timeout", required_argument, NULL, START},
	{"survive", no_argument, NULL, SURVIVE},
	{"shrink-timeout", required_argument, NULL, SHRINK},
	{"remote-path", required_argument, NULL, REMOTE},
	{"data-path", required_argument, NULL, DATA_PATH},
	{"congestion", required_argument, NULL, CONGESTION},
	{"security", required_argument, NULL, SECURITY},
	{"params", required_argument, NULL, PARAMS},
	{"pace", required_argument, NULL, PACE},
	{"wan-budget", required_argument, NULL, BUDGET},
	{"stats", required_argument, NULL, STATS},
	{"dry-run", no_argument, NULL, DRY},
	{"agent", no_argument, NULL, AGENT},
	{"netns", required_argument, NULL, NETNS},
	{"help", no_argument, NULL, HELP},
	{"version", no_argument, NULL, VERSION},
	{NULL, 0, NULL, 0},
};

const char *gci_options_help(void)
{
	return "usage: gridcoll-run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	       "Starts one process of COMMAND per rank and connects them into a job.\n"
	       "\n"
	       "  -n N                  number of ranks (default: one per host, or 1)\n"
	       "  --grid FILE           on the hosts of this grid file, by ssh\n"
	       "  --hosts LIST          on these hosts, such as a,k[1-4]; with --grid or a lab:\n"
	       "                        only on these of it\n"
	       "  --per-host K          K ranks on each host (default 1)\n"
	       "  --lab FILE            in a running lab (default: $GRIDCOLL_LAB)\n"
	       "  --table FILE          run operations as this table of decisions says, made by\n"
	       "                        gridcoll tune (default: $GRIDCOLL_TABLE)\n"
	       "  --timers NAME         default: a rank silent for 20 s is dead; fast: for 4 s\n"
	       "  --interfaces LIST     addresses for data, such as eth1 or 10.1.0.0/16,!ib0\n"
	       "                        (default: $GRIDCOLL_INTERFACES, else the route's)\n"
	       "  --port-range A-B      ports to listen at (default: $GRIDCOLL_PORT_RANGE,\n"
	       "                        else any)\n"
	       "  --params FILE         open as many connections as are worth it, by what\n"
	       "                        gridcoll probe measured\n"
	       "  --congestion NAME     TCP's congestion control between clusters, such as bbr\n"
	       "  --wan-budget A>B=RATE send no faster than that from cluster A to B; may be\n"
	       "                        said again for others\n"
	       "  --pace NAME           how rates are kept: auto, fq, tcp, htb, edt, user, off\n"
	       "  --data-path NAME      how ranks move data: auto, poll or uring (io_uring)\n"
	       "  --security NAME       auth: strangers are kept out; encrypt: TLS as well;\n"
	       "                        auto (default): encrypt between clusters; or off\n"
	       "  --stats FILE          write the traffic between clusters as lines of JSON\n"
	       "  --quiet-prefix        do not write \"[rank] \" before each line of output\n"
	       "  --start-timeout TIME  longest wait for the last rank to join (default 60s)\n"
	       "  --survive             the death of a rank does not end the others, which may\n"
	       "                        go on by gcoll_comm_shrink\n"
	       "  --shrink-timeout TIME longest wait there for ranks that live (default 600s)\n"
	       "  --remote-path PATH    gridcoll-run on remote hosts (default: gridcoll-run)\n"
	       "  --dry-run             show which rank would run where, start nothing\n"
	       "  --help, --version\n"
	       "\n"
	       "Exit status: 0, or that of the rank that failed first (128 + N when killed by\n"
	       "signal N; 1 when it was lost); 2 for wrong arguments. With --survive, failures\n"
	       "do not count that others have gone on after.\n";
}

static int bad(struct gci_error *e, const char *option, const char *value, const char *expected)
{
	return gci_error_set(e, GCOLL_ERR_INVAL, "%s %s: expected %s", option, value, expected);
}

static int count(struct gci_error *e, const char *option, const char *value, uint32_t *out)
{
	uint64_t v;

	if (gci_parse_uint(value, GCI_CTL_MAX_RANKS, &v) || !v)
		return bad(e, option, value, "a number from 1 to 65536");
	*out = (uint32_t)v;
	return 0;
}

static int timers(struct gci_options *o, const char *value, struct gci_error *e)
{
	if (strcmp(value, "default") && strcmp(value, "fast"))
		return bad(e, "--timers", value, "default or fast");
	o->fast_timers = *value == 'f';
	return 0;
}

static int ports(struct gci_options *o, const char *value, struct gci_error *e)
{
	return gci_parse_ports(value, &o->ports) ? bad(e, "--port-range", value, GCI_PORTS_EXPECTED)
						 : 0;
}

static int interfaces(
	struct gci_options *o, const char *value, const char *name, struct gci_error *e)
{
	struct gci_error why = {0};
	struct gci_nics nics;

	o->interfaces = value;
	return gci_nics_parse(&nics, value, &why)
		       ? gci_error_set(e, why.status, "%s: %s", name, why.text)
		       : 0;
}

static int security(struct gci_options *o, const char *value, struct gci_error *e)
{
	enum gci_security which;

	o->security = value;
	return gci_security_parse(value, &which)
		       ? bad(e, "--security", value, GCI_SECURITY_EXPECTED)
		       : 0;
}

static int data_path(struct gci_options *o, const char *value, struct gci_error *e)
{
	enum gci_data_path which;

	o->data_path = value;
	return gci_data_path_parse(value, &which)
		       ? bad(e, "--data-path", value, GCI_DATA_PATH_EXPECTED)
		       : 0;
}

static int pace(struct gci_options *o, const char *value, struct gci_error *e)
{
	enum gci_pace_how how;

	o->pace = value;
	return gci_pace_parse(value, &how) ? bad(e, "--pace", value, GCI_PACE_EXPECTED) : 0;
}

static int budget(struct gci_options *o, const char *value, struct gci_error *e)
{
	struct gci_budget_order order;
	struct gci_error why = {0};

	if (o->nbudgets == GCI_OPTIONS_BUDGETS)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"more than %d --wan-budget, expected the rest in the grid file",
			GCI_OPTIONS_BUDGETS);
	o->budgets[o->nbudgets++] = value;
	return gci_budget_parse(&order, value, &why)
		       ? gci_error_set(e, why.status, "--wan-budget %s", why.text)
		       : 0;
}

static int option(struct gci_options *o, int c, const char *value, struct gci_error *e)
{
	switch (c) {
	case 'n':
		return count(e, "-n", value, &o->nranks);
	case PER_HOST:
		return count(e, "--per-host", value, &o->per_host);
	case GRID:
		o->grid = value;
		return 0;
	case HOSTS:
		o->hosts = value;
		return 0;
	case LAB:
		o->lab = value;
		return 0;
	case TABLE:
		o->table = value;
		return 0;
	case REMOTE:
		o->remote_path = value;
		return *value ? 0 : bad(e, "--remote-path", "\"\"", "a path or a program's name");
	case TIMERS:
		return timers(o, value, e);
	case INTERFACES:
		return interfaces(o, value, "--interfaces", e);
	case SECURITY:
		return security(o, value, e);
	case DATA_PATH:
		return data_path(o, value, e);
	case CONGESTION:
		o->congestion = value;
		return 0;
	case PACE:
		return pace(o, value, e);
	case BUDGET:
		return budget(o, value, e);
	case PARAMS:
		o->params = value;
		return 0;
	case STATS:
		o->stats = value;
		return 0;
	case PORT_RANGE:
		return ports(o, value, e);
	case START:
		if (gci_parse_time(value, &o->start_ns) || !o->start_ns)
			return bad(e, "--start-timeout", value, GCI_TIME_EXPECTED);
		return 0;
	case SHRINK:
		if (gci_parse_time(value, &o->shrink_ns) || !o->shrink_ns)
			return bad(e, "--shrink-timeout", value, GCI_TIME_EXPECTED);
		return 0;
	case NETNS:
		o->netns = value;
		return 0;
	}
	return gci_error_set(e, GCOLL_ERR_INVAL, "unknown option");
}

static int flag(struct gci_options *o, int c)
{
	int *at = c == QUIET     ? &o->quiet_prefix
		  : c == DRY     ? &o->dry_run
		  : c == SURVIVE ? &o->survives
		  : c == AGENT   ? &o->agent
		  : c == HELP    ? &o->help
		  : c == VERSION ? &o->version
				 : NULL;

	if (at)
		*at = 1;
	return at != NULL;
}

static int complain(int c, char **argv, struct gci_error *e)
{
	char name[3] = {'-', (char)optopt, 0};
	const char *what = argv[optind - 1];

	if (c == ':')
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "%s: expected a value behind it (see --help)", what);
	if (optopt && optopt < 256)
		what = name;
	return gci_error_set(e, GCOLL_ERR_INVAL,
		"unknown option %s, expected one of those that gridcoll-run --help shows", what);
}

/* What the environment says where the command line does not. */
static int from_environment(struct gci_options *o, struct gci_error *e)
{
	const char *nics = getenv("GRIDCOLL_INTERFACES"), *ports = getenv("GRIDCOLL_PORT_RANGE");

	if (!o->interfaces && nics && interfaces(o, nics, "GRIDCOLL_INTERFACES", e))
		return e->status;
	if (!o->ports.lo && ports && *ports && gci_parse_ports(ports, &o->ports))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_PORT_RANGE=%s, expected " GCI_PORTS_EXPECTED, ports);
	return 0;
}

static int check(struct gci_options *o, struct gci_error *e)
{
	if (o->help || o->version || o->agent)
		return 0;
	if (o->grid && o->lab)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--grid and --lab: expected one of them (a lab has its grid with it)");
	if (!o->lab && !o->grid) {
		const char *lab = getenv("GRIDCOLL_LAB");

		o->lab = lab && *lab ? lab : NULL;
		o->lab_from_environment = o->lab != NULL;
	}
	if (!o->table) {
		const char *table = getenv("GRIDCOLL_TABLE");

		o->table = table && *table ? table : NULL;
		o->table_from_environment = o->table != NULL;
	}
	if (o->per_host && !o->grid && !o->hosts && !o->lab)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--per-host %u: expected --grid, --hosts or --lab with it", o->per_host);
	if (!*o->argv)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"no command, expected: gridcoll-run [OPTION...] COMMAND [ARGUMENT...]");
	return from_environment(o, e);
}

int gci_options_parse(struct gci_options *o, int argc, char **argv, struct gci_error *e)
{
	int c, rc;

	memset(o, 0, sizeof(*o));
	o->start_ns = 60 * GCI_NS_PER_S;
	o->shrink_ns = 600 * GCI_NS_PER_S;
	o->remote_path = "gridcoll-run";
	optind = 0; /* glibc: begin anew */
	while ((c = getopt_long(argc, argv, "+:n:", longs, NULL)) != -1) {
		if (c == '?' || c == ':')
			return complain(c, argv, e);
		rc = flag(o, c) ? 0 : option(o, c, optarg, e);
		if (rc)
			return rc;
	}
	o->argv = argv + optind;
	return check(o, e);
}
