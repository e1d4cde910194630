/* SPDX-License-Identifier: MIT
 * Where the vector and the blocks of an operation stand in IN and OUT, in whole or of a part of it,
 * and how a part of an operation is made. The only place that knows strides, counts, displacements,
 * and what in place means. */
#ifndef GCI_COLLECTIVES_BLOCKS_LAYOUT_H
#define GCI_COLLECTIVES_BLOCKS_LAYOUT_H

#include "collectives/coll.h"

/* Does this rank have IN, OUT in this operation? */
int gci_has_in(const struct gci_coll *c, int rank);
int gci_has_out(const struct gci_coll *c, int rank);

/* Elements from the start of IN or OUT of this rank to their end, 0 where it has none. */
uint64_t gci_in_extent(const struct gci_coll *c, int rank);
uint64_t gci_out_extent(const struct gci_coll *c, int rank);

/* The vector (bcast, reduce, allreduce) in this buffer. */
static inline struct gci_slice gci_vector(const struct gci_coll *c, enum gci_buffer buffer)
{
	return gci_slice(buffer, c->shift, c->count);
}

/* The buffer with this rank's input vector: IN, or OUT in place. For bcast: where the data is at
 * this rank, IN at the root and OUT elsewhere. */
enum gci_buffer gci_input(const struct gci_coll *c, int rank);

/* Elements of the block that `from` gives to `to`. For all but alltoall one of the two counts:
 * `to` in scatter and reduce_scatter, `from` in gather and allgather. */
uint64_t gci_block_len(const struct gci_coll *c, int from, int to);

/* Block number `block` in rank's input: reduce_scatter, scatter (at the root), alltoall; gather,
 * allgather: its own, whatever `block`. Where the input stands in OUT, it is a slice of that; in
 * alltoall in place it is one of TMP, where gci_emit has put a copy, block after block. */
struct gci_slice gci_in_block(const struct gci_coll *c, int rank, int block);

/* Block number `block` in rank's output: gather (at the root), allgather, alltoall; scatter,
 * reduce_scatter: its own, whatever `block`. */
struct gci_slice gci_out_block(const struct gci_coll *c, int rank, int block);

/* Where a rank's only block stands in IN or OUT, when it has no others there. */
uint64_t gci_own_at(const struct gci_coll *c, int rank);

/* True if the blocks of all ranks stand one after the other, in the order of ranks, on every rank:
 * then several can go in one message. All ranks answer the same. */
int gci_contiguous(const struct gci_coll *c);

/* All of the elements of all blocks (gather and the like), or of the vector. */
uint64_t gci_total(const struct gci_coll *c);

/* How many segments of c->segment elements the longest block, or the vector, makes; 1 where no
 * segment is set. */
uint32_t gci_nsegments_of(const struct gci_coll *c);

/* Segment i of n: the same operation on that part of every block, or of the vector. */
struct gci_coll gci_segment_of(const struct gci_coll *c, uint32_t i, uint32_t n);

/* Blocks in segments of so many elements. */
struct gci_cut {
	uint64_t segment;
	uint32_t most; /* of any block */
};

struct gci_cut gci_cut_of(const struct gci_coll *c, uint64_t segment);

/* Segments of a block of that length. */
uint64_t gci_cut_count(const struct gci_cut *cut, uint64_t length);

/* Segment q of the block that stands in `block`. */
struct gci_slice gci_cut_slice(const struct gci_cut *cut, struct gci_slice block, uint64_t q);

#endif
