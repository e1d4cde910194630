/* SPDX-License-Identifier: MIT
 * Emitters of alltoall. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_ALLTOALL_ALLTOALL_H
#define GCI_COLLECTIVES_ALLTOALL_ALLTOALL_H

#include "collectives/blocks.h"

void gci_emit_alltoall_paced(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_alltoall_circular(struct gci_builder *b, const struct gci_coll *c);

#endif
