/* SPDX-License-Identifier: MIT
 * `gridcoll cp`: its options, whose files go to whom, and the exit status. */
#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "comm/comm.h"
#include "job/control_client.h"
#include "tools/cp/copy.h"
#include "tools/cp/impl.h"
#include "tools/lib/cases.h"
#include "tools/lib/tools.h"

#include <signal.h>
#include <stdlib.h>

/* ---- the command */

/* Whose files they are; with --gather, where they go. Nobody's newer files are to be replaced by those
 * of a host that nobody has named: if it is none where the command was typed, it must be said. */
static int find_root(struct gct_cp_copy *c, const struct gct_cp_ranks *r, struct gci_error *e)
{
	static const char elsewhere[] =
		"gridcoll cp: gridcoll-run was started on no host of the job, expected %s HOST";
	static const char another[] =
		"gridcoll cp: gridcoll-run is on another machine of this address, expected %s HOST";
	const char *option = c->o->gather ? "--to" : "--from";
	const char *name = c->o->gather ? c->o->to : c->o->from;
	const char *here = getenv("GRIDCOLL_LAUNCH_RANK"), *machine;
	char own[GCI_FILE_MACHINE];
	uint64_t rank;

	if (name) {
		gct_cp_select_one(r, option, name, &c->root, e);
	} else if (!here || gci_parse_uint(here, (uint64_t)r->n - 1, &rank)) {
		gci_error_set(e, GCOLL_ERR_INVAL, elsewhere, option);
	} else {
		c->root = (int)rank;
		gci_file_machine(own);
		machine = getenv("GRIDCOLL_LAUNCH_MACHINE");
		if (c->was == c->root && strcmp(own, machine ? machine : "") != 0)
			gci_error_set(e, GCOLL_ERR_INVAL, another, option);
	}
	c->root_was = c->root;
	return e->status;
}

/* Who is to have a copy. */
static int find_receivers(struct gct_cp_copy *c, struct gci_error *e)
{
	int i, n = gcoll_size(c->comm);
	struct gct_cp_ranks r = {n, gci_calloc((size_t)n, sizeof(*r.hosts)),
		gci_calloc((size_t)n, sizeof(*r.clusters))};

	c->receives = gci_calloc((size_t)n, 1);
	if (!r.hosts || !r.clusters || !c->receives)
		gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");
	for (i = 0; i < n && !e->status; i++) {
		r.hosts[i] = gcoll_host(c->comm, i);
		r.clusters[i] = gct_cp_cluster_name(c->comm, gcoll_cluster(c->comm, i));
	}
	if (!e->status)
		find_root(c, &r, e);
	for (i = 0; i < n && !e->status; i++)
		c->receives[i] = i != c->root;
	if (!e->status && c->o->to && !c->o->gather)
		gct_cp_select(&r, c->o->to, c->receives, e);
	if (!e->status) {
		c->receives[c->root] |= (uint8_t)c->o->include_source;
		c->writes = c->receives[gcoll_rank(c->comm)];
	}
	gci_free(r.hosts);
	gci_free(r.clusters);
	return e->status;
}

/* What runs is one long message, and few pairs of ranks carry it: more connections than others have,
 * unless somebody has said how many. The same on every rank. */
static void add_streams(struct gct_cp_copy *c)
{
	const struct gci_topo *t = &c->comm->topo;
	uint32_t *streams = &c->comm->engine->settings.streams, most = 0, n;
	struct gci_flight f;
	int a, b;

	if (*streams || c->o->gather || c->o->scatter)
		return;
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++) {
			if (a == b)
				continue;
			gci_topo_flight(t, a, b, 0, &f);
			if (f.streams != GCI_DEFAULT_STREAMS)
				return;
			n = gci_flight_bulk_streams(&f);
			most = n > most ? n : most;
		}
	*streams = most;
}

/* What every rank finds wrong with the options, or nothing. */
static int set_up(struct gct_cp_copy *c, struct gci_error *e)
{
	int rc = 0;

	if (c->o->algorithm)
		rc = gcoll_comm_set(c->comm, "bcast", c->o->algorithm);
	/* What runs is one long stream, for which the rows' own rules do, and what is short. To
	 * simulate each operation would cost more time than it saves. */
	if (!rc)
		rc = gcoll_comm_set(c->comm, "tuning", "table");
	c->comm->warms = 1u << GCI_BCAST;
	if (!rc)
		rc = gct_set_streams(c->comm, c->o->streams);
	add_streams(c);
	if (!rc && c->o->keep_going && !gci_control_survives(c->comm->engine->job.ctl))
		return gci_error_set(e, GCOLL_ERR_INVAL,
			"gridcoll cp: --keep-going, expected gridcoll-run --survive");
	return gct_cp_operation_error(e, rc) ? e->status : find_receivers(c, e);
}

/* What goes with --scatter and --gather. */
static int check_one_each(const struct gct_cp_options *o)
{
	const char *name = o->scatter ? "--scatter" : "--gather";
	const struct {
		int is_set;
		const char *name;
	} others[] = {{o->recursive, "--recursive"}, {o->resume, "--resume"},
		{o->keep_going, "--keep-going"}, {o->checksums != NULL, "--manifest"},
		{o->scatter && o->gather, "--gather"}, {o->gather && o->limit, "--bwlimit"},
		{o->gather && o->from, "--from"}, {o->gather && o->json, "--json"}};
	struct gci_error e = {0};
	size_t i;

	if (o->nsources > 1)
		return gct_wrong("cp", "%s with %d sources, expected one", name, o->nsources);
	for (i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (others[i].is_set)
			return gct_wrong("cp", "%s, expected no %s with it", name, others[i].name);
	if (o->gather)
		gci_free(gct_cp_expand(o->sources[0], 0, "host", &e));
	return e.status ? gct_wrong("cp", "%s", e.text) : 0;
}

static int check_operands(struct gct_cp_options *o, int argc, char **argv)
{
	struct gci_error e = {0};

	if (argc < 2)
		return gct_wrong("cp", "expected SOURCE... DEST, see gridcoll cp --help");
	o->sources = argv;
	o->nsources = argc - 1;
	o->dest = argv[argc - 1];
	for (; argc > 1; argc--)
		if (!*argv[argc - 2])
			return gct_wrong("cp", "a SOURCE is empty, expected a path");
	if (!*o->dest)
		return gct_wrong("cp", "DEST is empty, expected a path");
	gci_free(gct_cp_expand(o->dest, 0, "host", &e));
	if (e.status)
		return gct_wrong("cp", "%s", e.text);
	return o->scatter || o->gather ? check_one_each(o) : 0;
}

static int take_limit(void *settings, char *value, struct gci_error *e)
{
	struct gct_cp_options *o = settings;

	return gct_cp_parse_limit(value, &o->limit)
		       ? gci_option_wrong(e, "bwlimit", value, GCT_CP_LIMIT_EXPECTED)
		       : 0;
}

#define SETTINGS struct gct_cp_options

static const struct gci_option options[] = {
	{'r', "recursive", NULL,
		"directories with all that is in them, links as links: DIR goes to DEST/DIR, and "
		"what DIR/ holds to DEST",
		GCI_OPTION_FLAG(SETTINGS, recursive)},
	{'a', "algorithm", "NAME", "as in `gridcoll bench --list`, with parameters (default auto)",
		GCI_OPTION_TEXT(SETTINGS, algorithm)},
	{'s', "streams", "N", "connections per WAN peer",
		GCI_OPTION_NUMBER(SETTINGS, streams, 1, 64)},
	{0, "bwlimit", "RATE", "the most that the source sends per second: 12MB",
		.take = take_limit},
	{0, "from", "HOST",
		"the source is this host of the job (or rank, by its number); needed if "
		"gridcoll-run runs on none of them",
		GCI_OPTION_TEXT(SETTINGS, from)},
	{0, "to", "LIST",
		"only these: ranks (3 or 2-5), hosts (k1 or k[1-8]), clusters, with commas "
		"between",
		GCI_OPTION_TEXT(SETTINGS, to)},
	{0, "scatter", NULL,
		"each receiver gets a part of the one SOURCE, in their order, in place of all of "
		"it",
		GCI_OPTION_FLAG(SETTINGS, scatter)},
	{0, "gather", NULL,
		"a file of each other rank comes to this machine, or to the host of --to: %r and "
		"%h, of the rank that has it, in SOURCE as in DEST",
		GCI_OPTION_FLAG(SETTINGS, gather)},
	{'0', "include-source", NULL, "the source writes a copy too",
		GCI_OPTION_FLAG(SETTINGS, include_source)},
	{0, "sync", NULL, "each file is on the disk before it gets its name",
		GCI_OPTION_FLAG(SETTINGS, sync)},
	{0, "resume", NULL,
		"keep what has come if it fails, and go on from it; a file that all receivers "
		"have is not sent",
		GCI_OPTION_FLAG(SETTINGS, resume)},
	{0, "keep-going", NULL,
		"a receiver that fails is left out, others go on; needs gridcoll-run --survive",
		GCI_OPTION_FLAG(SETTINGS, keep_going)},
	{0, "manifest", "FILE", "SHA-256 of every file, as sha256sum checks them",
		GCI_OPTION_TEXT(SETTINGS, checksums)},
	{0, "json", "FILE", "a report: clusters, hosts, rates, checksums",
		GCI_OPTION_TEXT(SETTINGS, json)},
	{'q', "quiet", NULL, "no progress bar, no summary", GCI_OPTION_FLAG(SETTINGS, quiet)}, {0}};

static const struct gct_usage command_line = {"cp",
	"usage: gridcoll-run ... gridcoll cp [options] SOURCE... DEST\n"
	"Copies files of the source, the machine where gridcoll-run was started, to DEST\n"
	"on every other rank. In DEST, %r is the rank, %h the host and %% a percent\n"
	"sign. A DEST that ends in / is a directory, and made if missing; so is, for\n"
	"several sources, any DEST. A file gets its name only when it is whole and its\n"
	"checksum agrees. Ranks that have one directory get one copy.\n",
	"example: gridcoll-run -n 4 gridcoll cp FILE '/tmp/out/%r/'\n", options};

static int parse_options(struct gct_cp_options *o, int argc, char **argv)
{
	int first, rc = gct_options(&command_line, o, argc, argv, GCI_OPTIONS_ANYWHERE, &first);

	return rc ? rc : check_operands(o, argc - first, argv + first);
}

static void clean_up(struct gct_cp_copy *c)
{
	gct_cp_sink_close(&c->sink);
	gct_cp_source_close(&c->source);
	gcoll_finalize(c->comm);
	gct_cp_move_free(&c->move);
	gct_cp_gather_free(c);
	gct_cp_sums_free(&c->sums);
	gct_cp_manifest_free(&c->manifest);
	gci_free(c->dest);
	gci_free(c->at);
	gci_free(c->crcs);
	gci_free(c->receives);
	gci_free(c->groups);
	gci_free(c->end);
}

int gct_cp_command(int argc, char **argv)
{
	struct gct_cp_options o = {0};
	struct gct_cp_copy c = {
		.o = &o, .sink = {.fd = -1}, .source = {.fd = -1, .place = {.fd = -1}}};
	struct gci_error e = {0};
	int is_partial, rc = parse_options(&o, argc, argv);

	if (rc)
		return rc == GCT_HELPED ? GCT_OK : rc;
	rc = gct_join("cp", &c.comm);
	if (rc)
		return rc;
	signal(SIGXFSZ, SIG_IGN); /* a limit on files' sizes is an error like a full disk */
	c.first = c.comm;
	c.was = gcoll_rank(c.comm);
	if (set_up(&c, &e) || gct_cp_run(&c, &e))
		gct_abort(c.comm, e.text);
	/* One rank says so: the launcher would tell of each that ends so. */
	is_partial = !e.status && gct_cp_is_root(&c) &&
		     (gct_cp_next_left_out(&c, 0) >= 0 || c.manifest.nskipped);
	if (e.status)
		gct_cp_undo(&c);
	clean_up(&c);
	if (is_partial)
		return GCT_PARTIAL;
	return e.status == GCOLL_ERR_INVAL ? GCT_USAGE : e.status ? GCT_FAILED : GCT_OK;
}
