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

static uint64_t latency_ns(const struct gci_measure *m)
{
	uint64_t half = (m->npoints ? m->points[0].rtt.ns : m->row_ns[0]) / 2;

	return half > m->gap_ns ? half - m->gap_ns : 0;
}

uint64_t gci_measure_gap_ns(const struct gci_measure *m, const struct gci_measure_point *p)
{
	return gci_measure_gap_of(m, p->rtt.ns);
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

/* The next point with or(m) from `i` on, in steps of 1 or -1; NULL: none. */
static const struct gci_measure_point *with_recv(const struct gci_measure *m, size_t i, int step)
{
	for (; i < m->npoints; i += (size_t)step) /* below 0, it is very large */
		if (m->points[i].recv.n)
			return &m->points[i];
	return NULL;
}

static uint64_t on_line(
	const struct gci_measure_point *a, const struct gci_measure_point *b, uint64_t nbytes)
{
	uint64_t run = b->nbytes - a->nbytes, way = nbytes - a->nbytes, down;

	if (b->recv.ns >= a->recv.ns)
		return a->recv.ns + scale(b->recv.ns - a->recv.ns, way, run);
	down = scale(a->recv.ns - b->recv.ns, way, run);
	return way > run ? b->recv.ns : a->recv.ns - down;
}

/* Of a size without: on the line between its neighbours that have it, or through the last two; if
 * there are none, as of sending. */
static uint64_t recv_ns(const struct gci_measure *m, size_t i)
{
	const struct gci_measure_point *a = with_recv(m, i, -1), *b = with_recv(m, i, 1);

	if (a && !b) {
		b = a;
		a = with_recv(m, (size_t)(b - m->points) - 1, -1);
	}
	if (!a || a == b)
		return b ? b->recv.ns : m->points[i].send.ns;
	return on_line(a, b, m->points[i].nbytes);
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
	l->latency_ns = latency_ns(m);
	for (i = 0; i < m->npoints; i++) {
		uint64_t gap = gci_measure_gap_ns(m, &m->points[i]), late = recv_ns(m, i);
		uint64_t busy = m->points[i].send.ns;

		/* There was no time to saturate the link. */
		if (!m->gap_ns)
			gap += busy > late ? busy : late;
		/* It covers both overheads (2.1): one message alone, that wakes a process up, takes
		 * longer than each of a row. */
		l->points[i] = (struct gci_params_point){.nbytes = m->points[i].nbytes,
			.os_ns = busy < gap ? busy : gap,
			.or_ns = late < gap ? late : gap,
			.gap_ns = gap};
	}
	return 0;
}
