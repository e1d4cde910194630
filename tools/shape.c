/* SPDX-License-Identifier: MIT */
#include "tools/shape.h"

uint64_t gct_shape(struct gci_coll *c, uint64_t nbytes)
{
	uint64_t n = gci_kind_has_vector(c->kind) ? 1 : (uint64_t)c->topo->nranks;
	uint64_t block = c->kind == GCI_BARRIER ? 0 : nbytes / n + (nbytes % n != 0);

	c->esize = block % 4 ? 1 : 4;
	c->count = block / c->esize;
	return block * n;
}
