/* SPDX-License-Identifier: MIT
 * Emitters of allgather. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_ALLGATHER_ALLGATHER_H
#define GCI_COLLECTIVES_ALLGATHER_ALLGATHER_H

#include "collectives/blocks/blocks.h"

void gci_emit_allgather_gridcoll(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_rings(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_ring(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_gather_bcast(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_simple(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_spreading(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_doubling(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_dissemination(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_magpie(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_magpie_segmented(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_mpich_g2(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_min3(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_min3_half(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_trees_greedy(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allgather_trees_annealed(struct gci_builder *b, const struct gci_coll *c);

#endif
