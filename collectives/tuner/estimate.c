/* SPDX-License-Identifier: MIT
 * The costs that stand on top of the emitters, in one table. M is the vector, or all blocks; B a
 * NIC, L a hop over the WAN and l one in a cluster, C clusters of h ranks, P ranks in all. */
#include "base/mem.h"
#include "collectives/blocks/layout.h"
#include "collectives/models/cost.h"
#include "collectives/tuner/estimate_impl.h"

#include <string.h>

#define OWN_SEGMENTS 256 /* at most, where an algorithm chooses for itself */

typedef uint64_t formula(const struct gci_estimator *e, const struct gci_candidate *how);

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t hops(const struct gci_estimator *e, uint64_t wan, uint64_t lan)
{
	return wan * e->wan_ns + lan * e->lan_ns;
}

static uint64_t nic(const struct gci_estimator *e, uint64_t nbytes)
{
	return gci_estimate_transfer_ns(nbytes, e->nic_bps);
}

/* From one cluster to another by so many senders. */
static uint64_t wan(const struct gci_estimator *e, uint64_t nbytes, uint64_t senders)
{
	uint64_t pairs = e->pair_bps > GCI_NEVER / senders ? GCI_NEVER : senders * e->pair_bps;

	return e->nclusters > 1 ? gci_estimate_transfer_ns(nbytes, smaller(e->wan_bps, pairs)) : 0;
}

/* All but one part of n. */
static uint64_t but_one(uint64_t nbytes, unsigned n)
{
	return nbytes / n * (n - 1);
}

static unsigned senders_of(const struct gci_estimator *e, const struct gci_candidate *how)
{
	unsigned n = how->senders ? how->senders : e->senders;

	return n < e->most ? n : e->most; /* both are at least 1 */
}

static int has_blocks(const struct gci_estimator *e)
{
	return !gci_kind_has_vector(e->c->kind);
}

/* ---- trees over ranks */

/* Bytes that are cut into segments. */
static uint64_t cut_nbytes(const struct gci_estimator *e)
{
	return has_blocks(e) ? e->nbytes / e->nranks : e->nbytes;
}

static uint64_t tree(const struct gci_estimator *e, const struct gci_candidate *how,
	enum gci_estimate_tree shape)
{
	uint64_t nbytes = cut_nbytes(e), most = nbytes / 4096 + 1, best = GCI_NEVER;
	struct gci_estimate_walk w = {
		.tree = shape, .nbytes = e->nbytes, .segments = 1, .blocks = has_blocks(e)};
	uint64_t *k = &w.segments;

	if (shape == GCI_ESTIMATE_PATH && (how->senders || e->pair_bps < e->nic_bps))
		w.lanes = senders_of(e, how);
	if (how->segment_nbytes && nbytes)
		*k = (nbytes - 1) / how->segment_nbytes + 1;
	if (how->segment_nbytes || how->algorithm->traits & GCI_BY_SEGMENT ||
		!(how->algorithm->traits & GCI_USES_SEGMENT))
		return gci_estimate_tree_ns(e, &w);
	for (; *k <= OWN_SEGMENTS && *k <= most; *k *= 4)
		best = smaller(best, gci_estimate_tree_ns(e, &w));
	return best;
}

static uint64_t flat(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return tree(e, how, GCI_ESTIMATE_FLAT);
}

static uint64_t chain(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return tree(e, how, GCI_ESTIMATE_CHAIN);
}

static uint64_t binary(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return tree(e, how, GCI_ESTIMATE_BINARY);
}

static uint64_t binomial(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return tree(e, how, GCI_ESTIMATE_BINOMIAL);
}

static uint64_t clusters(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return tree(e, how, GCI_ESTIMATE_CLUSTERS);
}

static uint64_t two_chains(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * chain(e, how);
}

static uint64_t two_binaries(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * binary(e, how);
}

static uint64_t two_binomials(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * binomial(e, how);
}

static uint64_t two_clusters(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * clusters(e, how);
}

static uint64_t path(const struct gci_estimator *e, const struct gci_candidate *how)
{
	struct gci_candidate own = *how;

	if (!own.segment_nbytes)
		own.segment_nbytes = gci_pipeline_segment(e->c, e->c->count) * e->c->esize;
	return tree(e, &own, GCI_ESTIMATE_PATH);
}

static uint64_t path_or_clusters(const struct gci_estimator *e, const struct gci_candidate *how)
{
	struct gci_candidate whole = *how;

	whole.segment_nbytes = e->nbytes + 1;
	return smaller(path(e, how), clusters(e, &whole));
}

/* ---- of vectors */

/* Of halving n ranks: an odd one's data goes to a partner of another's, who has more to move. */
static uint64_t with_odd(uint64_t ns, unsigned n)
{
	return n & (n - 1) ? ns * 4 / 3 : ns;
}

/* Halved over all ranks and put together again: 2 (P-1)/P M/B. */
static uint64_t halving(const struct gci_estimator *e, const struct gci_candidate *how)
{
	uint64_t ns = nic(e, but_one(e->nbytes, e->nranks));

	(void)how;
	return 2 *
	       (hops(e, e->across, e->deep - e->across) +
		       larger(with_odd(ns, e->nranks), wan(e, e->nbytes / 2 * e->most, e->most)));
}

/* The same in each cluster, and n senders between clusters: L + (C-1) M/nB + 2 (h-1)/h M/B. */
static uint64_t modified(const struct gci_estimator *e, const struct gci_candidate *how)
{
	unsigned n = senders_of(e, how);
	uint64_t across = larger((e->nclusters - 1) * nic(e, e->nbytes / n), wan(e, e->nbytes, n));

	return hops(e, e->nclusters > 1, 2 * e->deep_in) + across +
	       2 * with_odd(nic(e, but_one(e->nbytes, e->most)), e->most);
}

static uint64_t far_first(const struct gci_estimator *e, const struct gci_candidate *how)
{
	struct gci_candidate one = *how;

	one.senders = 1;
	return modified(e, &one);
}

static uint64_t two_tier(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return far_first(e, how) + hops(e, 0, 2 * e->deep_in) +
	       2 * nic(e, but_one(e->nbytes, e->most));
}

/* L + 2 log h (l + M/B) + (C-1) M/B. */
static uint64_t tree_of_clusters(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->nclusters > 1, 2 * e->deep_in) +
	       larger((e->nclusters - 1) * nic(e, e->nbytes), wan(e, e->nbytes, 1)) +
	       2 * e->deep_in * nic(e, e->nbytes);
}

static uint64_t modified_or_tree(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return smaller(modified(e, how), tree_of_clusters(e, how));
}

static uint64_t all_vectors(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->across, e->deep - e->across) + (e->nranks - 1) * nic(e, e->nbytes);
}

static uint64_t doubling(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->across, e->deep - e->across) +
	       larger(e->deep * nic(e, e->nbytes), wan(e, e->nbytes * e->most, e->most));
}

/* ---- of blocks */

/* Round once: (P-1)/P M/B, and every block comes by each cluster. */
static uint64_t ring(const struct gci_estimator *e, const struct gci_candidate *how)
{
	unsigned far = e->nclusters > 1 ? e->nclusters : 0;

	(void)how;
	return hops(e, far, e->nranks > far ? e->nranks - far : 0) +
	       larger(nic(e, but_one(e->nbytes, e->nranks)), wan(e, e->nbytes, 1));
}

static uint64_t two_rings(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * ring(e, how);
}

/* Round each cluster's, over each WAN link once. */
static uint64_t rings(const struct gci_estimator *e, const struct gci_candidate *how)
{
	unsigned n = senders_of(e, how);
	uint64_t there = e->nbytes / e->nclusters;

	return hops(e, e->nclusters > 1, 2 * e->most) +
	       larger(nic(e, but_one(e->nbytes, e->nranks)), wan(e, there, n)) +
	       e->nranks * e->message_ns;
}

/* By one rank of each cluster, which has to hand it all down again. */
static uint64_t coordinators(const struct gci_estimator *e, const struct gci_candidate *how)
{
	uint64_t there = e->nbytes / e->nclusters;

	(void)how;
	return hops(e, e->nclusters > 1, 2 * e->deep_in + e->nclusters) + nic(e, there) +
	       larger((e->nclusters - 1) * nic(e, there), wan(e, there, 1)) +
	       e->deep_in * nic(e, e->nbytes);
}

static uint64_t rings_or_coordinators(
	const struct gci_estimator *e, const struct gci_candidate *how)
{
	return smaller(rings(e, how), coordinators(e, how));
}

/* In rounds of two halves: (P-1)/P M/B, with much of it over the WAN. */
static uint64_t rounds(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->across, e->deep - e->across) +
	       larger(nic(e, but_one(e->nbytes, e->nranks)),
		       wan(e, e->nbytes / e->nclusters * e->most, e->most));
}

/* From each to each; of allgather the same block to all of a cluster. */
static uint64_t each_to_each(const struct gci_estimator *e, const struct gci_candidate *how)
{
	uint64_t block = e->nbytes / e->nranks;

	(void)how;
	return hops(e, e->nclusters > 1, 1) + (e->nranks - 1) * e->message_ns +
	       larger(nic(e, block * (e->nranks - 1)), wan(e, block * e->most * e->most, e->most));
}

/* One far rank after the other, or all at a time, at the root's NIC: (P-1)/P M/B + L. */
static uint64_t relay(const struct gci_estimator *e, const struct gci_candidate *how)
{
	unsigned n = senders_of(e, how);

	return hops(e, e->nclusters > 1, 2) + e->nranks * e->message_ns +
	       larger(nic(e, but_one(e->nbytes, e->nranks)), wan(e, e->nbytes / e->nclusters, n));
}

static uint64_t relay_or_clusters(const struct gci_estimator *e, const struct gci_candidate *how)
{
	struct gci_candidate whole = *how;

	whole.segment_nbytes = e->nbytes + 1;
	return smaller(relay(e, how), clusters(e, &whole));
}

static uint64_t segments_of_block(const struct gci_estimator *e, const struct gci_candidate *how)
{
	uint64_t block = e->nbytes / e->nranks;

	return how->segment_nbytes && block ? (block - 1) / how->segment_nbytes + 1 : 1;
}

static uint64_t gather_and_bcast(const struct gci_estimator *e, const struct gci_candidate *how)
{
	struct gci_estimate_walk up = {.tree = GCI_ESTIMATE_BINOMIAL,
		.nbytes = e->nbytes,
		.segments = segments_of_block(e, how),
		.blocks = 1};
	struct gci_estimate_walk down = up;

	down.blocks = 0;
	return gci_estimate_tree_ns(e, &up) + gci_estimate_tree_ns(e, &down);
}

/* All there is meets at one rank: M is what one rank sends. */
static uint64_t gather_and_scatter(const struct gci_estimator *e, const struct gci_candidate *how)
{
	struct gci_estimate_walk w = {.tree = GCI_ESTIMATE_BINARY,
		.nbytes = e->nbytes * e->nranks,
		.segments = segments_of_block(e, how),
		.blocks = 1};

	return 2 * gci_estimate_tree_ns(e, &w);
}

static uint64_t bruck(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->across, e->deep - e->across) +
	       e->deep * larger(nic(e, e->nbytes / 2), wan(e, e->nbytes / 2 * e->most, e->most));
}

/* 4 l + L + (h-1) m/B + 3 (C-1) h^2 m / nB, which segments overlap to (C-1) h^2 m / nB. */
static uint64_t columns(const struct gci_estimator *e, const struct gci_candidate *how)
{
	unsigned n = senders_of(e, how);
	uint64_t block = e->nbytes / e->nranks, all = block * e->most * e->most;
	uint64_t across = larger((e->nclusters - 1) * nic(e, all / n), wan(e, all, n));
	uint64_t k = segments_of_block(e, how);

	return hops(e, e->nclusters > 1, 4 * k) + nic(e, block * (e->most - 1)) + across +
	       2 * across / k;
}

static uint64_t each_or_columns(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return smaller(each_to_each(e, how), columns(e, how));
}

/* A plan for this very grid: the bound, and twice there and back. */
static uint64_t planned(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, 2 * (e->nclusters > 1), e->nranks) +
	       larger(nic(e, but_one(e->nbytes, e->nranks)),
		       wan(e, e->nbytes / e->nclusters, e->most));
}

/* ---- barriers */

static uint64_t signals(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->across, e->deep - e->across);
}

static uint64_t twice_signals(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * signals(e, how);
}

/* ---- the table */

static const struct row {
	enum gci_kind kind;
	const char *name;
	formula *ns;
	int planner;
} rows[] = {
	{GCI_BCAST, "gridcoll", path_or_clusters, 0},
	{GCI_BCAST, "pipeline", path, 0},
	{GCI_BCAST, "tree", clusters, 0},
	{GCI_BCAST, "sequential", flat, 0},
	{GCI_BCAST, "chain", chain, 0},
	{GCI_BCAST, "binomial", binomial, 0},
	{GCI_BCAST, "binary", binary, 0},
	{GCI_BCAST, "vandegeijn", halving, 0},
	{GCI_BCAST, "vandegeijn-mod", modified, 0},
	{GCI_BCAST, "vandegeijn-mod-early", modified, 0},
	{GCI_BCAST, "vandegeijn-mod-merge", modified, 0},
	{GCI_BCAST, "farfirst", far_first, 0},
	{GCI_BCAST, "magpie", clusters, 0},
	{GCI_BCAST, "magpie-pipelined", clusters, 0},
	{GCI_BCAST, "spoc", binomial, 0},
	{GCI_BCAST, "fnf", binomial, 0},
	{GCI_BCAST, "optimal", binomial, 1},
	{GCI_REDUCE, "gridcoll", path_or_clusters, 0},
	{GCI_REDUCE, "pipeline", path, 0},
	{GCI_REDUCE, "binomial", binomial, 0},
	{GCI_REDUCE, "clusters", clusters, 0},
	{GCI_REDUCE, "gather", flat, 0},
	{GCI_REDUCE, "chain", chain, 0},
	{GCI_REDUCE, "binary", binary, 0},
	{GCI_REDUCE, "rabenseifner", halving, 0},
	{GCI_REDUCE, "ordered", halving, 0},
	{GCI_REDUCE, "ordered-mod", modified, 0},
	{GCI_ALLREDUCE, "gridcoll", modified_or_tree, 0},
	{GCI_ALLREDUCE, "rabenseifner-mod", modified, 0},
	{GCI_ALLREDUCE, "rabenseifner", halving, 0},
	{GCI_ALLREDUCE, "rabenseifner-mod-merge", modified, 0},
	{GCI_ALLREDUCE, "two-tier", two_tier, 0},
	{GCI_ALLREDUCE, "tree", tree_of_clusters, 0},
	{GCI_ALLREDUCE, "reduce-bcast", two_clusters, 0},
	{GCI_ALLREDUCE, "allgather-op", all_vectors, 0},
	{GCI_ALLREDUCE, "ordered", halving, 0},
	{GCI_ALLREDUCE, "ordered-mod", modified, 0},
	{GCI_ALLREDUCE, "chain", two_chains, 0},
	{GCI_ALLREDUCE, "binary", two_binaries, 0},
	{GCI_ALLREDUCE, "binomial", two_binomials, 0},
	{GCI_ALLREDUCE, "ring", two_rings, 0},
	{GCI_ALLREDUCE, "doubling", doubling, 0},
	{GCI_REDUCE_SCATTER, "gridcoll", rings_or_coordinators, 0},
	{GCI_REDUCE_SCATTER, "ring", ring, 0},
	{GCI_REDUCE_SCATTER, "rings", rings, 0},
	{GCI_REDUCE_SCATTER, "clusters", coordinators, 0},
	{GCI_REDUCE_SCATTER, "ordered", rounds, 0},
	{GCI_REDUCE_SCATTER, "halving", rounds, 0},
	{GCI_SCATTER, "gridcoll", relay_or_clusters, 0},
	{GCI_SCATTER, "binomial", binomial, 0},
	{GCI_SCATTER, "relay", relay, 0},
	{GCI_SCATTER, "sequential", flat, 0},
	{GCI_SCATTER, "chain", chain, 0},
	{GCI_SCATTER, "binary", binary, 0},
	{GCI_SCATTER, "magpie", clusters, 0},
	{GCI_SCATTER, "magpie-segmented", flat, 0},
	{GCI_GATHER, "gridcoll", relay_or_clusters, 0},
	{GCI_GATHER, "binomial", binomial, 0},
	{GCI_GATHER, "relay", relay, 0},
	{GCI_GATHER, "sequential", flat, 0},
	{GCI_GATHER, "chain", chain, 0},
	{GCI_GATHER, "binary", binary, 0},
	{GCI_GATHER, "magpie", clusters, 0},
	{GCI_GATHER, "magpie-segmented", flat, 0},
	{GCI_ALLGATHER, "gridcoll", rings_or_coordinators, 0},
	{GCI_ALLGATHER, "ring", ring, 0},
	{GCI_ALLGATHER, "gather-bcast", gather_and_bcast, 0},
	{GCI_ALLGATHER, "simple", each_to_each, 0},
	{GCI_ALLGATHER, "spreading", each_to_each, 0},
	{GCI_ALLGATHER, "doubling", rounds, 0},
	{GCI_ALLGATHER, "dissemination", rounds, 0},
	{GCI_ALLGATHER, "magpie", coordinators, 0},
	{GCI_ALLGATHER, "magpie-segmented", coordinators, 0},
	{GCI_ALLGATHER, "mpich-g2", coordinators, 0},
	{GCI_ALLGATHER, "rings", rings, 0},
	{GCI_ALLGATHER, "min3", planned, 1},
	{GCI_ALLGATHER, "min3-half", planned, 1},
	{GCI_ALLGATHER, "trees-greedy", planned, 1},
	{GCI_ALLGATHER, "trees-annealed", planned, 1},
	{GCI_ALLTOALL, "gridcoll", each_or_columns, 0},
	{GCI_ALLTOALL, "circular", each_to_each, 0},
	{GCI_ALLTOALL, "paced", each_to_each, 0},
	{GCI_ALLTOALL, "gather-scatter", gather_and_scatter, 0},
	{GCI_ALLTOALL, "bruck", bruck, 0},
	{GCI_ALLTOALL, "clusters", columns, 0},
	{GCI_BARRIER, "clusters", tree_of_clusters, 0},
	{GCI_BARRIER, "dissemination", signals, 0},
	{GCI_BARRIER, "binomial", signals, 0},
	{GCI_BARRIER, "tournament", twice_signals, 0},
	{GCI_BARRIER, "ring", two_rings, 0},
};

static const struct row *find_row(const struct gci_algorithm *a)
{
	const struct row *r = rows, *end = rows + sizeof(rows) / sizeof(*rows);

	while (r < end && (r->kind != a->kind || strcmp(r->name, a->name) != 0))
		r++;
	return r < end ? r : NULL;
}

uint64_t gci_estimate(const struct gci_estimator *e, const struct gci_candidate *how)
{
	const struct row *r = find_row(how->algorithm);

	return r ? r->ns(e, how) : GCI_NEVER;
}

int gci_estimate_is_planner(const struct gci_algorithm *a)
{
	const struct row *r = find_row(a);

	return r && r->planner;
}

/* ---- the network */

static unsigned log2_up(unsigned n)
{
	unsigned d = 0;

	while (1u << d < n)
		d++;
	return d;
}

/* Do ranks of one cluster follow one another? Else halving over all crosses clusters at any depth.
 */
static int is_in_order(const struct gci_topo *t)
{
	int r, changes = 0;

	for (r = 1; r < t->nranks; r++)
		changes += t->cluster[r] != t->cluster[r - 1];
	return changes < t->nclusters;
}

static void look_at_link(struct gci_estimator *e, int a, int b)
{
	const struct gci_topo *t = e->c->topo;
	const struct gci_simnet_link *l = &e->net->links[a * t->nclusters + b];
	unsigned n;

	if (a == b) {
		e->lan_ns = larger(e->lan_ns, l->latency_ns);
		return;
	}
	n = (unsigned)gci_topo_senders(t, a, b);
	e->wan_ns = larger(e->wan_ns, l->latency_ns);
	e->wan_bps = smaller(e->wan_bps, l->bps ? l->bps : GCI_NEVER);
	e->pair_bps = smaller(e->pair_bps, l->pair_bps ? l->pair_bps : GCI_NEVER);
	e->senders = n < e->senders ? n : e->senders;
}

static void look_at_net(struct gci_estimator *e)
{
	const struct gci_topo *t = e->c->topo;
	int a, b;

	e->nic_bps = e->wan_bps = e->pair_bps = GCI_NEVER;
	e->senders = GCI_GRID_MAX_HOSTS;
	for (a = 0; a < t->nclusters; a++) {
		e->most = (unsigned)larger(e->most, (unsigned)gci_topo_size(t, a));
		if (e->net->nic_bps[a])
			e->nic_bps = smaller(e->nic_bps, e->net->nic_bps[a]);
		for (b = 0; b < t->nclusters; b++)
			look_at_link(e, a, b);
	}
	/* One pair fills its NICs at most. */
	e->pair_bps = smaller(e->pair_bps, e->nic_bps);
	e->message_ns = GCI_MESSAGE_COST_NS / 2;
	for (a = 0; a < t->nranks; a++)
		e->message_ns = larger(e->message_ns, e->net->send_ns[a]);
	e->lan_ns += e->message_ns + e->net->recv_ns;
	e->wan_ns += e->message_ns + e->net->recv_ns;
}

int gci_estimator_init(
	struct gci_estimator *e, const struct gci_simnet *net, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;

	memset(e, 0, sizeof(*e));
	e->net = net;
	e->c = c;
	e->nranks = (unsigned)t->nranks;
	e->nclusters = (unsigned)t->nclusters;
	e->nbytes = gci_total(c) * c->esize;
	look_at_net(e);
	e->deep = log2_up(e->nranks);
	e->deep_in = log2_up(e->most);
	e->across = is_in_order(t) ? log2_up(e->nclusters) : e->deep;
	e->places = gci_calloc(e->nranks, sizeof(*e->places));
	e->crossing = gci_calloc((size_t)e->nclusters * e->nclusters, sizeof(*e->crossing));
	if (e->places && e->crossing)
		return 0;
	gci_estimator_free(e);
	return GCOLL_ERR_NOMEM;
}

void gci_estimator_free(struct gci_estimator *e)
{
	gci_free(e->places);
	gci_free(e->crossing);
	memset(e, 0, sizeof(*e));
}
