/* SPDX-License-Identifier: MIT
 * The product's allgather: rings for long messages, coordinators for short ones. */
#include "collectives/allgather/allgather.h"
#include "collectives/models/cost.h"

void gci_emit_allgather_gridcoll(struct gci_builder *b, const struct gci_coll *c)
{
	uint64_t nbytes = gci_total(c) * c->esize;

	if (gci_cost_rings(c, nbytes) < gci_cost_coordinators(c, nbytes))
		gci_emit_allgather_rings(b, c);
	else
		gci_emit_allgather_magpie(b, c);
}
