/* SPDX-License-Identifier: MIT */
#include "collectives/sim/events.h"

#include "base/mem.h"

#include <string.h>

static int before(const struct gci_ev *a, const struct gci_ev *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->seq < b->seq;
}

static void push_soon(struct gci_events *q, const struct gci_ev *e)
{
	if (gci_grow(&q->soon, &q->soon_cap, q->nsoon + 1, sizeof(*q->soon)))
		q->failed = 1;
	else
		q->soon[q->nsoon++] = *e;
}

void gci_events_push(struct gci_events *q, struct gci_ev e)
{
	size_t i = q->n;

	if (e.ns == q->now) {
		push_soon(q, &e);
		return;
	}
	if (gci_grow(&q->heap, &q->cap, q->n + 1, sizeof(*q->heap))) {
		q->failed = 1;
		return;
	}
	e.seq = q->seq++;
	q->n++;
	while (i && before(&e, &q->heap[(i - 1) / 4])) {
		q->heap[i] = q->heap[(i - 1) / 4];
		i = (i - 1) / 4;
	}
	q->heap[i] = e;
}

/* Four children to a node: half as many levels to go down, within a few cache lines. */
int gci_events_pop(struct gci_events *q, struct gci_ev *e)
{
	size_t i = 0, first, k, best;
	struct gci_ev last;

	if (q->soon_at < q->nsoon && (!q->n || q->heap[0].ns > q->now)) {
		*e = q->soon[q->soon_at++];
		if (q->soon_at == q->nsoon)
			q->soon_at = q->nsoon = 0;
		return 1;
	}
	if (!q->n)
		return 0;
	*e = q->heap[0];
	q->now = e->ns;
	last = q->heap[--q->n];
	while ((first = 4 * i + 1) < q->n) {
		best = first;
		for (k = first + 1; k < first + 4 && k < q->n; k++)
			if (before(&q->heap[k], &q->heap[best]))
				best = k;
		if (!before(&q->heap[best], &last))
			break;
		q->heap[i] = q->heap[best];
		i = best;
	}
	q->heap[i] = last;
	return 1;
}

void gci_events_free(struct gci_events *q)
{
	gci_free(q->heap);
	gci_free(q->soon);
	memset(q, 0, sizeof(*q));
}
