/* SPDX-License-Identifier: MIT
 * Emitters of allreduce. */
#ifndef GCI_COLLECTIVES_ALLREDUCE_ALLREDUCE_H
#define GCI_COLLECTIVES_ALLREDUCE_ALLREDUCE_H

#include "collectives/blocks/reduction.h"

void gci_emit_allreduce_gridcoll(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_spread(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_allgather(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_binary(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_binomial(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_chain(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_doubling(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_ordered(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_ordered_mod(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_rabenseifner(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_rabenseifner_merge(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_rabenseifner_mod(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_reduce_bcast(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_ring(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_tree(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_two_tier(struct gci_builder *b, const struct gci_coll *c);

#endif
