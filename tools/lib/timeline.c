/* SPDX-License-Identifier: MIT */
#include "tools/lib/timeline.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void gct_timeline_add(struct gct_timeline *t, const struct gct_span *s)
{
	if (t->n == GCT_MOST_SPANS) {
		t->cut = 1;
		return;
	}
	if (gci_grow(&t->spans, &t->cap, t->n + 1, sizeof(*t->spans))) {
		t->failed = 1;
		return;
	}
	t->spans[t->n++] = *s;
}

void gct_timeline_event(void *timeline, const struct gci_sim_event *e)
{
	struct gct_timeline *t = timeline;
	const struct gci_step *s = e->s;
	int message = s->kind <= GCI_STEP_RECV_REDUCE;
	struct gct_span span = {.rank = e->rank,
		.peer = message ? s->peer : e->rank,
		.window = e->window,
		.step = e->step,
		.tag = message ? s->tag : 0,
		.kind = s->kind,
		.nbytes = (s->kind == GCI_STEP_SEND ? s->src.length : s->dst.length) * t->esize,
		.ready_ns = e->ready_ns,
		.from_ns = e->from_ns,
		.to_ns = e->to_ns};

	gct_timeline_add(t, &span);
}

static int compare_u32(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int by_step(const void *a, const void *b)
{
	const struct gct_span *x = a, *y = b;
	int order = compare_u32((uint32_t)x->rank, (uint32_t)y->rank);

	if (!order)
		order = compare_u32(x->window, y->window);
	return order ? order : compare_u32(x->step, y->step);
}

/* One side of a message: those of one message stand next to each other, the SEND first. */
struct side {
	int from, to, is_recv;
	uint32_t window, tag, span;
};

static int by_message(const void *a, const void *b)
{
	const struct side *x = a, *y = b;
	int order = compare_u32((uint32_t)x->from, (uint32_t)y->from);

	if (!order)
		order = compare_u32((uint32_t)x->to, (uint32_t)y->to);
	if (!order)
		order = compare_u32(x->window, y->window);
	if (!order)
		order = compare_u32(x->tag, y->tag);
	return order ? order : x->is_recv - y->is_recv;
}

static void join(struct gct_timeline *t, const struct side *s, size_t n)
{
	size_t i;

	for (i = 0; i + 1 < n; i++) {
		const struct side *a = &s[i], *b = &s[i + 1];

		if (a->is_recv || !b->is_recv || a->from != b->from || a->to != b->to ||
			a->window != b->window || a->tag != b->tag)
			continue;
		t->spans[a->span].other = b->span + 1;
		t->spans[b->span].other = a->span + 1;
	}
}

int gct_timeline_sort(struct gct_timeline *t)
{
	struct side *sides = gci_calloc(t->n, sizeof(*sides));
	size_t i, n = 0;

	if (!sides)
		return GCOLL_ERR_NOMEM;
	if (t->n)
		qsort(t->spans, t->n, sizeof(*t->spans), by_step);
	for (i = 0; i < t->n; i++) {
		struct gct_span *s = &t->spans[i];
		int is_recv = gct_span_lane(s) == GCT_LANE_RECV;

		s->other = 0;
		if (gct_span_lane(s) != GCT_LANE_COMPUTE)
			sides[n++] = (struct side){is_recv ? s->peer : s->rank,
				is_recv ? s->rank : s->peer, is_recv, s->window, s->tag,
				(uint32_t)i};
	}
	if (n)
		qsort(sides, n, sizeof(*sides), by_message);
	join(t, sides, n);
	gci_free(sides);
	return 0;
}

struct gct_span *gct_timeline_find(
	const struct gct_timeline *t, int rank, uint32_t window, uint32_t step)
{
	const struct gct_span key = {.rank = rank, .window = window, .step = step};

	return t->n ? bsearch(&key, t->spans, t->n, sizeof(key), by_step) : NULL;
}

uint64_t gct_timeline_end(const struct gct_timeline *t)
{
	uint64_t end = 0;
	size_t i;

	for (i = 0; i < t->n; i++)
		end = t->spans[i].to_ns > end ? t->spans[i].to_ns : end;
	return end;
}

void gct_timeline_free(struct gct_timeline *t)
{
	gci_free(t->spans);
	t->spans = NULL;
	t->n = t->cap = 0;
}
