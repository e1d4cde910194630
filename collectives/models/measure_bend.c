/* SPDX-License-Identifier: MIT
 * Where straight lines between the sizes measured would be wrong. The paper takes any size whose
 * times are not what the two smaller ones lead to expect, and halves the interval below it. After a
 * step, that goes on through all larger sizes, since the two sides of the step lie close together
 * and lead to expect anything. So here an interval is straight also if the two sizes above it lead
 * back to its lower end: of the sizes around a step only those next to it are halved. The worst
 * interval comes first, for time may run out. */
#include "collectives/models/measure.h"

#include <stdlib.h>

#define CLOSE        32 /* bytes: no closer than that, and 1 % */
#define OVERHEAD     20 /* overheads are expected within 1/20, the gap within 1/100 */
#define GAP          100
#define CLOCK_ERR_NS 1000

struct value {
	int64_t ns, err_ns;
};

enum { GAP_OF, SEND_OF, RECV_OF, NVALUES };

static struct value value(const struct gci_measure *m, size_t i, int which)
{
	const struct gci_measure_point *p = &m->points[i];
	const struct gci_estimate *e = which == SEND_OF ? &p->send : &p->recv;

	if (which == GAP_OF)
		return (struct value){(int64_t)gci_measure_gap_ns(m, p), (int64_t)p->rtt.err_ns};
	return (struct value){(int64_t)e->ns, (int64_t)e->err_ns};
}

/* How far points[to] is off the line through a and b, in parts of 1024 of what is tolerable: 1 %,
 * and what the three are unsure of. */
static uint64_t off(const struct gci_measure *m, size_t a, size_t b, size_t to, int which)
{
	struct value va = value(m, a, which), vb = value(m, b, which), v = value(m, to, which);
	__int128 run = (__int128)m->points[b].nbytes - m->points[a].nbytes;
	__int128 way = (__int128)m->points[to].nbytes - m->points[b].nbytes;
	__int128 want = vb.ns + (vb.ns - va.ns) * way / run, ratio = way / run;
	__int128 far = want > v.ns ? want - v.ns : v.ns - want, may, parts;

	if (ratio < 0)
		ratio = -ratio;
	/* What is little beside the gap does not matter: messages wait for that. */
	may = which == GAP_OF ? 0 : value(m, to, GAP_OF).ns / OVERHEAD;
	may += CLOCK_ERR_NS + v.ns / (which == GAP_OF ? GAP : OVERHEAD) + v.err_ns +
	       vb.err_ns * (1 + ratio) + va.err_ns * ratio;
	parts = far * 1024 / may;
	return parts > INT64_MAX ? INT64_MAX : (uint64_t)parts;
}

int gci_measure_is_bent(const struct gci_measure *m, size_t i)
{
	return i >= 2 && off(m, i - 2, i - 1, i, GAP_OF) > 1024;
}

/* The time may have been too short for it. */
static int have_recv(const struct gci_measure *m, size_t i)
{
	const struct gci_measure_point *p = &m->points[i];

	return p[-2].recv.n && p[-1].recv.n && p[0].recv.n && (i + 1 == m->npoints || p[1].recv.n);
}

/* Of the interval between points i - 1 and i. */
static uint64_t bend(const struct gci_measure *m, size_t i)
{
	uint64_t worst = 0;
	int which;

	for (which = GAP_OF; which < NVALUES; which++) {
		uint64_t up, down;

		if (which == RECV_OF && !have_recv(m, i))
			continue;
		up = down = off(m, i - 2, i - 1, i, which);

		if (i + 1 < m->npoints)
			down = off(m, i + 1, i, i - 1, which);
		if (down < up)
			up = down;
		if (up > worst)
			worst = up;
	}
	return worst;
}

uint64_t gci_measure_bend(const struct gci_measure *m)
{
	uint64_t worst = 1024, at = 0;
	size_t i;

	for (i = 2; i < m->npoints; i++) {
		uint64_t a = m->points[i - 1].nbytes, b = m->points[i].nbytes, here;

		if (b - a <= CLOSE || b - a <= b / 100)
			continue;
		here = bend(m, i);
		if (here > worst) {
			worst = here;
			at = a + (b - a) / 2;
		}
	}
	return at;
}
