/* SPDX-License-Identifier: MIT
 * Emitters of allgather that are not in allgather.c. The cost formula and source stand on top of
 * each. */
#ifndef GCI_COLLECTIVES_ALLGATHER_ALLGATHER_H
#define GCI_COLLECTIVES_ALLGATHER_ALLGATHER_H

#include "collectives/blocks/blocks.h"

void gci_emit_allgather_magpie(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_magpie_segmented(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_min3(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_min3_half(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_trees_greedy(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_trees_annealed(struct gci_builder *b, const struct gci_coll *c);

#endif
