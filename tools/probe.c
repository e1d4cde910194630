/* SPDX-License-Identifier: MIT */
#include "tools/probe.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "tools/cases.h"
#include "tools/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINK_NS      (15 * GCI_NS_PER_S) /* times the dilation */
#define PAIR_NS      (500 * GCI_NS_PER_MS)
#define PAIR_NBYTES  (UINT64_C(16) << 20)
#define LINK_NBYTES  (UINT64_C(512) << 20)
#define MOST_MESSAGE (UINT64_C(8) << 20)
#define STREAMS      16

static const char help[] =
	"usage: gridcoll-run ... gridcoll probe [-o FILE] [options]\n"
	"Measures the links of the job's grid: inside each cluster, between its first\n"
	"two ranks on different hosts, and each way between two clusters, by their first\n"
	"ranks; one at a time.\n"
	"  -o, --output FILE   write the parameters file, for gridcoll plan and tune\n"
	"  -t, --time T        take no longer than this (default 15s for each link; in a\n"
	"                      lab, both are multiplied by its dilation)\n"
	"  -b, --bytes B       send no more than this (default 512MiB for each link)\n"
	"  -m, --message SIZE  the largest message worth trying (default 8MiB)\n"
	"  -s, --streams N     most connections to try between two hosts (default 16)\n"
	"      --pools         measure all pairs of hosts, too, and say which belong\n"
	"                      together\n"
	"      --write-grid FILE  the same, and write a grid file of what was found\n"
	"  -h, --help          this text\n"
	"example: gridcoll-run --grid my.grid gridcoll probe -o my.params\n"
	"         gridcoll plan bcast --grid my.grid --params my.params --bytes 32MiB\n";

static int usage_error(const char *what, const char *value, const char *expected)
{
	return gct_wrong("probe", "%s \"%s\", expected %s", what, value, expected);
}

static int parse_time(struct gct_probe *p, const char *value)
{
	if (gci_parse_time(value, &p->all.ns) || !p->all.ns)
		return usage_error("--time", value, GCI_TIME_EXPECTED);
	return 0;
}

static int parse_bytes(uint64_t *out, const char *what, const char *value, uint64_t least)
{
	if (gci_parse_bytes(value, out) || *out < least)
		return usage_error(
			what, value, least > 1 ? "a size from 1KiB to 1GiB" : GCI_BYTES_EXPECTED);
	return 0;
}

static int parse_options(struct gct_probe *p, int argc, char **argv)
{
	static const struct option longs[] = {{"output", 1, NULL, 'o'}, {"time", 1, NULL, 't'},
		{"bytes", 1, NULL, 'b'}, {"message", 1, NULL, 'm'}, {"streams", 1, NULL, 's'},
		{"pools", 0, NULL, 'P'}, {"write-grid", 1, NULL, 'G'}, {"help", 0, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	int c, rc = 0;

	*p = (struct gct_probe){.most_message = MOST_MESSAGE, .streams = STREAMS};
	optind = 1;
	while (!rc && (c = getopt_long(argc, argv, ":o:t:b:m:s:h", longs, NULL)) != -1) {
		switch (c) {
		case 'o':
			p->file = optarg;
			break;
		case 't':
			rc = parse_time(p, optarg);
			break;
		case 'b':
			rc = parse_bytes(&p->all.nbytes, "--bytes", optarg, 1);
			break;
		case 'm':
			rc = parse_bytes(&p->most_message, "--message", optarg, 1024);
			if (!rc && p->most_message > 1u << 30)
				rc = usage_error("--message", optarg, "a size from 1KiB to 1GiB");
			break;
		case 's':
			if (gci_parse_uint(optarg, GCI_TP_MAX_STREAMS, &p->streams) || !p->streams)
				rc = usage_error("--streams", optarg, "a number from 1 to 64");
			break;
		case 'G':
			p->grid_file = optarg;
			p->pools = 1;
			break;
		case 'P':
			p->pools = 1;
			break;
		case 'h':
			gct_help(help);
			return -1;
		default:
			return gct_wrong_option("probe", argv, longs, c);
		}
	}
	if (!rc && optind < argc)
		rc = usage_error("argument", argv[optind], "options only");
	return rc;
}

/* The rank that measures `from` with: on another host if there is one. */
static int second_rank(const gcoll_comm *c, int cluster)
{
	const int *member = gci_topo_members(&c->topo, cluster);
	int i, n = gci_topo_size(&c->topo, cluster);

	for (i = 1; i < n; i++)
		if (strcmp(gci_comm_host(c, member[i]), gci_comm_host(c, member[0])))
			return member[i];
	return n > 1 ? member[1] : -1;
}

/* Inside of clusters first. */
static int list_links(struct gct_probe *p)
{
	const struct gci_topo *t = &p->comm->topo;
	int a, b, n = t->nclusters;

	p->links = gci_calloc((size_t)n * (size_t)n, sizeof(*p->links));
	if (!p->links)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for links");
	for (a = 0; a < n; a++)
		p->links[p->nlinks++] = (struct gct_probed){.from = a,
			.to = a,
			.first = gci_topo_members(t, a)[0],
			.last = second_rank(p->comm, a)};
	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			if (a != b)
				p->links[p->nlinks++] = (struct gct_probed){.from = a,
					.to = b,
					.first = gci_topo_members(t, a)[0],
					.last = gci_topo_members(t, b)[0]};
	return 0;
}

uint64_t gct_probe_share(uint64_t all, uint64_t part, uint64_t rest)
{
	return (uint64_t)((unsigned __int128)all * part / ((unsigned __int128)part + rest));
}

static int set_up(struct gct_probe *p)
{
	struct gci_error e = {0};
	char streams[16];
	uint64_t n, pairs = 0;
	int rc;

	snprintf(streams, sizeof(streams), "%u", (unsigned)p->streams);
	rc = gcoll_comm_set(p->comm, "streams", streams);
	if (!rc && p->file && !p->comm->rank)
		rc = gct_try_to_write(p->file);
	if (!rc && p->grid_file && !p->comm->rank)
		rc = gct_try_to_write(p->grid_file);
	if (!rc)
		rc = gcoll_comm_dup(p->comm, &p->own);
	if (!rc && gct_lab_read(&p->lab, &e))
		rc = gci_comm_error(e.status, "%s", e.text);
	if (!rc)
		rc = gct_wire_open(&p->wire, p->comm, p->most_message, (uint32_t)p->streams);
	if (!rc)
		rc = list_links(p);
	if (rc)
		return rc;
	p->grid = p->comm->engine->grid;
	p->dilation = p->grid->dilation;
	n = p->nlinks;
	if (p->pools)
		pairs = gct_probe_npairs(p->comm);
	p->all.ns = (p->all.ns ? p->all.ns : n * LINK_NS + pairs * PAIR_NS) * p->dilation;
	p->all.nbytes = p->all.nbytes ? p->all.nbytes : n * LINK_NBYTES + pairs * PAIR_NBYTES;
	/* As much of it for each, whatever the sums are. */
	p->most.ns = gct_probe_share(p->all.ns, n * LINK_NS, pairs * PAIR_NS);
	p->most.nbytes = gct_probe_share(p->all.nbytes, n * LINK_NBYTES, pairs * PAIR_NBYTES);
	return 0;
}

static int run(struct gct_probe *p)
{
	int rc = set_up(p);

	if (!rc && !p->comm->rank)
		gct_probe_print_plan(p);
	if (!rc)
		rc = gct_probe_run(p);
	if (rc || p->comm->rank)
		return rc;
	rc = p->file ? gct_probe_write(p) : 0;
	if (!rc)
		gct_probe_print_cost(p);
	return rc;
}

static void tear_down(struct gct_probe *p)
{
	size_t i;

	for (i = 0; i < p->nlinks; i++)
		gct_probed_free(&p->links[i]);
	gci_free(p->links);
	gct_wire_close(&p->wire);
	gct_lab_free(&p->lab);
}

int gct_probe(int argc, char **argv)
{
	struct gct_probe p;
	int rc = parse_options(&p, argc, argv);

	if (rc)
		return rc < 0 ? GCT_OK : rc;
	p.started_ns = gci_now_ns();
	rc = gct_join("probe", &p.comm);
	if (rc)
		return rc;
	/* It uses the transport directly, and wants no other traffic. */
	rc = gcoll_comm_set(p.comm, "warm", "off");
	if (!rc)
		rc = run(&p);
	if (rc && !p.comm->engine->failure.status)
		gct_abort(p.comm, gcoll_last_error());
	gcoll_finalize(p.comm);
	tear_down(&p);
	return rc == GCOLL_ERR_INVAL ? GCT_USAGE : rc ? GCT_FAILED : GCT_OK;
}
