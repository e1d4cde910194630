/* SPDX-License-Identifier: MIT
 * MagPIe's original bcast: the root sends the whole message to one coordinator in each other
 * cluster, and each passes it on in its cluster down a binomial tree. A large message's send costs
 * the sender all of its time, because MPI_Isend waits for flow control there (figure 2), so the WAN
 * links are used one after the other: here a SEND begins when the receiver has acknowledged the one
 * before.
 * Cost: (C-1) (M/W + 2L) + ceil(log2 h) M/B for large messages, W being a WAN link's rate;
 * L + ceil(log2 h) (M/B + o) for short ones, o being the cost of a message. MagPIe (Kielmann 2001),
 * 3.1. */
#include "collectives/models/magpie.h"
#include "collectives/bcast/bcast.h"
#include "collectives/blocks/phases.h"

enum { WAN, ACK, LAN };

static void to_coordinators(struct gci_builder *b, const struct gci_coll *c, int waits)
{
	const struct gci_topo *t = c->topo;
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));
	int home = t->cluster[c->root], k;

	for (k = 1; k < t->nclusters; k++) {
		int to = *gci_topo_members(t, (home + k) % t->nclusters);

		gci_send_some(b, to, gci_tag(WAN, 0), all);
		if (!waits)
			continue;
		gci_recv(b, to, gci_tag(ACK, 0), gci_slice(GCI_TMP, 0, 0));
		gci_round(b);
	}
}

static void from_root(struct gci_builder *b, const struct gci_coll *c, int waits)
{
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));

	gci_recv_some(b, c->root, gci_tag(WAN, 0), all);
	if (!waits)
		return;
	gci_round(b);
	gci_send(b, c->root, gci_tag(ACK, 0), gci_slice(GCI_TMP, 0, 0));
}

void gci_emit_bcast_magpie(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root], mine = t->cluster[b->rank];
	int waits = c->count * c->esize > GCI_MAGPIE_WAITS_NBYTES;
	struct gci_group g =
		gci_group_cluster(c, mine, b->rank, mine == home ? t->index[c->root] : 0);

	if (b->rank == c->root)
		to_coordinators(b, c, waits);
	else if (g.me == 0)
		from_root(b, c, waits);
	gci_bcast(b, &g, gci_vector(c, gci_bcast_buffer(b, c)), gci_tag(LAN, 0));
}
