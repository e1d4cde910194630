/* SPDX-License-Identifier: MIT
 * MagPIe's original gather: each cluster's coordinator collects its blocks, and sends them to the
 * root in one message. Who receives large messages takes them one after the other.
 * Cost: (h-1)/h M'/B + the sum over the other clusters of M'/W + 2L, M' being a cluster's blocks
 * and W its link's rate; for short messages 2 L + P o. MagPIe (Kielmann 2001), 3.3. */
#include "collectives/models/magpie.h"
#include "collectives/blocks/phases.h"
#include "collectives/gather/gather.h"

enum { LAN, WAN };

struct magpie {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_group all; /* ranks by clusters */
};

/* The blocks of members [a, z) from member `peer`; what follows waits for them if they are large.
 */
static void receive(
	struct magpie *m, int peer, uint32_t phase, const struct gci_shelf *to, int a, int z)
{
	uint64_t length = gci_blocks_len(m->c, &m->all, a, z);

	gci_recv_blocks(m->b, m->c, &m->all, peer, gci_tag(phase, 0), to, a, z);
	if (length * m->c->esize > GCI_MAGPIE_WAITS_NBYTES)
		gci_round(m->b);
}

/* `holder` collects the blocks of cluster `cluster`. */
static void in_cluster(struct magpie *m, int cluster, int holder, const struct gci_shelf *mine)
{
	const struct gci_topo *t = m->c->topo;
	struct gci_shelf in = gci_shelf_in();
	int i, me = m->all.me;

	if (me != holder) {
		gci_send_blocks(m->b, m->c, &m->all, holder, gci_tag(LAN, 0), &in, me, me + 1);
		return;
	}
	gci_copy_blocks(m->b, m->c, &m->all, mine, &in, me, me + 1);
	for (i = t->first[cluster]; i < t->first[cluster + 1]; i++)
		if (i != holder)
			receive(m, i, LAN, mine, i, i + 1);
}

void gci_emit_gather_magpie(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct magpie m = {b, c, gci_group_by_clusters(c, b->rank)};
	int home = t->cluster[c->root], mine = t->cluster[b->rank], k;
	int root = t->first[home] + t->index[c->root],
	    holder = mine == home ? root : t->first[mine];
	int first = t->first[mine], end = t->first[mine + 1];
	struct gci_shelf shelf = b->rank == c->root ? gci_shelf_out() : gci_shelf_in();

	if (b->rank != c->root && m.all.me == holder && end - first > 1)
		shelf = gci_shelf_tmp(b, c, &m.all, first, end);
	in_cluster(&m, mine, holder, &shelf);
	if (b->rank != c->root && m.all.me == holder)
		gci_send_blocks(b, c, &m.all, root, gci_tag(WAN, 0), &shelf, first, end);
	for (k = 1; b->rank == c->root && k < t->nclusters; k++) {
		int from = (home + k) % t->nclusters;

		receive(&m, t->first[from], WAN, &shelf, t->first[from], t->first[from + 1]);
	}
}
