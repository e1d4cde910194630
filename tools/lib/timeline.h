/* SPDX-License-Identifier: MIT
 * A timeline: what each rank did, and when, in one operation. Of a simulation, or of a run.
 *
 *	struct gct_timeline t = {.topo = &topo, .esize = 4};
 *	struct gci_sim_op op = {..., .trace = gct_timeline_event, .ctx = &t};
 *
 *	rc = gci_simulate(&net, &op, &result);
 *	if (!rc && !t.failed && !t.cut)
 *		gct_timeline_sort(&t);
 *	...					// t.spans[0 .. t.n)
 *	gct_timeline_free(&t);
 *
 * Pure. One thread. */
#ifndef GCT_TIMELINE_H
#define GCT_TIMELINE_H

#include "collectives/sim/sim.h"

#define GCT_MOST_SPANS (1u << 21)

enum gct_lane { GCT_LANE_SEND, GCT_LANE_RECV, GCT_LANE_COMPUTE, GCT_NLANES };

/* One step of one rank. */
struct gct_span {
	int rank, peer; /* peer: of messages; else the rank itself */
	uint32_t window, step, tag;
	uint32_t other; /* sorted: 1 + the number of the other side's span, of messages; 0: none */
	enum gci_step_kind kind;
	uint64_t nbytes;
	uint64_t ready_ns, from_ns, to_ns; /* could have begun, began (a RECV: to come), ended */
};

struct gct_timeline {
	const struct gci_topo *topo; /* must outlive it */
	uint32_t esize;
	struct gct_span *spans;
	size_t n, cap;
	int failed; /* out of memory */
	int cut;    /* there were more than GCT_MOST_SPANS */
};

/* Adds one of a simulation: gci_sim_op.trace, with a timeline as its context. */
void gct_timeline_event(void *timeline, const struct gci_sim_event *e);
void gct_timeline_add(struct gct_timeline *t, const struct gct_span *s);

/* By rank, window and step; and finds who meets whom. 0 or GCOLL_ERR_NOMEM. */
int gct_timeline_sort(struct gct_timeline *t);

/* Of a sorted one; NULL: there is none. */
struct gct_span *gct_timeline_find(
	const struct gct_timeline *t, int rank, uint32_t window, uint32_t step);

/* The last end, 0 of an empty one. */
uint64_t gct_timeline_end(const struct gct_timeline *t);

void gct_timeline_free(struct gct_timeline *t);

static inline enum gct_lane gct_span_lane(const struct gct_span *s)
{
	return s->kind == GCI_STEP_SEND          ? GCT_LANE_SEND
	       : s->kind <= GCI_STEP_RECV_REDUCE ? GCT_LANE_RECV
						 : GCT_LANE_COMPUTE;
}

/* The phase that the algorithm gave its message (collectives/blocks/blocks.h). */
static inline uint32_t gct_span_phase(const struct gct_span *s)
{
	return s->tag >> 28;
}

/* Goes over a WAN. */
static inline int gct_span_is_wan(const struct gct_timeline *t, const struct gct_span *s)
{
	return t->topo->cluster[s->rank] != t->topo->cluster[s->peer];
}

#endif
