/* SPDX-License-Identifier: MIT
 * Emitters of barrier. */
#ifndef GCI_COLLECTIVES_BARRIER_BARRIER_H
#define GCI_COLLECTIVES_BARRIER_BARRIER_H

#include "collectives/blocks/blocks.h"

void gci_emit_barrier_binomial(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_barrier_clusters(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_barrier_dissemination(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_barrier_ring(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_barrier_tournament(struct gci_builder *b, const struct gci_coll *c);

#endif
