/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/layout.h"

static int by_receiver(const struct gci_coll *c)
{
	return c->kind == GCI_SCATTER || c->kind == GCI_REDUCE_SCATTER;
}

int gci_has_in(const struct gci_coll *c, int rank)
{
	switch (c->kind) {
	case GCI_BCAST:
	case GCI_SCATTER:
		return rank == c->root;
	case GCI_REDUCE:
	case GCI_GATHER:
		return !c->in_place || rank != c->root;
	case GCI_BARRIER:
		return 0;
	default:
		return !c->in_place;
	}
}

int gci_has_out(const struct gci_coll *c, int rank)
{
	switch (c->kind) {
	case GCI_BCAST:
		return rank != c->root;
	case GCI_REDUCE:
	case GCI_GATHER:
		return rank == c->root;
	case GCI_SCATTER:
		return !c->in_place || rank != c->root;
	default:
		return c->kind != GCI_BARRIER;
	}
}

/* Elements of a block in the whole operation, of which this may be a part. */
static uint64_t whole_len(const struct gci_coll *c, int from, int to)
{
	int one = by_receiver(c) ? to : from;

	if (!c->counts)
		return c->count;
	return c->kind == GCI_ALLTOALL
		       ? c->counts[(uint64_t)from * (unsigned)c->topo->nranks + (unsigned)to]
		       : c->counts[one];
}

/* Where part k of n begins. */
static uint64_t part_at(const struct gci_coll *c, uint64_t len, uint32_t k)
{
	return c->nparts ? (uint64_t)((unsigned __int128)len * k / c->nparts) : k ? len : 0;
}

uint64_t gci_block_len(const struct gci_coll *c, int from, int to)
{
	uint64_t len = whole_len(c, from, to);

	if (!c->counts)
		return len;
	return part_at(c, len, c->nparts ? c->part + 1 : 1) -
	       part_at(c, len, c->nparts ? c->part : 0);
}

/* What of a block comes before this part. */
static uint64_t before(const struct gci_coll *c, uint64_t len)
{
	return c->counts ? part_at(c, len, c->nparts ? c->part : 0) : c->shift;
}

/* Where block `block` of rank's input (or output) starts when all stand one after the other. */
static uint64_t packed_at(const struct gci_coll *c, int rank, int block, int input)
{
	uint64_t at = 0;
	int i;

	if (!c->counts)
		return (uint64_t)block * (c->stride ? c->stride : c->count);
	for (i = 0; i < block; i++)
		at += input ? whole_len(c, rank, i) : whole_len(c, i, rank);
	return at;
}

static uint64_t start_of(const struct gci_coll *c, int rank, int block, int input)
{
	const uint64_t *at = input ? c->in_at : c->out_at;

	return at ? at[block] : packed_at(c, rank, block, input);
}

uint64_t gci_own_at(const struct gci_coll *c, int rank)
{
	return before(c, whole_len(c, rank, rank));
}

static struct gci_slice own_block(const struct gci_coll *c, int rank, enum gci_buffer buffer)
{
	return gci_slice(buffer, gci_own_at(c, rank), gci_block_len(c, rank, rank));
}

/* Where gci_emit puts its copy of a block, for alltoall in place. */
static uint64_t copy_at(const struct gci_coll *c, int rank, int block)
{
	uint64_t at = 0;
	int i;

	if (!c->counts)
		return (uint64_t)block * c->count;
	for (i = 0; i < block; i++)
		at += gci_block_len(c, rank, i);
	return at;
}

struct gci_slice gci_in_block(const struct gci_coll *c, int rank, int block)
{
	enum gci_buffer buffer = gci_input(c, rank);

	if (c->kind == GCI_GATHER || c->kind == GCI_ALLGATHER)
		return buffer == GCI_OUT ? gci_out_block(c, rank, rank)
					 : own_block(c, rank, GCI_IN);
	if (c->kind == GCI_ALLTOALL && c->in_place)
		return gci_slice(GCI_TMP, copy_at(c, rank, block), gci_block_len(c, rank, block));
	return gci_slice(buffer, start_of(c, rank, block, 1) + before(c, whole_len(c, rank, block)),
		gci_block_len(c, rank, block));
}

struct gci_slice gci_out_block(const struct gci_coll *c, int rank, int block)
{
	if (by_receiver(c))
		return own_block(c, rank, GCI_OUT);
	return gci_slice(GCI_OUT,
		start_of(c, rank, block, 0) + before(c, whole_len(c, block, rank)),
		gci_block_len(c, block, rank));
}

enum gci_buffer gci_input(const struct gci_coll *c, int rank)
{
	return gci_has_in(c, rank) ? GCI_IN : GCI_OUT;
}

int gci_contiguous(const struct gci_coll *c)
{
	return !c->counts && (!c->stride || c->stride == c->count);
}

static uint64_t extent_of_all(const struct gci_coll *c, int rank, int input)
{
	uint64_t end, most = 0;
	int i, n = c->topo->nranks;

	if (!c->counts)
		return (uint64_t)(n - 1) * (c->stride ? c->stride : c->count) + c->shift + c->count;
	for (i = 0; i < n; i++) {
		struct gci_slice s = input ? gci_in_block(c, rank, i) : gci_out_block(c, rank, i);

		end = s.offset + s.length;
		most = end > most ? end : most;
	}
	return most;
}

static uint64_t extent_of_own(const struct gci_coll *c, int rank)
{
	struct gci_slice s = own_block(c, rank, GCI_OUT);

	return s.offset + s.length;
}

uint64_t gci_in_extent(const struct gci_coll *c, int rank)
{
	if (!gci_has_in(c, rank))
		return 0;
	if (gci_kind_has_vector(c->kind))
		return c->shift + c->count;
	return c->kind == GCI_GATHER || c->kind == GCI_ALLGATHER ? extent_of_own(c, rank)
								 : extent_of_all(c, rank, 1);
}

uint64_t gci_out_extent(const struct gci_coll *c, int rank)
{
	if (!gci_has_out(c, rank))
		return 0;
	if (gci_kind_has_vector(c->kind))
		return c->shift + c->count;
	return by_receiver(c) ? extent_of_own(c, rank) : extent_of_all(c, rank, 0);
}

uint64_t gci_total(const struct gci_coll *c)
{
	uint64_t sum = 0;
	int i, n = c->topo->nranks;

	if (gci_kind_has_vector(c->kind) || c->kind == GCI_BARRIER)
		return c->count;
	if (!c->counts)
		return (uint64_t)n * c->count;
	for (i = 0; i < n; i++)
		sum += gci_block_len(c, i, i);
	return sum;
}

/* Elements of the longest block, or of its longest part. */
static uint64_t longest(const struct gci_coll *c)
{
	uint64_t most = 0, n = (unsigned)c->topo->nranks, i;

	if (!c->counts)
		return c->count;
	n = c->kind == GCI_ALLTOALL ? n * n : n;
	for (i = 0; i < n; i++)
		most = c->counts[i] > most ? c->counts[i] : most;
	return c->nparts ? most / c->nparts + !!(most % c->nparts) : most;
}

uint32_t gci_nsegments_of(const struct gci_coll *c)
{
	uint64_t most = longest(c), n;

	if (!c->segment || !most)
		return 1;
	n = (most - 1) / c->segment + 1;
	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

struct gci_coll gci_segment_of(const struct gci_coll *c, uint32_t i, uint32_t n)
{
	struct gci_coll s = *c;
	uint64_t at = c->segment * i;

	if (n == 1)
		return s;
	if (c->counts) {
		uint32_t nparts = c->nparts ? c->nparts : 1;

		s.part = c->part * n + i;
		s.nparts = nparts * n;
		return s;
	}
	s.stride = c->stride ? c->stride : c->count;
	s.shift = c->shift + at;
	s.count = c->count - at < c->segment ? c->count - at : c->segment;
	return s;
}

struct gci_cut gci_cut_of(const struct gci_coll *c, uint64_t segment)
{
	struct gci_coll cut = *c;

	cut.segment = segment;
	return (struct gci_cut){segment, gci_nsegments_of(&cut)};
}

uint64_t gci_cut_count(const struct gci_cut *cut, uint64_t length)
{
	return length ? (length - 1) / cut->segment + 1 : 0;
}

struct gci_slice gci_cut_slice(const struct gci_cut *cut, struct gci_slice block, uint64_t q)
{
	uint64_t at = q * cut->segment, left = block.length - at;

	return gci_slice(
		block.buffer, block.offset + at, left < cut->segment ? left : cut->segment);
}
