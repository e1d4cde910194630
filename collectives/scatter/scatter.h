/* SPDX-License-Identifier: MIT
 * Emitters of scatter. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_SCATTER_SCATTER_H
#define GCI_COLLECTIVES_SCATTER_SCATTER_H

#include "collectives/blocks/blocks.h"

void gci_emit_scatter_gridcoll(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_scatter_relay(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_scatter_binomial(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_scatter_sequential(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_scatter_chain(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_scatter_binary(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_scatter_magpie(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_scatter_magpie_segmented(struct gci_builder *b, const struct gci_coll *c);

#endif
