/* SPDX-License-Identifier: MIT
 * What packings (packed.c) ask of their operations (emission.c) and schedules (packed_emit.c). */
#ifndef GCI_COLLECTIVES_PLANNER_PACKED_IMPL_H
#define GCI_COLLECTIVES_PLANNER_PACKED_IMPL_H

#include "collectives/planner/packed.h"

#define GCI_PACKED_MESSAGE_NS \
	15000 /* collectives/sim: of a message, for its sender and its receiver */

/* Whether it collects: it is planned on the network with all arrows turned. */
int gci_packed_is_turned(enum gci_kind k);

/* That network. 0 or GCOLL_ERR_NOMEM. */
int gci_packed_network(struct gci_network *net, const struct gci_coll *c, int capped);

/* On that network, where c->order is to be kept. */
void gci_packed_order(
	struct gci_sum_order *o, const struct gci_network *net, const struct gci_coll *c);

/* How many hosts each class has, as a digest. */
uint64_t gci_packed_sizes(const struct gci_network *net);

enum gci_packing_shape gci_packed_shape(enum gci_kind k);

/* Elements of the vector, or of the longest block. */
uint64_t gci_packed_longest(const struct gci_coll *c);

/* The steps of a rank but those that copy what it has of its own. */
void gci_packed_emit(struct gci_builder *b, const struct gci_coll *c, const struct gci_packed *p);

#endif
