/* SPDX-License-Identifier: MIT
 * Emitters of gather. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_GATHER_GATHER_H
#define GCI_COLLECTIVES_GATHER_GATHER_H

#include "collectives/blocks/blocks.h"

void gci_emit_gather_gridcoll(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_gather_relay(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_gather_binomial(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_gather_sequential(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_gather_chain(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_gather_binary(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_gather_magpie(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_gather_magpie_segmented(struct gci_builder *b, const struct gci_coll *c);

#endif
