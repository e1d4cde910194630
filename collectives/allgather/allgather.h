/* SPDX-License-Identifier: MIT
 * Emitters of allgather. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_ALLGATHER_ALLGATHER_H
#define GCI_COLLECTIVES_ALLGATHER_ALLGATHER_H

#include "collectives/blocks.h"

void gci_emit_allgather_ring(struct gci_builder *b, const struct gci_coll *c);

#endif
