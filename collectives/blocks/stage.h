/* SPDX-License-Identifier: MIT
 * Recursive halving level by level, for algorithms that do something between two levels.
 *
 * At depth 0 the members of a group are one range, at depth 1 two halves, the first the larger by
 * at most one, and so on: 2^d ranges at depth d, or one per member from ceil(log2 n) on. Splitting
 * from one depth to a deeper one hands each range's first member its parts; merging from a depth to
 * a lesser one gives every member the parts of its whole range. */
#ifndef GCI_COLLECTIVES_BLOCKS_STAGE_H
#define GCI_COLLECTIVES_BLOCKS_STAGE_H

#include "collectives/blocks/blocks.h"

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
