/* SPDX-License-Identifier: MIT
 * What algorithms are composed of: groups of ranks, a vector cut into parts, segments, and the
 * scatter, gather, allgather, reduce-scatter and tree phases that work on them. Every block
 * emits only the steps of the builder's rank, and nothing at all for ranks outside its group. */
#ifndef GCI_COLLECTIVES_BLOCKS_BLOCKS_H
#define GCI_COLLECTIVES_BLOCKS_BLOCKS_H

#include "collectives/blocks/layout.h"
#include "collectives/blocks/order.h"

/* Tags: the phase (below 16), numbered by the algorithm, and a number that is unique per rank pair
 * in it. In algorithms that gci_emit runs by segments it is below gci_tag_span(). */
static inline uint32_t gci_tag(uint32_t phase, uint32_t number)
{
	return phase << 28 | number;
}

static inline uint32_t gci_tag_span(const struct gci_coll *c)
{
	return (uint32_t)c->topo->nranks + 64;
}

/* An ordered set of ranks. Member 0 is rank ranks[rotation]. */
struct gci_group {
	const int *ranks; /* NULL: rank i is i */
	int n;
	int rotation;
	int me; /* the builder's rank as a member, or -1 */
};

struct gci_group gci_group_all(const struct gci_coll *c, int rank, int first);

/* Cluster `cluster`, beginning with its member number `first`. */
struct gci_group gci_group_cluster(const struct gci_coll *c, int cluster, int rank, int first);

static inline int gci_group_rank(const struct gci_group *g, int member)
{
	int i = member + g->rotation;

	if (i >= g->n)
		i -= g->n;
	return g->ranks ? g->ranks[i] : i;
}

/* The member that a rank is; it must be one. */
static inline int gci_group_member(const struct gci_group *g, int index)
{
	int i = index - g->rotation;

	return i < 0 ? i + g->n : i;
}

/* Blocks of a group's members as this rank keeps them: at their places in its input or output, or
 * packed, one after the other in the order of members. */
struct gci_shelf {
	enum { GCI_SHELF_IN, GCI_SHELF_OUT, GCI_SHELF_PACKED } kind;
	enum gci_buffer buffer; /* packed */
	uint64_t base;          /* packed: where the block of member `first` stands */
	int first;
};

static inline struct gci_shelf gci_shelf_in(void)
{
	return (struct gci_shelf){.kind = GCI_SHELF_IN};
}

static inline struct gci_shelf gci_shelf_out(void)
{
	return (struct gci_shelf){.kind = GCI_SHELF_OUT};
}

/* A shelf in TMP for members [first, end). */
struct gci_shelf gci_shelf_tmp(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_group *g, int first, int end);

/* Elements of the blocks of members [a, z). Not for alltoall. */
uint64_t gci_blocks_len(const struct gci_coll *c, const struct gci_group *g, int a, int z);

/* Sends, receives or copies the blocks of members [a, z): in one message per run of ranks that
 * stand one after the other, or per block where these may have gaps between them; both sides cut
 * alike. Nothing is sent for blocks without elements. Tags are `tag` + the first member of the
 * run. Not for alltoall. */
void gci_send_blocks(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	int peer, uint32_t tag, const struct gci_shelf *from, int a, int z);
void gci_recv_blocks(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	int peer, uint32_t tag, const struct gci_shelf *to, int a, int z);
void gci_copy_blocks(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	const struct gci_shelf *to, const struct gci_shelf *from, int a, int z);

/* The counterpart of gci_send_blocks that combines: `to` = `from` OP incoming, the other way round
 * if swapped. */
void gci_recv_reduce_blocks(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_group *g, int peer, uint32_t tag, const struct gci_shelf *to,
	const struct gci_shelf *from, int swapped, int a, int z);

/* Copies unless source and destination are the same or empty. */
static inline void gci_copy_some(struct gci_builder *b, struct gci_slice dst, struct gci_slice src)
{
	if (src.length && (src.buffer != dst.buffer || src.offset != dst.offset))
		gci_copy(b, dst, src);
}

/* What two slices of one buffer have in common, as a slice of OUT. */
static inline struct gci_slice gci_common(struct gci_slice a, struct gci_slice b)
{
	uint64_t lo = a.offset > b.offset ? a.offset : b.offset;
	uint64_t a_end = a.offset + a.length, b_end = b.offset + b.length;
	uint64_t hi = a_end < b_end ? a_end : b_end;

	return gci_slice(GCI_OUT, lo, hi > lo ? hi - lo : 0);
}

/* `count` elements cut into n parts as equal as whole grains allow. */
struct gci_parts {
	uint64_t count, grain;
	int n;
};

/* The grain is 64 KiB where the parts are large, so that checksums of granules travel along. */
struct gci_parts gci_parts_of(const struct gci_coll *c, int n);

static inline uint64_t gci_part_at(const struct gci_parts *p, int i)
{
	unsigned __int128 units = (p->count + p->grain - 1) / p->grain;
	uint64_t at = (uint64_t)(units * (unsigned)i / (unsigned)p->n) * p->grain;

	return at < p->count ? at : p->count;
}

/* Parts [i, k) as a slice of `buffer`, in which element 0 of the vector stands at `base`. */
static inline struct gci_slice gci_parts_slice(
	const struct gci_parts *p, enum gci_buffer buffer, int i, int k)
{
	uint64_t at = gci_part_at(p, i);

	return gci_slice(buffer, at, gci_part_at(p, k) - at);
}

/* The parts that elements of the vector are in: [*from, *to). Not looking at all of them keeps
 * emitters at the cost of their own steps. */
void gci_parts_meeting(const struct gci_parts *p, struct gci_slice elements, int *from, int *to);

/* The bcast's data at this rank: IN at the root, OUT elsewhere. */
static inline enum gci_buffer gci_bcast_buffer(
	const struct gci_builder *b, const struct gci_coll *c)
{
	return gci_input(c, b->rank);
}

/* Segments: `count` elements in pieces of `segment` (0: one piece). */
static inline uint64_t gci_nsegments(uint64_t count, uint64_t segment)
{
	return segment && count ? (count - 1) / segment + 1 : 1;
}

static inline struct gci_slice gci_segment(
	enum gci_buffer buffer, uint64_t count, uint64_t segment, uint64_t i)
{
	uint64_t at = segment * i;

	if (!segment)
		return gci_slice(buffer, 0, count);
	return gci_slice(buffer, at, count - at < segment ? count - at : segment);
}

/* Sends unless there is nothing to send; both sides leave out the same messages. */
static inline void gci_send_some(
	struct gci_builder *b, int peer, uint32_t tag, struct gci_slice src)
{
	if (src.length)
		gci_send(b, peer, tag, src);
}

static inline void gci_recv_some(
	struct gci_builder *b, int peer, uint32_t tag, struct gci_slice dst)
{
	if (dst.length)
		gci_recv(b, peer, tag, dst);
}

/* Recursive halving: members [a, z) fall into [a, mid) and [mid, z), the first half being the
 * larger by at most one. Member i of the first half and member i of the second are partners; the
 * last member of a larger first half is odd, and deals with the second half's first member. */
struct gci_halving {
	int a, mid, z;
	int other; /* whom the member in question deals with */
	int odd;   /* -1: none */
};

/* The halvings of [0, n) down to member `me` alone, the whole first; returns their number. */
int gci_halvings(int n, int me, struct gci_halving rounds[32]);

/* Member 0 has all parts in `from`; afterwards member i has part i, in OUT (member 0: where it
 * was). Recursive halving: ceil(log2 n) rounds, (n-1)/n of the vector leaves member 0. */
void gci_scatter(struct gci_builder *b, const struct gci_group *g, const struct gci_parts *p,
	enum gci_buffer from, uint32_t phase);

/* Member i has part i in OUT; afterwards member 0 has all. The reverse of gci_scatter. */
void gci_gather(struct gci_builder *b, const struct gci_group *g, const struct gci_parts *p,
	uint32_t phase);

/* Member i has part i in OUT; afterwards all have all parts. Recursive doubling over halves, for
 * any n: ceil(log2 n) rounds and (n-1)/n of the vector for powers of two; an odd member costs its
 * pair's partner one more message a round. If member 0 has all parts already it is sent nothing:
 * `first` tells where they are, or is GCI_NBUFFERS. */
void gci_allgather(struct gci_builder *b, const struct gci_group *g, const struct gci_parts *p,
	enum gci_buffer first, uint32_t phase);

/* Every member has a whole vector in `in`; afterwards member i has part i, reduced over the group,
 * in the returned buffer: `acc`, or still `in` if it received nothing (n = 1, for one). Elements
 * stand in `acc` at `acc_base` below their own offset. Recursive halving for any n; the order of
 * operands is not that of ranks, so OP must be commutative. */
enum gci_buffer gci_reduce_scatter(struct gci_builder *b, const struct gci_group *g,
	const struct gci_parts *p, enum gci_buffer in, enum gci_buffer acc, uint64_t acc_base,
	uint32_t phase);

/* The elements of the vector that gci_reduce_scatter keeps in `acc` at this member. */
struct gci_slice gci_reduce_scatter_range(const struct gci_group *g, const struct gci_parts *p);

/* Binomial tree over the group, member 0 the root: the parent (-1 for the root), and the children,
 * largest subtree first, in children[]; returns their number (at most 31). */
int gci_binomial(const struct gci_group *g, int *parent, int children[32]);

/* The same of a binary tree: members 2i+1 and 2i+2 are the children of member i. */
int gci_binary(const struct gci_group *g, int *parent, int children[32]);

/* And of a chain: member i+1 is the child of member i. */
int gci_chain(const struct gci_group *g, int *parent, int children[32]);

/* ---- Stages.
 * Recursive halving level by level, for algorithms that do something between two levels.
 *
 * At depth 0 the members of a group are one range, at depth 1 two halves, the first the larger by
 * at most one, and so on: 2^d ranges at depth d, or one per member from ceil(log2 n) on. Splitting
 * from one depth to a deeper one hands each range's first member its parts; merging from a depth to
 * a lesser one gives every member the parts of its whole range. */

#define GCI_WHOLE_DEPTH 31 /* each member alone, in any group */

struct gci_range {
	int a, z; /* members [a, z) */
};

static inline int gci_nranges(int n, int depth)
{
	return depth >= GCI_WHOLE_DEPTH || 1 << depth >= n ? n : 1 << depth;
}

/* The least depth with at least `count` ranges (or all there can be). */
static inline int gci_depth_for(int n, int count)
{
	int depth = 0;

	while (gci_nranges(n, depth) < count && gci_nranges(n, depth) < n)
		depth++;
	return gci_nranges(n, depth) == n ? GCI_WHOLE_DEPTH : depth;
}

/* Range number `i` at this depth, and the number of the one that a member is in. */
struct gci_range gci_range_at(int n, int depth, int i);
int gci_range_of(int n, int depth, int member);

/* A vector on its way through a group: where this member's parts of it stand. */
struct gci_stage {
	const struct gci_group *g;
	const struct gci_parts *p;
	enum gci_buffer buffer; /* element e of the vector stands at e - base in it */
	uint64_t base;
	enum gci_buffer first; /* member 0 has the whole vector here; GCI_NBUFFERS: it does not */
};

/* Parts [a, z) at this member. */
struct gci_slice gci_stage_slice(const struct gci_stage *s, int a, int z);

/* From depth `from` to the deeper `to`: the first member of each range hands out its halves. */
void gci_split(struct gci_builder *b, const struct gci_stage *s, uint32_t tag, int from, int to);

/* The reverse of gci_split from each member alone: the first of each range takes in the other half,
 * up to member 0. */
void gci_collect(struct gci_builder *b, const struct gci_stage *s, uint32_t tag);

/* The end of the parts [member, end) that come through a member then. */
int gci_collect_end(int n, int member);

/* From depth `from` to the lesser `to`: halves exchange what they have. Member 0 is sent nothing
 * if it has the whole vector. Recursive doubling; an odd member costs its pair's partner one more
 * message a round. */
void gci_merge(struct gci_builder *b, const struct gci_stage *s, uint32_t phase, int from, int to);

#endif
