/* SPDX-License-Identifier: MIT
 * What the planners share: the hosts as they are at some point of a plan in the making, and the
 * greedy choice of the next transfer. */
#ifndef GCI_COLLECTIVES_ALLGATHER_PLANNER_H
#define GCI_COLLECTIVES_ALLGATHER_PLANNER_H

#include "base/clock.h"
#include "collectives/allgather/plan.h"

struct gci_planning {
	const struct gci_net *net;
	const uint64_t *nbytes; /* [host] */
	struct gci_plan *plan;  /* where transfers go */
	uint64_t *send_at;      /* [host]: HostAvailTimeForSend */
	uint64_t *recv_at;      /* [host]: HostAvailTimeForRecv; half duplex: the same array */
	uint64_t *have_at;      /* [block * nhosts + host]; GCI_NEVER */
	uint64_t *time;         /* [to * nclasses + from]: of any block; NULL: they differ */
};

/* An empty plan in which every host has its own block. 0 or GCOLL_ERR_NOMEM. */
int gci_planning_start(struct gci_planning *w, const struct gci_net *net, const uint64_t *nbytes,
	struct gci_plan *plan, int half_duplex);
void gci_planning_end(struct gci_planning *w);

static inline uint64_t gci_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* From when `from` could send the block. Equation 3 does not say that it must have it, which goes
 * without saying. */
static inline uint64_t gci_ready_at(const struct gci_planning *w, int block, int from)
{
	return gci_later(w->send_at[from],
		w->have_at[(size_t)block * (size_t)w->net->nhosts + (size_t)from]);
}

/* Equation 1: TransferTime, between hosts of two classes. */
static inline uint64_t gci_transfer_time(const struct gci_planning *w, int block, int from, int to)
{
	int n = w->net->nclasses;

	return w->time ? w->time[to * n + from]
		       : gci_path_transfer_ns(&w->net->path[from * n + to], w->nbytes[block]);
}

/* Equations 1 to 3: TotalTime of a block on its way now. */
static inline uint64_t gci_total_time(const struct gci_planning *w, int block, int from, int to)
{
	return gci_later(gci_ready_at(w, block, from), w->recv_at[to]) +
	       gci_transfer_time(w, block, w->net->class_of[from], w->net->class_of[to]);
}

/* Appends the transfer and updates the hosts. 0 or GCOLL_ERR_NOMEM. */
int gci_planning_add(struct gci_planning *w, int block, int from, int to);

/* The least of what can be done next is done, until nothing is left: `best` tells when the best
 * transfer of a block would end (GCI_NEVER: none left), `take` does it. Since hosts only ever get
 * busier, a block's best time never falls, and those found earlier are lower bounds: only the
 * block in front is looked at again. */
struct gci_greedy {
	int nblocks;
	uint64_t *bound; /* [block] */
	uint64_t (*best)(void *ctx, int block);
	int (*take)(void *ctx, int block, uint64_t end_ns);
	void *ctx;
};

/* A broadcast tree: hosts in the order in which they are sent to, the root first. */
struct gci_tree {
	int *host, *parent; /* host[i] is sent to by parent[host[i]]; parent[root] is -1 */
};

#endif
