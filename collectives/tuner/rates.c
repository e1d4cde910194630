/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/rates.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/blocks/windows.h"
#include "collectives/tuner/table.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_NS     (2 * GCI_NS_PER_MS)
#define PHASES       4  /* that a pair may have, at most, with rests between them */
#define PART_PERCENT 2  /* more than a rate, for headers */
#define ALL_PERCENT  80 /* of what a pair can send, from which on it may as well send at will */
#define LOSS_PERCENT 5  /* of time that rates may cost */
#define EVEN_PERCENT \
	150 /* who has more than that of what it needs has more than its share of wires, too */
#define LEAST_WINDOW (16u << 10)
#define MEETING      6 /* quarters, where each SEND has its time: few of those that may meet do */

/* Percent of what a pair needs in the mean that it may have. */
static const uint64_t headrooms[] = {110, 150, 200, 300, 500};

#define NHEADROOMS (sizeof(headrooms) / sizeof(*headrooms))

/* A message is there twice: when it was offered (nbytes 0); and, as long as it may have been coming in, from
 * when its first byte could be there. */
struct moved {
	int from, to;
	uint64_t from_ns, to_ns, nbytes;
};

struct traffic {
	const struct gci_simnet *net;
	uint32_t esize;
	struct moved *all;
	size_t n, cap;
	int failed;
};

/* What one rank sends another in one phase of the operation, or in all of it. */
struct pair {
	int from, to;
	uint64_t nbytes, from_ns, to_ns; /* how many; from when they could come until they have */
};

static uint64_t latency_ns(const struct gci_simnet *net, int from, int to)
{
	const struct gci_topo *t = net->topo;

	return net->links[t->cluster[from] * t->nclusters + t->cluster[to]].latency_ns;
}

static void on_event(void *ctx, const struct gci_sim_event *e)
{
	struct traffic *a = ctx;
	int sends = e->s->kind == GCI_STEP_SEND;
	uint64_t nbytes = (sends ? e->s->src.length : e->s->dst.length) * a->esize;

	if (e->s->kind > GCI_STEP_RECV_REDUCE || !nbytes || a->failed)
		return;
	a->failed = gci_grow(&a->all, &a->cap, a->n + 1, sizeof(*a->all));
	if (a->failed)
		return;
	if (sends)
		a->all[a->n++] = (struct moved){e->rank, e->s->peer, e->ready_ns, e->ready_ns, 0};
	else
		a->all[a->n++] = (struct moved){e->s->peer, e->rank,
			e->queued_ns + latency_ns(a->net, e->s->peer, e->rank), e->came_ns, nbytes};
}

static int compare(const void *x, const void *y)
{
	const struct moved *a = x, *b = y;

	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

static uint64_t part(uint64_t nbytes, uint64_t ns, uint64_t of_ns)
{
	return (uint64_t)((unsigned __int128)nbytes * ns / of_ns);
}

/* With headers. */
static uint64_t on_the_wire(uint64_t bps)
{
	return part(bps, 1514, 1448);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t rtt_of(const struct gci_simnet *net, int from, int to)
{
	return latency_ns(net, from, to) + latency_ns(net, to, from);
}

/* Of the n messages of one pair. */
static struct pair pair_of(const struct gci_simnet *net, const struct moved *m, size_t n)
{
	struct pair p = {.from = m->from, .to = m->to};
	size_t i;

	p.from_ns = m->from_ns + latency_ns(net, m->from, m->to);
	p.to_ns = p.from_ns + LEAST_NS;
	for (i = 0; i < n; i++) {
		p.nbytes += m[i].nbytes;
		p.to_ns = m[i].to_ns > p.to_ns ? m[i].to_ns : p.to_ns;
	}
	return p;
}

/* From when the first of the n messages was there to the end of the last. */
static uint64_t span_ns(const struct moved *m, size_t n)
{
	uint64_t end = 0;
	size_t i;

	for (i = 0; i < n; i++)
		end = m[i].to_ns > end ? m[i].to_ns : end;
	return end - m->from_ns;
}

/* How many of the n are one phase: some come, and then none for so long. */
static size_t phase(const struct moved *m, size_t n, uint64_t rest_ns)
{
	uint64_t end = 0, nbytes = 0;
	size_t i;

	for (i = 0; i < n && (!nbytes || m[i].from_ns <= end + rest_ns); i++) {
		nbytes += m[i].nbytes;
		end = m[i].to_ns > end ? m[i].to_ns : end;
	}
	return i;
}

/* Pairs in the place of messages; how many. One that rests, and works again in a later phase, is there for
 * each, one after the other. */
static size_t make_pairs(const struct traffic *a, struct pair *pairs)
{
	size_t i, k, nphase, n = 0;

	for (i = 0; i < a->n; i = k) {
		const struct moved *m = &a->all[i];
		uint64_t rest_ns = rtt_of(a->net, m->from, m->to) + LEAST_NS, part_ns;

		for (k = i; k < a->n && a->all[k].to == m->to && a->all[k].from == m->from; k++)
			;
		part_ns = span_ns(m, k - i) / PHASES;
		rest_ns = part_ns > rest_ns ? part_ns : rest_ns;
		for (; i < k; i += nphase) {
			nphase = phase(&a->all[i], k - i, rest_ns);
			pairs[n++] = pair_of(a->net, &a->all[i], nphase);
		}
	}
	return n;
}

/* What comes through from one rank to another, of payload. */
static uint64_t path_bps(const struct gci_simnet *net, int from, int to)
{
	int a = net->topo->cluster[from], b = net->topo->cluster[to];
	const struct gci_simnet_link *l = &net->links[a * net->topo->nclusters + b];
	uint64_t bps = less(gci_simnet_nic_bps(net, from), gci_simnet_nic_bps(net, to));

	if (a != b && l->bps)
		bps = less(bps, l->bps);
	return l->pair_bps ? less(bps, l->pair_bps) : bps;
}

static uint64_t and_percent(uint64_t bps, uint64_t more)
{
	return part(bps, 100 + more, 100);
}

/* For one that is alone: 0 where its own NIC keeps it from sending more. */
static uint64_t alone_bps(const struct gci_simnet *net, int from, int to)
{
	uint64_t bps = path_bps(net, from, to);

	return bps < gci_simnet_nic_bps(net, from) ? and_percent(bps, PART_PERCENT) : 0;
}

struct rates {
	const struct gci_simnet *net;
	struct pair *pairs; /* by receiver, then by sender */
	size_t n;
	size_t *by_wire; /* pairs, by the wires that they pass */
	size_t *wires;   /* [wire], and one more: where each begins there */
	uint64_t *
		port_bps; /* [pair]: its share of its port; 0: it meets nobody, or is not from far */
	uint64_t *wire_bps; /* [pair]: and of the wires */
	uint64_t *spare;    /* [pair] */
	uint64_t *bps;      /* [from * nranks + to] */
	uint64_t ns;        /* of the operation at will */
	uint64_t paced_ns;  /* and at these rates */
};

static int route_of(const struct rates *r, const struct pair *p, const int **wires)
{
	const struct gci_topo *t = r->net->topo;

	return gci_topo_route(t, t->cluster[p->from], t->cluster[p->to], wires);
}

static int sort_by_wire(struct rates *r)
{
	int n = r->net->topo->nwires, k, nroute;
	const int *route;
	size_t i, all;

	for (i = 0; i < r->n; i++)
		for (nroute = route_of(r, &r->pairs[i], &route), k = 0; k < nroute; k++)
			r->wires[route[k] + 1]++;
	for (k = 0; k < n; k++)
		r->wires[k + 1] += r->wires[k];
	all = r->wires[n];
	r->by_wire = gci_calloc(all, sizeof(*r->by_wire));
	if (!r->by_wire)
		return GCOLL_ERR_NOMEM;
	for (i = r->n; i--;)
		for (nroute = route_of(r, &r->pairs[i], &route), k = 0; k < nroute; k++)
			r->by_wire[--r->wires[route[k] + 1]] = i;
	/* Now each begins where the one before it should: they move down by one. */
	memmove(r->wires, r->wires + 1, (size_t)n * sizeof(*r->wires));
	r->wires[n] = all;
	return 0;
}

/* Who else sends to a pair's port, or by a wire; and what all have to send there that come from far. */
struct met {
	uint64_t others, nbytes;
};

static int is_far(const struct rates *r, const struct pair *p)
{
	const int *cluster = r->net->topo->cluster;

	return cluster[p->from] != cluster[p->to];
}

/* For so long both work. */
static uint64_t together_ns(const struct pair *a, const struct pair *b)
{
	uint64_t from = a->from_ns > b->from_ns ? a->from_ns : b->from_ns;
	uint64_t to = less(a->to_ns, b->to_ns);

	return to > from ? to - from : 0;
}

/* Who sends while this one does. */
static void meet(const struct rates *r, const struct pair *p, const struct pair *o, struct met *m)
{
	m->others += o->from != p->from;
	if (is_far(r, o))
		m->nbytes += part(o->nbytes, together_ns(o, p), o->to_ns - o->from_ns);
}

/* Of a rate, by what there is to send. */
static uint64_t part_of(const struct pair *p, const struct met *m, uint64_t bps)
{
	return bps && m->nbytes ? part(p->nbytes, bps, m->nbytes) : UINT64_MAX;
}

/* What comes through, of payload. */
static uint64_t wire_bps(const struct rates *r, const struct pair *p, int wire)
{
	const struct gci_topo *t = r->net->topo;
	int link = t->cluster[p->from] * t->nclusters + t->cluster[p->to];

	return t->links[link].own == wire + 1 && t->links[link].nroute == 1
		       ? r->net->links[link].bps
		       : gci_payload_bps(t->wires[wire].rate_bps);
}

/* What a pair from far may have of its port and of the wires it passes; none where it meets nobody. */
static void find_shares(struct rates *r, size_t i)
{
	const struct pair *p = &r->pairs[i];
	struct met port = {0};
	const int *route;
	int w, n = route_of(r, p, &route), alone;
	size_t k;

	if (!is_far(r, p))
		return;
	for (k = i; k && r->pairs[k - 1].to == p->to; k--)
		;
	for (; k < r->n && r->pairs[k].to == p->to; k++)
		meet(r, p, &r->pairs[k], &port);
	alone = !port.others;
	r->port_bps[i] = part_of(p, &port, gci_simnet_nic_bps(r->net, p->to));
	r->wire_bps[i] = UINT64_MAX;
	for (w = 0; w < n; w++) {
		struct met wire = {0};

		for (k = r->wires[route[w]]; k < r->wires[route[w] + 1]; k++)
			meet(r, p, &r->pairs[r->by_wire[k]], &wire);
		alone &= !wire.others;
		r->wire_bps[i] = less(r->wire_bps[i], part_of(p, &wire, wire_bps(r, p, route[w])));
	}
	if (alone)
		r->port_bps[i] = 0;
}

/* What the shares of a port add up to at that time. */
static uint64_t shares_at(const struct rates *r, size_t first, size_t end, uint64_t ns)
{
	uint64_t sum = 0;
	size_t k;

	for (k = first; k < end; k++)
		if (r->pairs[k].from_ns <= ns && ns < r->pairs[k].to_ns)
			sum += r->port_bps[k];
	return sum;
}

/* Shares of who ends sooner are larger, as the others have more time; but all may begin at once, and a port keeps
 * little. So none has more than its part of what all have, when it begins, and half way on. `out`: of as many. */
static void level_ports(struct rates *r, uint64_t *out)
{
	size_t i, first = 0, end = 0;

	for (i = 0; i < r->n; i++) {
		const struct pair *p = &r->pairs[i];
		uint64_t port = gci_simnet_nic_bps(r->net, p->to), at_once, later;

		if (i == end)
			for (first = i; end < r->n && r->pairs[end].to == p->to; end++)
				;
		at_once = shares_at(r, first, end, p->from_ns);
		later = shares_at(r, first, end, p->from_ns + (p->to_ns - p->from_ns) / 2);
		at_once = later > at_once ? later : at_once;
		out[i] = at_once > port ? part(r->port_bps[i], port, at_once) : r->port_bps[i];
	}
	memcpy(r->port_bps, out, r->n * sizeof(*out));
}

static uint64_t rate_of(const struct rates *r, size_t i, uint64_t percent)
{
	const struct pair *p = &r->pairs[i];
	uint64_t bps = part(p->nbytes, 8 * GCI_NS_PER_S, p->to_ns - p->from_ns);

	bps = less(part(bps, percent, 100), r->port_bps[i]);
	bps = less(bps, percent > EVEN_PERCENT && r->wire_bps[i] < UINT64_MAX
				? part(r->wire_bps[i], percent, EVEN_PERCENT)
				: r->wire_bps[i]);
	return bps < part(path_bps(r->net, p->from, p->to), ALL_PERCENT, 100) ? bps : 0;
}

/* A pair that works in several phases has the fastest of their rates; 0, at will, is faster than any. */
static void set_rates(struct rates *r, uint64_t percent)
{
	int n = r->net->topo->nranks;
	size_t i;

	for (i = 0; i < r->n; i++) {
		const struct pair *p = &r->pairs[i];
		uint64_t bps = rate_of(r, i, percent), *all = &r->bps[p->from * n + p->to];
		int again = i && p[-1].from == p->from && p[-1].to == p->to;

		*all = again && (!*all || !bps) ? 0 : again && *all > bps ? *all : bps;
	}
}

/* A shorter operation, of one window and at most so many steps. */
static int shorten(const struct gci_algorithm *a, struct gci_coll *c, uint64_t most_steps)
{
	while (gci_table_nbytes(c) > GCI_WINDOW_NBYTES)
		c->count /= 2;
	for (;; c->count /= 2) {
		struct gci_sched s;
		uint64_t n;
		int rc = gci_emit(a, c, (c->root + 1) % c->topo->nranks, &s);

		if (rc)
			return rc;
		n = (uint64_t)s.nsteps * (unsigned)c->topo->nranks;
		gci_sched_free(&s);
		if (n <= most_steps || c->count < 2)
			return n <= most_steps ? 0 : GCOLL_ERR_INVAL;
	}
}

/* 0: *ns is how long it takes at those rates; NULL: at will. */
static int simulate(struct traffic *a, const struct gci_algorithm *algorithm,
	const struct gci_coll *c, const uint64_t *pace_bps, uint64_t *ns)
{
	struct gci_sim_op op = {.algorithm = algorithm, .coll = c, .pace_bps = pace_bps};
	struct gci_sim_result r;
	int rc;

	if (!pace_bps) {
		op.trace = on_event;
		op.ctx = a;
	}
	rc = gci_simulate(a->net, &op, &r);
	*ns = r.ns;
	gci_sim_result_free(&r);
	return rc ? rc : a->failed ? GCOLL_ERR_NOMEM : 0;
}

/* The least rates that cost hardly any time; else those that cost least. */
static int choose(struct rates *r, struct traffic *a, const struct gci_algorithm *algorithm,
	const struct gci_coll *c)
{
	uint64_t ns, least = UINT64_MAX;
	size_t i, best = 0;
	int rc;

	rc = sort_by_wire(r);
	for (i = 0; !rc && i < r->n; i++)
		find_shares(r, i);
	if (rc)
		return rc;
	level_ports(r, r->spare);
	for (i = 0; i < NHEADROOMS; i++) {
		set_rates(r, headrooms[i]);
		rc = simulate(a, algorithm, c, r->bps, &ns);
		if (rc)
			return rc;
		r->paced_ns = less(ns, least);
		if (ns <= and_percent(r->ns, LOSS_PERCENT)) {
			r->paced_ns = ns;
			return 0;
		}
		if (ns < least) {
			least = ns;
			best = i;
		}
	}
	set_rates(r, headrooms[best]);
	return 0;
}

static int find_rates(struct rates *r, struct traffic *a, const struct gci_algorithm *algorithm,
	const struct gci_coll *c)
{
	size_t n = (size_t)c->topo->nranks;
	int rc = simulate(a, algorithm, c, NULL, &r->ns);

	r->paced_ns = r->ns;
	if (rc || !a->n)
		return rc;
	qsort(a->all, a->n, sizeof(*a->all), compare);
	r->pairs = gci_calloc(a->n, sizeof(*r->pairs));
	r->wires = gci_calloc((size_t)c->topo->nwires + 1, sizeof(*r->wires));
	r->bps = gci_calloc(n * n + 3 * a->n, sizeof(*r->bps)); /* and room to level ports */
	if (!r->pairs || !r->wires || !r->bps)
		return GCOLL_ERR_NOMEM;
	r->port_bps = r->bps + n * n;
	r->wire_bps = r->port_bps + a->n;
	r->spare = r->wire_bps + a->n;
	r->n = make_pairs(a, r->pairs);
	return choose(r, a, algorithm, c);
}

/* Near senders share a quarter of a port, or more quarters. */
static uint64_t near_window(uint64_t nsenders, uint64_t quarters)
{
	uint64_t part_nbytes = GCI_PORT_NBYTES / GCI_SIM_NEAR_PART * quarters / nsenders;

	return part_nbytes > LEAST_WINDOW ? part_nbytes : LEAST_WINDOW;
}

/* For less than a quarter of the time that one of them takes, a port has room. */
static int meet_for_long(const struct pair *a, const struct pair *b)
{
	return together_ns(a, b) >= less(a->to_ns - a->from_ns, b->to_ns - b->from_ns) / 4;
}

/* Whether far ones that keep to a rate come to the port of pair `near` at the same time; the port's pairs are first
 * to end - 1. Near ones that meet there may share it until the last of them is through. */
static int meets_paced(const struct rates *r, size_t first, size_t end, size_t near)
{
	struct pair held_up = r->pairs[near];
	int n = r->net->topo->nranks;
	size_t i;

	for (i = first; i < end; i++)
		if (!is_far(r, &r->pairs[i]) && r->pairs[i].to_ns > held_up.to_ns &&
			meet_for_long(&r->pairs[i], &r->pairs[near]))
			held_up.to_ns = r->pairs[i].to_ns;
	for (i = first; i < end; i++) {
		const struct pair *p = &r->pairs[i];

		if (is_far(r, p) && r->bps[p->from * n + p->to] && meet_for_long(p, &held_up))
			return 1;
	}
	return 0;
}

/* From `from` to a port that takes rates meanwhile. */
static uint64_t window_of(const struct rates *r, int from, int to)
{
	uint64_t nsenders = 0;
	size_t i, first, end;
	int last = -1, is_one = 0;

	for (first = 0; first < r->n && r->pairs[first].to < to; first++)
		;
	for (end = first; end < r->n && r->pairs[end].to == to; end++)
		;
	for (i = first; i < end; i++) {
		if (r->pairs[i].from == last || is_far(r, &r->pairs[i]) ||
			!meets_paced(r, first, end, i))
			continue;
		nsenders++;
		last = r->pairs[i].from;
		is_one |= last == from;
	}
	return is_one ? near_window(nsenders, 1) : 0;
}

void gci_rates_near(const struct gci_topo *t, int rank, const struct gci_rates *out)
{
	int i, size = gci_topo_size(t, t->cluster[rank]);

	for (i = 0; i < t->nranks; i++)
		if (i != rank && t->cluster[i] == t->cluster[rank])
			out->window_nbytes[i] = near_window((uint64_t)size - 1, MEETING);
}

int gci_rates_even(const struct gci_coll *c, int rank, const struct gci_rates *out)
{
	struct gci_coll window = *c;
	struct gci_windows w;
	uint64_t *bps;
	int i, rc, n = c->topo->nranks;

	gci_windows_cut(&w, &window, GCI_WINDOW_NBYTES);
	window = gci_window_of(&w, &window, 0);
	rc = gci_packed_even_bps(&window, &bps);
	if (rc)
		return rc;
	for (i = 0; i < n; i++)
		out->bps[i] = on_the_wire(bps[rank * n + i]);
	gci_free(bps);
	gci_rates_near(c->topo, rank, out);
	return 0;
}

static void put_rates(const struct rates *r, int rank, const struct gci_rates *out)
{
	int i, n = r->net->topo->nranks;

	for (i = 0; i < n; i++) {
		if (r->bps[rank * n + i])
			out->bps[i] = on_the_wire(r->bps[rank * n + i]);
		if (i != rank && r->net->topo->cluster[i] == r->net->topo->cluster[rank])
			out->window_nbytes[i] = window_of(r, rank, i);
	}
}

static void free_rates(struct rates *r, struct traffic *got)
{
	gci_free(r->pairs);
	gci_free(r->wires);
	gci_free(r->by_wire);
	gci_free(r->bps);
	gci_free(got->all);
}

int gci_rates_ns(const struct gci_simnet *net, const struct gci_algorithm *a,
	const struct gci_coll *c, uint64_t most_steps, uint64_t *paced_ns, uint64_t *ns)
{
	struct gci_coll coll = *c;
	struct traffic got = {.net = net, .esize = c->esize};
	struct rates r = {.net = net};
	int rc = most_steps ? shorten(a, &coll, most_steps) : 0;

	if (!rc)
		rc = find_rates(&r, &got, a, &coll);
	*paced_ns = r.paced_ns;
	*ns = r.ns;
	free_rates(&r, &got);
	return rc;
}

int gci_rates(const struct gci_simnet *net, const struct gci_algorithm *a, const struct gci_coll *c,
	int rank, uint64_t most_steps, const struct gci_rates *out)
{
	struct gci_coll coll = *c;
	struct traffic got = {.net = net, .esize = c->esize};
	struct rates r = {.net = net};
	int i, rc = c->counts || !most_steps ? GCOLL_ERR_INVAL : shorten(a, &coll, most_steps);

	for (i = 0; i < c->topo->nranks; i++) {
		out->bps[i] = alone_bps(net, rank, i);
		out->window_nbytes[i] = 0;
	}
	if (!rc)
		rc = find_rates(&r, &got, a, &coll);
	if (!rc && r.bps)
		put_rates(&r, rank, out);
	free_rates(&r, &got);
	return rc == GCOLL_ERR_INVAL ? 0 : rc;
}
