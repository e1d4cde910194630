/* SPDX-License-Identifier: MIT
 * Bruck's alltoall (Bruck et al. 1997): a block at distance i from its destination travels by the
 * powers of two that i is made of; all blocks that take a step of 2^k do so in one message.
 * Cost: ceil(log2 P) L + ceil(log2 P) M/2B, M being what a rank sends: few messages for more data.
 * For short blocks.
 *
 * Slot i of rank r has a block that comes from rank r + (what of i it has travelled) and has the
 * rest of i to go downwards, so that blocks arrive in the order in which they stand in OUT. */
#include "base/mem.h"
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/phases.h"

/* Elements of the block in slot i of `rank` when it has travelled `done`, some bits of i. */
static uint64_t slot_len(const struct gci_coll *c, int rank, int i, int done)
{
	int n = c->topo->nranks, from;

	if (!c->counts)
		return c->count;
	from = (int)(((int64_t)rank + done) % n);
	return gci_block_len(c, from, (from - i + n) % n);
}

/* All slots that move by `bit` after having travelled their bits of `mask`. */
static uint64_t slots_len(const struct gci_coll *c, int rank, int bit, int mask)
{
	uint64_t sum = 0;
	int i;

	for (i = bit; i < c->topo->nranks; i++)
		if (i & bit)
			sum += slot_len(c, rank, i, i & mask);
	return sum;
}

/* at[i]: where slot i stands in TMP, once it has travelled. */
static struct gci_slice pack(
	struct gci_builder *b, const struct gci_coll *c, int bit, const uint64_t *at)
{
	int i, n = b->nranks;
	struct gci_bundle u;

	gci_bundle_start(&u, b, slots_len(c, b->rank, bit, bit - 1));
	for (i = bit; i < n; i++) {
		int done = i & (bit - 1);

		if (!(i & bit))
			continue;
		gci_bundle_add(&u, done ? gci_slice(GCI_TMP, at[i], slot_len(c, b->rank, i, done))
					: gci_in_block(c, b->rank, (b->rank - i + n) % n));
	}
	return gci_bundle_end(&u);
}

/* Where the slots of a message that moved by `bit` now stand. */
static void unpack(const struct gci_builder *b, const struct gci_coll *c, int bit,
	struct gci_slice message, uint64_t *at)
{
	uint64_t offset = message.offset;
	int i;

	for (i = bit; i < b->nranks; i++) {
		if (!(i & bit))
			continue;
		at[i] = offset;
		offset += slot_len(c, b->rank, i, i & (2 * bit - 1));
	}
}

/* Slots of which `bit` is the highest have come home; they stand one after the other. */
static void place(struct gci_builder *b, const struct gci_coll *c, int bit, const uint64_t *at)
{
	struct gci_group g = gci_group_all(c, b->rank, b->rank);

	gci_column_place(
		b, c, &g, bit, g.n < 2 * bit ? g.n : 2 * bit, gci_slice(GCI_TMP, at[bit], 0));
}

void gci_emit_alltoall_bruck(struct gci_builder *b, const struct gci_coll *c)
{
	int bit, n = b->nranks;
	uint64_t *at = gci_calloc((size_t)n, sizeof(*at));
	uint32_t round = 0;

	if (!at) {
		b->failed = 1;
		return;
	}
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	for (bit = 1; bit < n; bit *= 2, round++) {
		uint64_t len = slots_len(c, b->rank, bit, 2 * bit - 1);
		struct gci_slice in;

		gci_round(b);
		gci_send_some(b, (b->rank - bit + n) % n, gci_tag(0, round), pack(b, c, bit, at));
		in = gci_slice(GCI_TMP, gci_tmp(b, len), len);
		gci_recv_some(b, (b->rank + bit) % n, gci_tag(0, round), in);
		unpack(b, c, bit, in, at);
		place(b, c, bit, at);
	}
	gci_free(at);
}
