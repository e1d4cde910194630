/* SPDX-License-Identifier: MIT
 * Every rank sends its block to every other. `simple` starts all transfers at once, in the order of
 * ranks, so that the low ranks are everybody's first; `spreading` meets the rank at distance i in
 * round i.
 * Cost: (P-1) (L + m/B), blocks of m. Min3 (Gupta 2007), 2. */
#include "collectives/allgather/allgather.h"

#include "collectives/allgather/plan.h"
#include "collectives/blocks/path.h"
#include "collectives/blocks/phases.h"
#include "collectives/blocks/route.h"
#include "collectives/models/cost.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/formulas.h"

static void send_own(struct gci_builder *b, const struct gci_coll *c, int to)
{
	gci_send_some(b, to, gci_tag(0, 0), gci_in_block(c, b->rank, b->rank));
}

static void recv_theirs(struct gci_builder *b, const struct gci_coll *c, int from)
{
	gci_recv_some(b, from, gci_tag(0, 0), gci_out_block(c, b->rank, from));
}

static void copy_own(struct gci_builder *b, const struct gci_coll *c)
{
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
}

static void gci_emit_allgather_simple(struct gci_builder *b, const struct gci_coll *c)
{
	int r;

	for (r = 0; r < b->nranks; r++)
		if (r != b->rank)
			send_own(b, c, r);
	for (r = 0; r < b->nranks; r++)
		if (r != b->rank)
			recv_theirs(b, c, r);
	copy_own(b, c);
}

static void gci_emit_allgather_spreading(struct gci_builder *b, const struct gci_coll *c)
{
	int i, n = b->nranks;

	copy_own(b, c);
	for (i = 1; i < n; i++) {
		gci_round(b);
		send_own(b, c, (b->rank + i) % n);
		recv_theirs(b, c, (b->rank - i + n) % n);
	}
}

/* ---- Ring allgather: in round i every rank passes the block of rank r-i on to its right
 * neighbour.
 * Cost: (P-1) (L + m/B), blocks of m. Min3 (Gupta 2007), 2. */

static void gci_emit_allgather_ring(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, b->rank);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();
	int i;

	gci_copy_blocks(b, c, &g, &out, &in, 0, 1);
	for (i = 0; i < g.n - 1; i++) {
		int give = (g.n - i) % g.n, take = g.n - 1 - i;
		/* Numbered by the ranks they are of: members are counted from another rank here
		 * than there. */
		uint32_t gives = (uint32_t)gci_group_rank(&g, give);
		uint32_t takes = (uint32_t)gci_group_rank(&g, take);
		struct gci_slice own = i ? gci_out_block(c, b->rank, (int)gives)
					 : gci_in_block(c, b->rank, b->rank);

		gci_send_some(b, gci_group_rank(&g, 1), gci_tag(0, gives), own);
		gci_recv_some(b, gci_group_rank(&g, g.n - 1), gci_tag(0, takes),
			gci_out_block(c, b->rank, (int)takes));
	}
}

/* ---- Recursive doubling: partners exchange all that they have, at twice the distance in every
 * round. Here over halves of the ranks, so that any number of them works; where a half has a rank
 * more than the other, one rank of the smaller serves two.
 * Cost: ceil(log2 P) L + (P-1)/P M/B for powers of two, else up to twice the data at some ranks; M
 * being all blocks. Min3 (Gupta 2007), 2. */

static void gci_emit_allgather_doubling(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, 0);
	struct gci_units u = gci_units_members(&g);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();

	gci_copy_blocks(b, c, &g, &out, &in, g.me, g.me + 1);
	gci_allgather_units(b, c, &u, &out, 0);
}

/* ---- Dissemination, also called Bruck's allgather (Bruck et al. 1997): with 2^k blocks, its own
 * and those of the ranks just before it, rank r sends to rank r + 2^k and receives as many from
 * rank r - 2^k; the last round moves what is left.
 * Cost: ceil(log2 P) L + (P-1)/P M/B for any P, M being all blocks. Min3 (Gupta 2007), 2. */

/* The blocks of the `n` ranks up to and with `last`: one run, or two round the end. */
struct stretch {
	int a, z;       /* up to rank `last` */
	int far, far_z; /* at the end of the ranks */
};

static struct stretch stretch_of(int last, int n, int nranks)
{
	struct stretch s = {last + 1 - n, last + 1, nranks, nranks};

	if (s.a < 0) {
		s.far += s.a;
		s.a = 0;
	}
	return s;
}

static void gci_emit_allgather_dissemination(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, 0);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();
	int have, n;

	gci_copy_blocks(b, c, &g, &out, &in, g.me, g.me + 1);
	for (have = 1; have < g.n; have += n) {
		int to = (int)(((int64_t)g.me + have) % g.n), from = (g.me - have + g.n) % g.n;
		struct stretch give, take;

		n = have < g.n - have ? have : g.n - have;
		give = stretch_of(g.me, n, g.n);
		take = stretch_of(from, n, g.n);
		gci_round(b);
		gci_send_blocks(b, c, &g, to, gci_tag(0, 0), &out, give.a, give.z);
		gci_send_blocks(b, c, &g, to, gci_tag(0, 0), &out, give.far, give.far_z);
		gci_recv_blocks(b, c, &g, from, gci_tag(0, 0), &out, take.a, take.z);
		gci_recv_blocks(b, c, &g, from, gci_tag(0, 0), &out, take.far, take.far_z);
	}
}

/* ---- Allgather as a gather to rank 0 and a bcast from it, both binomial; with segments, the
 * gather of one runs beside the bcast of those before.
 * Cost: 2 ceil(log2 P) L + (P-1)/P M/B + ceil(log2 P) M/B, M being all blocks. */

enum { GATHER, BCAST };

static void gci_emit_allgather_gather_bcast(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, 0);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();

	/* All blocks get to OUT anyway: what is collected on the way may stand there. */
	gci_gather_blocks(b, c, &g, &in, &out, GATHER);
	gci_bcast_all(b, c, &g, BCAST);
}

/* ---- MPICH-G2's two phases, as Min3 (Gupta 2007), 2 describes them: data is gathered up the
 * hierarchy by recursive doubling, first among the ranks of each cluster and then among the
 * clusters' first ranks, and broadcast downwards by binomial trees.
 * Cost: ceil(log2 h) l + ceil(log2 C) L + (C-1)/C M/B + (h-1)/P M/B + ceil(log2 h) (l + M/B), for
 * C clusters of h ranks and M for all blocks. All that crosses the WAN goes through one rank of
 * each cluster, and over some links more than once. */

enum { LOCAL, WIDE, DOWN };

static void gci_emit_allgather_mpich_g2(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group mine = gci_group_cluster(c, c->topo->cluster[b->rank], b->rank, 0);
	struct gci_group all = gci_group_by_clusters(c, b->rank);
	struct gci_units members = gci_units_members(&mine);
	struct gci_units clusters = gci_units_clusters(c, &all, b->rank);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();

	gci_copy_blocks(b, c, &mine, &out, &in, mine.me, mine.me + 1);
	gci_allgather_units(b, c, &members, &out, LOCAL);
	gci_allgather_units(b, c, &clusters, &out, WIDE);
	if (c->topo->nclusters > 1)
		gci_bcast_all(b, c, &mine, DOWN);
}

/* ---- The product's allgather: blocks in segments, round the ring of their cluster, over each WAN
 * link once, and round the rings of the other clusters (collectives/blocks/route.h).
 *
 * Cost, M being all blocks: (P-1)/P M/B + (h-1) m/B for segments of m, and what of 2 L is not
 * hidden behind the local ring. Bound (DESIGN.md): (P-1)/P M/B. Where the WAN fills a NIC it waits
 * until the local ring is done but for a round trip's worth: two senders at one NIC are slower than
 * one after the other. */

enum { WITHIN, WAN, REMOTE };

struct walk {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_route_segments cut;
	int mine, index, n; /* this rank's cluster, its place there, members */
	const int *members;
	struct gci_turns turns;
	unsigned char patient[GCI_GRID_MAX_CLUSTERS]; /* [cluster]: what we send there */
};

static int next_in_ring(const struct walk *w)
{
	return w->members[(w->index + 1) % w->n];
}

static int previous_in_ring(const struct walk *w)
{
	return w->members[(w->index + w->n - 1) % w->n];
}

static void send_over_wan(
	const struct walk *w, const struct gci_route *r, int index, uint64_t q, struct gci_slice s)
{
	gci_send(w->b, gci_topo_members(r->topo, r->to)[gci_route_entry(r, index, q)],
		gci_tag(WAN, gci_route_number(&w->cut, w->members[index], q)), s);
	if (w->patient[r->to])
		gci_patient(w->b);
}

/* Hands a segment of this cluster's member `index` to the clusters this rank is its gateway to. The
 * nearest by number comes last: it asks for us last. */
static void hand_over(const struct walk *w, int index, uint64_t q, struct gci_slice s)
{
	const struct gci_topo *t = w->c->topo;
	int k;

	for (k = 1; k < t->nclusters; k++) {
		int to = (w->mine + t->nclusters - k) % t->nclusters;
		struct gci_route r = gci_route(w->c, w->mine, to);

		if (gci_route_gateway(&r, index, q) == w->b->rank)
			send_over_wan(w, &r, index, q, s);
	}
}

static void local_block(struct walk *w, int index)
{
	int rank = w->members[index], last = (index + w->n - 1) % w->n == w->index;
	struct gci_slice own = gci_in_block(w->c, w->b->rank, w->b->rank);
	struct gci_slice block = gci_out_block(w->c, w->b->rank, rank);
	uint64_t q, n = gci_route_count(&w->cut, block.length);

	for (q = 0; q < n; q++) {
		struct gci_slice s = gci_route_slice(&w->cut, block, q);
		uint32_t tag = gci_tag(WITHIN, gci_route_number(&w->cut, rank, q));

		if (rank == w->b->rank) {
			s = gci_route_slice(&w->cut, own, q);
		} else {
			gci_turn_step(&w->turns, gci_recv(w->b, previous_in_ring(w), tag, s),
				s.length, 0);
		}
		if (!last)
			gci_send(w->b, next_in_ring(w), tag, s);
		hand_over(w, index, q, s);
	}
}

static uint64_t sum_of_blocks(const struct walk *w, int cluster)
{
	struct gci_group g = {
		gci_topo_members(w->c->topo, cluster), gci_topo_size(w->c->topo, cluster), 0, -1};

	return gci_blocks_len(w->c, &g, 0, g.n);
}

/* The largest of all routes to here. */
static uint64_t most_in_flight(const struct walk *w)
{
	const struct gci_topo *t = w->c->topo;
	uint64_t most = 0;
	int from;

	for (from = 0; from < t->nclusters; from++) {
		uint64_t n = from == w->mine ? 0 : gci_wan_in_flight(w->c, from, w->mine);

		most = n > most ? n : most;
	}
	return most;
}

/* Blocks of cluster `to` go round its own ring for longer than ours take over the WAN: what came
 * unasked would meet them at the NICs where it enters. */
static int is_patient(const struct walk *w, int to)
{
	const struct gci_topo *t = w->c->topo;
	struct gci_route r = gci_route(w->c, w->mine, to);
	uint64_t ns = gci_transfer_ns(sum_of_blocks(w, to) * w->c->esize, gci_nic_bps(t, to));

	return gci_wan_fills_nic(t, w->mine, to, r.entries) &&
	       ns > gci_topo_link(t, w->mine, to)->delay_ns;
}

static void local_ring(struct walk *w)
{
	int s;

	gci_turn(
		&w->turns, sum_of_blocks(w, w->mine) - gci_block_len(w->c, w->b->rank, w->b->rank));
	for (s = 0; s < w->n; s++)
		local_block(w, (w->index - s + w->n) % w->n);
}

/* One segment of a block of another cluster. */
static void remote_segment(struct walk *w, const struct gci_route *r, int index, uint64_t q,
	struct gci_slice s, int wait)
{
	int entry = gci_route_entry(r, index, q), over_wan = entry == w->index;
	int rank = gci_topo_members(r->topo, r->from)[index];
	int peer = over_wan ? gci_route_gateway(r, index, q) : previous_in_ring(w);
	uint32_t number = gci_route_number(&w->cut, rank, q), step;

	step = gci_recv(w->b, peer, gci_tag(over_wan ? WAN : REMOTE, number), s);
	gci_turn_step(&w->turns, step, s.length, over_wan && wait);
	if ((w->index + 1) % w->n != entry)
		gci_send(w->b, next_in_ring(w), gci_tag(REMOTE, number), s);
}

static void remote_blocks(struct walk *w, int from)
{
	struct gci_route r = gci_route(w->c, from, w->mine);
	int wait = gci_wan_fills_nic(w->c->topo, from, w->mine, r.entries), index;
	uint64_t q;

	gci_turn(&w->turns, sum_of_blocks(w, from));
	for (index = 0; index < gci_topo_size(w->c->topo, from); index++) {
		int rank = gci_topo_members(w->c->topo, from)[index];
		struct gci_slice block = gci_out_block(w->c, w->b->rank, rank);

		for (q = 0; q < gci_route_count(&w->cut, block.length); q++)
			remote_segment(w, &r, index, q, gci_route_slice(&w->cut, block, q), wait);
	}
}

static void gci_emit_allgather_rings(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct walk w = {.b = b,
		.c = c,
		.cut = gci_route_segments(c),
		.mine = t->cluster[b->rank],
		.index = t->index[b->rank],
		.turns = {.b = b}};
	int k;

	w.n = gci_topo_size(t, w.mine);
	w.members = gci_topo_members(t, w.mine);
	w.turns.ahead = most_in_flight(&w);
	for (k = 1; k < t->nclusters; k++) {
		int to = (w.mine + k) % t->nclusters;

		w.patient[to] = (unsigned char)is_patient(&w, to);
	}
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	local_ring(&w);
	for (k = 1; k < t->nclusters; k++)
		remote_blocks(&w, (w.mine + k) % t->nclusters);
}

/* ---- The product's allgather: rings for long messages, coordinators for short ones. */

static void gci_emit_allgather_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = gci_total(c) * c->esize;

	if (gci_cost_rings(c, nbytes) < gci_cost_coordinators(c, nbytes))
		gci_emit_allgather_rings(b, c);
	else
		gci_emit_allgather_magpie(b, c);
}

/* ---- the algorithms */

const struct gci_algorithm gci_allgathers[] = {
	{GCI_ALLGATHER, "gridcoll", "rings or coordinators, by a cost formula",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_allgather_gridcoll, gci_estimate_rings_or_coordinators},
	{GCI_ALLGATHER, "packed", "packing of trees: blocks down several trees of clusters each",
		GCI_PACKS, 0, gci_emit_packed, gci_estimate_packed},
	{GCI_ALLGATHER, "ring", "blocks travel round a ring of all ranks", 0, 0,
		gci_emit_allgather_ring, gci_estimate_ring},
	{GCI_ALLGATHER, "gather-bcast", "binomial gather to rank 0, binomial bcast",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_allgather_gather_bcast,
		gci_estimate_gather_and_bcast},
	{GCI_ALLGATHER, "simple", "each to each, all at once in the order of ranks", 0, 0,
		gci_emit_allgather_simple, gci_estimate_each_to_each},
	{GCI_ALLGATHER, "spreading", "each to each, at rising distance", 0, 0,
		gci_emit_allgather_spreading, gci_estimate_each_to_each},
	{GCI_ALLGATHER, "doubling", "recursive doubling over halves of the ranks", 0, 0,
		gci_emit_allgather_doubling, gci_estimate_rounds},
	{GCI_ALLGATHER, "dissemination", "Bruck's: twice the blocks in every round", 0, 0,
		gci_emit_allgather_dissemination, gci_estimate_rounds},
	{GCI_ALLGATHER, "magpie", "gather, exchange of coordinators, bcast in each cluster",
		GCI_CAPS_SENDERS, 0, gci_emit_allgather_magpie, gci_estimate_coordinators},
	{GCI_ALLGATHER, "magpie-segmented", "the same, exchanged and passed on in segments",
		GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_allgather_magpie_segmented,
		gci_estimate_coordinators},
	{GCI_ALLGATHER, "mpich-g2", "recursive doubling up the hierarchy, bcast down",
		GCI_CAPS_SENDERS, 0, gci_emit_allgather_mpich_g2, gci_estimate_coordinators},
	{GCI_ALLGATHER, "rings", "round the ring of each cluster, over each WAN link once",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_allgather_rings,
		gci_estimate_rings},
	{GCI_ALLGATHER, "min3", "planned by bandwidths, several WAN transfers at once", GCI_PLANS,
		GCI_PLAN_MAX_HOSTS, gci_emit_allgather_min3, gci_estimate_planned},
	{GCI_ALLGATHER, "min3-half", "the same for hosts that send or receive", GCI_PLANS,
		GCI_PLAN_MAX_HOSTS, gci_emit_allgather_min3_half, gci_estimate_planned},
	{GCI_ALLGATHER, "trees-greedy", "a broadcast tree per block, earliest completion first",
		GCI_PLANS, 256, gci_emit_allgather_trees_greedy, gci_estimate_planned},
	{GCI_ALLGATHER, "trees-annealed", "a broadcast tree per block, clustered and annealed",
		GCI_PLANS, 256, gci_emit_allgather_trees_annealed, gci_estimate_planned},
	{GCI_ALLGATHER, NULL, NULL, 0, 0, NULL, NULL},
};
