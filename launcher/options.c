/* SPDX-License-Identifier: MIT */
#include "launcher/options.h"

#include "base/clock.h"
#include "base/nics.h"
#include "base/options.h"
#include "base/units.h"
#include "launcher/ssh.h"
#include "shaping/budget.h"
#include "shaping/ladder.h"
#include "transport/address.h"
#include "transport/control.h"
#include "transport/path.h"
#include "transport/secret.h"

#include <stdlib.h>
#include <string.h>

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
	int joins = o->guests.join || o->guests.slurm;

	if (!o->guests.secret_file && secret && *secret)
		o->guests.secret_file = secret;
	if (!o->guests.secret_file && o->guests.slurm)
		o->guests.secret_file = "-";
	if (o->guests.serve && joins)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--serve and --join or --slurm: expected one of them "
			"(--join --rank-0-serves does both)");
	if ((o->guests.rank_from || o->guests.size_from || o->guests.rank_0_serves) && !joins)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--rank-from, --size-from and --rank-0-serves: expected --join with them");
	if ((o->guests.serve || joins) && o->lab)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--lab: gridcoll-run starts a lab's ranks itself, expected no --serve or "
			"--join with it");
	if ((o->guests.serve || joins) && !o->guests.secret_file)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"no secret, expected --secret-file FILE "
			"(gridcoll-run --new-secret makes one)");
	if (o->guests.serve && *o->argv)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"--serve with a command, \"%s\": expected none, others start the ranks",
			*o->argv);
	if (o->guests.serve && !o->nranks && !o->grid && !o->hosts)
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
	if (!o->lab && !o->grid && !o->guests.serve && !o->guests.join && !o->guests.slurm) {
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
	if (!o->guests.serve && (!*o->argv || !**o->argv))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"no command, expected: gridcoll-run [OPTION...] COMMAND [ARGUMENT...]");
	return 0;
}

/* ---- The command line. */

#define SETTINGS struct gci_options

static int take_chdir(void *settings, char *value, struct gci_error *e)
{
	SETTINGS *o = settings;

	o->chdir = value;
	return *value == '/' ? 0 : gci_option_wrong(e, "chdir", value, "a path from /");
}

static int take_address(void *settings, char *value, struct gci_error *e)
{
	SETTINGS *o = settings;

	o->net.address = value;
	return !*value || strpbrk(value, "/[] ")
		       ? gci_option_wrong(e, "address", value, "a host's name or an IP address")
		       : 0;
}

static int take_timers(void *settings, char *value, struct gci_error *e)
{
	SETTINGS *o = settings;

	if (strcmp(value, "default") && strcmp(value, "fast"))
		return gci_option_wrong(e, "timers", value, "default or fast");
	o->fast_timers = *value == 'f';
	return 0;
}

static int take_ports(void *settings, char *value, struct gci_error *e)
{
	SETTINGS *o = settings;

	return gci_parse_ports(value, &o->net.ports)
		       ? gci_option_wrong(e, "port-range", value, GCI_PORTS_EXPECTED)
		       : 0;
}

static int interfaces(SETTINGS *o, const char *value, const char *name, struct gci_error *e)
{
	struct gci_error why = {0};
	struct gci_nics nics;

	o->net.interfaces = value;
	return gci_nics_parse(&nics, value, &why)
		       ? gci_error_set(e, why.status, "%s: %s", name, why.text)
		       : 0;
}

/* An empty list is what the route says. */
static int take_interfaces(void *settings, char *value, struct gci_error *e)
{
	return interfaces(settings, value, "--interfaces", e);
}

static int take_security(void *settings, char *value, struct gci_error *e)
{
	enum gci_security which;
	SETTINGS *o = settings;

	o->net.security = value;
	return gci_security_parse(value, &which)
		       ? gci_option_wrong(e, "security", value, GCI_SECURITY_EXPECTED)
		       : 0;
}

static int take_data_path(void *settings, char *value, struct gci_error *e)
{
	enum gci_data_path which;
	SETTINGS *o = settings;

	o->net.data_path = value;
	return gci_data_path_parse(value, &which)
		       ? gci_option_wrong(e, "data-path", value, GCI_DATA_PATH_EXPECTED)
		       : 0;
}

static int take_pace(void *settings, char *value, struct gci_error *e)
{
	enum gci_pace_how how;
	SETTINGS *o = settings;

	o->net.pace = value;
	return gci_pace_parse(value, &how) ? gci_option_wrong(e, "pace", value, GCI_PACE_EXPECTED)
					   : 0;
}

static int take_budget(void *settings, char *value, struct gci_error *e)
{
	struct gci_budget_order order;
	struct gci_error why = {0};
	SETTINGS *o = settings;

	if (o->net.nbudgets == GCI_OPTIONS_BUDGETS)
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"more than %d --wan-budget, expected the rest in the grid file",
			GCI_OPTIONS_BUDGETS);
	o->net.budgets[o->net.nbudgets++] = value;
	return gci_budget_parse(&order, value, &why)
		       ? gci_error_set(e, why.status, "--wan-budget %s", why.text)
		       : 0;
}

/* [IP:]PORT; port 0: any. */
static int take_serve(void *settings, char *value, struct gci_error *e)
{
	const char *ip = value, *colon = strrchr(value, ':'), *port = colon ? colon + 1 : value;
	size_t len = colon ? (size_t)(colon - value) : 0;
	struct gci_address a;
	SETTINGS *o = settings;
	uint64_t number;

	o->guests.serve = value;
	if (len > 1 && *ip == '[' && ip[len - 1] == ']') {
		ip++;
		len -= 2;
	}
	if (gci_parse_uint(port, 65535, &number) || len >= sizeof(o->guests.serve_ip))
		return gci_option_wrong(e, "serve", value, GCI_SERVE_EXPECTED);
	o->guests.serve_port = (uint16_t)number;
	memcpy(o->guests.serve_ip, ip, len);
	o->guests.serve_ip[len] = '\0';
	return colon && gci_address_make(&a, o->guests.serve_ip, 0)
		       ? gci_option_wrong(e, "serve", value, GCI_SERVE_EXPECTED)
		       : 0;
}

#define TEXT(field)  GCI_OPTION_TEXT(SETTINGS, field)
#define FLAG(field)  GCI_OPTION_FLAG(SETTINGS, field)
#define COUNT(field) GCI_OPTION_NUMBER(SETTINGS, field, 1, GCI_CTL_MAX_RANKS)
#define TIME(field)  GCI_OPTION_TIME(SETTINGS, field, 1, UINT64_MAX)

static const struct gci_option options[] = {
	{'n', "np", "N", "number of ranks (default: one per host, or 1)", COUNT(nranks)},
	{0, "grid", "FILE", "on the hosts of this grid file, by ssh", TEXT(grid)},
	{0, "hosts", "LIST",
		"on these hosts, such as a,k[1-4]; with --grid or a lab: only on these of it",
		TEXT(hosts)},
	{0, "per-host", "K", "K ranks on each host (default 1)", COUNT(per_host)},
	{0, "lab", "FILE", "in a running lab (default: $GRIDCOLL_LAB)", TEXT(lab)},
	{0, "table", "FILE",
		"run operations as this table of decisions says, made by gridcoll tune (default: "
		"$GRIDCOLL_TABLE)",
		TEXT(table)},
	{0, "timers", "NAME", "default: a rank silent for 20 s is dead; fast: for 4 s",
		.take = take_timers},
	{0, "interfaces", "LIST",
		"addresses for data, such as eth1 or 10.1.0.0/16,!ib0 (default: "
		"$GRIDCOLL_INTERFACES, else the route's)",
		.take = take_interfaces},
	{0, "port-range", "A-B", "ports to listen at (default: $GRIDCOLL_PORT_RANGE, else any)",
		.take = take_ports},
	{0, "params", "FILE",
		"open as many connections as are worth it, by what gridcoll probe measured",
		TEXT(params)},
	{0, "congestion", "NAME", "TCP's congestion control between clusters, such as bbr",
		TEXT(net.congestion)},
	{0, "wan-budget", "A>B=RATE",
		"send no faster than that from cluster A to B; may be said again for others",
		.take = take_budget},
	{0, "pace", "NAME", "how rates are kept: auto, fq, tcp, htb, edt, user, off",
		.take = take_pace},
	{0, "data-path", "NAME", "how ranks move data: auto, poll or uring (io_uring)",
		.take = take_data_path},
	{0, "security", "NAME",
		"auth: strangers are kept out; encrypt: TLS as well; auto (default): encrypt "
		"between clusters; or off",
		.take = take_security},
	{0, "stats", "FILE", "write the traffic between clusters as lines of JSON", TEXT(stats)},
	{0, "quiet-prefix", NULL, "do not write \"[rank] \" before each line of output",
		FLAG(quiet_prefix)},
	{0, "start-timeout", "TIME", "longest wait from first rank to last (default 60s)",
		TIME(start_ns)},
	{0, "survive", NULL,
		"the death of a rank does not end the others, which may go on by "
		"gcoll_comm_shrink",
		FLAG(survives)},
	{0, "shrink-timeout", "TIME", "longest wait there for ranks that live (default 600s)",
		TIME(shrink_ns)},
	{0, "chdir", "DIR",
		"run COMMAND in this directory of each host (default: the current one, or home "
		"where a host has not got it)",
		.take = take_chdir},
	{0, "remote-path", "PATH", "gridcoll-run on remote hosts (default: gridcoll-run)",
		TEXT(ssh.remote_path)},
	{0, "ssh-fanout", "N",
		"no host runs more than N ssh at a time: those that are started start others "
		"(default 32)",
		GCI_OPTION_NUMBER(SETTINGS, ssh.fanout, 2, GCI_CTL_MAX_RANKS)},
	{0, "ssh-timeout", "TIME", "longest wait for a host to let ssh in (default 12s)",
		TIME(ssh.limit_ns)},
	{0, "address", "HOST",
		"by which ranks on other hosts reach this machine (default: as the way to them "
		"begins here)",
		.take = take_address},
	{0, "dry-run", NULL, "show which rank would run where and by which commands, start nothing",
		FLAG(dry_run)},
	{0, "serve", "ADDRESS",
		"start nothing; connect ranks that others start, and that come to this "
		"[IP:]PORT",
		.take = take_serve},
	{0, "join", "ADDRESS", "run COMMAND as a rank of the job that is served at this HOST:PORT",
		TEXT(guests.join)},
	{0, "secret-file", "FILE",
		"the job's secret, 64 hexadecimal digits; -: standard input; --serve makes the "
		"file if there is none",
		TEXT(guests.secret_file)},
	{0, "rank-from", "NAME",
		"--join: the rank is in this environment variable, such as JOB_COMPLETION_INDEX "
		"(default: in $GRIDCOLL_RANK)",
		TEXT(guests.rank_from)},
	{0, "size-from", "NAME", "--join: the number of ranks is in this one (or -n)",
		TEXT(guests.size_from)},
	{0, "rank-0-serves", NULL, "--join: where rank 0 runs, serve the job as well",
		FLAG(guests.rank_0_serves)},
	{0, "slurm", NULL,
		"--join under srun, as Slurm's variables say; without --secret-file, standard "
		"input begins with the secret",
		FLAG(guests.slurm)},
	{0, "new-secret", NULL, "print a secret, and end", FLAG(new_secret)},
	{0, "version", NULL, "print the version, and end", FLAG(version)},
	/* gridcoll-run's own: what it starts on other hosts. */
	{0, "agent", NULL, NULL, FLAG(agent)}, {0, "netns", "NAME", NULL, TEXT(netns)}, {0}};

void gci_options_help(FILE *out)
{
	fputs("usage: gridcoll-run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	      "       gridcoll-run --serve [IP:]PORT --secret-file FILE -n N [OPTION...]\n"
	      "       gridcoll-run --join HOST:PORT --secret-file FILE [OPTION...] COMMAND...\n"
	      "Starts one process of COMMAND per rank and connects them into a job; or\n"
	      "connects ranks that others start.\n"
	      "\n",
		out);
	gci_options_print(options, out);
	fputs("\n"
	      "Exit status: 0, or that of the rank that failed first (128 + N when killed by\n"
	      "signal N; 1 when it was lost); 2 for wrong arguments. With --survive, failures\n"
	      "do not count that others have gone on after.\n"
	      "\n"
	      "example: gridcoll-run -n 4 gridcoll cp FILE '/tmp/out/%r/'\n"
	      "         gridcoll-run --grid my.grid ./a.out\n",
		out);
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

	if (!o->net.security && said && *said && gci_security_parse(said, &security))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_SECURITY=%s, expected " GCI_SECURITY_EXPECTED, said);
	said = getenv("GRIDCOLL_DATA_PATH");
	if (!o->net.data_path && said && *said && gci_data_path_parse(said, &path))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_DATA_PATH=%s, expected " GCI_DATA_PATH_EXPECTED, said);
	said = getenv("GRIDCOLL_PACE");
	if (!o->net.pace && said && *said && gci_pace_parse(said, &pace))
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

	if (!o->net.interfaces && nics && interfaces(o, nics, "GRIDCOLL_INTERFACES", e))
		return e->status;
	if (!o->net.ports.lo && ports && *ports && gci_parse_ports(ports, &o->net.ports))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"GRIDCOLL_PORT_RANGE=%s, expected " GCI_PORTS_EXPECTED, ports);
	return check_for_ranks(o, e);
}

int gci_options_parse(struct gci_options *o, int argc, char **argv, struct gci_error *e)
{
	int first, rc;

	memset(o, 0, sizeof(*o));
	o->start_ns = 60 * GCI_NS_PER_S;
	o->ssh.limit_ns = GCI_SSH_TIMEOUT_NS;
	o->shrink_ns = 600 * GCI_NS_PER_S;
	o->ssh.remote_path = "gridcoll-run";
	first = gci_options_read(options, o, argc, argv, GCI_OPTIONS_FIRST, "gridcoll-run", e);
	if (first == GCI_OPTIONS_WRONG)
		return e->status;
	o->help = first == GCI_OPTIONS_HELP;
	if (o->help)
		return 0;
	o->argv = argv + first;
	rc = gci_options_check(o, e);
	return rc || gci_options_elsewhere(o) ? rc : from_environment(o, e);
}
