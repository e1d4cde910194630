/* SPDX-License-Identifier: MIT
 * MPICH-G2's two phases, as Min3 (Gupta 2007), 2 describes them: data is gathered up the hierarchy
 * by recursive doubling, first among the ranks of each cluster and then among the clusters' first
 * ranks, and broadcast downwards by binomial trees.
 * Cost: ceil(log2 h) l + ceil(log2 C) L + (C-1)/C M/B + (h-1)/P M/B + ceil(log2 h) (l + M/B), for
 * C clusters of h ranks and M for all blocks. All that crosses the WAN goes through one rank of
 * each cluster, and over some links more than once. */
#include "collectives/allgather/allgather.h"
#include "collectives/blocks/phases.h"

enum { LOCAL, WIDE, DOWN };

void gci_emit_allgather_mpich_g2(struct gci_builder *b, const struct gci_coll *c)
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
