/* SPDX-License-Identifier: MIT
 * Plans of allgathers, made by searching over all hosts: which host sends which block to which
 * other, in what order, and when in the model of Gupta 2007, 4.
 *
 *	gci_net_of(&net, topo);
 *	rc = gci_plan_make(&plan, &net, nbytes, GCI_PLAN_MIN3, 0);	// nbytes[host]: its block's
 *	for (i = 0; i < plan.n; i++)
 *		use(&plan.transfers[i]);
 *	gci_plan_free(&plan);
 *	gci_net_free(&net);
 *
 * Pure and in integers, so all ranks find the same plan. */
#ifndef GCI_COLLECTIVES_ALLGATHER_PLAN_H
#define GCI_COLLECTIVES_ALLGATHER_PLAN_H

#include "collectives/grid/topo.h"
#include "collectives/models/pools.h"

#include <stddef.h>

/* From a host of one class to a host of another, or within a class. */
struct gci_wire {
	uint64_t bps; /* of one transfer, whatever else goes on */
	uint64_t latency_ns;
	/* What a byte takes at this rate, and for how long it keeps its sender from the next
	 * message; in 2^-20 ns. */
	uint64_t byte_time, byte_busy;
	int far; /* between clusters */
};

/* The network: hosts of one class (a cluster, as a rule) are alike. */
struct gci_net {
	int nhosts, nclasses;
	int *class_of;         /* [host] */
	struct gci_wire *path; /* [from * nclasses + to] */
};

/* Hosts are ranks, classes are clusters. 0 or GCOLL_ERR_NOMEM. */
int gci_net_of(struct gci_net *net, const struct gci_topo *t);
void gci_net_free(struct gci_net *net);

/* A path whose bytes move at `bps` and keep their sender busy as if at `busy_bps` >= bps. */
struct gci_wire gci_path_of(uint64_t bps, uint64_t busy_bps, uint64_t latency_ns, int far);

static inline const struct gci_wire *gci_net_path(const struct gci_net *net, int from, int to)
{
	return &net->path[net->class_of[from] * net->nclasses + net->class_of[to]];
}

/* No plan of up to GCI_PLAN_MAX_HOSTS hosts adds up to 2^64 ns, whatever the messages. */
#define GCI_PLAN_MAX_HOSTS 512
#define GCI_PATH_MAX_NS    (1ull << 44)

static inline uint64_t gci_path_time(uint64_t nbytes, uint64_t byte_time)
{
	unsigned __int128 ns = (unsigned __int128)nbytes * byte_time >> 20;

	return ns < 1 ? 1 : ns > GCI_PATH_MAX_NS ? GCI_PATH_MAX_NS : (uint64_t)ns;
}

/* Gupta 2007, equation 1: TransferTime, and os(m). */
static inline uint64_t gci_path_transfer_ns(const struct gci_wire *p, uint64_t nbytes)
{
	return p->latency_ns + gci_path_time(nbytes, p->byte_time);
}

static inline uint64_t gci_path_busy_ns(const struct gci_wire *p, uint64_t nbytes)
{
	return gci_path_time(nbytes, p->byte_busy);
}

/* The tree of pools of its hosts. 0 or GCOLL_ERR_NOMEM. */
int gci_net_pools(struct gci_pools *p, const struct gci_net *net);

/* ---- plans */

struct gci_transfer {
	int from, to, block;
	uint64_t start_ns, free_ns, end_ns; /* begins; sender may go on; receiver has it all */
};

struct gci_plan {
	/* By start for each sender and for each receiver, not over all. */
	struct gci_transfer *transfers;
	size_t n, cap;
	uint64_t end_ns; /* everybody has everything */
};

enum gci_planner {
	GCI_PLAN_MIN3,
	GCI_PLAN_TREES_GREEDY,
	GCI_PLAN_TREES_ANNEALED,
};

/* Blocks of 0 bytes are not sent. At most GCI_PLAN_MAX_HOSTS hosts. 0 or GCOLL_ERR_NOMEM. */
int gci_plan_make(struct gci_plan *plan, const struct gci_net *net, const uint64_t *nbytes,
	enum gci_planner how, int half_duplex);
void gci_plan_free(struct gci_plan *plan);

#endif
