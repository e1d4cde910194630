/* SPDX-License-Identifier: MIT
 * MagPIe's original scatter: the root sends all of a cluster's blocks to its coordinator in one
 * message, who hands them to their owners. As in its bcast, what follows a large message over the
 * WAN waits for its acknowledgement.
 * Cost: the sum over the other clusters of M'/W + 2L, M' being a cluster's blocks and W its link's
 * rate, + (h-1)/h M'/B; for short messages 2 L + P o. MagPIe (Kielmann 2001), 3.2. */
#include "collectives/models/magpie.h"
#include "collectives/blocks/phases.h"
#include "collectives/scatter/scatter.h"

enum { WAN, ACK, LAN };

struct magpie {
	struct gci_builder *b;
	const struct gci_coll *c;
	struct gci_group all; /* ranks by clusters */
	int first, end;       /* members of the cluster in question */
};

static void look_at(struct magpie *m, int cluster)
{
	m->first = m->c->topo->first[cluster];
	m->end = m->c->topo->first[cluster + 1];
}

static int waits(const struct magpie *m)
{
	uint64_t length = gci_blocks_len(m->c, &m->all, m->first, m->end);

	return length * m->c->esize > GCI_MAGPIE_WAITS_NBYTES;
}

static void to_coordinator(struct magpie *m)
{
	int rank = gci_group_rank(&m->all, m->first);
	struct gci_shelf in = gci_shelf_in();

	gci_send_blocks(m->b, m->c, &m->all, m->first, gci_tag(WAN, 0), &in, m->first, m->end);
	if (!waits(m))
		return;
	gci_recv(m->b, rank, gci_tag(ACK, 0), gci_slice(GCI_TMP, 0, 0));
	gci_round(m->b);
}

static void from_root(struct magpie *m, int root, const struct gci_shelf *to)
{
	gci_recv_blocks(m->b, m->c, &m->all, root, gci_tag(WAN, 0), to, m->first, m->end);
	if (!waits(m))
		return;
	gci_round(m->b);
	gci_send(m->b, m->c->root, gci_tag(ACK, 0), gci_slice(GCI_TMP, 0, 0));
}

/* `holder` has the blocks of its cluster. */
static void in_cluster(struct magpie *m, int holder, const struct gci_shelf *mine)
{
	int i;

	for (i = m->first; m->all.me == holder && i < m->end; i++)
		if (i != holder)
			gci_send_blocks(m->b, m->c, &m->all, i, gci_tag(LAN, 0), mine, i, i + 1);
	if (m->all.me != holder)
		gci_recv_blocks(m->b, m->c, &m->all, holder, gci_tag(LAN, 0), mine, m->all.me,
			m->all.me + 1);
}

void gci_emit_scatter_magpie(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct magpie m = {.b = b, .c = c, .all = gci_group_by_clusters(c, b->rank)};
	int home = t->cluster[c->root], mine = t->cluster[b->rank], k;
	int root = t->first[home] + t->index[c->root],
	    holder = mine == home ? root : t->first[mine];
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out(), shelf = out;

	for (k = 1; b->rank == c->root && k < t->nclusters; k++) {
		look_at(&m, (home + k) % t->nclusters);
		to_coordinator(&m);
	}
	look_at(&m, mine);
	if (b->rank == c->root) {
		shelf = in;
	} else if (m.all.me == holder) {
		if (m.end - m.first > 1)
			shelf = gci_shelf_tmp(b, c, &m.all, m.first, m.end);
		from_root(&m, root, &shelf);
	}
	in_cluster(&m, holder, &shelf);
	if (m.all.me == holder && gci_has_out(c, b->rank))
		gci_copy_blocks(b, c, &m.all, &out, &shelf, holder, holder + 1);
}
