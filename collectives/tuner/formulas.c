/* SPDX-License-Identifier: MIT
 * The costs that stand on top of the emitters, in one table. M is the vector, or all blocks; B a
 * NIC, L a hop over the WAN and l one in a cluster, C clusters of h ranks, P ranks in all. */
#include "collectives/tuner/formulas.h"
#include "base/mem.h"
#include "collectives/models/limit.h"

#include "collectives/tuner/estimate_impl.h"

#include <string.h>

#define OWN_SEGMENTS 256 /* at most, where an algorithm chooses for itself */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t hops(const struct gci_estimator *e, uint64_t wan, uint64_t lan)
{
	return wan * e->wan_ns + lan * e->lan_ns;
}

static uint64_t nic(const struct gci_estimator *e, uint64_t nbytes)
{
	return gci_estimate_transfer_ns(nbytes, e->nic_bps);
}

/* From one cluster to another by so many senders. */
static uint64_t wan(const struct gci_estimator *e, uint64_t nbytes, uint64_t senders)
{
	uint64_t pairs = e->pair_bps > GCI_NEVER / senders ? GCI_NEVER : senders * e->pair_bps;

	return e->nclusters > 1 ? gci_estimate_transfer_ns(nbytes, smaller(e->wan_bps, pairs)) : 0;
}

/* All but one part of n. */
static uint64_t but_one(uint64_t nbytes, unsigned n)
{
	return nbytes / n * (n - 1);
}

static unsigned senders_of(const struct gci_estimator *e, const struct gci_candidate *how)
{
	unsigned n = how->senders ? how->senders : e->senders;

	return n < e->most ? n : e->most; /* both are at least 1 */
}

static int has_blocks(const struct gci_estimator *e)
{
	return !gci_kind_has_vector(e->c->kind);
}

/* ---- trees over ranks */

/* Bytes that are cut into segments. */
static uint64_t cut_nbytes(const struct gci_estimator *e)
{
	return has_blocks(e) ? e->nbytes / e->nranks : e->nbytes;
}

static uint64_t tree(const struct gci_estimator *e, const struct gci_candidate *how,
	enum gci_estimate_tree shape)
{
	uint64_t nbytes = cut_nbytes(e), most = nbytes / 4096 + 1, best = GCI_NEVER;
	struct gci_estimate_walk w = {
		.tree = shape, .nbytes = e->nbytes, .segments = 1, .blocks = has_blocks(e)};
	uint64_t *k = &w.segments;

	if (how->segment_nbytes && nbytes)
		*k = (nbytes - 1) / how->segment_nbytes + 1;
	if (how->segment_nbytes || how->algorithm->traits & GCI_BY_SEGMENT ||
		!(how->algorithm->traits & GCI_USES_SEGMENT))
		return gci_estimate_tree_ns(e, &w);
	for (; *k <= OWN_SEGMENTS && *k <= most; *k *= 4)
		best = smaller(best, gci_estimate_tree_ns(e, &w));
	return best;
}

uint64_t gci_estimate_flat(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return tree(e, how, GCI_ESTIMATE_FLAT);
}

uint64_t gci_estimate_chain(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return tree(e, how, GCI_ESTIMATE_CHAIN);
}

uint64_t gci_estimate_binary(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return tree(e, how, GCI_ESTIMATE_BINARY);
}

uint64_t gci_estimate_binomial(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return tree(e, how, GCI_ESTIMATE_BINOMIAL);
}

uint64_t gci_estimate_clusters(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return tree(e, how, GCI_ESTIMATE_CLUSTERS);
}

uint64_t gci_estimate_two_chains(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * gci_estimate_chain(e, how);
}

uint64_t gci_estimate_two_binaries(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * gci_estimate_binary(e, how);
}

uint64_t gci_estimate_two_binomials(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * gci_estimate_binomial(e, how);
}

uint64_t gci_estimate_two_clusters(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * gci_estimate_clusters(e, how);
}

/* ---- of vectors */

/* Of halving n ranks: an odd one's data goes to a partner of another's, who has more to move. */
static uint64_t with_odd(uint64_t ns, unsigned n)
{
	return n & (n - 1) ? ns * 4 / 3 : ns;
}

/* Halved over all ranks and put together again: 2 (P-1)/P M/B. */
uint64_t gci_estimate_halving(const struct gci_estimator *e, const struct gci_candidate *how)
{
	uint64_t ns = nic(e, but_one(e->nbytes, e->nranks));

	(void)how;
	return 2 *
	       (hops(e, e->across, e->deep - e->across) +
		       larger(with_odd(ns, e->nranks), wan(e, e->nbytes / 2 * e->most, e->most)));
}

/* The same in each cluster, and n senders between clusters: L + (C-1) M/nB + 2 (h-1)/h M/B. */
uint64_t gci_estimate_modified(const struct gci_estimator *e, const struct gci_candidate *how)
{
	unsigned n = senders_of(e, how);
	uint64_t across = larger((e->nclusters - 1) * nic(e, e->nbytes / n), wan(e, e->nbytes, n));

	return hops(e, e->nclusters > 1, 2 * e->deep_in) + across +
	       2 * with_odd(nic(e, but_one(e->nbytes, e->most)), e->most);
}

uint64_t gci_estimate_far_first(const struct gci_estimator *e, const struct gci_candidate *how)
{
	struct gci_candidate one = *how;

	one.senders = 1;
	return gci_estimate_modified(e, &one);
}

uint64_t gci_estimate_two_tier(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return gci_estimate_far_first(e, how) + hops(e, 0, 2 * e->deep_in) +
	       2 * nic(e, but_one(e->nbytes, e->most));
}

/* L + 2 log h (l + M/B) + (C-1) M/B. */
uint64_t gci_estimate_tree_of_clusters(
	const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->nclusters > 1, 2 * e->deep_in) +
	       larger((e->nclusters - 1) * nic(e, e->nbytes), wan(e, e->nbytes, 1)) +
	       2 * e->deep_in * nic(e, e->nbytes);
}

uint64_t gci_estimate_all_vectors(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->across, e->deep - e->across) + (e->nranks - 1) * nic(e, e->nbytes);
}

uint64_t gci_estimate_doubling(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->across, e->deep - e->across) +
	       larger(e->deep * nic(e, e->nbytes), wan(e, e->nbytes * e->most, e->most));
}

/* ---- of blocks */

/* Round once: (P-1)/P M/B, and every block comes by each cluster. */
uint64_t gci_estimate_ring(const struct gci_estimator *e, const struct gci_candidate *how)
{
	unsigned far = e->nclusters > 1 ? e->nclusters : 0;

	(void)how;
	return hops(e, far, e->nranks > far ? e->nranks - far : 0) +
	       larger(nic(e, but_one(e->nbytes, e->nranks)), wan(e, e->nbytes, 1));
}

uint64_t gci_estimate_two_rings(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * gci_estimate_ring(e, how);
}

/* By one rank of each cluster, which has to hand it all down again. */
uint64_t gci_estimate_coordinators(const struct gci_estimator *e, const struct gci_candidate *how)
{
	uint64_t there = e->nbytes / e->nclusters;

	(void)how;
	return hops(e, e->nclusters > 1, 2 * e->deep_in + e->nclusters) + nic(e, there) +
	       larger((e->nclusters - 1) * nic(e, there), wan(e, there, 1)) +
	       e->deep_in * nic(e, e->nbytes);
}

/* In rounds of two halves: (P-1)/P M/B, with much of it over the WAN. */
uint64_t gci_estimate_rounds(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->across, e->deep - e->across) +
	       larger(nic(e, but_one(e->nbytes, e->nranks)),
		       wan(e, e->nbytes / e->nclusters * e->most, e->most));
}

/* From each to each; of allgather the same block to all of a cluster. */
uint64_t gci_estimate_each_to_each(const struct gci_estimator *e, const struct gci_candidate *how)
{
	uint64_t block = e->nbytes / e->nranks;

	(void)how;
	return hops(e, e->nclusters > 1, 1) + (e->nranks - 1) * e->message_ns +
	       larger(nic(e, block * (e->nranks - 1)), wan(e, block * e->most * e->most, e->most));
}

static uint64_t segments_of_block(const struct gci_estimator *e, const struct gci_candidate *how)
{
	uint64_t block = e->nbytes / e->nranks;

	return how->segment_nbytes && block ? (block - 1) / how->segment_nbytes + 1 : 1;
}

uint64_t gci_estimate_gather_and_bcast(
	const struct gci_estimator *e, const struct gci_candidate *how)
{
	struct gci_estimate_walk up = {.tree = GCI_ESTIMATE_BINOMIAL,
		.nbytes = e->nbytes,
		.segments = segments_of_block(e, how),
		.blocks = 1};
	struct gci_estimate_walk down = up;

	down.blocks = 0;
	return gci_estimate_tree_ns(e, &up) + gci_estimate_tree_ns(e, &down);
}

/* All there is meets at one rank: M is what one rank sends. */
uint64_t gci_estimate_gather_and_scatter(
	const struct gci_estimator *e, const struct gci_candidate *how)
{
	struct gci_estimate_walk w = {.tree = GCI_ESTIMATE_BINARY,
		.nbytes = e->nbytes * e->nranks,
		.segments = segments_of_block(e, how),
		.blocks = 1};

	return 2 * gci_estimate_tree_ns(e, &w);
}

uint64_t gci_estimate_bruck(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->across, e->deep - e->across) +
	       e->deep * larger(nic(e, e->nbytes / 2), wan(e, e->nbytes / 2 * e->most, e->most));
}

/* 4 l + L + (h-1) m/B + 3 (C-1) h^2 m / nB, which segments overlap to (C-1) h^2 m / nB. */
uint64_t gci_estimate_columns(const struct gci_estimator *e, const struct gci_candidate *how)
{
	unsigned n = senders_of(e, how);
	uint64_t block = e->nbytes / e->nranks, all = block * e->most * e->most;
	uint64_t across = larger((e->nclusters - 1) * nic(e, all / n), wan(e, all, n));
	uint64_t k = segments_of_block(e, how);

	return hops(e, e->nclusters > 1, 4 * k) + nic(e, block * (e->most - 1)) + across +
	       2 * across / k;
}

/* A plan for this very grid: the bound, and twice there and back. */
uint64_t gci_estimate_planned(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, 2 * (e->nclusters > 1), e->nranks) +
	       larger(nic(e, but_one(e->nbytes, e->nranks)),
		       wan(e, e->nbytes / e->nclusters, e->most));
}

/* ---- barriers */

uint64_t gci_estimate_signals(const struct gci_estimator *e, const struct gci_candidate *how)
{
	(void)how;
	return hops(e, e->across, e->deep - e->across);
}

uint64_t gci_estimate_twice_signals(const struct gci_estimator *e, const struct gci_candidate *how)
{
	return 2 * gci_estimate_signals(e, how);
}

/* A packing comes near to what physics allows; how near, only making it tells. */
uint64_t gci_estimate_packed(const struct gci_estimator *e, const struct gci_candidate *how)
{
	uint64_t ns = gci_limit_ns(e->c, 0);

	(void)how;
	return ns + ns / 8 + hops(e, 1, 1);
}
