/* SPDX-License-Identifier: MIT */
#include "collectives/schedule/ready.h"

#include "base/mem.h"

#include <string.h>

static void push(struct gci_ready *r, uint32_t step)
{
	uint32_t i = r->nheap++;

	while (i && r->heap[(i - 1) / 2] > step) {
		r->heap[i] = r->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	r->heap[i] = step;
}

int gci_ready_next(struct gci_ready *r, uint32_t *step)
{
	uint32_t i = 0, child, last;

	if (!r->nheap)
		return 0;
	*step = r->heap[0];
	last = r->heap[--r->nheap];
	while ((child = 2 * i + 1) < r->nheap) {
		if (child + 1 < r->nheap && r->heap[child + 1] < r->heap[child])
			child++;
		if (last <= r->heap[child])
			break;
		r->heap[i] = r->heap[child];
		i = child;
	}
	r->heap[i] = last;
	return 1;
}

int gci_ready_init(struct gci_ready *r, const struct gci_sched *s)
{
	uint32_t i;

	memset(r, 0, sizeof(*r));
	r->sched = s;
	r->waiting = gci_calloc(s->nsteps, sizeof(*r->waiting));
	r->heap = gci_calloc(s->nsteps, sizeof(*r->heap));
	if (!r->waiting || !r->heap) {
		gci_ready_free(r);
		return GCOLL_ERR_NOMEM;
	}
	for (i = 0; i < s->nsteps; i++) {
		r->waiting[i] = s->steps[i].ndeps;
		if (!r->waiting[i])
			push(r, i);
	}
	return 0;
}

void gci_ready_free(struct gci_ready *r)
{
	gci_free(r->waiting);
	gci_free(r->heap);
	memset(r, 0, sizeof(*r));
}

void gci_ready_done(struct gci_ready *r, uint32_t step)
{
	const struct gci_sched *s = r->sched;
	uint32_t i;

	r->ndone++;
	for (i = s->next_at[step]; i < s->next_at[step + 1]; i++)
		if (!--r->waiting[s->next[i]])
			push(r, s->next[i]);
}
