/* SPDX-License-Identifier: MIT
 * The van de Geijn bcast (Barnett et al. 1994), and the farfirst bcast that uses it in each cluster
 * (Matsuda 2006, 3.1).
 *
 * Cost, M/B and L as in Matsuda 2006, table 1:
 *	vandegeijn	2 M/B, with the WAN crossed as if it were none
 *	farfirst	L + M/B + 2 M/B */
#include "collectives/bcast/bcast.h"

enum { SCATTER, ALLGATHER, COUNTER };

void gci_emit_bcast_vandegeijn(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_parts p = gci_parts_of(c, g.n);

	gci_scatter(b, &g, &p, GCI_IN, SCATTER);
	gci_allgather(b, &g, &p, GCI_IN, ALLGATHER);
}

/* This rank's cluster, beginning with the root where it is the root's. */
static struct gci_group my_cluster(const struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int mine = t->cluster[b->rank];

	return gci_group_cluster(
		c, mine, b->rank, mine == t->cluster[c->root] ? t->index[c->root] : 0);
}

void gci_emit_bcast_farfirst(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int mine = t->cluster[b->rank], home = t->cluster[c->root], to;
	struct gci_group g = my_cluster(b, c);
	struct gci_parts p = gci_parts_of(c, g.n);
	uint32_t tag = gci_tag(COUNTER, 0);

	if (!c->count)
		return;
	/* Far first: the root's own cluster waits for the WAN (Matsuda 2006, 3.1). */
	for (to = 0; b->rank == c->root && to < t->nclusters; to++) {
		gci_round(b);
		if (to != home)
			gci_send(b, *gci_topo_members(t, to), tag, gci_slice(GCI_IN, 0, c->count));
	}
	if (mine != home && g.me == 0)
		gci_recv(b, c->root, tag, gci_slice(GCI_OUT, 0, c->count));
	gci_scatter(b, &g, &p, gci_bcast_buffer(b, c), SCATTER);
	gci_allgather(b, &g, &p, mine == home ? GCI_IN : GCI_OUT, ALLGATHER);
}
