/* SPDX-License-Identifier: MIT */
#include "tools/tune/methods.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/models/plogp.h"
#include "tools/tune/methods.h"

#include <string.h>

/* Asking, and never the same twice. */
struct gci_asking {
	const struct gci_search *s;
	struct gci_search_result *r;
	int rc;    /* what has ended the search */
	int hasty; /* half as long again as the best is told enough by one run */
};

static struct gci_asking gci_asking_begin(const struct gci_search *s, struct gci_search_result *r);
static void gci_ask_count(struct gci_asking *a, const struct gci_trial *t);
static uint64_t gci_ask(struct gci_asking *a, size_t m, uint64_t segment_nbytes);
static size_t gci_asking_nsegments(const struct gci_asking *a, size_t m);
static uint64_t gci_asking_segment(const struct gci_asking *a, size_t m, size_t i);

/* ---- ATCC's descents (Vadhiyar 2004, 4.2): time over segment size falls exponentially to a
 * plateau with several minima near the largest size, and small segments are what takes long to
 * measure. So they begin at the largest, go in one direction, and look beyond the first minimum. */

#define BEYOND            3
#define DOUBTS            2
#define THRESHOLD_PERCENT 98 /* a gain below what measurements are off is none */

/* One method on its way down. */
struct lane {
	size_t method, next, nsegments; /* segments are counted from the largest */
	uint64_t best, last, before;    /* ns; `before` the last, 0: there was none */
	uint64_t mark;                  /* the best when it last was clearly better than before */
	unsigned fruitless;             /* segments since then */
	unsigned doubts;                /* in a row: it promised too little */
	int over;
};

static unsigned beyond(const struct gci_search *s)
{
	return s->beyond ? s->beyond : BEYOND;
}

/* By more than measurements are off. */
static int is_clearly_less(const struct gci_search *s, uint64_t ns, uint64_t than)
{
	uint32_t percent = s->threshold_percent ? s->threshold_percent : THRESHOLD_PERCENT;

	return (unsigned __int128)ns * 100 <= (unsigned __int128)than * percent;
}

static struct lane begin(const struct gci_asking *a, size_t method)
{
	return (struct lane){.method = method,
		.nsegments = gci_asking_nsegments(a, method),
		.best = GCI_NEVER,
		.mark = GCI_NEVER};
}

/* The next smaller segment. */
static void step(struct gci_asking *a, struct lane *l)
{
	uint64_t ns = gci_ask(a, l->method, gci_asking_segment(a, l->method, l->next));

	l->before = l->last;
	l->last = ns;
	l->fruitless = is_clearly_less(a->s, ns, l->mark) ? 0 : l->fruitless + 1;
	if (!l->fruitless)
		l->mark = ns;
	if (ns < l->best)
		l->best = ns;
	l->next++;
	l->over = l->next == l->nsegments || l->fruitless >= beyond(a->s);
}

int gci_search_mgd(const struct gci_search *s, struct gci_search_result *r)
{
	struct gci_asking a = gci_asking_begin(s, r);
	size_t m;

	for (m = 0; m < s->nmethods && !a.rc; m++) {
		struct lane l = begin(&a, m);

		while (!l.over && !a.rc)
			step(&a, &l);
	}
	return a.rc;
}

/* ---- SMGD */

/* The least that the next few segments may come to if the time goes on falling at its latest rate,
 * or, where none is known yet, if each halves it. Rates nearer to 1 come later on the curve, so
 * this promises rather too much. */
static uint64_t outlook(const struct lane *l, unsigned looks)
{
	uint64_t ns = l->last;
	size_t left = l->nsegments - l->next;
	unsigned i;

	for (i = 0; i < looks && i < left; i++) {
		if (!l->before || l->last <= l->before / 2)
			ns /= 2;
		else if (l->last < l->before)
			ns = (uint64_t)((unsigned __int128)ns * l->last / l->before);
	}
	return ns;
}

/* Does this method promise to beat the best? Who leads need not: it looks beyond a minimum all the
 * same. */
static int is_promising(const struct gci_asking *a, const struct lane *l)
{
	return l->best <= a->r->best_ns ||
	       is_clearly_less(a->s, outlook(l, beyond(a->s)), a->r->best_ns);
}

/* After a step: one bad measurement is no reason to give a method up, unless it is far behind: by
 * half of the best's time. */
static void judge(const struct gci_asking *a, struct lane *l)
{
	l->doubts = is_promising(a, l) ? 0 : l->doubts + 1;
	if (l->doubts >= DOUBTS || (l->doubts && l->last / 3 * 2 > a->r->best_ns))
		l->over = 1;
}

/* Of those that go on, the one that promises most; NULL: none does. */
static struct lane *most_promising(const struct gci_asking *a, struct lane *lanes)
{
	uint64_t ns, least = GCI_NEVER;
	struct lane *found = NULL, *l;

	for (l = lanes; l < lanes + a->s->nmethods; l++) {
		ns = outlook(l, beyond(a->s));
		if (l->over || ns > least || (found && ns == least && l->best >= found->best))
			continue;
		least = ns;
		found = l;
	}
	return found;
}

int gci_search_smgd(const struct gci_search *s, struct gci_search_result *r)
{
	struct gci_asking a = gci_asking_begin(s, r);
	struct lane *lanes = gci_calloc(s->nmethods, sizeof(*lanes)), *l;
	size_t m;

	if (!lanes)
		return GCOLL_ERR_NOMEM;
	a.hasty = 1;
	for (m = 0; m < s->nmethods && !a.rc; m++) {
		lanes[m] = begin(&a, m);
		step(&a, &lanes[m]);
	}
	for (m = 0; m < s->nmethods && !a.rc; m++)
		judge(&a, &lanes[m]);
	while (!a.rc && (l = most_promising(&a, lanes))) {
		step(&a, l);
		judge(&a, l);
	}
	gci_free(lanes);
	return a.rc;
}

/* ---- ATCC's pipeline method (Vadhiyar 2004, 4.2, figure 5), and the pairwise test for saturation
 * that tells where it can be used. */

#define SATURATED_PERCENT 120

/* ---- the longest path of a tree */

static int is_towards_root(enum gci_kind kind)
{
	return kind == GCI_REDUCE || kind == GCI_GATHER;
}

/* Whom this rank has its data from, or hands it to; -1: nobody, -2: several. */
static int parent_in(const struct gci_sched *s, enum gci_kind kind)
{
	int parent = -1;
	uint32_t i;

	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *step = &s->steps[i];
		int sends = step->kind == GCI_STEP_SEND;
		int receives = step->kind == GCI_STEP_RECV || step->kind == GCI_STEP_RECV_REDUCE;

		if (is_towards_root(kind) ? !sends : !receives)
			continue;
		if (parent >= 0 && parent != step->peer)
			return -2;
		parent = step->peer;
	}
	return parent;
}

/* parent[rank], the root's -1. False if it is no tree. */
static int find_parents(
	const struct gci_algorithm *a, const struct gci_coll *c, int *parent, int *is_tree)
{
	int r, n = c->topo->nranks;

	*is_tree = gci_kind_has_root(c->kind) && !gci_ineligible(a, c);
	for (r = 0; r < n && *is_tree; r++) {
		struct gci_sched s;

		if (gci_emit(a, c, r, &s))
			return GCOLL_ERR_NOMEM;
		parent[r] = parent_in(&s, c->kind);
		*is_tree = r == c->root ? parent[r] == -1 : parent[r] >= 0;
		gci_sched_free(&s);
	}
	return 0;
}

/* Edges from the root; -1: in a circle. */
static int depth_of(const int *parent, int n, int r)
{
	int depth = 0;

	for (; parent[r] >= 0 && depth <= n; r = parent[r])
		depth++;
	return depth <= n ? depth : -1;
}

int gci_tree_path(const struct gci_algorithm *a, const struct gci_coll *c, int *ranks, int *n)
{
	int *parent = gci_calloc((size_t)c->topo->nranks, sizeof(*parent));
	int r, i, depth, is_tree = 0, deepest = c->root, most = 0;
	int rc = parent ? find_parents(a, c, parent, &is_tree) : GCOLL_ERR_NOMEM;

	*n = 0;
	for (r = 0; r < c->topo->nranks && !rc && is_tree; r++) {
		depth = depth_of(parent, c->topo->nranks, r);
		is_tree = depth >= 0;
		if (depth > most) {
			most = depth;
			deepest = r;
		}
	}
	if (!rc && is_tree) {
		*n = most + 1;
		for (r = deepest, i = most; i >= 0; r = parent[r], i--)
			ranks[i] = r;
	}
	gci_free(parent);
	return rc;
}

/* ---- saturation */

/* Rank i with the one `distance` further on; each rank in one pair. */
static int make_pairs(int nranks, int distance, int *from, int *to)
{
	int i, n = 0;

	for (i = 0; i + distance < nranks; i++)
		if (i % (2 * distance) < distance) {
			from[n] = i;
			to[n++] = i + distance;
		}
	return n;
}

/* The first of the pairs between these two clusters? */
static int is_first_of_its_kind(const struct gci_topo *t, const int *from, const int *to, int i)
{
	int k;

	for (k = 0; k < i; k++)
		if (t->cluster[from[k]] == t->cluster[from[i]] &&
			t->cluster[to[k]] == t->cluster[to[i]])
			return 0;
	return 1;
}

static uint64_t time_pairs(
	struct gci_asking *a, const struct gci_pipeline *p, const int *from, const int *to, int n)
{
	struct gci_trial t = {.ns = GCI_NEVER};

	if (!a->rc)
		a->rc = p->pairs(p->ctx, from, to, n, &t);
	if (!a->rc)
		gci_ask_count(a, &t);
	return t.ns;
}

/* Does it take all of these pairs longer at once than the slowest of them alone? */
static int saturates(
	struct gci_asking *a, const struct gci_pipeline *p, const int *from, const int *to, int n)
{
	uint32_t percent = p->saturated_percent ? p->saturated_percent : SATURATED_PERCENT;
	uint64_t alone = 0, together, ns;
	int i;

	for (i = 0; i < n; i++) {
		if (!is_first_of_its_kind(p->coll->topo, from, to, i))
			continue;
		ns = time_pairs(a, p, from + i, to + i, 1);
		alone = ns > alone ? ns : alone;
	}
	if (n < 2)
		return 0;
	together = time_pairs(a, p, from, to, n);
	return (unsigned __int128)together * 100 > (unsigned __int128)alone * percent;
}

/* Neighbours, and ranks half of all apart. */
static int bears_all_pairs(struct gci_asking *a, const struct gci_pipeline *p, int *from, int *to)
{
	int n = p->coll->topo->nranks, half = n / 2;

	if (n < 2)
		return 1;
	if (saturates(a, p, from, to, make_pairs(n, 1, from, to)))
		return 0;
	return half < 2 || !saturates(a, p, from, to, make_pairs(n, half, from, to));
}

/* ---- the method */

/* The best segment for a chain along this path. */
static uint64_t best_segment(
	struct gci_asking *a, const struct gci_pipeline *p, size_t m, const int *ranks, int n)
{
	uint64_t best_ns = GCI_NEVER, best = 0;
	size_t i;

	for (i = 0; i < gci_asking_nsegments(a, m) && !a->rc; i++) {
		uint64_t segment = gci_asking_segment(a, m, i);
		struct gci_trial t = {.ns = GCI_NEVER};

		a->rc = p->path(p->ctx, ranks, n, segment, &t);
		if (a->rc)
			break;
		gci_ask_count(a, &t);
		if (!i || t.ns < best_ns) {
			best_ns = t.ns;
			best = segment;
		}
	}
	return best;
}

static void try_method(struct gci_asking *a, const struct gci_pipeline *p, size_t m, int *ranks)
{
	const struct gci_method *method = &a->s->methods[m];
	uint64_t segment = method->how.segment_nbytes;
	int n = 0;

	if (!method->fixed)
		a->rc = gci_tree_path(method->how.algorithm, p->coll, ranks, &n);
	if (!a->rc && n > 1)
		segment = best_segment(a, p, m, ranks, n);
	gci_ask(a, m, segment);
}

int gci_search_pipeline(const struct gci_search *s, const struct gci_pipeline *p,
	struct gci_search_result *r, int *applies)
{
	struct gci_asking a = gci_asking_begin(s, r);
	size_t m, n = (size_t)p->coll->topo->nranks;
	int *from = gci_calloc(n, sizeof(*from)), *to = gci_calloc(n, sizeof(*to));

	*applies = 0;
	if (!from || !to)
		a.rc = GCOLL_ERR_NOMEM;
	if (!a.rc)
		*applies = bears_all_pairs(&a, p, from, to) && !a.rc;
	for (m = 0; m < s->nmethods && *applies && !a.rc; m++)
		try_method(&a, p, m, from);
	gci_free(from);
	gci_free(to);
	return a.rc;
}

/* ---- what is asked for, and the searches of all segments and by halves */

/* An empty result, and nothing asked yet. */
static struct gci_asking gci_asking_begin(const struct gci_search *s, struct gci_search_result *r)
{
	memset(r, 0, sizeof(*r));
	r->best_ns = GCI_NEVER;
	return (struct gci_asking){s, r, 0, 0};
}

/* A trial of something else than a candidate, which counts too. */
static void gci_ask_count(struct gci_asking *a, const struct gci_trial *t)
{
	a->r->evaluations++;
	a->r->runs += t->runs;
	a->r->spent_ns += t->spent_ns;
}

static void keep(struct gci_asking *a, const struct gci_candidate *how, uint64_t ns)
{
	struct gci_search_result *r = a->r;

	if (gci_grow(&r->tried, &r->tried_cap, r->ntried + 1, sizeof(*r->tried))) {
		a->rc = GCOLL_ERR_NOMEM;
		return;
	}
	r->tried[r->ntried++] = (struct gci_tried){*how, ns};
	if (ns < r->best_ns) {
		r->best = *how;
		r->best_ns = ns;
	}
}

/* What method number `m` costs with this segment; GCI_NEVER also when the search has ended. */
static uint64_t gci_ask(struct gci_asking *a, size_t m, uint64_t segment_nbytes)
{
	struct gci_candidate how = a->s->methods[m].how;
	struct gci_trial t = {.ns = GCI_NEVER};
	size_t i;

	if (a->rc)
		return GCI_NEVER;
	how.segment_nbytes = segment_nbytes;
	for (i = 0; i < a->r->ntried; i++)
		if (gci_candidate_same(&a->r->tried[i].how, &how))
			return a->r->tried[i].ns;
	if (a->hasty && a->r->best_ns != GCI_NEVER)
		t.enough_ns = a->r->best_ns + a->r->best_ns / 2;
	a->rc = a->s->cost(a->s->ctx, &how, &t);
	if (a->rc)
		return GCI_NEVER;
	gci_ask_count(a, &t);
	keep(a, &how, t.ns);
	return a->rc ? GCI_NEVER : t.ns;
}

/* How many segments method number `m` has, and the i-th, the largest first. */
static size_t gci_asking_nsegments(const struct gci_asking *a, size_t m)
{
	return a->s->methods[m].fixed || !a->s->nsegments ? 1 : a->s->nsegments;
}

static uint64_t gci_asking_segment(const struct gci_asking *a, size_t m, size_t i)
{
	const struct gci_method *method = &a->s->methods[m];

	if (method->fixed || !a->s->nsegments)
		return method->how.segment_nbytes;
	return a->s->segments[a->s->nsegments - 1 - i];
}

void gci_search_result_free(struct gci_search_result *r)
{
	gci_free(r->tried);
	memset(r, 0, sizeof(*r));
}

int gci_search_exhaustive(const struct gci_search *s, struct gci_search_result *r)
{
	struct gci_asking a = gci_asking_begin(s, r);
	size_t m, i;

	for (m = 0; m < s->nmethods && !a.rc; m++)
		for (i = 0; i < gci_asking_nsegments(&a, m) && !a.rc; i++)
			gci_ask(&a, m, gci_asking_segment(&a, m, i));
	return a.rc;
}

/* ---- by halving */

struct climb {
	struct gci_asking *a;
	size_t method;
};

/* k segments, as equal as whole elements allow. */
static uint64_t cost_of_segments(const void *ctx, uint64_t k)
{
	const struct climb *c = ctx;
	const struct gci_search *s = c->a->s;

	return gci_ask(c->a, c->method, ((s->count - 1) / k + 1) * s->esize);
}

int gci_search_halving(const struct gci_search *s, struct gci_search_result *r)
{
	struct gci_asking a = gci_asking_begin(s, r);
	size_t m;

	for (m = 0; m < s->nmethods && !a.rc; m++) {
		struct climb c = {&a, m};
		uint64_t least = s->nsegments ? s->segments[0] / s->esize : 0;

		if (s->methods[m].fixed || !s->count || !s->nsegments)
			gci_ask(&a, m, s->methods[m].how.segment_nbytes);
		else
			gci_plogp_segments(
				s->count, s->count / (least ? least : 1), cost_of_segments, &c);
	}
	return a.rc;
}
