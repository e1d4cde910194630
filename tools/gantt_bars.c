/* SPDX-License-Identifier: MIT */
#include "tools/gantt_bars.h"

#include "base/mem.h"

#include <stdlib.h>

#define LEAST_WIDTH 10 /* messages without content are seen */

/* The phases that messages have, in rising order of number: each its colour. */
static int place_of_phase(uint32_t phases, uint32_t phase)
{
	return __builtin_popcount(phases & ((1u << phase) - 1)) % GCT_GANTT_PHASES;
}

static enum gct_paint paint_of(
	const struct gct_timeline *t, const struct gct_span *s, uint32_t phases)
{
	int at = place_of_phase(phases, gct_span_phase(s));

	if (gct_span_lane(s) == GCT_LANE_COMPUTE)
		return GCT_PAINT_COMPUTE;
	return (enum gct_paint)((gct_span_is_wan(t, s) ? GCT_PAINT_WAN : GCT_PAINT_LAN) + at);
}

static uint32_t place(uint64_t ns, uint64_t end_ns, uint32_t width)
{
	return end_ns ? (uint32_t)((unsigned __int128)ns * width / end_ns) : 0;
}

static int add(struct gct_bars *b, const struct gct_bar *bar)
{
	if (gci_grow(&b->list, &b->cap, b->n + 1, sizeof(*b->list)))
		return GCOLL_ERR_NOMEM;
	b->list[b->n++] = *bar;
	return 0;
}

static int add_span(struct gct_bars *b, const struct gct_timeline *t, size_t i,
	const struct gct_bar *frame, uint32_t phases, uint32_t width, uint64_t end_ns)
{
	const struct gct_span *s = &t->spans[i];
	struct gct_bar bar = *frame;

	bar.lane = (uint8_t)gct_span_lane(s);
	bar.span = (uint32_t)i;
	bar.count = 1;
	if (bar.lane == GCT_LANE_RECV && s->ready_ns < s->from_ns) {
		bar.paint = GCT_PAINT_WAIT;
		bar.from_ns = s->ready_ns;
		bar.to_ns = s->from_ns;
		bar.x0 = place(bar.from_ns, end_ns, width);
		bar.x1 = place(bar.to_ns, end_ns, width);
		b->phases[GCT_PAINT_WAIT] |= 1;
		if (bar.x1 > bar.x0 && add(b, &bar))
			return GCOLL_ERR_NOMEM;
	}
	bar.paint = (uint8_t)paint_of(t, s, phases);
	bar.nbytes = s->nbytes;
	bar.from_ns = s->from_ns;
	bar.to_ns = s->to_ns;
	bar.x0 = place(bar.from_ns, end_ns, width);
	bar.x1 = place(bar.to_ns, end_ns, width);
	if (bar.x1 < bar.x0 + LEAST_WIDTH)
		bar.x1 = bar.x0 + LEAST_WIDTH;
	b->phases[bar.paint] |= 1u << gct_span_phase(s);
	return add(b, &bar);
}

static int by_place(const void *a, const void *b)
{
	const struct gct_bar *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->lane != y->lane)
		return x->lane - y->lane;
	if (x->paint != y->paint)
		return x->paint - y->paint;
	if (x->x0 != y->x0)
		return x->x0 < y->x0 ? -1 : 1;
	if (x->x1 != y->x1)
		return x->x1 < y->x1 ? -1 : 1;
	return x->span < y->span ? -1 : x->span > y->span;
}

int gct_bars_make(struct gct_bars *b, const struct gct_timeline *t, const int *row, uint32_t width,
	uint64_t end_ns)
{
	uint32_t phases = 0;
	size_t i;

	*b = (struct gct_bars){.list = NULL};
	for (i = 0; i < t->n; i++)
		if (gct_span_lane(&t->spans[i]) != GCT_LANE_COMPUTE)
			phases |= 1u << gct_span_phase(&t->spans[i]);
	for (i = 0; i < t->n; i++) {
		struct gct_bar frame = {.row = (uint32_t)row[t->spans[i].rank]};

		if (row[t->spans[i].rank] >= 0 && add_span(b, t, i, &frame, phases, width, end_ns))
			return GCOLL_ERR_NOMEM;
	}
	if (b->n)
		qsort(b->list, b->n, sizeof(*b->list), by_place);
	return 0;
}

/* Wide ones that only touch stay apart, so that segments are seen. */
static int may_merge(const struct gct_bar *a, const struct gct_bar *b, uint32_t cell)
{
	if (a->row != b->row || a->lane != b->lane || a->paint != b->paint)
		return 0;
	if (b->x0 < a->x1)
		return 1;
	return b->x0 - a->x1 < cell && (a->x1 - a->x0 < 4 * cell || b->x1 - b->x0 < 4 * cell);
}

void gct_bars_merge(struct gct_bars *b, uint32_t cell)
{
	size_t i, n = 0;

	for (i = 0; i < b->n; i++) {
		const struct gct_bar *next = &b->list[i];
		struct gct_bar *last = n ? &b->list[n - 1] : NULL;

		if (!last || !may_merge(last, next, cell)) {
			b->list[n++] = *next;
			continue;
		}
		last->x1 = next->x1 > last->x1 ? next->x1 : last->x1;
		last->to_ns = next->to_ns > last->to_ns ? next->to_ns : last->to_ns;
		last->count += next->count;
		last->nbytes += next->nbytes;
	}
	b->n = n;
}

void gct_bars_free(struct gct_bars *b)
{
	gci_free(b->list);
	b->list = NULL;
	b->n = b->cap = 0;
}
