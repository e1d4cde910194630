/* SPDX-License-Identifier: MIT
 * What the times of a link add up to. */
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/models/measure.h"

static uint64_t scale(uint64_t v, uint64_t num, uint64_t den)
{
	unsigned __int128 x = (unsigned __int128)v * num / den;

	return x > UINT64_MAX ? UINT64_MAX : (uint64_t)x;
}

uint64_t gci_measure_gap_of(const struct gci_measure *m, uint64_t rtt_ns)
{
	uint64_t empty = m->npoints ? m->points[0].rtt.ns : rtt_ns;

	return rtt_ns > empty ? rtt_ns - empty + m->gap_ns : m->gap_ns;
}

uint64_t gci_measure_latency_ns(const struct gci_measure *m)
{
	uint64_t half = (m->npoints ? m->points[0].rtt.ns : m->row_ns[0]) / 2;

	return half > m->gap_ns ? half - m->gap_ns : 0;
}

uint64_t gci_measure_gap_ns(const struct gci_measure *m, const struct gci_measure_point *p)
{
	uint64_t gap = gci_measure_gap_of(m, p->rtt.ns);

	/* It covers both overheads (2.1). */
	gap = gap < p->send.ns ? p->send.ns : gap;
	return gap < p->recv.ns ? p->recv.ns : gap;
}

void gci_measure_saturate(struct gci_params_link *l, uint64_t bps)
{
	size_t i;

	for (i = 0; bps && i < l->npoints; i++) {
		uint64_t least_ns = scale(l->points[i].nbytes, 8 * GCI_NS_PER_S, bps);

		if (l->points[i].gap_ns < least_ns)
			l->points[i].gap_ns = least_ns;
	}
}

/* Of a size without: on the line between those around it that have it; beyond them, the nearest
 * one's; where there is none, as of sending. */
static uint64_t recv_ns(const struct gci_measure *m, size_t i)
{
	const struct gci_measure_point *p = m->points, *a = NULL, *b = NULL;
	size_t k;

	for (k = 0; k < m->npoints && !(b && k > i); k++) {
		if (!p[k].recv.n)
			continue;
		if (k <= i)
			a = &p[k];
		if (k >= i)
			b = &p[k];
	}
	if (!a || !b || a == b)
		return a ? a->recv.ns : b ? b->recv.ns : p[i].send.ns;
	if (b->recv.ns < a->recv.ns)
		return a->recv.ns - scale(a->recv.ns - b->recv.ns, p[i].nbytes - a->nbytes,
					    b->nbytes - a->nbytes);
	return a->recv.ns +
	       scale(b->recv.ns - a->recv.ns, p[i].nbytes - a->nbytes, b->nbytes - a->nbytes);
}

int gci_measure_result(const struct gci_measure *m, struct gci_params_link *l)
{
	size_t i;

	if (!m->npoints)
		return GCOLL_ERR_TIMEOUT;
	l->points = gci_calloc(m->npoints, sizeof(*l->points));
	if (!l->points)
		return GCOLL_ERR_NOMEM;
	l->npoints = m->npoints;
	l->latency_ns = gci_measure_latency_ns(m);
	for (i = 0; i < m->npoints; i++) {
		uint64_t late = recv_ns(m, i), gap = gci_measure_gap_ns(m, &m->points[i]);

		l->points[i] = (struct gci_params_point){.nbytes = m->points[i].nbytes,
			.os_ns = m->points[i].send.ns,
			.or_ns = late,
			.gap_ns = gap < late ? late : gap};
	}
	return 0;
}
