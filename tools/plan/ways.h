/* SPDX-License-Identifier: MIT
 * Ways to run an operation, simulated and ranked.
 *
 *	struct gct_ways w = {.net = &net, .coll = &coll};
 *
 *	rc = gct_ways_add_all(&w);
 *	if (!rc)
 *		rc = gct_ways_simulate(&w, each, all);	// w.list is ranked now
 *	...
 *	gct_ways_free(&w);
 *
 * Pure: the same input gives the same ranking. */
#ifndef GCT_PLAN_WAYS_H
#define GCT_PLAN_WAYS_H

#include "collectives/tuner/candidate.h"
#include "tools/lib/bottleneck.h"

struct gct_way {
	struct gci_candidate how;
	uint32_t number;             /* in which order it was added */
	char why_not[80];            /* it was not simulated; "": it was */
	uint64_t ns;                 /* predicted */
	struct gct_bottleneck facts; /* where has_facts */
	int has_facts;
};

struct gct_ways {
	const struct gci_simnet *net;
	const struct gci_coll *coll; /* without parameters */
	struct gct_way *list;
	size_t n, cap;
};

/* Once, however often it is added. 0 or GCOLL_ERR_NOMEM. */
int gct_ways_add(struct gct_ways *w, const struct gci_candidate *how);

/* Every algorithm of the kind with its own choice of parameters, also those that cannot run it; and
 * what else the tuner thinks worth a try. 0 or GCOLL_ERR_NOMEM. */
int gct_ways_add_all(struct gct_ways *w);

/* Simulates all, with no more than `each` steps for each way and `all` together, and ranks them:
 * the fastest first, those that cannot run last. What takes more is predicted from its first
 * segments, and has no facts. 0 or GCOLL_ERR_NOMEM. */
int gct_ways_simulate(struct gct_ways *w, uint64_t each, uint64_t all);

/* Again, after a time has changed: pointers to ways are then others'. */
void gct_ways_sort(struct gct_ways *w);

/* The way of this candidate, or NULL. */
struct gct_way *gct_ways_find(const struct gct_ways *w, const struct gci_candidate *how);

void gct_ways_free(struct gct_ways *w);

/* Says on a terminal (tools/lib/progress.h) that this is simulated now. */
void gct_way_progress(const struct gci_coll *coll, const struct gci_candidate *how);

/* One of them: its result, and what each rank does when (sorted). `t` is empty at first. On failure
 * (as gci_simulate) both are empty. */
int gct_way_simulate(const struct gci_simnet *net, const struct gci_coll *coll,
	const struct gci_candidate *how, uint64_t most_steps, struct gct_timeline *t,
	struct gci_sim_result *r);

#endif
