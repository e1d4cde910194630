/* SPDX-License-Identifier: MIT
 * How many elements an operation on so many bytes has, as `gridcoll bench`, plan and tune count. */
#ifndef GCT_SHAPE_H
#define GCT_SHAPE_H

#include "collectives/coll.h"

/* Sets c->count and c->esize (4, or 1 where that does not divide it) for `nbytes` of the vector, of
 * all ranks' equal blocks together, or (alltoall) of those that one rank sends; kind and topology
 * are set. Returns how many bytes that makes: blocks are rounded up. */
uint64_t gct_shape(struct gci_coll *c, uint64_t nbytes);

#endif
