/* SPDX-License-Identifier: MIT
 * Barriers.
 *	clusters	binomial gather to each cluster's first rank, all of which tell each other,
 *			then a binomial release. Cost: L + 2 ceil(log2 h) l, o for a message left
 *			out; bound (DESIGN.md): L.
 *	dissemination	in round k rank r tells rank r + 2^k (Hensgen et al. 1988).
 *			Cost: ceil(log2 P) L, as rounds cross the WAN again and again. */
#include "collectives/barrier/barrier.h"

enum { GATHER, EXCHANGE, RELEASE };

static const struct gci_slice nothing = {0, 0, GCI_OUT};

/* All later steps wait for all steps so far, by a chain: each step is fenced by the one before. */
static void in_turn(struct gci_builder *b, uint32_t step)
{
	gci_fence(b, step);
}

void gci_emit_barrier_dissemination(struct gci_builder *b, const struct gci_coll *c)
{
	int n = c->topo->nranks;
	uint32_t round = 0;
	int64_t step;

	for (step = 1; step < n; step *= 2, round++) {
		int to = (int)((b->rank + step) % n), from = (int)((b->rank - step + n) % n);
		uint32_t tag = gci_tag(0, round);

		/* The send of a round waits for the receive of the one before. */
		gci_send(b, to, tag, nothing);
		in_turn(b, gci_recv(b, from, tag, nothing));
	}
}

void gci_emit_barrier_clusters(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int mine = t->cluster[b->rank], other, k, parent, children[32];
	struct gci_group g = gci_group_cluster(c, mine, b->rank, 0);
	int nchildren = gci_binomial(&g, &parent, children);

	for (k = nchildren; k-- > 0;)
		in_turn(b,
			gci_recv(b, gci_group_rank(&g, children[k]), gci_tag(GATHER, 0), nothing));
	if (parent >= 0) {
		gci_send(b, gci_group_rank(&g, parent), gci_tag(GATHER, 0), nothing);
		in_turn(b, gci_recv(b, gci_group_rank(&g, parent), gci_tag(RELEASE, 0), nothing));
	} else {
		for (other = 0; other < t->nclusters; other++)
			if (other != mine)
				gci_send(b, *gci_topo_members(t, other), gci_tag(EXCHANGE, 0),
					nothing);
		for (other = 0; other < t->nclusters; other++)
			if (other != mine)
				in_turn(b, gci_recv(b, *gci_topo_members(t, other),
						   gci_tag(EXCHANGE, 0), nothing));
	}
	for (k = 0; k < nchildren; k++)
		gci_send(b, gci_group_rank(&g, children[k]), gci_tag(RELEASE, 0), nothing);
}
