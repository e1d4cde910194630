/* SPDX-License-Identifier: MIT */
#include "launcher/options.h"

#include "base/clock.h"
#include "base/nics.h"
#include "base/units.h"
#include "launcher/ssh.h"
#include "shaping/budget.h"
#include "shaping/ladder.h"
#include "transport/address.h"
#include "transport/control.h"
#include "transport/path.h"
#include "transport/secret.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* ---- What --help says. */

const char *gci_options_help(void)
{
	return "usage: gridcoll-run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	       "       gridcoll-run --serve [IP:]PORT --secret-file FILE -n N [OPTION...]\n"
	       "       gridcoll-run --join HOST:PORT --secret-file FILE [OPTION...] COMMAND...\n"
	       "Starts one process of COMMAND per rank and connects them into a job; or\n"
	       "connects ranks that others start.\n"
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
	       "  --start-timeout TIME  longest wait from first rank to last (default 60s)\n"
	       "  --survive             the death of a rank does not end the others, which may\n"
	       "                        go on by gcoll_comm_shrink\n"
	       "  --shrink-timeout TIME longest wait there for ranks that live (default 600s)\n"
	       "  --chdir DIR           run COMMAND in this directory of each host (default:\n"
	       "                        the current one, or home where a host has not got it)\n"
	       "  --remote-path PATH    gridcoll-run on remote hosts (default: gridcoll-run)\n"
	       "  --ssh-fanout N        no host runs more than N ssh at a time: those that are\n"
	       "                        started start others (default 32)\n"
	       "  --ssh-timeout TIME    longest wait for a host to let ssh in (default 12s)\n"
	       "  --address HOST        by which ranks on other hosts reach this machine\n"
	       "                        (default: as the way to them begins here)\n"
	       "  --dry-run             show which rank would run where and by which commands,\n"
	       "                        start nothing\n"
	       "  --serve ADDRESS       start nothing; connect ranks that others start, and\n"
	       "                        that come to this [IP:]PORT\n"
	       "  --join ADDRESS        run COMMAND as a rank of the job that is served at\n"
	       "                        this HOST:PORT\n"
	       "  --secret-file FILE    the job's secret, 64 hexadecimal digits; -: standard\n"
	       "                        input; --serve makes the file if there is none\n"
	       "  --rank-from NAME      --join: the rank is in this environment variable, such\n"
	       "                        as JOB_COMPLETION_INDEX (default: in $GRIDCOLL_RANK)\n"
	       "  --size-from NAME      --join: the number of ranks is in this one (or -n)\n"
	       "  --rank-0-serves       --join: where rank 0 runs, serve the job as well\n"
	       "  --slurm               --join under srun, as Slurm's variables say; without\n"
	       "                        --secret-file, standard input begins with the secret\n"
	       "  --new-secret          print a secret, and end\n"
	       "  --help, --version\n"
	       "\n"
	       "Exit status: 0, or that of the rank that failed first (128 + N when killed by\n"
	       "signal N; 1 when it was lost); 2 for wrong arguments. With --survive, failures\n"
	       "do not count that others have gone on after.\n"
	       "\n"
	       "example: gridcoll-run -n 4 gridcoll cp FILE '/tmp/out/%r/'\n"
	       "         gridcoll-run --grid my.grid ./a.out\n";
}

/* ---- What does not go together on the command line, and defaults of the environment. */

/* It is no job at all. */
static int gci_options_elsewhere(const struct gci_options *o)
{
	return o->help || o->version || o->agent || o->new_secret;
}

/* Of jobs whose ranks others start. */
static int check_guests(struct gci_options *o, struct gci_error *e)
{
	const char *secret = getenv("GRIDCOLL_SECRET_FILE");
	int joins = o->join || o->slurm;

	if (!o->secret_file && secret && *secret)
		o->secret_file = secret;
	if (!o->secret_file && o->slurm)
		o->secret_file = "-";
	if (o->serve && joins)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--serve and --join or --slurm: expected one of them "
			"(--join --rank-0-serves does both)");
	if ((o->rank_from || o->size_from || o->rank_0_serves) && !joins)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--rank-from, --size-from and --rank-0-serves: expected --join with them");
	if ((o->serve || joins) && o->lab)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--lab: gridcoll-run starts a lab's ranks itself, expected no --serve or "
			"--join with it");
	if ((o->serve || joins) && !o->secret_file)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"no secret, expected --secret-file FILE "
			"(gridcoll-run --new-secret makes one)");
	if (o->serve && *o->argv)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--serve with a command, \"%s\": expected none, others start the ranks",
			*o->argv);
	if (o->serve && !o->nranks && !o->grid && !o->hosts)
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "--serve: expected -n N, or --grid or --hosts with it");
	return 0;
}

/* What was parsed goes together, and has its defaults. */
static int gci_options_check(struct gci_options *o, struct gci_error *e)
{
	if (o->new_secret && *o->argv)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--new-secret with a command, \"%s\": expected none", *o->argv);
	if (gci_options_elsewhere(o))
		return 0;
	if (o->grid && o->lab)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--grid and --lab: expected one of them (a lab has its grid with it)");
	if (check_guests(o, e))
		return e->status;
	if (!o->lab && !o->grid && !o->serve && !o->join && !o->slurm) {
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
	if (!o->serve && (!*o->argv || !**o->argv))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"no command, expected: gridcoll-run [OPTION...] COMMAND [ARGUMENT...]");
	return 0;
}

/* ---- The command line. */

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
	CHDIR,
	REMOTE,
	FANOUT,
	SSH_TIMEOUT,
	ADDRESS,
	DATA_PATH,
	CONGESTION,
	SECURITY,
	PARAMS,
	PACE,
	BUDGET,
	STATS,
	DRY,
	SERVE,
	JOIN,
	SECRET_FILE,
	RANK_FROM,
	SIZE_FROM,
	RANK_0_SERVES,
	NEW_SECRET,
	SLURM,
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
	{"chdir", required_argument, NULL, CHDIR},
	{"remote-path", required_argument, NULL, REMOTE},
	{"ssh-fanout", required_argument, NULL, FANOUT},
	{"ssh-timeout", required_argument, NULL, SSH_TIMEOUT},
	{"address", required_argument, NULL, ADDRESS},
	{"data-path", required_argument, NULL, DATA_PATH},
	{"congestion", required_argument, NULL, CONGESTION},
	{"security", required_argument, NULL, SECURITY},
	{"params", required_argument, NULL, PARAMS},
	{"pace", required_argument, NULL, PACE},
	{"wan-budget", required_argument, NULL, BUDGET},
	{"stats", required_argument, NULL, STATS},
	{"dry-run", no_argument, NULL, DRY},
	{"serve", required_argument, NULL, SERVE},
	{"join", required_argument, NULL, JOIN},
	{"secret-file", required_argument, NULL, SECRET_FILE},
	{"rank-from", required_argument, NULL, RANK_FROM},
	{"size-from", required_argument, NULL, SIZE_FROM},
	{"rank-0-serves", no_argument, NULL, RANK_0_SERVES},
	{"new-secret", no_argument, NULL, NEW_SECRET},
	{"slurm", no_argument, NULL, SLURM},
	{"agent", no_argument, NULL, AGENT},
	{"netns", required_argument, NULL, NETNS},
	{"help", no_argument, NULL, HELP},
	{"version", no_argument, NULL, VERSION},
	{NULL, 0, NULL, 0},
};

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

static int fanout(struct gci_options *o, const char *value, struct gci_error *e)
{
	uint64_t v;

	if (gci_parse_uint(value, GCI_CTL_MAX_RANKS, &v) || v < 2)
		return bad(e, "--ssh-fanout", value, "a number from 2 to 65536");
	o->ssh_fanout = (uint32_t)v;
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

/* [IP:]PORT; port 0: any. */
static int serve(struct gci_options *o, const char *value, struct gci_error *e)
{
	const char *colon = strrchr(value, ':'), *port = colon ? colon + 1 : value;
	size_t len = colon ? (size_t)(colon - value) : 0;
	struct gci_address a;
	uint64_t number;

	o->serve = value;
	if (len > 1 && *value == '[' && value[len - 1] == ']') {
		value++;
		len -= 2;
	}
	if (gci_parse_uint(port, 65535, &number) || len >= sizeof(o->serve_ip))
		return bad(e, "--serve", o->serve, GCI_SERVE_EXPECTED);
	o->serve_port = (uint16_t)number;
	memcpy(o->serve_ip, value, len);
	o->serve_ip[len] = '\0';
	return colon && gci_address_make(&a, o->serve_ip, 0)
		       ? bad(e, "--serve", o->serve, GCI_SERVE_EXPECTED)
		       : 0;
}

static int option(struct gci_options *o, int c, const char *value, struct gci_error *e)
{
	switch (c) {
	case SERVE:
		return serve(o, value, e);
	case JOIN:
		o->join = value;
		return 0;
	case SECRET_FILE:
		o->secret_file = value;
		return 0;
	case RANK_FROM:
		o->rank_from = value;
		return 0;
	case SIZE_FROM:
		o->size_from = value;
		return 0;
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
	case CHDIR:
		o->chdir = value;
		return *value == '/' ? 0 : bad(e, "--chdir", value, "a path from /");
	case REMOTE:
		o->remote_path = value;
		return 0;
	case FANOUT:
		return fanout(o, value, e);
	case ADDRESS:
		o->address = value;
		return strpbrk(value, "/[] ")
			       ? bad(e, "--address", value, "a host's name or an IP address")
			       : 0;
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
	case SSH_TIMEOUT:
		if (gci_parse_time(value, &o->ssh_ns) || !o->ssh_ns)
			return bad(e, "--ssh-timeout", value, GCI_TIME_EXPECTED);
		return 0;
	case NETNS:
		o->netns = value;
		return 0;
	}
	return gci_error_set(e, GCOLL_ERR_INVAL, "unknown option");
}

static int flag(struct gci_options *o, int c)
{
	int *at = c == QUIET           ? &o->quiet_prefix
		  : c == DRY           ? &o->dry_run
		  : c == SURVIVE       ? &o->survives
		  : c == AGENT         ? &o->agent
		  : c == RANK_0_SERVES ? &o->rank_0_serves
		  : c == NEW_SECRET    ? &o->new_secret
		  : c == SLURM         ? &o->slurm
		  : c == HELP          ? &o->help
		  : c == VERSION       ? &o->version
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

static int is_warm(const char *value)
{
	return !strcmp(value, "on") || !strcmp(value, "now") || !strcmp(value, "off");
}

/* What ranks would refuse, each of them by itself. */
static int check_for_ranks(const struct gci_options *o, struct gci_error *e)
{
	const char *said = getenv("GRIDCOLL_SECURITY");
	enum gci_security security;
	enum gci_data_path path;
	enum gci_pace_how pace;

	if (!o->security && said && *said && gci_security_parse(said, &security))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_SECURITY=%s, expected " GCI_SECURITY_EXPECTED, said);
	said = getenv("GRIDCOLL_DATA_PATH");
	if (!o->data_path && said && *said && gci_data_path_parse(said, &path))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_DATA_PATH=%s, expected " GCI_DATA_PATH_EXPECTED, said);
	said = getenv("GRIDCOLL_PACE");
	if (!o->pace && said && *said && gci_pace_parse(said, &pace))
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "GRIDCOLL_PACE=%s, expected " GCI_PACE_EXPECTED, said);
	said = getenv("GRIDCOLL_WARM");
	if (said && *said && !is_warm(said))
		return gci_error_set(
			e, GCOLL_ERR_INVAL, "GRIDCOLL_WARM=%s, expected on, now or off", said);
	return 0;
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
	return check_for_ranks(o, e);
}

int gci_options_parse(struct gci_options *o, int argc, char **argv, struct gci_error *e)
{
	int c, rc;

	memset(o, 0, sizeof(*o));
	o->start_ns = 60 * GCI_NS_PER_S;
	o->ssh_ns = GCI_SSH_TIMEOUT_NS;
	o->shrink_ns = 600 * GCI_NS_PER_S;
	o->remote_path = "gridcoll-run";
	optind = 0; /* glibc: begin anew */
	while ((c = getopt_long(argc, argv, "+:n:", longs, NULL)) != -1) {
		if (c == '?' || c == ':')
			return complain(c, argv, e);
		/* Of --interfaces it is what the route says. */
		if (optarg && !*optarg && c != INTERFACES)
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"%s: expected a value that is not empty (see --help)",
				argv[optind - 1] == optarg ? argv[optind - 2] : argv[optind - 1]);
		rc = flag(o, c) ? 0 : option(o, c, optarg, e);
		if (rc)
			return rc;
	}
	o->argv = argv + optind;
	rc = gci_options_check(o, e);
	return rc || gci_options_elsewhere(o) ? rc : from_environment(o, e);
}
