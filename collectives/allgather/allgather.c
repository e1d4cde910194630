/* SPDX-License-Identifier: MIT
 * Every rank sends its block to every other. `simple` starts all transfers at once, in the order of
 * ranks, so that the low ranks are everybody's first; `spreading` meets the rank at distance i in
 * round i.
 * Cost: (P-1) (L + m/B), blocks of m. Min3 (Gupta 2007), 2. */
#include "collectives/allgather/allgather.h"

#include "collectives/allgather/plan.h"
#include "collectives/blocks/phases.h"
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

/* ---- the algorithms */

const struct gci_algorithm gci_allgathers[] = {
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
