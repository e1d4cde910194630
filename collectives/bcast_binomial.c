/* SPDX-License-Identifier: MIT
 * Binomial trees: `binomial` is one over all ranks, blind to clusters; `tree` has the root send to
 * the first rank of each other cluster, then a binomial tree in each.
 * Cost: binomial ceil(log2 P) (M/B + o); tree L + (C-1 + ceil(log2 h)) (M/B + o), o being the cost
 * of a message. MagPIe (Kielmann 2001), 3: every WAN link is crossed once. For short messages. */
#include "collectives/blocks.h"

static void binomial(
	struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g, uint32_t phase)
{
	uint64_t i, n = gci_nsegments(c->count, c->segment);
	int parent, children[32];
	int k, nchildren = gci_binomial(g, &parent, children);

	for (i = 0; i < n; i++) {
		struct gci_slice s = gci_segment(gci_bcast_buffer(b, c), c->count, c->segment, i);
		uint32_t tag = gci_tag(phase, (uint32_t)i);

		if (parent >= 0)
			gci_recv_some(b, gci_group_rank(g, parent), tag, s);
		for (k = 0; k < nchildren; k++)
			gci_send_some(b, gci_group_rank(g, children[k]), tag, s);
	}
}

void gci_emit_bcast_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);

	gci_set_lengths(b, c);
	binomial(b, c, &g, 0);
}

void gci_emit_bcast_tree(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root], mine = t->cluster[b->rank], other;
	uint64_t i, n = gci_nsegments(c->count, c->segment);
	struct gci_group g =
		gci_group_cluster(c, mine, b->rank, mine == home ? t->index[c->root] : 0);

	gci_set_lengths(b, c);
	for (i = 0; i < n; i++) {
		uint32_t tag = gci_tag(0, (uint32_t)i);

		if (mine != home && g.me == 0)
			gci_recv_some(
				b, c->root, tag, gci_segment(GCI_OUT, c->count, c->segment, i));
		for (other = 0; b->rank == c->root && other < t->nclusters; other++)
			if (other != home)
				gci_send_some(b, *gci_topo_members(t, other), tag,
					gci_segment(GCI_IN, c->count, c->segment, i));
	}
	binomial(b, c, &g, 1);
}
