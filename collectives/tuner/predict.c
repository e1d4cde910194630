/* SPDX-License-Identifier: MIT
 * Predictions by simulation. A pipeline of very many segments runs evenly once it is full: its
 * first segments tell the time of the rest. */
#include "collectives/tuner/candidate.h"

#include "collectives/blocks/layout.h"
#include "collectives/blocks/windows.h"

#define SIMULATED    32                      /* segments */
#define MOST_WINDOWS (2 * GCI_MAX_INSTANCES) /* that the simulator runs */

struct times {
	uint64_t ns, busiest_ns;
};

static int simulate(const struct gci_simnet *net, const struct gci_coll *c,
	const struct gci_candidate *w, const struct gci_predict_limits *limits, struct times *t)
{
	struct gci_sim_op op = {.algorithm = w->algorithm,
		.coll = c,
		.most_steps = limits ? limits->most_steps : 0};
	struct gci_sim_result r;
	int rc = gci_simulate(net, &op, &r);

	if (limits && limits->spent)
		*limits->spent +=
			rc ? op.most_steps / 4 /* made for nothing, not run */
			   : r.nsteps * (r.nwindows < MOST_WINDOWS ? r.nwindows : MOST_WINDOWS);
	t->ns = r.ns;
	t->busiest_ns = r.busiest_ns;
	gci_sim_result_free(&r);
	return rc;
}

/* Of n segments, from the time of a few and of half as many: what each more adds, or what it takes
 * whoever works hardest. The few may have hidden that behind the delay of a WAN. */
static uint64_t extrapolate(const struct times *few, const struct times *half, uint64_t n)
{
	uint64_t more = few->ns > half->ns ? few->ns - half->ns : 0;
	uint64_t work = few->busiest_ns / 2;

	more = work > more ? work : more;
	return few->ns + (uint64_t)((unsigned __int128)more * (n - SIMULATED) / (SIMULATED / 2));
}

/* The longest message of a rank other than the root, 0: none. It is the segment, for a pipeline. */
static int longest_message(
	const struct gci_coll *c, const struct gci_candidate *w, uint64_t *longest)
{
	struct gci_sched s;
	uint64_t most = 0;
	uint32_t i;
	int rc = gci_emit(w->algorithm, c, (c->root + 1) % c->topo->nranks, &s);

	if (rc)
		return rc;
	for (i = 0; i < s.nsteps; i++) {
		if (s.steps[i].kind == GCI_STEP_SEND && s.steps[i].src.length > most)
			most = s.steps[i].src.length;
		if (s.steps[i].kind != GCI_STEP_SEND && s.steps[i].dst.length > most)
			most = s.steps[i].dst.length;
	}
	gci_sched_free(&s);
	*longest = most;
	return 0;
}

int gci_predict(const struct gci_simnet *net, const struct gci_coll *c,
	const struct gci_candidate *w, const struct gci_predict_limits *limits, uint64_t *ns)
{
	uint64_t segment = 0, n;
	struct times few = {0}, half = {0};
	struct gci_coll part = *c;
	int rc = 0;

	if (gci_ineligible(w->algorithm, c))
		return GCOLL_ERR_INVAL;
	gci_candidate_apply(w, &part);
	if (limits && (w->algorithm->traits & GCI_USES_SEGMENT) && !c->counts)
		rc = longest_message(&part, w, &segment);
	if (rc)
		return rc;
	n = segment ? (c->count - 1) / segment + 1 : 0;
	if (n > 2 * SIMULATED) {
		part.segment = segment;
		part.count = SIMULATED / 2 * segment;
		rc = simulate(net, &part, w, limits, &half);
		part.count = SIMULATED * segment;
		if (rc)
			return rc;
	}
	rc = simulate(net, &part, w, limits, &few);
	*ns = n > 2 * SIMULATED ? extrapolate(&few, &half, n) : few.ns;
	return rc;
}
