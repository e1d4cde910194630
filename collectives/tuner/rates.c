/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/rates.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/blocks/windows.h"
#include "collectives/tuner/table.h"

#include <stdlib.h>

#define LEAST_WINDOW_NS (2 * GCI_NS_PER_MS)
#define WINDOWS         4   /* of the time that a pair is at work */
#define PHASES          4   /* that it may have, at most, with rests between them */
#define SPARE_PERCENT   15  /* for headers, and to catch up with, where there is room */
#define PART_PERCENT    2   /* for headers, and the rest stays free, where there is none */
#define ALL_PERCENT     80  /* of what a pair can send, from which on it may as well send at will */
#define FEW             4   /* senders, of which TCP makes room for each other */
#define FEW_PERCENT     150 /* of a rate, that these may have together */

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
	uint64_t from_ns, last_ns; /* when its first message could be sent, and its last */
	uint64_t first_ns, to_ns;  /* when it came, but for the first tenth and the last */
	uint64_t nbytes;
	uint64_t bps; /* at most, of payload */
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

/* The most bytes within any `window_ns` that begins with one of the n. */
static uint64_t most_within(const struct moved *m, size_t n, uint64_t window_ns)
{
	uint64_t most = 0;
	size_t i, k;

	for (i = 0; i < n; i++) {
		uint64_t end = m[i].from_ns + window_ns, sum = 0;

		for (k = i; k < n && m[k].from_ns < end; k++)
			sum += m[k].to_ns <= end ? m[k].nbytes
						 : part(m[k].nbytes, end - m[k].from_ns,
							   m[k].to_ns - m[k].from_ns);
		most = sum > most ? sum : most;
	}
	return most;
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
	struct pair p = {.from = m->from, .to = m->to, .from_ns = m->from_ns};
	uint64_t nbytes = 0, window;
	size_t i;

	for (i = 0; i < n; i++)
		p.nbytes += m[i].nbytes;
	for (i = 0; i < n; i++) {
		if (!m[i].nbytes) {
			p.last_ns = m[i].from_ns;
			continue;
		}
		if (nbytes <= p.nbytes / 10)
			p.first_ns = m[i].from_ns;
		nbytes += m[i].nbytes;
		if (nbytes <= p.nbytes - p.nbytes / 10 || !p.to_ns)
			p.to_ns = m[i].to_ns > p.to_ns ? m[i].to_ns : p.to_ns;
	}
	window = less((p.to_ns > p.first_ns ? p.to_ns - p.first_ns : 0) / WINDOWS,
		rtt_of(net, p.from, p.to));
	if (window < LEAST_WINDOW_NS)
		window = LEAST_WINDOW_NS;
	p.bps = part(most_within(m, n, window), 8 * GCI_NS_PER_S, window);
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
 * each, one after the other: it meets others in each, and not in between. */
static size_t make_pairs(const struct traffic *a, struct pair *pairs)
{
	size_t i, k, nphase, n = 0;

	for (i = 0; i < a->n; i = k) {
		const struct moved *m = &a->all[i];
		uint64_t rest_ns = rtt_of(a->net, m->from, m->to) + LEAST_WINDOW_NS, part_ns;

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

/* For half of the time of the shorter one, at least: what overlaps less is one after the other. */
static int are_together(const struct pair *a, const struct pair *b)
{
	uint64_t from = a->first_ns > b->first_ns ? a->first_ns : b->first_ns;
	uint64_t to = less(a->to_ns, b->to_ns);

	return a->bps && b->bps && to > from &&
	       2 * (to - from) >= less(a->to_ns - a->first_ns, b->to_ns - b->first_ns);
}

/* Those that are at work at the same time, at the receiver's port or on the link: a pair's, too. */
struct met {
	uint64_t senders, bps, nbytes;
	int goes_on; /* who receives has more to send later */
};

static void add(struct met *m, const struct pair *p, int is_new)
{
	m->senders += is_new;
	m->bps += p->bps;
	m->nbytes += p->nbytes;
}

static void meet(const struct gci_topo *t, const struct pair *p, const struct pair *pairs, size_t n,
	struct met *port, struct met *link)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const struct pair *o = &pairs[i];

		port->goes_on |= o->from == p->to && o->last_ns > p->from_ns;
		if (!are_together(o, p))
			continue;
		if (o->to == p->to)
			add(port, o, 1);
		if (t->cluster[o->from] == t->cluster[p->from] &&
			t->cluster[o->to] == t->cluster[p->to])
			add(link, o, o->from != p->from);
	}
}

static uint64_t and_percent(uint64_t bps, uint64_t more)
{
	return part(bps, 100 + more, 100);
}

/* Where all that meet there are too much for a rate, a part of it by what there is to send; but what others
 * may wait for must be there in time. */
static uint64_t fit(const struct pair *p, const struct met *met, uint64_t most_bps, uint64_t rtt_ns,
	int goes_on)
{
	uint64_t ns = p->to_ns - p->from_ns, most = and_percent(p->bps, SPARE_PERCENT);
	uint64_t bps, needed = 0;

	if (!most_bps || met->bps <= part(most_bps, met->senders > FEW ? 100 : FEW_PERCENT, 100))
		return most;
	bps = and_percent(part(p->nbytes, most_bps, met->nbytes), PART_PERCENT);
	ns = ns > rtt_ns / 2 + LEAST_WINDOW_NS ? ns - rtt_ns / 2 : LEAST_WINDOW_NS;
	if (goes_on)
		needed = and_percent(part(p->nbytes, 8 * GCI_NS_PER_S, ns), SPARE_PERCENT);
	return less(most, needed > bps ? needed : bps);
}

/* What comes through from one cluster to another, of payload. */
static uint64_t path_bps(const struct gci_simnet *net, int from, int to)
{
	const struct gci_simnet_link *l = &net->links[from * net->topo->nclusters + to];
	uint64_t bps = less(net->nic_bps[from], net->nic_bps[to]);

	if (from != to && l->bps)
		bps = less(bps, l->bps);
	return l->pair_bps ? less(bps, l->pair_bps) : bps;
}

/* For one that is alone: 0 where its own NIC keeps it from sending more. */
static uint64_t alone_bps(const struct gci_simnet *net, int from, int to)
{
	uint64_t bps = path_bps(net, from, to);

	return bps < net->nic_bps[from] ? and_percent(bps, PART_PERCENT) : 0;
}

static uint64_t rate_of(
	const struct gci_simnet *net, const struct pair *p, const struct pair *pairs, size_t n)
{
	const struct gci_topo *t = net->topo;
	int from = t->cluster[p->from], to = t->cluster[p->to];
	uint64_t bps, rtt = rtt_of(net, p->from, p->to);
	uint64_t link_bps = from == to ? 0 : net->links[from * t->nclusters + to].bps;
	struct met port = {0}, link = {.senders = 1};

	meet(t, p, pairs, n, &port, &link);
	if (port.senders < 2 && (!link_bps || link.senders < 2 || link.bps <= link_bps))
		return alone_bps(net, from, to);
	bps = less(fit(p, &port, net->nic_bps[to], rtt, port.goes_on),
		fit(p, &link, link_bps, rtt, port.goes_on));
	return bps >= part(path_bps(net, from, to), ALL_PERCENT, 100) ? alone_bps(net, from, to)
								      : bps;
}

/* Of all phases of the pair at *i, the last of which *i is then; 0, at will, is faster than any rate. */
static uint64_t fastest(const struct gci_simnet *net, const struct pair *pairs, size_t n, size_t *i)
{
	uint64_t most = rate_of(net, &pairs[*i], pairs, n), bps;

	for (; *i + 1 < n && pairs[*i + 1].from == pairs[*i].from &&
		pairs[*i + 1].to == pairs[*i].to;
		++*i) {
		bps = rate_of(net, &pairs[*i + 1], pairs, n);
		most = !most || !bps ? 0 : bps > most ? bps : most;
	}
	return most;
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

static int simulate(
	struct traffic *a, const struct gci_algorithm *algorithm, const struct gci_coll *c)
{
	struct gci_sim_op op = {.algorithm = algorithm, .coll = c, .trace = on_event, .ctx = a};
	struct gci_sim_result r;
	int rc = gci_simulate(a->net, &op, &r);

	gci_sim_result_free(&r);
	return rc ? rc : a->failed ? GCOLL_ERR_NOMEM : 0;
}

int gci_rates(const struct gci_simnet *net, const struct gci_algorithm *a, const struct gci_coll *c,
	int rank, uint64_t most_steps, uint64_t *bps)
{
	struct gci_coll coll = *c;
	struct traffic got = {.net = net, .esize = c->esize};
	struct pair *pairs = NULL;
	size_t i, n = 0;
	const int *cluster = c->topo->cluster;
	int r, rc = c->counts || !most_steps ? GCOLL_ERR_INVAL : shorten(a, &coll, most_steps);

	for (r = 0; r < c->topo->nranks; r++)
		bps[r] = alone_bps(net, cluster[rank], cluster[r]);
	if (!rc)
		rc = simulate(&got, a, &coll);
	if (!rc && got.n) {
		qsort(got.all, got.n, sizeof(*got.all), compare);
		pairs = gci_calloc(got.n, sizeof(*pairs));
		rc = pairs ? 0 : GCOLL_ERR_NOMEM;
	}
	if (pairs)
		n = make_pairs(&got, pairs);
	for (i = 0; i < n; i++)
		if (pairs[i].from == rank)
			bps[pairs[i].to] = fastest(net, pairs, n, &i);
	gci_free(pairs);
	gci_free(got.all);
	return rc == GCOLL_ERR_INVAL ? 0 : rc;
}
