/* SPDX-License-Identifier: MIT
 * Emitters of reduce_scatter. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_REDUCE_SCATTER_REDUCE_SCATTER_H
#define GCI_COLLECTIVES_REDUCE_SCATTER_REDUCE_SCATTER_H

#include "collectives/blocks/reduction.h"

void gci_emit_reduce_scatter_gridcoll(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_scatter_clusters(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_scatter_halving(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_scatter_ordered(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_scatter_rings(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_scatter_ring(struct gci_builder *b, const struct gci_coll *c);

#endif
