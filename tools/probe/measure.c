/* SPDX-License-Identifier: MIT */
#include "tools/probe/measure.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/models/measure_isend.h"

#include <stdlib.h>
#include <string.h>

void gci_samples_add(struct gci_samples *s, uint64_t v)
{
	uint32_t i = s->n;

	if (s->n == GCI_SAMPLES_MOST)
		return;
	for (; i && s->v[i - 1] > v; i--)
		;
	memmove(&s->v[i + 1], &s->v[i], (s->n - i) * sizeof(*s->v));
	s->v[i] = v;
	s->n++;
}

/* The least x with x * x >= v. */
static uint64_t root_up(uint64_t v)
{
	uint64_t x = 0;

	while (x * x < v)
		x++;
	return x;
}

/* How many of n times are below the interval: each is below the median with 1/2, so their number
 * is n / 2 give or take 1.645 sqrt(n) / 2. */
static uint32_t outside(uint32_t n)
{
	uint64_t span = root_up((uint64_t)n * 270603 / 10); /* 100 x 1.645 sqrt(n) */
	uint64_t most = (uint64_t)(n ? n - 1 : 0) * 100;

	return span >= most ? 0 : (uint32_t)((most - span) / 200);
}

struct gci_estimate gci_samples_estimate(const struct gci_samples *s)
{
	struct gci_estimate e = {.n = s->n};
	uint32_t n = s->n, skip = outside(n);

	if (!n)
		return e;
	e.ns = s->v[(n - 1) / 2] / 2 + s->v[n / 2] / 2 + (s->v[(n - 1) / 2] & s->v[n / 2] & 1);
	e.err_ns = n > 1 ? (s->v[n - 1 - skip] - s->v[skip]) / 2 : e.ns;
	return e;
}

/* ---- Where straight lines between the sizes measured would be wrong. The paper takes any size
 * whose times are not what the two smaller ones lead to expect, and halves the interval below it.
 * After a step, that goes on through all larger sizes, since the two sides of the step lie close
 * together and lead to expect anything. So here an interval is straight also if the two sizes above
 * it lead back to its lower end: of the sizes around a step only those next to it are halved. The
 * worst interval comes first, for time may run out. */

#define CLOSE       32 /* bytes: no closer than that, and 1 % */
#define OVERHEAD    20 /* overheads are expected within 1/20, the gap within 1/100 */
#define GAP         100
#define BEND_ERR_NS 1000

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
	may += BEND_ERR_NS + v.ns / (which == GAP_OF ? GAP : OVERHEAD) + v.err_ns +
	       vb.err_ns * (1 + ratio) + va.err_ns * ratio;
	parts = far * 1024 / may;
	return parts > INT64_MAX ? INT64_MAX : (uint64_t)parts;
}

/* Is g of points[i] not what the two before it lead to expect? */
static int gci_measure_is_bent(const struct gci_measure *m, size_t i)
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

/* For its own files: the size worth trying between those there are; 0: none. */
static uint64_t gci_measure_bend(const struct gci_measure *m)
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

/* ---- The pattern of send overheads (Vadhiyar 2004, 4.3), from a row of isends. */

#define LEAST_SPIKES 3
#define LEAST_RATIO  3

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* 256 log2(v), to 1 %: times differ by factors. */
static int64_t log_of(uint64_t v)
{
	int e = 63;

	if (v < 2)
		return 0;
	while (!(v >> e))
		e--;
	/* Between powers of two, a straight line. */
	return 256 * e + (int64_t)((e < 8 ? v << (8 - e) : v >> (e - 8)) & 255);
}

/* Where two sorts of times part best, by the variance between them (Otsu 1979): the least of the
 * long ones. 0: they are of one sort. `v` is rising. */
static uint64_t threshold(const uint64_t *v, uint32_t n)
{
	int64_t all = 0, low = 0, best = 0, apart = 0;
	uint32_t i, at = 0;

	for (i = 0; i < n; i++)
		all += log_of(v[i]);
	for (i = 1; i < n; i++) {
		int64_t far, weight;

		low += log_of(v[i - 1]);
		far = (all - low) / (n - i) - low / i;
		weight = far * far * i * (n - i);
		if (weight > best && v[i] > v[i - 1]) {
			best = weight;
			apart = far;
			at = i;
		}
	}
	return at && apart >= log_of(LEAST_RATIO) && n - at >= LEAST_SPIKES ? v[at] : 0;
}

static uint64_t median(uint64_t *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

/* Of those from..to-1 that are (or are not) spikes; `otherwise` when there are none. */
static uint64_t middle(const uint64_t *ns, uint32_t from, uint32_t to, uint64_t least, int spikes,
	uint64_t otherwise)
{
	uint64_t v[GCI_ISEND_MOST];
	uint32_t i, n = 0;

	for (i = from; i < to; i++)
		if ((ns[i] >= least) == spikes)
			v[n++] = ns[i];
	return n ? median(v, n) : otherwise;
}

uint32_t gci_isend_pattern(const uint64_t *ns, uint32_t n, struct gci_params_isend *out)
{
	uint64_t sorted[GCI_ISEND_MOST], least;
	uint32_t i, first = n, last = 0, spikes = 0;

	memcpy(sorted, ns, n * sizeof(*ns));
	out->os_start_ns = out->os_mid_ns = out->os_spike_ns = median(sorted, n);
	out->initial = n;
	out->mid = 0;
	least = threshold(sorted, n);
	for (i = 0; least && i < n; i++) {
		if (ns[i] < least)
			continue;
		if (!spikes++)
			first = i;
		last = i;
	}
	/* Short ones that are rare, after long ones, are not what the pattern is about: sockets
	 * that are full take nothing. */
	if (!spikes || (!first && spikes > n / 2))
		return 0;
	out->initial = first;
	/* Between two spikes, on average, to the nearest. */
	out->mid = (last - first - (spikes - 1) + (spikes - 1) / 2) / (spikes - 1);
	out->os_start_ns = middle(ns, 0, first, least, 0, middle(ns, 0, n, least, 0, 0));
	out->os_spike_ns = middle(ns, 0, n, least, 1, 0);
	out->os_mid_ns = middle(ns, first, n, least, 0, out->os_start_ns);
	return spikes;
}

int gci_isend_is_immediate(uint64_t whole_ns, uint64_t recv_ns)
{
	return recv_ns < whole_ns - whole_ns / 4;
}

/* ---- What the times of a link add up to. */

static uint64_t scale_up(uint64_t v, uint64_t num, uint64_t den)
{
	unsigned __int128 x = (unsigned __int128)v * num / den;

	return x > UINT64_MAX ? UINT64_MAX : (uint64_t)x;
}

/* g of messages with this round trip, by the equations alone. */
static uint64_t gci_measure_gap_of(const struct gci_measure *m, uint64_t rtt_ns)
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
		uint64_t least_ns = scale_up(l->points[i].nbytes, 8 * GCI_NS_PER_S, bps);

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
		return a->recv.ns + scale_up(b->recv.ns - a->recv.ns, way, run);
	down = scale_up(a->recv.ns - b->recv.ns, way, run);
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

/* ---- what to try next */

#define SMALL        (64u << 10) /* up to here MOST_SMALL times, above MOST_LARGE */
#define MOST_SMALL   60
#define MOST_LARGE   15
#define ROW_REPS     3 /* once is enough where latency rules: more are to come */
#define FIRST_RECVS  3
#define FIRST_TOP    18 /* sizes up to 2^18 are measured in any case: the paper's k_m */
#define OVERHEAD_ERR 20 /* an overhead is good enough within 1/20 */
#define CLOCK_ERR_NS 500

/* The phases' shares of all time, in percent, added up. */
static const unsigned share[] = {[GCI_MEASURE_SATURATE] = 10,
	[GCI_MEASURE_SIZES] = 70,
	[GCI_MEASURE_GROW] = 85,
	[GCI_MEASURE_FILL] = 100};

void gci_measure_init(struct gci_measure *m, const struct gci_measure_config *config)
{
	memset(m, 0, sizeof(*m));
	m->config = *config;
	m->late = UINT64_MAX;
	while (m->top < FIRST_TOP && UINT64_C(2) << m->top <= config->most_message)
		m->top++;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t mul(uint64_t a, uint64_t b)
{
	return a && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

/* Sums and differences of a few of them fit into any integer. */
static uint64_t sane(uint64_t ns)
{
	return ns < UINT64_C(1) << 60 ? ns : UINT64_C(1) << 60;
}

/* When the phase under way should be over. */
static uint64_t phase_end(const struct gci_measure *m)
{
	return m->config.most_ns / 100 * share[m->phase];
}

/* ---- what a trial may cost, by what is known */

static uint64_t scale(uint64_t v, uint64_t num, uint64_t den)
{
	unsigned __int128 x = (unsigned __int128)v * num / (den ? den : 1);

	return x > UINT64_MAX ? UINT64_MAX : (uint64_t)x;
}

static uint64_t round_trip(const struct gci_measure *m, uint64_t nbytes)
{
	const struct gci_measure_point *p = NULL;
	size_t i;

	if (m->open && m->rtt.n)
		return gci_samples_estimate(&m->rtt).ns;
	for (i = 0; i < m->npoints && (!p || p->nbytes < nbytes); i++)
		p = &m->points[i];
	if (!p)
		return m->row_ns[0];
	if (p->nbytes >= nbytes || p->nbytes < 1024)
		return p->rtt.ns;
	return scale(p->rtt.ns, nbytes, p->nbytes);
}

static uint64_t first_round_trip(const struct gci_measure *m)
{
	return m->npoints ? m->points[0].rtt.ns : m->row_ns[0];
}

/* One more round trip is that of telling the other side. */
static uint64_t trial_ns(const struct gci_measure *m, const struct gci_trial *t)
{
	uint64_t each = t->kind == GCI_TRIAL_ROW ? add(m->row_ns[0], mul(t->n, m->gap_ns))
						 : round_trip(m, t->nbytes);

	each = add(each, t->wait_ns);
	if (t->space_ns)
		each = add(each, mul(t->reps - 1, t->space_ns));
	else
		each = mul(each, t->reps);
	return add(first_round_trip(m), each);
}

static uint64_t trial_nbytes(const struct gci_trial *t)
{
	return mul(mul(t->nbytes, t->n), t->reps);
}

/* Is there time, up to until_ns, and bytes for it? */
static int fits(struct gci_measure *m, const struct gci_trial *t, uint64_t until_ns)
{
	if (add(m->spent_nbytes, trial_nbytes(t)) > m->config.most_nbytes) {
		m->out_of_bytes = 1;
		return 0;
	}
	if (add(m->spent_ns, trial_ns(m, t)) > until_ns) {
		m->out_of_time |= until_ns == m->config.most_ns;
		return 0;
	}
	return 1;
}

/* ---- 1: saturation */

static uint64_t row_gap(const struct gci_measure *m, uint32_t n, uint64_t ns)
{
	return n > 1 && ns > m->row_ns[0] ? (ns - m->row_ns[0]) / (n - 1) : m->gap_ns;
}

static int next_row(struct gci_measure *m)
{
	struct gci_trial t = {.kind = GCI_TRIAL_ROW, .n = 1, .reps = ROW_REPS};
	uint32_t n = m->trial.n;

	if (n)
		t.n = n == 1 ? 10 : 2 * n;
	if (n && m->row_ns[1] < 2 * m->row_ns[0])
		t.reps = 1;
	/* The first is tried whatever it takes: nothing is known before. */
	if (t.n > GCI_MEASURE_ROW || (n && !fits(m, &t, n > 1 ? phase_end(m) : m->config.most_ns)))
		return 0;
	m->trial = t;
	return 1;
}

static int close_to(uint64_t a, uint64_t b)
{
	uint64_t off = a > b ? a - b : b - a;

	return off <= (a > b ? a : b) / 100;
}

static void row_done(struct gci_measure *m, const struct gci_trial_time *times)
{
	struct gci_samples s = {0};
	uint64_t ns, gap;
	uint32_t i;

	for (i = 0; i < m->trial.reps; i++)
		gci_samples_add(&s, sane(times[i].total_ns));
	ns = gci_samples_estimate(&s).ns;
	m->row_ns[m->trial.n > 1] = ns;
	gap = row_gap(m, m->trial.n, ns);
	if (m->trial.n > 10 && close_to(gap, m->gap_ns) && m->row_ns[0] < ns / 100)
		m->phase = GCI_MEASURE_SIZES;
	m->gap_ns = gap;
}

/* ---- a point: one size */

/* So that any time that is left is shared by those that are to come. */
static void open_point(struct gci_measure *m, uint64_t nbytes, uint64_t others)
{
	uint64_t end = phase_end(m);

	m->open = 1;
	m->nbytes = nbytes;
	m->rtt.n = m->send.n = m->recv.n = m->nlate = 0;
	m->until_ns = m->spent_ns;
	if (end > m->spent_ns)
		m->until_ns += (end - m->spent_ns) / (others + 1);
}

/* Receptions do not depend on the network. */
static uint32_t least(const struct gci_measure *m, const struct gci_samples *s)
{
	return s == &m->recv ? FIRST_RECVS : GCI_SAMPLES_LEAST;
}

/* Is this enough of it? The gap, which is a difference of round trips, is to be good to 1 %; a
 * thousandth of the round trip is good enough for whoever waits for it. */
static int good(const struct gci_measure *m, const struct gci_samples *s)
{
	struct gci_estimate e = gci_samples_estimate(s);
	uint64_t want = e.ns / OVERHEAD_ERR;

	if (s == &m->rtt) {
		want = gci_measure_gap_of(m, e.ns) / 100;
		if (want < e.ns / 1000)
			want = e.ns / 1000;
	}
	if (want < CLOCK_ERR_NS)
		want = CLOCK_ERR_NS;
	return e.n >= least(m, s) && e.err_ns <= want;
}

/* More of these: one to begin with where a size is new, 5, then as many again. 0: enough. */
static uint32_t more(const struct gci_measure *m, const struct gci_samples *s)
{
	uint32_t most = m->nbytes > SMALL ? MOST_LARGE : MOST_SMALL, n = s->n;

	if (!n)
		return m->nbytes > SMALL && s == &m->rtt ? 1 : least(m, s);
	if (n < least(m, s))
		return least(m, s) - n;
	if (good(m, s) || n >= most)
		return 0;
	return n < most - n ? n : most - n;
}

/* They must not meet anywhere: not on the link, and not where they are sent or received. */
static uint64_t space(const struct gci_measure *m)
{
	uint64_t rtt = round_trip(m, m->nbytes), gap = gci_measure_gap_of(m, rtt);

	int known = m->npoints && (m->rtt.n || m->points[m->npoints - 1].nbytes >= m->nbytes);

	if (!known || gap > rtt / 32)
		return 0;
	return 4 * gap > rtt / 16 ? 4 * gap : rtt / 16;
}

/* The first times of a size may use all that is left, more of them the point's share. */
static int try_more(struct gci_measure *m, enum gci_trial_kind kind, const struct gci_samples *s)
{
	struct gci_trial t = {.kind = kind, .nbytes = m->nbytes, .n = 1, .reps = more(m, s)};

	if (kind == GCI_TRIAL_RECEIVE)
		t.wait_ns = round_trip(m, m->nbytes) / 4 * 5;
	else
		t.space_ns = space(m);
	if (!t.reps || !fits(m, &t, s->n ? m->until_ns : m->config.most_ns))
		return 0;
	m->trial = t;
	return 1;
}

static void close_point(struct gci_measure *m)
{
	struct gci_measure_point p = {.nbytes = m->nbytes,
		.rtt = gci_samples_estimate(&m->rtt),
		.send = gci_samples_estimate(&m->send),
		.recv = gci_samples_estimate(&m->recv)};
	size_t i = m->npoints;

	m->open = 0;
	if (!p.rtt.n || m->npoints == GCI_MEASURE_POINTS)
		return;
	for (; i && m->points[i - 1].nbytes > p.nbytes; i--)
		m->points[i] = m->points[i - 1];
	m->points[i] = p;
	m->npoints++;
}

/* Is the time short, if every size takes ten round trips? */
static int wants_receive(const struct gci_measure *m)
{
	uint64_t all = mul(10 * (m->top + 1), first_round_trip(m));
	uint64_t fourth = UINT64_C(0x5555555555555555);

	if (!m->rtt.n || m->nbytes >= m->late)
		return 0;
	if (all < m->config.most_ns / 2 || !m->nbytes)
		return 1;
	return !(m->nbytes & (m->nbytes - 1)) && (m->nbytes & fourth);
}

static int next_of_point(struct gci_measure *m)
{
	if (!m->open)
		return 0;
	if (try_more(m, GCI_TRIAL_ROUND, &m->rtt) ||
		(wants_receive(m) && try_more(m, GCI_TRIAL_RECEIVE, &m->recv)))
		return 1;
	close_point(m);
	return 0;
}

static void point_done(struct gci_measure *m, const struct gci_trial_time *times)
{
	uint32_t i;

	for (i = 0; i < m->trial.reps; i++) {
		if (m->trial.kind == GCI_TRIAL_RECEIVE) {
			if (times[i].busy_ns == GCI_TRIAL_LATE)
				m->nlate++;
			else
				gci_samples_add(&m->recv, sane(times[i].busy_ns));
			continue;
		}
		gci_samples_add(&m->rtt, sane(times[i].total_ns));
		gci_samples_add(&m->send, sane(times[i].busy_ns));
	}
	/* One may have been disturbed. */
	if (m->nlate > 1 && m->nlate > m->recv.n)
		m->late = m->nbytes < m->late ? m->nbytes : m->late;
}

/* ---- 2 to 4: which sizes */

/* Exponents 0 .. top, the coarse ones first: what time does not suffice for is missing evenly. The
 * bits of `turn` in reverse order, those above `top` left out. */
static int exponent(uint32_t *turn, uint32_t top)
{
	while (*turn < 64) {
		uint32_t t = (*turn)++, e = 0, bit;

		for (bit = 0; bit < 6; bit++)
			e |= (t >> bit & 1) << (5 - bit);
		if (e <= top)
			return (int)(top - e);
	}
	return -1;
}

static int next_size(struct gci_measure *m)
{
	uint32_t turn;
	uint64_t left = 0;
	int e;

	if (!m->npoints) {
		open_point(m, 0, m->top + 1);
		return !m->turn++;
	}
	turn = m->turn - 1;
	e = exponent(&turn, m->top);
	m->turn = turn + 1;
	while (exponent(&turn, m->top) >= 0)
		left++;
	if (e >= 0)
		open_point(m, UINT64_C(1) << e, left);
	return e >= 0;
}

/* 2^top is the largest so far: not grown when it could not be measured. */
static int next_larger(struct gci_measure *m)
{
	uint64_t nbytes = UINT64_C(1) << m->top;

	if (m->npoints < 4 || m->points[m->npoints - 1].nbytes != nbytes ||
		!gci_measure_is_bent(m, m->npoints - 1) || 2 * nbytes > m->config.most_message)
		return 0;
	m->top++;
	open_point(m, 2 * nbytes, 1);
	return 1;
}

static int next_between(struct gci_measure *m)
{
	uint64_t nbytes = m->npoints < GCI_MEASURE_POINTS ? gci_measure_bend(m) : 0;

	/* The same again: it did not fit in. */
	if (!nbytes || nbytes == m->nbytes)
		return 0;
	open_point(m, nbytes, 3);
	return 1;
}

static int next_point(struct gci_measure *m)
{
	switch (m->phase) {
	case GCI_MEASURE_SIZES:
		return next_size(m);
	case GCI_MEASURE_GROW:
		return next_larger(m);
	default:
		return next_between(m);
	}
}

int gci_measure_next(struct gci_measure *m, struct gci_trial *t)
{
	while (m->phase != GCI_MEASURE_OVER) {
		if (m->phase == GCI_MEASURE_SATURATE ? next_row(m) : next_of_point(m)) {
			*t = m->trial;
			return 1;
		}
		if (m->phase == GCI_MEASURE_SATURATE || !next_point(m))
			m->phase++;
	}
	return 0;
}

void gci_measure_done(struct gci_measure *m, const struct gci_trial_time *times, uint64_t took_ns)
{
	m->spent_ns = add(m->spent_ns, took_ns);
	m->spent_nbytes = add(m->spent_nbytes, trial_nbytes(&m->trial));
	if (m->trial.kind == GCI_TRIAL_ROW)
		row_done(m, times);
	else
		point_done(m, times);
}
