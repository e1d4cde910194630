/* SPDX-License-Identifier: MIT
 * Emitters of alltoall. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_ALLTOALL_ALLTOALL_H
#define GCI_COLLECTIVES_ALLTOALL_ALLTOALL_H

#include "collectives/blocks/blocks.h"

void gci_emit_alltoall_gridcoll(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_alltoall_paced(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_alltoall_circular(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_alltoall_gather_scatter(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_alltoall_bruck(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_alltoall_clusters(struct gci_builder *b, const struct gci_coll *c);

/* What the members of a group send to rank `to`, one after the other: a column. */
uint64_t gci_column_len(const struct gci_coll *c, const struct gci_group *from, int to);

/* Where this rank can receive a column in one message: in OUT if all of it stands together there,
 * else in TMP. */
struct gci_slice gci_column_slice(
	struct gci_builder *b, const struct gci_coll *c, const struct gci_group *from);

/* Copies members' [a, z) part of a column, which begins where `packed` does, to its places, unless
 * that is in OUT: then it stands there already. */
void gci_column_place(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *from,
	int a, int z, struct gci_slice packed);

#endif
