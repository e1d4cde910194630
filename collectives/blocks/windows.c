/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/windows.h"

#include "base/clock.h"
#include "collectives/blocks/layout.h"

#define MAX_SEGMENTS 16384 /* of a window: messages that are under way at once */
#define MOST_TMP     \
	(UINT64_C(1) \
		<< 30) /* bytes of a host that an operation takes for more than a few windows */

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

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What a host of that cluster can have under way to all others for a round trip, in bytes; 0: unknown. */
static uint64_t held_nbytes(const struct gci_topo *t, int a)
{
	uint64_t nic = t->nic_bps[a] ? t->nic_bps[a] : UINT64_MAX, most_ns = 0;
	unsigned __int128 bits = 0;
	int b;

	for (b = 0; b < t->nclusters; b++) {
		const struct gci_link *l = gci_topo_link(t, a, b);
		uint64_t rtt_ns = l->delay_ns + gci_topo_link(t, b, a)->delay_ns;
		uint64_t bps = l->rate_bps ? less(l->rate_bps, nic) : nic;

		if (a == b || bps == UINT64_MAX)
			continue;
		bits += (unsigned __int128)bps * rtt_ns / GCI_NS_PER_S;
		most_ns = rtt_ns > most_ns ? rtt_ns : most_ns;
	}
	if (nic < UINT64_MAX && bits > (unsigned __int128)nic * most_ns / GCI_NS_PER_S)
		bits = (unsigned __int128)nic * most_ns / GCI_NS_PER_S;
	return bits / 8 > UINT64_MAX ? UINT64_MAX : (uint64_t)(bits / 8);
}

int gci_windows_at_once(const struct gci_windows *w, const struct gci_coll *c, uint64_t tmp_nbytes)
{
	const struct gci_topo *t = c->topo;
	uint64_t held = 0, n, each = w->most * c->esize;
	int a;

	if (w->n <= GCI_WINDOWS)
		return (int)w->n;
	for (a = 0; a < t->nclusters; a++) {
		n = held_nbytes(t, a);
		held = n > held ? n : held;
	}
	n = held / (each ? each : 1) + 2;
	tmp_nbytes *= t->per_host > 1 ? (unsigned)t->per_host : 1;
	if (tmp_nbytes && n > MOST_TMP / tmp_nbytes)
		n = MOST_TMP / tmp_nbytes;
	n = n < GCI_WINDOWS ? GCI_WINDOWS : less(n, GCI_MOST_WINDOWS);
	return (int)less(n, w->n);
}
