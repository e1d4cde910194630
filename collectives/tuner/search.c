/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/search.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/models/plogp.h"
#include "collectives/tuner/search_impl.h"

#include <string.h>

struct gci_asking gci_asking_begin(const struct gci_search *s, struct gci_search_result *r)
{
	memset(r, 0, sizeof(*r));
	r->best_ns = GCI_NEVER;
	return (struct gci_asking){s, r, 0, 0};
}

void gci_ask_count(struct gci_asking *a, const struct gci_trial *t)
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

uint64_t gci_ask(struct gci_asking *a, size_t m, uint64_t segment_nbytes)
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

size_t gci_asking_nsegments(const struct gci_asking *a, size_t m)
{
	return a->s->methods[m].fixed || !a->s->nsegments ? 1 : a->s->nsegments;
}

uint64_t gci_asking_segment(const struct gci_asking *a, size_t m, size_t i)
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
