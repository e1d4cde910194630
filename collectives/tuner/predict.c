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

/* Does a segment more take far longer than whoever works hardest needs for it? Then the delays of a
 * WAN that these few met are taken for the rule. */
static int is_uneven(const struct times *half, const struct times *few)
{
	return few->ns > half->ns && few->ns - half->ns > few->busiest_ns;
}

/* Of n segments, from the times of so many and of half as many: what each more adds, or what it
 * takes whoever works hardest. The few may have hidden that behind the delay of a WAN. */
static uint64_t extrapolate(
	const struct times *half, const struct times *few, uint64_t nfew, uint64_t n)
{
	uint64_t more = few->ns > half->ns ? few->ns - half->ns : 0;
	uint64_t work = few->busiest_ns / 2;

	if (nfew > SIMULATED && more > 2 * work)
		more = 2 * work; /* still uneven: not for ever */
	more = work > more ? work : more;
	return few->ns + (uint64_t)((unsigned __int128)more * (n - nfew) / (nfew / 2));
}

/* The first segments, and how it goes on. part->segment is set. */
static int predict_pipeline(const struct gci_simnet *net, struct gci_coll *part,
	const struct gci_candidate *w, const struct gci_predict_limits *limits, uint64_t n,
	uint64_t *ns)
{
	struct times half = {0}, few = {0};
	uint64_t nfew = SIMULATED;
	int rc;

	part->count = nfew / 2 * part->segment;
	rc = simulate(net, part, w, limits, &half);
	part->count = nfew * part->segment;
	if (!rc)
		rc = simulate(net, part, w, limits, &few);
	if (!rc && is_uneven(&half, &few)) {
		half = few;
		nfew *= 2;
		part->count = nfew * part->segment;
		rc = simulate(net, part, w, limits, &few);
	}
	*ns = rc ? 0 : extrapolate(&half, &few, nfew, n);
	return rc;
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
	struct gci_coll part = *c;
	struct times all = {0};
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
		return predict_pipeline(net, &part, w, limits, n, ns);
	}
	rc = simulate(net, &part, w, limits, &all);
	*ns = all.ns;
	return rc;
}
