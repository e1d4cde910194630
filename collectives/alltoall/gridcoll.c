/* SPDX-License-Identifier: MIT
 * The product's alltoall: each to each, paced, where all ranks of a cluster may send to another at
 * once and blocks are long enough to be worth a message each; else one message per pair of clusters
 * and sender. */
#include "base/clock.h"
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/path.h"
#include "collectives/models/cost.h"

static int all_may_send(const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if (a != b && gci_coll_senders(c, a, b) < gci_topo_size(t, a))
				return 0;
	return 1;
}

/* With lengths of its own for each pair, short blocks and long ones go the same way: each to each.
 */
static int blocks_are_long(const struct gci_coll *c)
{
	uint64_t nbytes = c->count * c->esize;

	return c->counts || gci_transfer_ns(nbytes, gci_nic_bps(c->topo, 0)) > GCI_MESSAGE_COST_NS;
}

void gci_emit_alltoall_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	if (all_may_send(c) && blocks_are_long(c))
		gci_emit_alltoall_paced(b, c);
	else
		gci_emit_alltoall_clusters(b, c);
}
