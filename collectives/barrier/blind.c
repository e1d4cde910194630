/* SPDX-License-Identifier: MIT
 * Barriers over all ranks in one, ATCC (Vadhiyar 2001), table 1.
 *	ring		extended ring: a token goes round once to collect all ranks and once more to
 *			let them go. Cost: (2P - 1) L
 *	binomial	distributed: every rank is the root of a binomial tree of its own, and all
 *			gather at once, by trading between halves, for any P. Cost: ceil(log2 P) L
 *	tournament	ranks meet in pairs, the loser waits, and the champion's way to victory is
 *			the way back of the news (Hensgen et al. 1988). Cost: 2 ceil(log2 P) L */
#include "collectives/barrier/barrier.h"

static const struct gci_slice nothing = {0, 0, GCI_OUT};

/* All later steps wait for the message. */
static void await(struct gci_builder *b, int peer, uint32_t tag)
{
	gci_fence(b, gci_recv(b, peer, tag, nothing));
}

void gci_emit_barrier_ring(struct gci_builder *b, const struct gci_coll *c)
{
	int n = c->topo->nranks, right = (b->rank + 1) % n, left = (b->rank - 1 + n) % n;
	uint32_t collect = gci_tag(0, 0), release = gci_tag(1, 0);

	if (n == 1)
		return;
	if (b->rank == 0)
		gci_send(b, right, collect, nothing);
	await(b, left, collect);
	if (b->rank == 0) {
		gci_send(b, right, release, nothing);
		return;
	}
	gci_send(b, right, collect, nothing);
	await(b, left, release);
	if (right)
		gci_send(b, right, release, nothing);
}

/* Ranks [a, z) around this one have heard of each other once the halves have, and have traded. The
 * first half may have one more rank: the second half's last tells it, and it tells nobody. */
static void trade(struct gci_builder *b, int a, int z, uint32_t depth)
{
	int mid = gci_middle(a, z), low = b->rank < mid;
	int place = low ? mid + (b->rank - a) : a + (b->rank - mid), odd = mid - 1;
	uint32_t tag = gci_tag(0, depth);

	if (z - a < 2)
		return;
	if (low)
		trade(b, a, mid, depth + 1);
	else
		trade(b, mid, z, depth + 1);
	if (place < z)
		gci_send(b, place, tag, nothing);
	if (b->rank == z - 1 && mid - a > z - mid)
		gci_send(b, odd, tag, nothing);
	await(b, place < z ? place : z - 1, tag);
}

void gci_emit_barrier_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	trade(b, 0, c->topo->nranks, 0);
}

void gci_emit_barrier_tournament(struct gci_builder *b, const struct gci_coll *c)
{
	int64_t n = c->topo->nranks, bit;
	uint32_t meet = gci_tag(0, 0), wake = gci_tag(1, 0);

	/* Rounds won; there may be nobody to meet in some. */
	for (bit = 1; bit < n && !(b->rank & bit); bit *= 2)
		if (b->rank + bit < n)
			await(b, (int)(b->rank + bit), meet);
	if (bit < n) {
		gci_send(b, (int)(b->rank - bit), meet, nothing);
		await(b, (int)(b->rank - bit), wake);
	}
	while (bit /= 2)
		if (b->rank + bit < n)
			gci_send(b, (int)(b->rank + bit), wake, nothing);
}
