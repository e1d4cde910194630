/* SPDX-License-Identifier: MIT
 * The product's scatter: by relays for long blocks, brought together on the way for short ones. */
#include "collectives/models/cost.h"
#include "collectives/scatter/scatter.h"

void gci_emit_scatter_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = gci_total(c) * c->esize;

	if (gci_cost_relay(c, nbytes) < gci_cost_binomial(c, nbytes))
		gci_emit_scatter_relay(b, c);
	else
		gci_emit_scatter_magpie(b, c);
}
