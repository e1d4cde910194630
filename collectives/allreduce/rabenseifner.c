/* SPDX-License-Identifier: MIT
 * Allreduce after Rabenseifner (1997), and the two-tier algorithm that uses its first half in each
 * cluster (Matsuda 2006, 3.2). For commutative operations. Every element is reduced in one place
 * per cluster, in the order of clusters, so all ranks end with the same bits.
 *
 * Cost, M/B and L as in Matsuda 2006, table 1:
 *	rabenseifner	2 (P-1)/P M/B, with the WAN crossed as if it were none
 *	two-tier	L + M/B + 2 M/B + 2 M/B */
#include "collectives/allreduce/allreduce.h"

enum { REDUCE_SCATTER, COUNTER, GATHER, SCATTER, ALLGATHER };

static enum gci_buffer input(const struct gci_coll *c)
{
	return c->in_place ? GCI_OUT : GCI_IN;
}

/* One rank alone. */
static void copy_input(struct gci_builder *b, const struct gci_coll *c)
{
	if (!c->in_place && c->count)
		gci_copy(b, gci_slice(GCI_OUT, 0, c->count), gci_slice(GCI_IN, 0, c->count));
}

void gci_emit_allreduce_rabenseifner(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, 0);
	struct gci_parts p = gci_parts_of(c, g.n);

	if (g.n == 1) {
		copy_input(b, c);
		return;
	}
	gci_reduce_scatter(b, &g, &p, input(c), GCI_OUT, 0, REDUCE_SCATTER);
	gci_allgather(b, &g, &p, GCI_NBUFFERS, ALLGATHER);
}

/* The coordinators send each other their clusters' whole vectors, from TMP, and add them up in OUT
 * in the order of clusters. */
static void exchange_whole(struct gci_builder *b, const struct gci_coll *c, int mine)
{
	const struct gci_topo *t = c->topo;
	struct gci_slice out = gci_slice(GCI_OUT, 0, c->count);
	struct gci_slice own = gci_slice(GCI_TMP, 0, c->count);
	uint32_t tag = gci_tag(COUNTER, 0);
	int other;

	b->tmp_len = c->count;
	gci_round(b);
	gci_copy(b, own, out);
	for (other = 0; other < t->nclusters; other++)
		if (other != mine)
			gci_send(b, *gci_topo_members(t, other), tag, own);
	for (other = 0; other < t->nclusters; other++) {
		int peer = *gci_topo_members(t, other);

		if (other == mine && other)
			gci_reduce(b, out, own, 0);
		else if (other != mine && !other)
			gci_recv(b, peer, tag, out);
		else if (other != mine)
			gci_recv_reduce(b, peer, tag, out, out, 0);
	}
}

void gci_emit_allreduce_two_tier(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int mine = t->cluster[b->rank];
	struct gci_group g = gci_group_cluster(c, mine, b->rank, 0);
	struct gci_parts p = gci_parts_of(c, g.n);

	if (!c->count)
		return;
	/* Reduction: Rabenseifner's, with a gather as its second stage (Matsuda 2006, 3.2). */
	if (g.n == 1)
		copy_input(b, c);
	else
		gci_reduce_scatter(b, &g, &p, input(c), GCI_OUT, 0, REDUCE_SCATTER);
	gci_gather(b, &g, &p, GATHER);
	if (g.me == 0 && t->nclusters > 1)
		exchange_whole(b, c, mine);
	gci_scatter(b, &g, &p, GCI_OUT, SCATTER);
	gci_allgather(b, &g, &p, GCI_OUT, ALLGATHER);
}
