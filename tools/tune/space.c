/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "collectives/tuner/estimate.h"
#include "tools/tune/tune.h"

#include <string.h>

#define MOST_CANDIDATES 64

static int add(struct gct_tune_space *s, const struct gci_candidate *how, int fixed)
{
	if (gci_grow(&s->methods, &s->cap, s->nmethods + 1, sizeof(*s->methods)))
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory");
	s->methods[s->nmethods++] = (struct gci_method){*how, fixed};
	return 0;
}

/* In all segments, unless it says one or uses none; and with its own choice, where it has one. */
static int add_algorithm(struct gct_tune_space *s, const struct gci_candidate *how)
{
	unsigned traits = how->algorithm->traits;
	int fixed = how->segment_nbytes || !(traits & GCI_USES_SEGMENT);
	int rc = add(s, how, fixed);

	if (!rc && !fixed && !(traits & GCI_BY_SEGMENT))
		rc = add(s, how, 1);
	return rc;
}

static int add_asked(struct gct_tune_space *s, const struct gct_tune *t, enum gci_kind kind)
{
	struct gci_candidate how;
	struct gci_error e = {0};
	int i, rc = 0;

	for (i = 0; i < t->o.nalgorithms && !rc; i++) {
		if (gci_candidate_parse(&how, kind, t->o.algorithms[i], &e))
			return gci_comm_error(e.status, "%s", e.text);
		rc = add_algorithm(s, &how);
	}
	return rc;
}

/* Plans for the whole grid take long to make, and are their own search. */
static int add_all(struct gct_tune_space *s, const struct gci_coll *c)
{
	const struct gci_algorithm *a;
	int rc = 0;

	gci_each_algorithm (a) {
		const struct gci_candidate how = {.algorithm = a};

		if (!rc && a->kind == c->kind && !gci_ineligible(a, c) && !(a->traits & GCI_PLANS))
			rc = add_algorithm(s, &how);
	}
	return rc;
}

static int add_promising(
	struct gct_tune_space *s, const struct gct_tune *t, const struct gci_coll *c)
{
	struct gci_candidate *list;
	size_t i, n;
	int rc = gci_candidates(&t->net, c, MOST_CANDIDATES, &list, &n);

	if (rc)
		return gci_comm_error(rc, "out of memory");
	for (i = 0; i < n && !rc; i++)
		rc = add(s, &list[i], 1);
	gci_free(list);
	return rc;
}

int gct_tune_space_init(struct gct_tune_space *s, const struct gct_tune *t,
	const struct gct_tune_case *c, int listed)
{
	memset(s, 0, sizeof(*s));
	s->nsegments = gci_segment_sizes(&c->coll, t->o.least_segment, s->segments);
	if (t->o.nalgorithms)
		return add_asked(s, t, c->kind);
	return listed ? add_promising(s, t, &c->coll) : add_all(s, &c->coll);
}

void gct_tune_space_free(struct gct_tune_space *s)
{
	gci_free(s->methods);
	memset(s, 0, sizeof(*s));
}

struct gci_search gct_tune_space_search(const struct gct_tune_space *s,
	const struct gct_tune_case *c, gci_search_cost *cost, void *ctx)
{
	return (struct gci_search){.methods = s->methods,
		.nmethods = s->nmethods,
		.segments = s->segments,
		.nsegments = s->nsegments,
		.count = c->coll.count,
		.esize = c->coll.esize,
		.cost = cost,
		.ctx = ctx};
}
