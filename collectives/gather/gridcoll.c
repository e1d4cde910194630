/* SPDX-License-Identifier: MIT
 * The product's gather: by relays for long blocks, brought together on the way for short ones. */
#include "collectives/gather/gather.h"
#include "collectives/models/cost.h"

void gci_emit_gather_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = gci_total(c) * c->esize;

	if (gci_cost_relay(c, nbytes) < gci_cost_binomial(c, nbytes))
		gci_emit_gather_relay(b, c);
	else
		gci_emit_gather_magpie(b, c);
}
