/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/windows.h"

#include "collectives/blocks/layout.h"

#define MAX_SEGMENTS 16384 /* of a window: messages that are under way at once */

/* Elements of all blocks; of alltoall, of the rank that has most. All ranks find the same. */
static uint64_t most_elements(const struct gci_coll *c)
{
	uint64_t n = (uint64_t)c->topo->nranks, i, k, most = 0;

	if (c->kind != GCI_ALLTOALL)
		return gci_total(c);
	for (i = 0; i < n; i++) {
		uint64_t out = 0, in = 0;

		for (k = 0; k < n; k++) {
			out += c->counts[i * n + k];
			in += c->counts[k * n + i];
		}
		most = out > most ? out : most;
		most = in > most ? in : most;
	}
	return most;
}

void gci_windows_cut(struct gci_windows *w, struct gci_coll *c, uint64_t window_nbytes)
{
	uint64_t most = window_nbytes / c->esize, total;
	uint64_t n = gci_kind_has_vector(c->kind) ? 1 : (uint64_t)c->topo->nranks;

	c->part = c->nparts = 0;
	if (c->counts) {
		total = most_elements(c);
		w->window = 0;
		w->n = most && total ? (total - 1) / most + 1 : total ? total : 1;
		c->nparts = w->n > 1 ? (uint32_t)w->n : 0;
		w->most = (total + w->n - 1) / w->n;
		return;
	}
	w->window = most / n ? most / n : 1;
	w->n = c->count ? (c->count - 1) / w->window + 1 : 1;
	if (w->n > 1 && n > 1)
		c->stride = c->count;
	w->most = n * (c->count < w->window ? c->count : w->window);
}

/* Messages that are under way at once; and their tags must do for all pairs of ranks. */
static uint64_t max_segments(const struct gci_topo *t)
{
	uint64_t tags = (1u << 28) / ((uint64_t)t->nranks + 64);

	return tags < MAX_SEGMENTS ? tags : MAX_SEGMENTS;
}

void gci_windows_segment(struct gci_coll *c, const struct gci_windows *w)
{
	uint64_t least = w->most / max_segments(c->topo) + 1;

	if (c->segment && c->segment < least)
		c->segment = least;
}

struct gci_coll gci_window_of(const struct gci_windows *w, const struct gci_coll *c, uint64_t i)
{
	struct gci_coll part = *c;
	uint64_t left = c->count - gci_window_at(w, i);

	if (c->counts)
		part.part = (uint32_t)i;
	else
		part.count = left < w->window ? left : w->window;
	return part;
}
