/* SPDX-License-Identifier: MIT
 * The product's alltoall: each to each, where all ranks of a cluster may send to another and blocks are
 * long enough to be worth a message each, all at once if rates are known; else one message per pair of
 * clusters and sender. */
#include "base/clock.h"
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/path.h"
#include "collectives/models/cost.h"

/* And that no two paths share a link. */
static int rates_are_known(const struct gci_topo *t)
{
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if (!t->nic_bps[a] || (a != b && t->share[a * t->nclusters + b]))
				return 0;
	return 1;
}

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

static int goes_evenly(const struct gci_coll *c)
{
	return rates_are_known(c->topo) && all_may_send(c) && blocks_are_long(c);
}

int gci_alltoall_is_even(const struct gci_algorithm *a, const struct gci_coll *c)
{
	return a->emit == gci_emit_alltoall_even ||
	       (a->emit == gci_emit_alltoall_gridcoll && goes_evenly(c));
}

void gci_emit_alltoall_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	if (goes_evenly(c))
		gci_emit_alltoall_even(b, c);
	else if (all_may_send(c) && blocks_are_long(c))
		gci_emit_alltoall_paced(b, c);
	else
		gci_emit_alltoall_clusters(b, c);
}
