/* SPDX-License-Identifier: MIT
 * What alltoall's emitters share with each other and with those who pace them. */
#ifndef GCI_COLLECTIVES_ALLTOALL_ALLTOALL_H
#define GCI_COLLECTIVES_ALLTOALL_ALLTOALL_H

#include "collectives/blocks/blocks.h"

void gci_emit_alltoall_clusters(struct gci_builder *b, const struct gci_coll *c);

/* Whether each pair is to be paced. */
int gci_alltoall_is_even(const struct gci_algorithm *a);

/* bps[other]: the rate on the wire at which `rank` is to send to each other one, 1 at least, so that
 * all pairs end together and no NIC or link is offered more than its rate; 0 where nothing goes. Returns
 * 0 if rates are not known. */
int gci_alltoall_even_bps(const struct gci_coll *c, int rank, uint64_t *bps);

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
