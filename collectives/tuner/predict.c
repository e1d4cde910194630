/* SPDX-License-Identifier: MIT
 * Predictions by simulation. A pipeline of very many segments runs evenly once it is full: its
 * first segments tell the time of the rest. */
#include "collectives/tuner/candidate.h"

#include "base/clock.h"
#include "collectives/blocks/layout.h"
#include "collectives/blocks/windows.h"

#define SIMULATED      32 /* segments, at least; or one in PART of the steps that may be */
#define PART           2
#define MOST_OF_BLOCKS 128 /* segments of all blocks together */

struct times {
	uint64_t ns, busiest_ns;
};

static int simulate(const struct gci_simnet *net, const struct gci_coll *c,
	const struct gci_candidate *w, const struct gci_predict_limits *limits, struct times *t)
{
	struct gci_sim_op op = {.algorithm = w->algorithm,
		.coll = c,
		.most_steps = limits ? limits->most_steps : 0,
		.until_ns = limits ? limits->until_ns : 0};
	struct gci_sim_result r;
	int rc = gci_simulate(net, &op, &r);

	if (limits && limits->spent)
		*limits->spent +=
			rc ? op.most_steps / 4 : r.nevents / 3; /* made for nothing, not run */
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

	if (more > 2 * work)
		more = 2 * work; /* still uneven: not for ever */
	more = work > more ? work : more;
	return few->ns + (uint64_t)((unsigned __int128)more * (n - nfew) / (nfew / 2));
}

/* What a rank other than the root does in one window: how many steps, and how long its longest
 * message is: the segment, for a pipeline. */
struct outline {
	uint64_t nsteps, longest;
};

static int find_outline(
	const struct gci_coll *c, const struct gci_candidate *w, struct outline *out)
{
	struct gci_sched s;
	uint32_t i;
	int rc = gci_emit(w->algorithm, c, (c->root + 1) % c->topo->nranks, &s);

	if (rc)
		return rc;
	*out = (struct outline){.nsteps = s.nsteps};
	for (i = 0; i < s.nsteps; i++) {
		const struct gci_step *p = &s.steps[i];
		uint64_t n = p->kind == GCI_STEP_SEND ? p->src.length : p->dst.length;

		if (p->kind <= GCI_STEP_RECV_REDUCE && n > out->longest)
			out->longest = n;
	}
	gci_sched_free(&s);
	return 0;
}

/* A part of a message may be so short that an algorithm goes about it in another way. */
static int is_alike(
	const struct outline *part, uint64_t npart, const struct outline *all, uint64_t n)
{
	uint64_t a = part->nsteps * n, b = all->nsteps * npart;

	return part->longest == all->longest && (a > b ? a - b : b - a) <= b / 8;
}

/* Of the pipeline *p: the whole message, with its segment; its first window. */
struct pipeline {
	const struct gci_candidate *how;
	struct gci_coll coll, window;
	uint64_t n, in_window; /* segments */
	uint64_t least;        /* of them tell of the rest, at least */
};

/* How many segments run as all of them would; 0: no fewer do. */
static int find_few(
	const struct pipeline *p, const struct gci_predict_limits *limits, uint64_t *few)
{
	struct gci_coll part = p->coll;
	struct outline all, some;
	uint64_t n = p->least, each;
	int rc = find_outline(&p->window, p->how, &all);

	/* More where they cost little: lanes and clusters that take turns are many. */
	each = all.nsteps / p->in_window * (unsigned)part.topo->nranks + 1;
	while (!rc && 3 * n * each < limits->most_steps / PART)
		n *= 2;
	for (; !rc && 2 * n < p->n; n *= 2) {
		part.count = n / 2 * part.segment;
		rc = find_outline(&part, p->how, &some);
		if (!rc && is_alike(&some, n / 2, &all, p->in_window)) {
			*few = n;
			return 0;
		}
	}
	*few = 0;
	return rc;
}

/* Whoever works hardest has about as much to do for every segment: will it be far too late? */
static int is_late(const struct times *some, uint64_t nsome, uint64_t n, uint64_t until_ns)
{
	return until_ns &&
	       (some->ns == GCI_NEVER ||
		       (unsigned __int128)some->busiest_ns * n / nsome / 4 * 3 > until_ns);
}

/* The first segments, and how it goes on. */
static int predict_pipeline(const struct gci_simnet *net, const struct pipeline *p,
	const struct gci_predict_limits *limits, uint64_t nfew, uint64_t *ns)
{
	struct times half = {0}, few = {0};
	struct gci_coll part = p->coll;
	int rc;

	part.count = nfew / 2 * part.segment;
	rc = simulate(net, &part, p->how, limits, &half);
	*ns = GCI_NEVER;
	if (rc || is_late(&half, nfew / 2, p->n, limits->until_ns))
		return rc;
	part.count = nfew * part.segment;
	rc = simulate(net, &part, p->how, limits, &few);
	if (!rc && few.ns != GCI_NEVER && is_uneven(&half, &few)) {
		half = few;
		nfew *= 2;
		part.count = nfew * part.segment;
		rc = simulate(net, &part, p->how, limits, &few);
	}
	if (!rc && few.ns != GCI_NEVER)
		*ns = extrapolate(&half, &few, nfew, p->n);
	return rc;
}

/* Of blocks that all ranks have for all, every segment is one of as many as there are ranks. */
static uint64_t least_segments(const struct gci_coll *c)
{
	uint64_t n = SIMULATED;

	while (!gci_kind_has_vector(c->kind) && !gci_kind_has_root(c->kind) && n > 2 &&
		n * (unsigned)c->topo->nranks > MOST_OF_BLOCKS)
		n /= 2;
	return n;
}

/* p->n is 0 where `c` does not run as a pipeline of segments. */
static int find_pipeline(struct pipeline *p, const struct gci_coll *c)
{
	struct gci_windows w;
	struct gci_coll cut = *c;
	struct outline all;
	int rc;

	p->coll = *c;
	if (!(p->how->algorithm->traits & GCI_USES_SEGMENT) || c->counts || !c->count)
		return 0;
	gci_windows_cut(&w, &cut, GCI_WINDOW_NBYTES);
	gci_windows_segment(&cut, &w);
	p->window = gci_window_of(&w, &cut, 0);
	p->coll.like = p->window.count;
	p->coll.segment = cut.segment;
	rc = cut.segment ? 0 : find_outline(&p->window, p->how, &all);
	if (!rc && !cut.segment)
		p->coll.segment = all.longest;
	if (rc || !p->coll.segment)
		return rc;
	if (p->coll.segment > p->window.count)
		p->coll.segment = p->window.count;
	p->window.segment = p->coll.segment;
	p->least = least_segments(c);
	p->n = (c->count - 1) / p->coll.segment + 1;
	p->in_window = (p->window.count - 1) / p->coll.segment + 1;
	return 0;
}

int gci_predict(const struct gci_simnet *net, const struct gci_coll *c,
	const struct gci_candidate *w, const struct gci_predict_limits *limits, uint64_t *ns)
{
	struct pipeline p = {.how = w};
	struct gci_coll coll = *c;
	struct times all = {0};
	uint64_t few = 0;
	int rc = 0;

	if (gci_ineligible(w->algorithm, c))
		return GCOLL_ERR_INVAL;
	gci_candidate_apply(w, &coll);
	if (limits && !limits->whole)
		rc = find_pipeline(&p, &coll);
	if (!rc && p.n)
		rc = find_few(&p, limits, &few);
	if (limits && limits->is_partial)
		*limits->is_partial = few != 0;
	if (rc)
		return rc;
	if (few)
		return predict_pipeline(net, &p, limits, few, ns);
	rc = simulate(net, &coll, w, limits, &all);
	*ns = all.ns;
	return rc;
}
