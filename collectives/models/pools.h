/* SPDX-License-Identifier: MIT
 * The pool tree of Gupta 2007, 5.1: which hosts belong together, by the bandwidths between them.
 *
 *	struct gci_bandwidths b = {.nhosts = n, .nclasses = n, .bps = measured};
 *
 *	rc = gci_pools_make(&pools, &b);
 *	n = gci_pools_cut(&pools, 1, cluster_of);	// the first split
 *	gci_pools_free(&pools);
 *
 * Pure and in integers, so all ranks find the same. */
#ifndef GCI_COLLECTIVES_MODELS_POOLS_H
#define GCI_COLLECTIVES_MODELS_POOLS_H

#include "base/error.h"

#include <stdint.h>

#define GCI_POOLS_MAX_BPS   (1ull << 50) /* sums over GCI_POOLS_MAX_HOSTS fit in 64 bits */
#define GCI_POOLS_MAX_HOSTS 8192

/* Hosts of one class are alike: each pair of such hosts, and each host of one class with each of
 * another, has the same bandwidth. */
struct gci_bandwidths {
	int nhosts, nclasses;
	const int *class_of; /* [host]; NULL: each host is a class of its own */
	const uint64_t *bps; /* [from * nclasses + to], at most GCI_POOLS_MAX_BPS */
	/* By how much of a threshold, in percent, a pool may miss it and still hold together: what
	 * was measured has noise, and without slack one LAN would fall into many pools. */
	int slack;
};

/* Hosts whose average bandwidth to each other reaches a threshold. */
struct gci_pool {
	int first, n;         /* its hosts are host[first .. first + n) */
	int child, nchildren; /* its sub-pools are pool[child ..); none: its single hosts */
	int parent;
	uint64_t threshold_bps; /* the highest that holds it together; 0: a lone host */
};

struct gci_pools {
	struct gci_pool *pool; /* the root first */
	int n;
	int *host; /* pool by pool, in the order of numbers in each that has no sub-pools */
};

/* 0 or GCOLL_ERR_NOMEM. */
int gci_pools_make(struct gci_pools *p, const struct gci_bandwidths *b);
void gci_pools_free(struct gci_pools *p);

/* The pools that `depth` splits make, or fewer where there are no sub-pools: cluster_of[host] from
 * 0, by the lowest host of each. Depth 0 is one cluster of all. Returns their number. */
int gci_pools_cut(const struct gci_pools *p, int depth, int *cluster_of);

#endif
