/* SPDX-License-Identifier: MIT
 * Barriers.
 * 	clusters	binomial gather to each cluster's first rank, all of which tell each other,
 * 			then a binomial release. Cost: L + 2 ceil(log2 h) l, o for a message left
 * 			out; bound (DESIGN.md): L.
 * 	dissemination	in round k rank r tells rank r + 2^k (Hensgen et al. 1988).
 * 			Cost: ceil(log2 P) L, as rounds cross the WAN again and again. */
#include "collectives/blocks/blocks.h"
#include "collectives/tuner/formulas.h"

enum { GATHER, EXCHANGE, RELEASE };

static const struct gci_slice nothing = {0, 0, GCI_OUT};

/* All later steps wait for all steps so far, by a chain: each step is fenced by the one before. */
static void in_turn(struct gci_builder *b, uint32_t step)
{
	gci_fence(b, step);
}

static void gci_emit_barrier_dissemination(struct gci_builder *b, const struct gci_coll *c)
{
	int n = c->topo->nranks;
	uint32_t round = 0;
	int64_t step;

	for (step = 1; step < n; step *= 2, round++) {
		int to = (int)((b->rank + step) % n), from = (int)((b->rank - step + n) % n);
		uint32_t tag = gci_tag(0, round);

		/* The send of a round waits for the receive of the one before. */
		gci_send(b, to, tag, nothing);
		in_turn(b, gci_recv(b, from, tag, nothing));
	}
}

static void gci_emit_barrier_clusters(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int mine = t->cluster[b->rank], other, k, parent, children[32];
	struct gci_group g = gci_group_cluster(c, mine, b->rank, 0);
	int nchildren = gci_binomial(&g, &parent, children);

	for (k = nchildren; k-- > 0;)
		in_turn(b,
			gci_recv(b, gci_group_rank(&g, children[k]), gci_tag(GATHER, 0), nothing));
	if (parent >= 0) {
		gci_send(b, gci_group_rank(&g, parent), gci_tag(GATHER, 0), nothing);
		in_turn(b, gci_recv(b, gci_group_rank(&g, parent), gci_tag(RELEASE, 0), nothing));
	} else {
		for (other = 0; other < t->nclusters; other++)
			if (other != mine)
				gci_send(b, *gci_topo_members(t, other), gci_tag(EXCHANGE, 0),
					nothing);
		for (other = 0; other < t->nclusters; other++)
			if (other != mine)
				in_turn(b, gci_recv(b, *gci_topo_members(t, other),
						   gci_tag(EXCHANGE, 0), nothing));
	}
	for (k = 0; k < nchildren; k++)
		gci_send(b, gci_group_rank(&g, children[k]), gci_tag(RELEASE, 0), nothing);
}

/* ---- Barriers over all ranks in one, ATCC (Vadhiyar 2001), table 1.
 * 	ring		extended ring: a token goes round once to collect all ranks and once more to
 * 			let them go. Cost: (2P - 1) L
 * 	binomial	distributed: every rank is the root of a binomial tree of its own, and all
 * 			gather at once, by trading between halves, for any P. Cost: ceil(log2 P) L
 * 	tournament	ranks meet in pairs, the loser waits, and the champion's way to victory is
 * 			the way back of the news (Hensgen et al. 1988). Cost: 2 ceil(log2 P) L */

/* All later steps wait for the message. */
static void await(struct gci_builder *b, int peer, uint32_t tag)
{
	gci_fence(b, gci_recv(b, peer, tag, nothing));
}

static void gci_emit_barrier_ring(struct gci_builder *b, const struct gci_coll *c)
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

static void gci_emit_barrier_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	trade(b, 0, c->topo->nranks, 0);
}

static void gci_emit_barrier_tournament(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- the algorithms */

const struct gci_algorithm gci_barriers[] = {
	{GCI_BARRIER, "clusters", "gather in each cluster, exchange, release", GCI_CAPS_SENDERS, 0,
		gci_emit_barrier_clusters, gci_estimate_tree_of_clusters},
	{GCI_BARRIER, "dissemination", "dissemination over all ranks", 0, 0,
		gci_emit_barrier_dissemination, gci_estimate_signals},
	{GCI_BARRIER, "binomial", "all ranks trade, half by half", 0, 0, gci_emit_barrier_binomial,
		gci_estimate_signals},
	{GCI_BARRIER, "tournament", "losers wait for the champion's word", 0, 0,
		gci_emit_barrier_tournament, gci_estimate_twice_signals},
	{GCI_BARRIER, "ring", "a token goes twice round a ring", 0, 0, gci_emit_barrier_ring,
		gci_estimate_two_rings},
	{GCI_BARRIER, NULL, NULL, 0, 0, NULL, NULL},
};
