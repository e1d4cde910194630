/* SPDX-License-Identifier: MIT */
#include "tools/explain.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* A span's part as a number, and what it adds to that. */
struct item {
	uint32_t part;
	int rank;
	uint64_t from_ns, to_ns;
};

struct parts {
	const struct gct_timeline *t;
	uint32_t phases; /* that messages have, a bit for each */
	int npairs;      /* of clusters that are told apart */
};

/* Parts are numbered by phase and pair of clusters; 0 is computing. */
static uint32_t part_of(const struct parts *p, const struct gct_span *s)
{
	const struct gci_topo *topo = p->t->topo;
	uint32_t phase = gct_span_phase(s), pair;
	int from, to;

	if (gct_span_lane(s) == GCT_LANE_COMPUTE)
		return 0;
	from = topo->cluster[s->kind == GCI_STEP_SEND ? s->rank : s->peer];
	to = topo->cluster[s->kind == GCI_STEP_SEND ? s->peer : s->rank];
	pair = p->npairs == 2 ? (uint32_t)(from != to) : (uint32_t)(from * topo->nclusters + to);
	phase = (uint32_t)__builtin_popcount(p->phases & ((1u << phase) - 1));
	return 1 + phase * (uint32_t)p->npairs + pair;
}

static void describe(const struct parts *p, uint32_t number, struct gct_part *part)
{
	int n = p->t->topo->nclusters, pair;

	part->from = part->to = -1;
	if (!number)
		return;
	pair = (int)(number - 1) % p->npairs;
	part->phase = 1 + (number - 1) / (uint32_t)p->npairs;
	part->wan = p->npairs == 2 ? pair : pair / n != pair % n;
	if (p->npairs != 2) {
		part->from = pair / n;
		part->to = pair % n;
	}
}

static int by_part(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return x->to_ns < y->to_ns ? -1 : x->to_ns > y->to_ns;
}

/* Items of one part, from `list` on: their times. Returns how many there are. */
static size_t sum_up(const struct item *list, size_t n, struct gct_when *when)
{
	uint64_t busy = 0, nranks = 0, until = 0;
	size_t i;

	when->start_ns = list->from_ns;
	for (i = 0; i < n && list[i].part == list->part; i++) {
		if (!i || list[i].rank != list[i - 1].rank) {
			nranks++;
			until = 0;
		}
		if (list[i].to_ns > until) {
			busy += list[i].to_ns - (list[i].from_ns > until ? list[i].from_ns : until);
			until = list[i].to_ns;
		}
		when->start_ns =
			list[i].from_ns < when->start_ns ? list[i].from_ns : when->start_ns;
		when->end_ns = list[i].to_ns > when->end_ns ? list[i].to_ns : when->end_ns;
	}
	when->busy_ns = busy / nranks;
	return i;
}

/* Receives, copies and reductions; SENDs are the other side of the former. */
static size_t list_items(const struct parts *p, const struct gct_timeline *t, struct item *items)
{
	size_t i, n = 0;

	for (i = 0; i < t->n; i++) {
		const struct gct_span *s = &t->spans[i];

		if (s->kind != GCI_STEP_SEND)
			items[n++] = (struct item){part_of(p, s), s->rank, s->from_ns, s->to_ns};
	}
	if (n)
		qsort(items, n, sizeof(*items), by_part);
	return n;
}

static int by_start(const void *a, const void *b)
{
	const struct gct_part *x = a, *y = b;

	if (x->predicted.start_ns != y->predicted.start_ns)
		return x->predicted.start_ns < y->predicted.start_ns ? -1 : 1;
	return x->phase < y->phase ? -1 : x->phase > y->phase;
}

static void find_worst(struct gct_explanation *x, uint64_t whole_ns)
{
	uint64_t most = whole_ns / 50;
	size_t i;

	x->worst = -1;
	for (i = 0; i < x->n; i++) {
		const struct gct_part *p = &x->parts[i];
		uint64_t was = p->predicted.end_ns - p->predicted.start_ns;
		uint64_t is = p->actual.end_ns - p->actual.start_ns;
		uint64_t off = was > is ? was - is : is - was;

		if (off <= most)
			continue;
		most = off;
		x->worst = (int)i;
	}
}

static void find_late_rank(struct gct_explanation *x, const struct gct_timeline *predicted,
	const struct gct_timeline *actual)
{
	uint64_t was = 0, is = 0;
	size_t i;

	x->late_rank = -1;
	for (i = 0; i < actual->n; i++) {
		const struct gct_span *s = &actual->spans[i], *p = &predicted->spans[i];
		int last = i + 1 == actual->n || actual->spans[i + 1].rank != s->rank;

		was = p->to_ns > was ? p->to_ns : was;
		is = s->to_ns > is ? s->to_ns : is;
		if (!last)
			continue;
		if (x->late_rank < 0 || llabs((int64_t)(is - was)) > llabs(x->late_ns)) {
			x->late_rank = s->rank;
			x->late_ns = (int64_t)(is - was);
		}
		was = is = 0;
	}
}

/* Adds up the messages of each part, whose numbers are in `numbers`. */
static void count(struct gct_explanation *x, const uint32_t *numbers, const struct parts *p)
{
	size_t i, k;

	for (i = 0; i < p->t->n; i++) {
		const struct gct_span *s = &p->t->spans[i];
		uint32_t number = part_of(p, s);

		if (s->kind == GCI_STEP_SEND)
			continue;
		for (k = 0; numbers[k] != number; k++)
			;
		x->parts[k].nmessages++;
		x->parts[k].nbytes += s->nbytes;
	}
}

static int collect(struct gct_explanation *x, const struct parts *p,
	const struct gct_timeline *actual, struct item *was, struct item *is)
{
	size_t n = list_items(p, p->t, was), i, k;
	uint32_t *numbers;

	list_items(p, actual, is);
	for (i = 0; i < n; i++)
		x->n += !i || was[i].part != was[i - 1].part;
	x->parts = gci_calloc(x->n, sizeof(*x->parts));
	numbers = gci_calloc(x->n, sizeof(*numbers));
	if (!x->parts || !numbers) {
		gci_free(numbers);
		return GCOLL_ERR_NOMEM;
	}
	for (i = k = 0; i < n; k++) {
		numbers[k] = was[i].part;
		describe(p, was[i].part, &x->parts[k]);
		sum_up(is + i, n - i, &x->parts[k].actual);
		i += sum_up(was + i, n - i, &x->parts[k].predicted);
	}
	count(x, numbers, p);
	gci_free(numbers);
	return 0;
}

int gct_explain_compare(struct gct_explanation *x, const struct gct_timeline *predicted,
	const struct gct_timeline *actual)
{
	int n = predicted->topo->nclusters * predicted->topo->nclusters, rc = GCOLL_ERR_NOMEM;
	struct parts p = {predicted, 0, n > GCT_MOST_PAIRS ? 2 : n};
	struct item *was = gci_calloc(predicted->n, sizeof(*was));
	struct item *is = gci_calloc(predicted->n, sizeof(*is));
	size_t i;

	*x = (struct gct_explanation){.parts = NULL};
	for (i = 0; i < predicted->n; i++)
		if (gct_span_lane(&predicted->spans[i]) != GCT_LANE_COMPUTE)
			p.phases |= 1u << gct_span_phase(&predicted->spans[i]);
	if (was && is)
		rc = collect(x, &p, actual, was, is);
	gci_free(was);
	gci_free(is);
	if (rc) {
		gct_explain_free(x);
		return rc;
	}
	if (x->n)
		qsort(x->parts, x->n, sizeof(*x->parts), by_start);
	find_worst(x, gct_timeline_end(predicted));
	find_late_rank(x, predicted, actual);
	return 0;
}

void gct_explain_free(struct gct_explanation *x)
{
	gci_free(x->parts);
	x->parts = NULL;
	x->n = 0;
}
