/* SPDX-License-Identifier: MIT
 * MagPIe's formulas against the simulator.
 *	bench_formulas [--check] GRID...
 * prints, per grid file and operation of MagPIe's, for 64 KiB to 4 MiB (of the vector, or for each
 * rank), the segment that its search chooses, the time by formula, and the simulated time of the
 * very schedules: where a host sends one message at a time, as the formulas have it, with how much
 * the formula differs from that; and where messages share its NIC, as connections do. With a MiB,
 * what Kielmann 2001 measured.
 *
 * Then what Vadhiyar 2004 found in table 3: for trees over 64 hosts and 256 KiB, the segment that
 * is best by formula and by simulation, and what it costs to take the former, in simulated time;
 * and the times themselves, its figures 17 and 18.
 * The formulas bound a binomial tree from far above, and so cut its messages although a host that
 * sends one at a time is better off with whole ones. Where messages share a NIC they must be cut:
 * all children of the root get a whole message last.
 *
 * The formulas' parameters are measured as the paper does (2.2), on the simulated network: g(0)
 * from rows of messages between two ranks, L and g(m) from single ones.
 *
 * Formulas for segments know nothing of credit: they hold where it comes in time, in WANs that are
 * slower than NICs; and they have one figure for all links, so on grids whose links differ (Min3's)
 * they are only shown. With --check the exit status is 1 if on such a grid one is more than 5 %, or
 * 10 % below 256 KiB, off what both kinds of hosts take; or if that of a binomial tree does not cut
 * messages which are better left whole. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/models/magpie.h"
#include "collectives/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_NBYTES (64u << 10)
#define MOST_NBYTES  (4u << 20)

/* ---- grids */

static int make_topo(struct gci_topo *t, const char *text, size_t len, const char *name)
{
	struct gci_error e = {0};
	int rc = gci_topo_parse(t, text, len, name, &e);

	if (rc)
		fprintf(stderr, "%s\n", e.text);
	return rc;
}

static int load_topo(struct gci_topo *t, const char *path)
{
	static char text[1 << 20];
	FILE *f = fopen(path, "r");
	size_t len;

	if (!f) {
		perror(path);
		return -1;
	}
	len = fread(text, 1, sizeof(text), f);
	fclose(f);
	return make_topo(t, text, len, path);
}

static int simulate(const struct gci_topo *t, enum gci_host_model host, const char *row,
	const struct gci_coll *c, uint64_t *ns)
{
	struct gci_sim_op op = {.algorithm = gci_algorithm_find(c->kind, row), .coll = c};
	struct gci_sim_result r;
	struct gci_simnet net;
	int rc = gci_simnet_init(&net, t, NULL);

	if (rc)
		return rc;
	net.host = host;
	rc = gci_simulate(&net, &op, &r);
	if (!rc)
		*ns = r.ns;
	gci_sim_result_free(&r);
	gci_simnet_free(&net);
	return rc;
}

/* ---- parameters */

static const uint64_t sizes[] = {
	0, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1 << 20, 4 << 20};

#define ALONE_NBYTES (64u << 10)

#define NSIZES (sizeof(sizes) / sizeof(*sizes))

struct measured {
	struct gci_plogp p;
	struct gci_params_link lan, wan;
	struct gci_params_point points[2][NSIZES];
};

/* n messages in a row from the first of two ranks to the other. */
static int send_row(const struct gci_topo *pair, uint64_t nbytes, uint64_t n, uint64_t *ns)
{
	struct gci_coll c = {.kind = GCI_BCAST, .topo = pair, .esize = 1, .segment = nbytes};

	c.segment = nbytes ? nbytes : 1;
	c.count = n * c.segment;
	return simulate(pair, GCI_HOST_FULL_DUPLEX, "chain", &c, ns);
}

/* g(0) from a row, L from one empty message, and g(m) by how much longer than that one of m takes.
 * Above ALONE_NBYTES one message would wait for credit, so rows tell how g goes on. */
static int measure_pair(const struct gci_topo *pair, struct gci_params_link *l)
{
	uint64_t empty = 0, one = 0, few = 0, many = 0, slack = 0, gap;
	struct gci_simnet net;
	size_t i;
	int rc = gci_simnet_init(&net, pair, NULL);

	if (!rc)
		rc = send_row(pair, 0, 1, &empty);
	for (i = 0; !rc && i < NSIZES; i++) {
		rc = send_row(pair, sizes[i], 2, &few);
		if (!rc)
			rc = send_row(pair, sizes[i], 6, &many);
		if (!rc)
			rc = send_row(pair, sizes[i], 1, &one);
		gap = (many - few) / 4;
		if (i && sizes[i] <= ALONE_NBYTES)
			slack = one - empty + l->points[0].gap_ns - gap;
		l->points[i] = (struct gci_params_point){
			sizes[i], net.send_ns[0], net.recv_ns, gap + slack};
	}
	l->latency_ns = empty > l->points[0].gap_ns ? empty - l->points[0].gap_ns : 0;
	l->npoints = NSIZES;
	gci_simnet_free(&net);
	return rc;
}

static int measure_ranks(const struct gci_topo *t, int from, int to, struct gci_params_link *l)
{
	int ranks[] = {from, to}, rc;
	struct gci_topo pair;

	rc = gci_topo_sub(&pair, t, ranks, 2);
	if (rc)
		return rc;
	rc = measure_pair(&pair, l);
	gci_topo_free(&pair);
	return rc;
}

/* Of cluster 0's inside, and from there to cluster 1: links of a kind are taken to be alike. */
static int measure(const struct gci_topo *t, struct measured *m)
{
	int rc = 0, first = *gci_topo_members(t, 0);

	memset(m, 0, sizeof(*m));
	m->p = gci_plogp(t);
	m->lan.points = m->points[0];
	m->wan.points = m->points[1];
	if (gci_topo_size(t, 0) > 1) {
		rc = measure_ranks(t, first, gci_topo_members(t, 0)[1], &m->lan);
		m->p.lan = &m->lan;
		m->p.lan_delay_ns = m->lan.latency_ns;
	}
	if (!rc && t->nclusters > 1) {
		rc = measure_ranks(t, first, *gci_topo_members(t, 1), &m->wan);
		m->p.wan = &m->wan;
		m->p.wan_delay_ns = m->wan.latency_ns;
	}
	return rc;
}

/* ---- MagPIe's operations */

static const struct row {
	enum gci_kind kind;
	const char *name;
	int original;
	double paper_ms; /* of a MB on 8 clusters of one host; 0: not in the text */
} rows[] = {
	{GCI_BCAST, "magpie-pipelined", 0, 1079},
	{GCI_SCATTER, "magpie-segmented", 0, 1078},
	{GCI_GATHER, "magpie-segmented", 0, 0},
	{GCI_ALLGATHER, "magpie-segmented", 0, 0},
	{GCI_BCAST, "magpie", 1, 7425},
	{GCI_SCATTER, "magpie", 1, 7437},
	{GCI_GATHER, "magpie", 1, 0},
};

/* The paper's case: WAN links are what is scarce. */
static int is_wide(const struct gci_plogp *p)
{
	return p->nclusters > 1 && p->wan_bps < p->nic_bps;
}

/* The formulas have one figure for all links, and one for all NICs. */
static int is_even(const struct gci_topo *t)
{
	const struct gci_link *first = gci_topo_link(t, 0, 1);
	int a, b, even = 1;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++) {
			const struct gci_link *l = gci_topo_link(t, a, b);

			even &= t->nic_bps[a] == t->nic_bps[b];
			even &= a == b ||
				(l->rate_bps == first->rate_bps && l->delay_ns == first->delay_ns &&
					l->flow_rate_bps == first->flow_rate_bps);
		}
	return even;
}

/* Below or above what both kinds of hosts take. */
static int is_far(
	const struct gci_plogp *p, uint64_t nbytes, uint64_t formula, uint64_t ns, uint64_t fair_ns)
{
	uint64_t least = ns < fair_ns ? ns : fair_ns, most = ns < fair_ns ? fair_ns : ns;
	uint64_t percent = nbytes < 4 * LEAST_NBYTES ? 10 : 5;

	return is_wide(p) &&
	       (formula < least * (100 - percent) / 100 || formula > most * (100 + percent) / 100);
}

/* Adds to *far if the formula is far off. */
static int compare(const struct row *row, const struct gci_topo *t, const struct gci_magpie *m,
	uint64_t nbytes, int *far)
{
	struct gci_coll c = {.kind = row->kind, .topo = t, .count = nbytes, .esize = 1};
	uint64_t formula, ns = 0, fair_ns = 0;
	char paper[16] = "", segment[24] = "";
	double off;
	int rc;

	if (!row->original) {
		c.segment = gci_magpie_segment(m, &c);
		snprintf(segment, sizeof(segment), "%" PRIu64, c.segment);
	}
	formula = row->original ? gci_magpie_original_ns(m, &c) : gci_magpie_ns(m, &c);
	rc = simulate(t, GCI_HOST_FULL_DUPLEX, row->name, &c, &ns);
	if (!rc)
		rc = simulate(t, GCI_HOST_FAIR, row->name, &c, &fair_ns);
	if (rc)
		return rc;
	off = 100.0 * ((double)formula / (double)ns - 1);
	if (m->p.nclusters == 8 && m->p.most == 1 && nbytes == 1u << 20 && row->paper_ms > 0)
		snprintf(paper, sizeof(paper), "%.0f", row->paper_ms);
	printf("%-10s %-17s %8" PRIu64 " %8s %10.2f %10.2f %+6.1f %% %10.2f %8s\n",
		gci_kind_name(row->kind), row->name, nbytes, segment, (double)formula / 1e6,
		(double)ns / 1e6, off, (double)fair_ns / 1e6, paper);
	*far += m->p.nclusters > 1 && is_even(t) && is_far(&m->p, nbytes, formula, ns, fair_ns);
	return 0;
}

static int compare_grid(const char *path, int *far)
{
	struct measured measured;
	struct gci_magpie m;
	struct gci_topo t;
	uint64_t nbytes;
	size_t i;
	int rc = load_topo(&t, path);

	if (rc)
		return rc;
	rc = measure(&t, &measured);
	gci_magpie_init(&m, &measured.p);
	printf("%s: %d ranks, %d clusters\n%-10s %-17s %8s %8s %10s %10s %8s %10s %8s\n", path,
		t.nranks, t.nclusters, "operation", "algorithm", "bytes", "segment", "formula ms",
		"simulated", "off", "NIC shared", "paper ms");
	for (i = 0; !rc && i < sizeof(rows) / sizeof(*rows); i++)
		for (nbytes = LEAST_NBYTES; !rc && nbytes <= MOST_NBYTES; nbytes *= 4)
			rc = compare(&rows[i], &t, &m, nbytes, far);
	gci_topo_free(&t);
	printf("\n");
	return rc;
}

/* ---- Vadhiyar 2004, table 3 */

static const struct tree {
	enum gci_magpie_shape shape;
	const char *row;
	double paper; /* the loss with MagPIe's segment */
} trees[] = {
	{GCI_MAGPIE_FLAT, "sequential", 1.00},
	{GCI_MAGPIE_CHAIN, "chain", 1.01},
	{GCI_MAGPIE_BINARY, "binary", 1.02},
	{GCI_MAGPIE_BINOMIAL, "binomial", 1.28},
};

#define NTREES (sizeof(trees) / sizeof(*trees))

/* Segments are powers of 2, as the paper tries them, from 1 KiB on. */
#define NSEGMENTS 9

struct tried {
	double formula_ms[NSEGMENTS], ms[NSEGMENTS];
};

static int try_segments(const struct gci_topo *t, const struct gci_plogp *p,
	const struct tree *tree, enum gci_host_model host, struct tried *out)
{
	struct gci_coll c = {.kind = GCI_BCAST, .topo = t, .count = 256 << 10, .esize = 1};
	uint64_t ns;
	int i, rc;

	for (i = 0; i < NSEGMENTS; i++) {
		c.segment = UINT64_C(1024) << i;
		rc = simulate(t, host, tree->row, &c, &ns);
		if (rc)
			return rc;
		out->ms[i] = (double)ns / 1e6;
		ns = gci_magpie_tree_ns(p, GCI_LAN, tree->shape, t->nranks, c.count, c.segment);
		out->formula_ms[i] = (double)ns / 1e6;
	}
	return 0;
}

/* Of equals the longest. */
static int shortest(const double ms[NSEGMENTS])
{
	int i, best = 0;

	for (i = 1; i < NSEGMENTS; i++)
		if (ms[i] <= ms[best])
			best = i;
	return best;
}

/* The loss by the formula's segment. */
static double show_tree(const struct tree *tree, const struct tried *d)
{
	int formula = shortest(d->formula_ms), best = shortest(d->ms);
	double loss = d->ms[formula] / d->ms[best];

	printf("%-10s %10d %10d %10.3f %10.3f %10.3f %6.2f %6.2f\n", tree->row, 1024 << formula,
		1024 << best, d->formula_ms[formula], d->ms[formula], d->ms[best], loss,
		tree->paper);
	return loss;
}

static void show_segments(const struct tried tried[NTREES])
{
	size_t i;
	int k;

	printf("\nsegment   ");
	for (i = 0; i < NTREES; i++)
		printf(" %10s %10s", trees[i].row, "simulated");
	for (k = 0; k < NSEGMENTS; k++) {
		printf("\n%-10d", 1024 << k);
		for (i = 0; i < NTREES; i++)
			printf(" %10.3f %10.3f", tried[i].formula_ms[k], tried[i].ms[k]);
	}
	printf("\n\n");
}

static int compare_trees(const struct gci_topo *t, const struct gci_plogp *p,
	enum gci_host_model host, const char *what, int *far)
{
	struct tried tried[NTREES];
	double loss = 0;
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < NTREES; i++)
		rc = try_segments(t, p, &trees[i], host, &tried[i]);
	if (rc)
		return rc;
	printf("bcast of 256 KiB to 64 hosts, %s\n%-10s %10s %10s %10s %10s %10s %6s %6s\n", what,
		"tree", "by formula", "best", "formula ms", "so", "best", "loss", "paper");
	for (i = 0; i < NTREES; i++)
		loss = show_tree(&trees[i], &tried[i]);
	*far += host == GCI_HOST_FULL_DUPLEX && loss < 1.05; /* the binomial tree */
	show_segments(tried);
	return 0;
}

static int compare_hosts(int *far)
{
	static const char text[] = "[cluster c]\nhosts = h[1-64]\nnic = 4Gbit\nlan_delay = 20us\n";
	struct measured m;
	struct gci_topo t;
	int rc = make_topo(&t, text, sizeof(text) - 1, "trees");

	if (rc)
		return rc;
	rc = measure(&t, &m);
	if (!rc)
		rc = compare_trees(&t, &m.p, GCI_HOST_FULL_DUPLEX, "one message at a time", far);
	if (!rc)
		rc = compare_trees(&t, &m.p, GCI_HOST_FAIR, "NICs shared", far);
	gci_topo_free(&t);
	return rc;
}

int main(int argc, char **argv)
{
	int check = argc > 1 && !strcmp(argv[1], "--check"), far = 0, i, rc = 0;

	if (argc < 2 + check) {
		fprintf(stderr, "usage: bench_formulas [--check] GRID...\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 1 + check; !rc && i < argc; i++)
		rc = compare_grid(argv[i], &far);
	if (!rc)
		rc = compare_hosts(&far);
	if (rc)
		return 2;
	if (check && far)
		fprintf(stderr, "%d are not so\n", far);
	return check && far ? 1 : 0;
}
