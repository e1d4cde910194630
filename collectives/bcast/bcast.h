/* SPDX-License-Identifier: MIT
 * Emitters of bcast. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_BCAST_BCAST_H
#define GCI_COLLECTIVES_BCAST_BCAST_H

#include "collectives/blocks/blocks.h"

void gci_emit_bcast_gridcoll(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_spread(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_pipeline(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_tree(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_sequential(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_chain(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_binary(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_binomial(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_magpie(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_magpie_pipelined(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_vandegeijn(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_vandegeijn_mod(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_vandegeijn_early(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_vandegeijn_merge(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_farfirst(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_spoc(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_fnf(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_optimal(struct gci_builder *b, const struct gci_coll *c);

#endif
