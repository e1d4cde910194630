/* SPDX-License-Identifier: MIT
 * Emitters of reduce. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_REDUCE_REDUCE_H
#define GCI_COLLECTIVES_REDUCE_REDUCE_H

#include "collectives/blocks/reduction.h"

void gci_emit_reduce_binary(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_spread(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_binomial(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_chain(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_clusters(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_gather(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_gridcoll(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_ordered(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_ordered_mod(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_pipeline(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_reduce_rabenseifner(struct gci_builder *b, const struct gci_coll *c);

#endif
