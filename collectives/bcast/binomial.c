/* SPDX-License-Identifier: MIT
 * Binomial trees: `binomial` is one over all ranks, blind to clusters; `tree` has the root send to
 * the first rank of each other cluster, then a binomial tree in each.
 * Cost: binomial ceil(log2 P) (M/B + o); tree L + (C-1 + ceil(log2 h)) (M/B + o), o being the cost
 * of a message. MagPIe (Kielmann 2001), 3: every WAN link is crossed once. For short messages. */
#include "collectives/bcast/bcast.h"
#include "collectives/blocks/phases.h"

void gci_emit_bcast_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);

	gci_bcast(b, &g, gci_vector(c, gci_bcast_buffer(b, c)), gci_tag(0, 0));
}

void gci_emit_bcast_tree(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root], mine = t->cluster[b->rank], other;
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));
	struct gci_group g =
		gci_group_cluster(c, mine, b->rank, mine == home ? t->index[c->root] : 0);

	if (mine != home && g.me == 0)
		gci_recv_some(b, c->root, gci_tag(0, 0), all);
	for (other = 0; b->rank == c->root && other < t->nclusters; other++)
		if (other != home)
			gci_send_some(b, *gci_topo_members(t, other), gci_tag(0, 0), all);
	gci_bcast(b, &g, all, gci_tag(1, 0));
}
