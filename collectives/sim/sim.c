/* SPDX-License-Identifier: MIT
 * The simulator: operations, ranks and the calendar of events. This file and wire.c are two halves of one
 * thing and call each other (sim_impl.h): here steps begin and end, there their bytes travel. */
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/prng.h"
#include "collectives/blocks/peers.h"
#include "collectives/sim/events.h"
#include "collectives/sim/net.h"
#include "collectives/sim/sim_impl.h"

#include <string.h>

static void gci_shape_free(struct gci_shape *s, int nranks);

/* ---- events, by time */

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

/* False when there is none. Four children to a node: half as many levels to go down, within a few
 * cache lines. */
static int gci_events_pop(struct gci_events *q, struct gci_ev *e)
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

static void gci_events_free(struct gci_events *q)
{
	gci_free(q->heap);
	gci_free(q->soon);
	memset(q, 0, sizeof(*q));
}

/* ---- Schedules of all ranks, and which SEND goes with which RECV. */

struct sends {
	struct cell {
		int rank; /* 1 + the sender; 0: empty */
		uint32_t step;
	} * cells;
	uint64_t mask;
};

static int is_recv(const struct gci_step *s)
{
	return s->kind == GCI_STEP_RECV || s->kind == GCI_STEP_RECV_REDUCE;
}

static uint64_t hash(int src, int dst, uint32_t tag)
{
	return gci_digest(gci_digest(0, (uint64_t)src << 32 | (uint32_t)dst), tag);
}

static int allocate_sends(struct sends *t, const struct gci_shape *s, int nranks)
{
	uint64_t n = 0, cap = 16;
	uint32_t i;
	int r;

	for (r = 0; r < nranks; r++)
		for (i = 0; i < s->sched[r].nsteps; i++)
			n += s->sched[r].steps[i].kind == GCI_STEP_SEND;
	while (cap < 2 * n)
		cap *= 2;
	t->mask = cap - 1;
	t->cells = gci_calloc(cap, sizeof(*t->cells));
	return t->cells ? 0 : GCOLL_ERR_NOMEM;
}

static void insert_sends(struct sends *t, const struct gci_sched *s)
{
	uint32_t i;

	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];
		uint64_t at;

		if (p->kind != GCI_STEP_SEND)
			continue;
		for (at = hash(s->rank, p->peer, p->tag) & t->mask; t->cells[at].rank;
			at = (at + 1) & t->mask)
			;
		t->cells[at] = (struct cell){s->rank + 1, i};
	}
}

static const struct cell *find_send(
	const struct sends *t, const struct gci_shape *s, int dst, const struct gci_step *recv)
{
	uint64_t at = hash(recv->peer, dst, recv->tag) & t->mask;

	for (; t->cells[at].rank; at = (at + 1) & t->mask) {
		const struct cell *c = &t->cells[at];
		const struct gci_step *p = &s->sched[c->rank - 1].steps[c->step];

		if (c->rank - 1 == recv->peer && p->peer == dst && p->tag == recv->tag)
			return c;
	}
	return NULL;
}

/* GCOLL_ERR_INVAL where a RECV has no SEND of its length: no schedule that the verifier passes. */
static int match_recvs(const struct sends *t, struct gci_shape *s, int dst)
{
	const struct gci_sched *sched = &s->sched[dst];
	uint32_t i;

	for (i = 0; i < sched->nsteps; i++) {
		const struct gci_step *p = &sched->steps[i];
		const struct cell *c;

		if (!is_recv(p))
			continue;
		c = find_send(t, s, dst, p);
		if (!c || s->sched[p->peer].steps[c->step].src.length != p->dst.length)
			return GCOLL_ERR_INVAL;
		s->match[dst][i] = c->step;
		s->match[p->peer][c->step] = i;
		s->number[dst][i] = s->number[p->peer][c->step] = s->nmessages[dst]++;
	}
	return 0;
}

static int match_all(struct gci_shape *s, int nranks)
{
	struct sends t = {0};
	int r, rc = allocate_sends(&t, s, nranks);

	for (r = 0; r < nranks && !rc; r++)
		insert_sends(&t, &s->sched[r]);
	for (r = 0; r < nranks && !rc; r++)
		rc = match_recvs(&t, s, r);
	gci_free(t.cells);
	return rc;
}

/* Emits all ranks' schedules for this window; GCOLL_ERR_* with everything freed, GCOLL_ERR_INVAL
 * also where they have more steps than that (0: any number). */
static int gci_shape_make(struct gci_shape *s, const struct gci_algorithm *a,
	const struct gci_coll *c, uint64_t most_steps)
{
	int r, rc = 0, n = c->topo->nranks;

	memset(s, 0, sizeof(*s));
	s->sched = gci_calloc((size_t)n, sizeof(*s->sched));
	s->match = gci_calloc((size_t)n, sizeof(*s->match));
	s->number = gci_calloc((size_t)n, sizeof(*s->number));
	s->nmessages = gci_calloc((size_t)n, sizeof(*s->nmessages));
	if (!s->sched || !s->match || !s->number || !s->nmessages)
		rc = GCOLL_ERR_NOMEM;
	for (r = 0; r < n && !rc; r++) {
		rc = gci_emit(a, c, r, &s->sched[r]);
		s->nsteps += s->sched[r].nsteps;
		if (!rc && most_steps && s->nsteps > most_steps)
			rc = GCOLL_ERR_INVAL;
		s->match[r] = rc ? NULL : gci_calloc(s->sched[r].nsteps, sizeof(**s->match));
		s->number[r] = rc ? NULL : gci_calloc(s->sched[r].nsteps, sizeof(**s->number));
		if (!rc && (!s->match[r] || !s->number[r]))
			rc = GCOLL_ERR_NOMEM;
	}
	if (!rc)
		rc = match_all(s, n);
	if (rc)
		gci_shape_free(s, n);
	return rc;
}

static void gci_shape_free(struct gci_shape *s, int nranks)
{
	int r;

	for (r = 0; r < nranks; r++) {
		if (s->sched)
			gci_sched_free(&s->sched[r]);
		if (s->match)
			gci_free(s->match[r]);
		if (s->number)
			gci_free(s->number[r]);
	}
	gci_free(s->sched);
	gci_free(s->match);
	gci_free(s->number);
	gci_free(s->nmessages);
	memset(s, 0, sizeof(*s));
}

/* ---- what the network is like, by grid and measurement */

#define CLOSE      12 /* a part of this is what measurements differ by */
#define MESSAGE_NS (15 * GCI_NS_PER_US)
#define ACK_PPM    (66 * 1000000 / (4 * 1448)) /* a packet for about four */
#define LOCAL_BPS  UINT64_C(40000000000)

static const struct gci_params_link *measured(
	const struct gci_params *p, const struct gci_topo *t, int a, int b)
{
	const struct gci_params_link *l;

	if (!p)
		return NULL;
	l = &p->links[t->in_grid[a] * p->nclusters + t->in_grid[b]];
	return l->npoints ? l : NULL;
}

static uint64_t best_rate(const struct gci_params_rate *rates, size_t n)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < n; i++)
		most = rates[i].bps > most ? rates[i].bps : most;
	return most;
}

/* A figure of the grid's is exact where the measurement does not contradict it. */
static uint64_t agreed(uint64_t grid, uint64_t measured)
{
	uint64_t off = grid > measured ? grid - measured : measured - grid;

	return !measured || (grid && off < grid / CLOSE) ? grid : measured;
}

static uint64_t nic_of(const struct gci_simnet *net, int a)
{
	const struct gci_topo *t = net->topo;
	const struct gci_params_link *l = net->links[a * t->nclusters + a].params;
	uint64_t bps =
		agreed(gci_payload_bps(t->nic_bps[a]), l ? best_rate(l->rates, l->nrates) : 0);

	return bps ? bps : gci_payload_bps(gci_nic_bps(t, a));
}

static void fill_link(struct gci_simnet *net, int a, int b, const struct gci_params *p)
{
	const struct gci_topo *t = net->topo;
	const struct gci_link *l = gci_topo_link(t, a, b);
	struct gci_simnet_link *out = &net->links[a * t->nclusters + b];

	out->params = measured(p, t, a, b);
	out->latency_ns = out->params ? out->params->latency_ns : l->delay_ns;
	out->eager_nbytes = a == b ? GCI_LAN_EAGER : GCI_WAN_EAGER;
	out->streams = l->streams;
}

/* The rates of a pair of clusters, when their NICs are known. */
static void fill_rates(struct gci_simnet *net, int a, int b)
{
	const struct gci_topo *t = net->topo;
	const struct gci_link *l = gci_topo_link(t, a, b);
	struct gci_simnet_link *out = &net->links[a * t->nclusters + b];
	const struct gci_params_link *p = out->params;
	uint64_t nic = net->nic_bps[a] < net->nic_bps[b] ? net->nic_bps[a] : net->nic_bps[b];

	out->bps = gci_payload_bps(l->rate_bps);
	if (!out->bps && p)
		out->bps = best_rate(p->senders, p->nsenders);
	out->queue_nbytes = l->queue_nbytes;
	out->pair_bps = gci_payload_bps(l->flow_rate_bps) * out->streams;
	if (p && p->nrates)
		out->pair_bps = agreed(
			out->pair_bps ? out->pair_bps : nic, gci_params_rate(p, out->streams));
	if (out->pair_bps == nic)
		out->pair_bps = 0;
}

void gci_simnet_streams(struct gci_simnet *net, uint32_t streams)
{
	int a, b, n = net->topo->nclusters;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			if (a != b && streams) {
				net->links[a * n + b].streams = streams;
				fill_rates(net, a, b);
			}
}

int gci_simnet_init(struct gci_simnet *net, const struct gci_topo *t, const struct gci_params *p)
{
	size_t n = (size_t)t->nclusters;
	int a, b, r;

	memset(net, 0, sizeof(*net));
	net->topo = t;
	net->nic_bps = gci_calloc(n, sizeof(*net->nic_bps));
	net->links = gci_calloc(n * n, sizeof(*net->links));
	net->send_ns = gci_calloc((size_t)t->nranks, sizeof(*net->send_ns));
	if (!net->nic_bps || !net->links || !net->send_ns) {
		gci_simnet_free(net);
		return GCOLL_ERR_NOMEM;
	}
	net->recv_ns = MESSAGE_NS;
	net->local_bps = LOCAL_BPS;
	net->ack_ppm = ACK_PPM;
	for (r = 0; r < t->nranks; r++)
		net->send_ns[r] = t->tini_ns[r] ? t->tini_ns[r] : MESSAGE_NS;
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			fill_link(net, a, b, p);
	for (a = 0; a < t->nclusters; a++)
		net->nic_bps[a] = nic_of(net, a);
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++)
			if (a != b)
				fill_rates(net, a, b);
	return 0;
}

uint64_t gci_simnet_nic_bps(const struct gci_simnet *net, int rank)
{
	const struct gci_topo *t = net->topo;
	int cluster = t->cluster[rank];

	return t->rank_nic_bps[rank] == t->nic_bps[cluster]
		       ? net->nic_bps[cluster]
		       : gci_payload_bps(t->rank_nic_bps[rank]);
}

/* The link of which this wire is all; NULL: none. */
static const struct gci_simnet_link *link_of(const struct gci_simnet *net, int wire)
{
	const struct gci_topo *t = net->topo;
	int i;

	for (i = 0; i < t->nclusters * t->nclusters; i++)
		if (t->links[i].own == wire + 1 && t->links[i].nroute == 1)
			return &net->links[i];
	return NULL;
}

uint64_t gci_simnet_wire_bps(const struct gci_simnet *net, int wire)
{
	const struct gci_simnet_link *l = link_of(net, wire);

	return l ? l->bps : gci_payload_bps(net->topo->wires[wire].rate_bps);
}

void gci_simnet_free(struct gci_simnet *net)
{
	gci_free(net->nic_bps);
	gci_free(net->links);
	gci_free(net->send_ns);
	memset(net, 0, sizeof(*net));
}

/* ---- Pairs of ranks that have messages for each other: a hash table, as few of all have; and what
 * messages cost the processes at their ends. */

#define INITIAL_NBYTES (10u * 1448) /* window of a new connection */

static uint64_t hash_of(int src, int dst)
{
	return gci_digest(0, (uint64_t)src << 32 | (uint32_t)dst);
}

/* Connections that messages of this pair use: a sender to several ranks of other clusters shares
 * those it has among them (comm/op.c). */
static int streams_of(struct gci_sim *m, const struct gci_pair *p)
{
	const struct gci_topo *t = m->net->topo;
	struct gci_sim_rank *r = &m->ranks[p->src];
	uint32_t n = p->link->streams ? p->link->streams : 1;

	if (t->cluster[p->src] == t->cluster[p->dst] ||
		gci_topo_link(t, t->cluster[p->src], t->cluster[p->dst])->flow_rate_bps)
		return (int)n;
	if (!r->wan_peers && gci_wan_peers(t, gci_sim_sched(m, p->src, 0), &r->wan_peers))
		m->failed = 1;
	if (r->wan_peers)
		n = n / r->wan_peers ? n / r->wan_peers : 1;
	return (int)n;
}

/* In an alltoall there are as many as messages: not one by one from the heap. */
static struct gci_pair *new_pair(struct gci_sim *m)
{
	struct gci_pair_slab *s = m->slabs;

	if (!s || s->n == GCI_SLAB_PAIRS) {
		s = gci_calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->next = m->slabs;
		m->slabs = s;
	}
	return &s->pairs[s->n++];
}

static uint64_t byte_time(uint64_t bps)
{
	return bps ? (uint64_t)(((unsigned __int128)8 * GCI_NS_PER_S << 20) / bps) : 0;
}

static struct gci_pair *make_pair(struct gci_sim *m, int src, int dst)
{
	const struct gci_topo *t = m->net->topo;
	struct gci_pair *p = new_pair(m);

	if (!p)
		return NULL;
	p->src = src;
	p->dst = dst;
	p->link_no = t->cluster[src] * t->nclusters + t->cluster[dst];
	p->link = &m->net->links[p->link_no];
	p->nlegs = gci_topo_route(t, t->cluster[src], t->cluster[dst], &p->legs);
	p->nback = gci_topo_route(t, t->cluster[dst], t->cluster[src], &p->back);
	p->back_ns = m->net->links[t->cluster[dst] * t->nclusters + t->cluster[src]].latency_ns;
	p->byte_time = m->pair_byte_time[p->link_no];
	if (m->pace_bps && m->pace_bps[src * t->nranks + dst])
		p->byte_time =
			gci_sim_later(p->byte_time, byte_time(m->pace_bps[src * t->nranks + dst]));
	p->eager_left = p->link->eager_nbytes;
	p->weight = streams_of(m, p);
	p->open_ns = m->net->cold ? m->now + 3 * p->link->latency_ns : 0;
	p->window = (uint64_t)INITIAL_NBYTES * (unsigned)p->weight;
	return p;
}

static struct gci_pair *gci_sim_pair(struct gci_sim *m, int src, int dst)
{
	uint64_t h = hash_of(src, dst);
	struct gci_hash_node *n;
	struct gci_pair *p;

	for (n = gci_hash_first(&m->pairs, h); n; n = gci_hash_next(n)) {
		p = gci_container(n, struct gci_pair, node);
		if (p->src == src && p->dst == dst)
			return p;
	}
	p = make_pair(m, src, dst);
	if (p && !gci_hash_add(&m->pairs, &p->node, h))
		return p;
	m->failed = 1;
	return NULL;
}

/* ---- what messages cost their hosts */

/* What the isend of this message keeps its process busy for. */
static uint64_t gci_sim_send_ns(struct gci_sim *m, const struct gci_sim_message *msg)
{
	struct gci_pair *p = msg->pair;
	const struct gci_params_isend *isend;
	struct gci_params_point at;

	if (!p->link->params)
		return m->net->send_ns[p->src];
	gci_params_at(p->link->params, msg->unsent, &at);
	isend = gci_isend_at(p->link->params, msg->unsent);
	if (isend && isend->immediate)
		at.os_ns = gci_isend_next(isend, at.gap_ns, &p->isends,
			gci_sim_later(m->now, m->ranks[p->src].cpu_ns)); /* when it begins */
	return at.os_ns;
}

static uint64_t gci_sim_recv_ns(const struct gci_sim *m, const struct gci_sim_message *msg)
{
	struct gci_params_point at;

	if (!msg->pair->link->params)
		return m->net->recv_ns;
	gci_params_at(msg->pair->link->params, msg->nbytes, &at);
	return at.or_ns;
}

/* ---- What each rank does: starts the steps that the readiness core lets it, window by window, as
 * comm/op.c and comm/run.c do. Its processor does one thing at a time. */

static int make_messages(struct gci_sim *m, int dst, uint32_t window)
{
	uint32_t n = m->shapes[m->shape_of[window]].nmessages[dst];
	struct gci_sim_rank *r = &m->ranks[dst];

	r->messages[window] = gci_calloc(n, sizeof(**r->messages));
	if (m->op->trace)
		r->times[window] = gci_calloc(n, sizeof(**r->times));
	if (r->messages[window] && (r->times[window] || !m->op->trace))
		return 0;
	m->failed = 1;
	return -1;
}

/* The message that this step of this rank takes part in, made if need be; NULL: out of memory. */
static struct gci_sim_message *message_of(
	struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	const struct gci_shape *s = &m->shapes[m->shape_of[window]];
	const struct gci_step *p = &s->sched[rank].steps[step];
	int sends = p->kind == GCI_STEP_SEND, dst = sends ? p->peer : rank;
	uint32_t other = s->match[rank][step];
	struct gci_sim_message *msg;

	if (!m->ranks[dst].messages[window] && make_messages(m, dst, window))
		return NULL;
	msg = &m->ranks[dst].messages[window][s->number[rank][step]];
	if (msg->pair)
		return msg;
	msg->pair = gci_sim_pair(m, sends ? rank : p->peer, dst);
	if (!msg->pair)
		return NULL;
	msg->window = window;
	msg->send_step = sends ? step : other;
	msg->recv_step = sends ? other : step;
	msg->credit_ns = GCI_NEVER;
	msg->nbytes = (sends ? p->src.length : p->dst.length) * m->coll.esize;
	msg->unsent = msg->unarrived = msg->nbytes;
	return msg;
}

void gci_sim_end_step(struct gci_sim *m, int rank, uint32_t window, uint32_t step, uint64_t ns)
{
	gci_events_push(&m->events, (struct gci_ev){.ns = ns,
					    .rank = rank,
					    .window = window,
					    .step = step,
					    .kind = GCI_EV_DONE});
}

/* The processor is this rank's for so long; when it will be done. */
static uint64_t compute(struct gci_sim *m, int rank, uint64_t ns)
{
	struct gci_sim_rank *r = &m->ranks[rank];

	r->cpu_ns = gci_sim_later(r->cpu_ns, m->now) + ns;
	return r->cpu_ns;
}

static uint64_t local_ns(const struct gci_sim *m, uint64_t length)
{
	unsigned __int128 bits = (unsigned __int128)length * m->coll.esize * 8;

	return m->net->local_bps ? (uint64_t)(bits * GCI_NS_PER_S / m->net->local_bps) : 0;
}

/* A SEND's bytes go to its NIC, when its process comes to it. */
static void send_now(struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	struct gci_sim_message *msg = message_of(m, rank, window, step);
	uint64_t ns = msg ? compute(m, rank, gci_sim_send_ns(m, msg)) : 0;

	if (!msg)
		return;
	if (ns == m->now)
		gci_sim_offer(m, msg);
	else
		gci_events_push(&m->events, (struct gci_ev){.ns = ns,
						    .rank = msg->pair->dst,
						    .window = window,
						    .step = gci_sim_number(m, msg),
						    .kind = GCI_EV_POST});
}

/* What its host's NIC has to be free for next. */
static void wake_held(struct gci_sim *m, int rank)
{
	struct gci_sim_rank *r = &m->ranks[rank];
	uint64_t ns;

	if (r->held_at == r->nheld)
		return;
	ns = gci_sim_later(gci_sim_later(r->held[r->held_at].due_ns, r->given_ns), m->now);
	if (r->wakes_ns > m->now && r->wakes_ns <= ns)
		return;
	r->wakes_ns = ns;
	gci_events_push(&m->events, (struct gci_ev){.ns = ns, .rank = rank, .kind = GCI_EV_DUE});
}

/* Those that are due, the earliest first, as fast as the NIC takes them: gci_held_release(). */
static void release_held(struct gci_sim *m, int rank)
{
	struct gci_sim_rank *r = &m->ranks[rank];

	while (r->held_at < r->nheld && r->held[r->held_at].due_ns <= m->now &&
		r->given_ns <= m->now) {
		struct gci_sim_held h = r->held[r->held_at++];
		uint64_t length = gci_sim_sched(m, rank, h.window)->steps[h.step].src.length;

		r->given_ns = gci_sim_later(r->given_ns, m->now) +
			      gci_sim_time(length * m->coll.esize, r->byte_time);
		send_now(m, rank, h.window, h.step);
	}
	wake_held(m, rank);
}

static void start_send(struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	struct gci_sim_rank *r = &m->ranks[rank];
	struct gci_sim_held h = {.window = window, .step = step};
	size_t k = r->nheld;

	h.due_ns = gci_sim_sched(m, rank, window)->steps[step].due_ns;
	if (!h.due_ns) {
		send_now(m, rank, window, step);
		return;
	}
	h.due_ns += window * m->window_ns + (m->op->start_ns ? m->op->start_ns[rank] : 0);
	if (gci_grow(&r->held, &r->held_cap, k + 1, sizeof(*r->held))) {
		m->failed = 1;
		return;
	}
	r->nheld++;
	for (; k > r->held_at && r->held[k - 1].due_ns > h.due_ns; k--)
		r->held[k] = r->held[k - 1];
	r->held[k] = h;
	wake_held(m, rank);
}

static void start_recv(struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	struct gci_sim_message *msg = message_of(m, rank, window, step);

	if (msg)
		gci_sim_ask(m, msg);
}

void gci_sim_received(struct gci_sim *m, struct gci_sim_message *msg)
{
	const struct gci_step *s =
		&gci_sim_sched(m, msg->pair->dst, msg->window)->steps[msg->recv_step];
	uint64_t ns = gci_sim_recv_ns(m, msg);

	if (s->kind == GCI_STEP_RECV_REDUCE)
		ns += local_ns(m, s->dst.length);
	gci_sim_end_step(
		m, msg->pair->dst, msg->window, msg->recv_step, compute(m, msg->pair->dst, ns));
}

static struct gci_sim_instance *instance_of(struct gci_sim_rank *r, uint32_t window)
{
	int i;

	for (i = 0; i < r->ninstances; i++)
		if (r->instances[i].busy && r->instances[i].window == window)
			return &r->instances[i];
	return NULL;
}

static struct gci_sim_instance *idle_instance(struct gci_sim_rank *r)
{
	int i;

	for (i = 0; i < r->ninstances; i++)
		if (!r->instances[i].busy)
			return &r->instances[i];
	return NULL;
}

static void advance(struct gci_sim *m, int rank, struct gci_sim_instance *in)
{
	const struct gci_sched *s = in->ready.sched;
	uint32_t step;

	while (gci_ready_next(&in->ready, &step)) {
		const struct gci_step *p = &s->steps[step];

		if (p->kind == GCI_STEP_SEND)
			start_send(m, rank, in->window, step);
		else if (p->kind <= GCI_STEP_RECV_REDUCE)
			start_recv(m, rank, in->window, step);
		else
			gci_sim_end_step(m, rank, in->window, step,
				compute(m, rank, local_ns(m, p->dst.length)));
	}
}

static void end_window(struct gci_sim *m, int rank, struct gci_sim_instance *in)
{
	struct gci_sim_rank *r = &m->ranks[rank];

	in->busy = 0;
	gci_ready_free(&in->ready);
	if (m->now > m->window_end_ns[in->window])
		m->window_end_ns[in->window] = m->now;
	if (++r->ended == m->nwindows)
		m->r->end_ns[rank] = m->now;
}

static void start_window(struct gci_sim *m, int rank, struct gci_sim_instance *in)
{
	uint32_t window = m->ranks[rank].started++;

	if (gci_ready_init(&in->ready, gci_sim_sched(m, rank, window))) {
		m->failed = 1;
		return;
	}
	in->busy = 1;
	in->window = window;
	advance(m, rank, in);
	if (gci_ready_finished(&in->ready))
		end_window(m, rank, in);
}

/* As many windows under way as may be. */
static void gci_sim_start_windows(struct gci_sim *m, int rank)
{
	struct gci_sim_rank *r = &m->ranks[rank];
	struct gci_sim_instance *in;

	while (!m->failed && r->started < m->nwindows && (in = idle_instance(r)))
		start_window(m, rank, in);
}

static void trace(struct gci_sim *m, const struct gci_sim_event *e)
{
	if (m->op->trace)
		m->op->trace(m->op->ctx, e);
}

void gci_sim_trace(struct gci_sim *m, int rank, uint32_t window, uint32_t step, uint64_t ready_ns,
	uint64_t from_ns, uint64_t to_ns)
{
	const struct gci_step *s = &gci_sim_sched(m, rank, window)->steps[step];
	struct gci_sim_event e = {rank, step, window, s, ready_ns, from_ns, to_ns, 0, 0};

	trace(m, &e);
}

/* A SEND's bytes leave later than it ends: wire.c tells of it. */
static void trace_end(struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	const struct gci_step *s = &gci_sim_sched(m, rank, window)->steps[step];
	uint64_t ns = local_ns(m, s->dst.length);
	const struct gci_sim_times *times;
	struct gci_sim_event e;

	if (!m->op->trace || s->kind == GCI_STEP_SEND)
		return;
	if (s->kind > GCI_STEP_RECV_REDUCE) {
		ns = m->now > ns ? m->now - ns : 0;
		gci_sim_trace(m, rank, window, step, ns, ns, m->now);
		return;
	}
	times = &m->ranks[rank].times[window][m->shapes[m->shape_of[window]].number[rank][step]];
	e = (struct gci_sim_event){rank, step, window, s, times->asked_ns, times->rx_ns, m->now,
		times->queued_ns, times->came_ns};
	trace(m, &e);
}

static void gci_sim_done(struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	struct gci_sim_instance *in = instance_of(&m->ranks[rank], window);

	trace_end(m, rank, window, step);
	gci_ready_done(&in->ready, step);
	advance(m, rank, in);
	if (!gci_ready_finished(&in->ready))
		return;
	end_window(m, rank, in);
	gci_sim_start_windows(m, rank);
}

/* ---- the whole */

#define FEW_WINDOWS 4 /* that tell how it goes on */

/* ---- schedules: windows in the middle are alike, the last one may be shorter */

static int make_shape(struct gci_sim *m, uint64_t window)
{
	struct gci_coll part = gci_window_of(&m->windows, &m->coll, window);

	if (!window)
		m->window_ns = gci_packed_window_ns(part.packed, &part);
	return gci_shape_make(&m->shapes[m->nshapes++], m->op->algorithm, &part, m->op->most_steps);
}

/* By the effort: a few tell how it goes on, or one alone. */
static void limit_windows(struct gci_sim *m)
{
	uint64_t most = m->op->most_steps / (m->r->nsteps ? m->r->nsteps : 1);

	if (m->op->most_steps && m->nwindows > most)
		m->nwindows = most >= FEW_WINDOWS ? (uint32_t)most : 1;
}

/* Where windows need memory, how many are under way depends on that. */
static int open_instances(struct gci_sim *m)
{
	int i;

	for (i = 0; i < m->net->topo->nranks; i++) {
		struct gci_sim_rank *r = &m->ranks[i];
		uint64_t tmp_nbytes = m->shapes[0].sched[i].tmp_len * m->coll.esize;

		r->ninstances = gci_windows_at_once(&m->windows, &m->coll, tmp_nbytes);
		r->instances = gci_calloc((size_t)r->ninstances, sizeof(*r->instances));
		if (!r->instances)
			return GCOLL_ERR_NOMEM;
		if ((uint32_t)r->ninstances < m->at_once)
			m->at_once = (uint32_t)r->ninstances;
	}
	return 0;
}

static int make_shapes(struct gci_sim *m)
{
	uint64_t last = m->windows.n - 1;
	uint32_t w;
	int rc = 0;

	for (w = 0; w < m->nwindows && !rc; w++) {
		int alike = w && !m->coll.counts;

		if (w + 1 == m->nwindows && alike)
			alike = gci_window_of(&m->windows, &m->coll, last).count ==
				m->windows.window;
		if (!alike)
			rc = make_shape(m, w + 1 == m->nwindows ? last : w);
		m->shape_of[w] = m->nshapes - 1;
		if (rc)
			continue;
		m->r->nsteps += m->shapes[m->nshapes - 1].nsteps;
		if (!w)
			limit_windows(m);
	}
	return rc;
}

static int find_even_rates(struct gci_sim *m)
{
	struct gci_coll first = gci_window_of(&m->windows, &m->coll, 0);
	int rc = 0;

	if (!m->op->pace_bps && gci_packed_is_even(&first))
		rc = gci_packed_even_bps(&first, &m->even_bps);
	m->pace_bps = m->op->pace_bps ? m->op->pace_bps : m->even_bps;
	return rc;
}

/* ---- the machine */

static void fill_wires(struct gci_sim *m)
{
	const struct gci_topo *t = m->net->topo;
	int i;

	for (i = 0; i < t->nwires; i++) {
		m->wire_byte_time[i] = byte_time(gci_payload_bps(t->wires[i].rate_bps));
		m->queue_ns[i] = gci_sim_time(t->wires[i].queue_nbytes, m->wire_byte_time[i]);
	}
	/* What is known of a link is known of the wire that is all of it. */
	for (i = 0; i < t->nclusters * t->nclusters; i++) {
		const struct gci_simnet_link *l = &m->net->links[i];
		int wire = t->links[i].own - 1;

		m->pair_byte_time[i] = byte_time(l->pair_bps);
		if (wire < 0 || t->links[i].nroute != 1)
			continue;
		m->wire_byte_time[wire] = byte_time(l->bps);
		m->queue_ns[wire] = gci_sim_time(l->queue_nbytes, m->wire_byte_time[wire]);
	}
}

static int allocate(struct gci_sim *m)
{
	size_t n = (size_t)m->net->topo->nranks, k = (size_t)m->net->topo->nclusters, r;
	size_t w = (size_t)m->net->topo->nwires;

	m->shapes = gci_calloc(m->nwindows, sizeof(*m->shapes));
	m->shape_of = gci_calloc(m->nwindows, sizeof(*m->shape_of));
	m->window_end_ns = gci_calloc(m->nwindows, sizeof(*m->window_end_ns));
	m->ranks = gci_calloc(n, sizeof(*m->ranks));
	m->sends_to = gci_calloc(n * k, 1);
	m->wire_free_ns = gci_calloc(w, sizeof(uint64_t));
	m->wire_coming = gci_calloc(w, sizeof(uint64_t));
	m->wire_nbytes = gci_calloc(w, sizeof(uint64_t));
	m->wire_byte_time = gci_calloc(w, sizeof(uint64_t));
	m->queue_ns = gci_calloc(w, sizeof(uint64_t));
	m->pair_byte_time = gci_calloc(k * k, sizeof(uint64_t));
	m->r->end_ns = gci_calloc(n, sizeof(uint64_t));
	m->r->wan_nbytes = gci_calloc(k * k, sizeof(uint64_t));
	m->r->senders = gci_calloc(k * k, sizeof(uint32_t));
	if (!m->shapes || !m->shape_of || !m->window_end_ns || !m->ranks || !m->sends_to ||
		!m->wire_free_ns || !m->wire_coming || !m->wire_nbytes || !m->wire_byte_time ||
		!m->pair_byte_time || !m->queue_ns || !m->r->end_ns || !m->r->wan_nbytes ||
		!m->r->senders)
		return GCOLL_ERR_NOMEM;
	for (r = 0; r < n; r++) {
		m->ranks[r].messages = gci_calloc(m->nwindows, sizeof(*m->ranks[r].messages));
		m->ranks[r].times = gci_calloc(m->nwindows, sizeof(*m->ranks[r].times));
		if (!m->ranks[r].messages || !m->ranks[r].times)
			return GCOLL_ERR_NOMEM;
		m->ranks[r].byte_time = byte_time(gci_simnet_nic_bps(m->net, (int)r));
		m->ranks[r].port_ns = gci_sim_time(GCI_PORT_NBYTES, m->ranks[r].byte_time);
	}
	fill_wires(m);
	return 0;
}

static void free_rank(struct gci_sim *m, struct gci_sim_rank *r)
{
	uint32_t w;
	int i;

	for (i = 0; r->instances && i < r->ninstances; i++)
		if (r->instances[i].busy)
			gci_ready_free(&r->instances[i].ready);
	for (w = 0; r->messages && w < m->nwindows; w++)
		gci_free(r->messages[w]);
	for (w = 0; r->times && w < m->nwindows; w++)
		gci_free(r->times[w]);
	gci_free(r->instances);
	gci_free(r->held);
	gci_free(r->messages);
	gci_free(r->times);
}

static void free_all(struct gci_sim *m)
{
	struct gci_pair_slab *slab;
	int r;

	while ((slab = m->slabs)) {
		m->slabs = slab->next;
		gci_free(slab);
	}
	gci_hash_free(&m->pairs, NULL);
	for (r = 0; m->ranks && r < m->net->topo->nranks; r++)
		free_rank(m, &m->ranks[r]);
	gci_free(m->ranks);
	for (r = 0; r < m->nshapes; r++)
		gci_shape_free(&m->shapes[r], m->net->topo->nranks);
	gci_free(m->shapes);
	gci_free(m->shape_of);
	gci_free(m->window_end_ns);
	gci_free(m->sends_to);
	gci_free(m->wire_free_ns);
	gci_free(m->wire_coming);
	gci_free(m->wire_nbytes);
	gci_free(m->even_bps);
	gci_free(m->wire_byte_time);
	gci_free(m->pair_byte_time);
	gci_free(m->queue_ns);
	gci_events_free(&m->events);
}

static void handle(struct gci_sim *m, const struct gci_ev *e)
{
	switch (e->kind) {
	case GCI_EV_START:
		gci_sim_start_windows(m, e->rank);
		break;
	case GCI_EV_DUE:
		release_held(m, e->rank);
		break;
	case GCI_EV_NIC:
		gci_sim_nic(m, e->rank);
		break;
	case GCI_EV_POST:
		gci_sim_offer(m, &m->ranks[e->rank].messages[e->window][e->step]);
		break;
	case GCI_EV_CREDIT:
		gci_sim_credit(m, &m->ranks[e->rank].messages[e->window][e->step]);
		break;
	case GCI_EV_WIRE:
		gci_sim_enter_wire(m, m->ranks[e->rank].messages[e->window][e->step].pair, e);
		break;
	case GCI_EV_ARRIVE:
		gci_sim_arrive(m, e);
		break;
	case GCI_EV_ARRIVED:
		gci_sim_arrived(m, &m->ranks[e->rank].messages[e->window][e->step]);
		break;
	case GCI_EV_DONE:
		gci_sim_done(m, e->rank, e->window, e->step);
		break;
	}
}

/* Simulated ranks are all over memory: the next event's things are fetched during this one. */
static void fetch(const struct gci_sim *m, const struct gci_ev *e)
{
	const struct gci_sim_rank *r = e ? &m->ranks[e->rank] : NULL;

	if (!e)
		return;
	__builtin_prefetch(r);
	if (e->kind == GCI_EV_DONE)
		__builtin_prefetch(&gci_sim_sched(m, e->rank, e->window)->steps[e->step]);
	else if (e->kind != GCI_EV_START && e->kind != GCI_EV_NIC && e->kind != GCI_EV_DUE)
		__builtin_prefetch(&r->messages[e->window][e->step]);
}

static int is_late(const struct gci_sim *m)
{
	return m->op->until_ns && m->now > m->op->until_ns;
}

static int run(struct gci_sim *m)
{
	struct gci_ev e;
	int r;

	for (r = 0; r < m->net->topo->nranks; r++)
		gci_events_push(
			&m->events, (struct gci_ev){.ns = m->op->start_ns ? m->op->start_ns[r] : 0,
					    .rank = r,
					    .kind = GCI_EV_START});
	while (!m->failed && gci_events_pop(&m->events, &e)) {
		fetch(m, gci_events_next(&m->events));
		m->now = e.ns;
		m->r->nevents++;
		if (is_late(m))
			break;
		handle(m, &e);
		m->failed |= m->events.failed;
	}
	if (m->failed)
		return GCOLL_ERR_NOMEM;
	for (r = 0; r < m->net->topo->nranks; r++) {
		if (m->ranks[r].ended < m->nwindows && is_late(m)) {
			m->r->ns = GCI_NEVER;
			return 0;
		}
		if (m->ranks[r].ended < m->nwindows)
			return GCOLL_ERR_INVAL; /* it waits for ever: no proved schedule does */
		m->r->ns = m->r->end_ns[r] > m->r->ns ? m->r->end_ns[r] : m->r->ns;
	}
	return 0;
}

static void most(uint64_t *a, uint64_t b)
{
	*a = b > *a ? b : *a;
}

static void busiest(struct gci_sim *m)
{
	const struct gci_pair_slab *slab;
	int r;

	for (r = 0; r < m->net->topo->nranks; r++) {
		const struct gci_sim_rank *k = &m->ranks[r];
		uint64_t both = m->net->host == GCI_HOST_HALF_DUPLEX ? k->tx_nbytes : 0;

		most(&m->r->busiest_ns, gci_sim_time(k->tx_nbytes, k->byte_time));
		most(&m->r->busiest_ns, gci_sim_time(k->rx_nbytes + both, k->byte_time));
	}
	for (r = 0; r < m->net->topo->nwires; r++)
		most(&m->r->busiest_ns, gci_sim_time(m->wire_nbytes[r], m->wire_byte_time[r]));
	for (slab = m->slabs; slab; slab = slab->next)
		for (r = 0; r < slab->n; r++)
			most(&m->r->busiest_ns,
				gci_sim_time(slab->pairs[r].sent, slab->pairs[r].byte_time));
}

/* x + part * n / of, at most GCI_SIM_MOST: times and bytes of absurd messages do not begin anew at
 * 0. */
static uint64_t plus(uint64_t x, uint64_t part, uint64_t n, uint64_t of)
{
	unsigned __int128 sum = x + (unsigned __int128)part * n / of;

	return sum < GCI_SIM_MOST ? (uint64_t)sum : GCI_SIM_MOST;
}

/* When all of the first n windows were done. */
static uint64_t done_ns(const struct gci_sim *m, uint64_t n)
{
	uint64_t ns = 0;

	while (n--)
		most(&ns, m->window_end_ns[n]);
	return ns;
}

/* So many windows tell what as many more take: those that are under way at once, or where fewer than these are simulated
 * half of them. */
static uint32_t stride_of(const struct gci_sim *m)
{
	return m->nwindows == 1 || m->nwindows > m->at_once ? m->at_once : m->nwindows / 2;
}

/* Elements of one that is not the last; of blocks of different lengths all are alike, and it counts as 1. */
static uint64_t window_of(const struct gci_sim *m)
{
	return m->windows.window ? m->windows.window : 1;
}

/* The same of all that were simulated: the operation's last one, where there are several, and so many before it. */
static uint64_t simulated_of(const struct gci_sim *m)
{
	uint64_t last = m->nwindows > 1 ? m->windows.n - 1 : 0;

	return (m->nwindows - 1) * window_of(m) +
	       (m->windows.window ? gci_window_of(&m->windows, &m->coll, last).count : 1);
}

/* What as many windows more take. Once the pipeline is full, those in
 * the middle end at equal intervals, and none in less than whoever works hardest needs for it.
 * Where the last of them did not end after the first, they share all there is: each takes its part
 * of the whole. Of one window alone: where nobody works all the time, as long as that. */
static uint64_t more_ns(const struct gci_sim *m)
{
	uint64_t stride = stride_of(m), k = m->nwindows - 1, ns;
	uint64_t work = plus(0, m->r->busiest_ns, stride * window_of(m), simulated_of(m));

	if (!k)
		return work > m->r->ns ? work : m->r->ns;
	ns = done_ns(m, k) - done_ns(m, k - stride);
	if (!ns)
		return plus(0, m->r->ns, stride * window_of(m), simulated_of(m));
	return work > ns ? work : ns;
}

static void extrapolate(struct gci_sim *m)
{
	uint64_t left = m->windows.n - m->nwindows, more, nmore = left * window_of(m);
	size_t i, n = (size_t)m->net->topo->nclusters;
	int r;

	if (!left)
		return;
	more = more_ns(m);
	m->r->extrapolated = 1;
	m->r->ns = plus(m->r->ns, more, left, stride_of(m));
	for (r = 0; r < m->net->topo->nranks; r++)
		m->r->end_ns[r] = plus(m->r->end_ns[r], more, left, stride_of(m));
	for (i = 0; i < n * n; i++)
		m->r->wan_nbytes[i] =
			plus(m->r->wan_nbytes[i], m->r->wan_nbytes[i], nmore, simulated_of(m));
	m->r->busiest_ns = plus(m->r->busiest_ns, m->r->busiest_ns, nmore, simulated_of(m));
	m->r->nmessages = plus(m->r->nmessages, m->r->nmessages, nmore, simulated_of(m));
}

static void most_tmp(struct gci_sim *m)
{
	int r, i;

	for (i = 0; i < m->nshapes; i++)
		for (r = 0; r < m->net->topo->nranks; r++)
			most(&m->r->most_tmp_nbytes, m->shapes[i].sched[r].tmp_len * m->coll.esize);
}

void gci_sim_result_free(struct gci_sim_result *r)
{
	gci_free(r->end_ns);
	gci_free(r->wan_nbytes);
	gci_free(r->senders);
	memset(r, 0, sizeof(*r));
}

static int simulate(
	const struct gci_simnet *net, const struct gci_sim_op *op, struct gci_sim_result *r)
{
	struct gci_sim m = {.net = net, .op = op, .coll = *op->coll, .r = r};
	int rc;

	gci_windows_cut(
		&m.windows, &m.coll, op->window_nbytes ? op->window_nbytes : GCI_WINDOW_NBYTES);
	gci_windows_segment(&m.coll, &m.windows);
	m.at_once = (uint32_t)gci_windows_at_once(&m.windows, &m.coll, 0);
	m.nwindows = m.windows.n < 2 * m.at_once ? (uint32_t)m.windows.n : 2 * m.at_once;
	r->nwindows = m.windows.n < UINT32_MAX ? (uint32_t)m.windows.n : UINT32_MAX;
	rc = allocate(&m);
	if (!rc)
		rc = make_shapes(&m);
	if (!rc)
		rc = find_even_rates(&m);
	if (!rc)
		rc = open_instances(&m);
	if (!rc)
		rc = run(&m);
	if (!rc && r->ns != GCI_NEVER) {
		busiest(&m);
		extrapolate(&m);
		most_tmp(&m);
	}
	free_all(&m);
	if (rc)
		gci_sim_result_free(r);
	return rc;
}

/* ---- packings */

/* A part of the time by which SENDs at will have to be faster: they are paced, and still they come in bursts. In the lab,
 * waiting is the faster one already where simulations find both the same (a bcast, 8 MiB: 1.00 and 1.10 times the
 * predicted time), and where pairs at their rates lose 2 % of their segments it loses none. */
#define LEEWAY 32

/* Of more bytes for a rank, even rates may be slower by such a part: they have no bursts. What an alltoall has meets at
 * ports from the beginning to the end. In the lab on six grids, 8 MiB, timetables took 0.97 to 1.35 times what was
 * predicted, 1.10 in the mean, and lost up to 5 % of segments; even rates took 1.02 to 1.08 on the four where they are
 * near by prediction, and lost none. 128 MiB on the quickstart's grid took 2.6 times as long by times. */
#define MANY_NBYTES    (8 * GCI_PORT_NBYTES)
#define LEEWAY_OF_MANY 16

/* GCI_NEVER: more than until_ns, or not to be simulated. */
static int time_packed(
	uint64_t *ns, const struct gci_simnet *net, struct gci_sim_op *op, uint64_t until_ns)
{
	struct gci_sim_result r = {0};
	int rc;

	op->until_ns = until_ns;
	rc = simulate(net, op, &r);
	*ns = rc ? GCI_NEVER : r.ns;
	gci_sim_result_free(&r);
	return rc == GCOLL_ERR_NOMEM ? rc : 0;
}

static uint64_t most_at_will(const struct gci_packed *p, enum gci_kind kind, uint64_t timed_ns)
{
	if (kind != GCI_ALLTOALL)
		return timed_ns - timed_ns / LEEWAY;
	return p->nbytes > MANY_NBYTES ? timed_ns + timed_ns / LEEWAY_OF_MANY : timed_ns;
}

static int choose_timing(struct gci_packed *p, const struct gci_simnet *net, struct gci_sim_op *op)
{
	uint64_t at_will, timed;
	int rc, timed_unseen = p->timed;

	p->timed = net->topo->nclusters > 1;
	rc = time_packed(&timed, net, op, 0);
	if (rc || timed == GCI_NEVER || !p->timed) {
		p->timed = timed == GCI_NEVER && timed_unseen;
		p->ns = timed == GCI_NEVER ? p->ns : timed;
		return rc;
	}
	p->ns = timed;
	p->timed = 0;
	rc = time_packed(&at_will, net, op, most_at_will(p, op->coll->kind, timed));
	p->timed = at_will == GCI_NEVER;
	if (!p->timed)
		p->ns = at_will;
	return rc;
}

int gci_timed_make(struct gci_packed **out, const struct gci_simnet *net,
	const struct gci_algorithm *a, const struct gci_coll *c, uint64_t nbytes,
	uint64_t most_steps)
{
	struct gci_coll coll = *c;
	struct gci_sim_op op = {.algorithm = a, .coll = &coll, .most_steps = most_steps};
	int rc = gci_packed_make(out, c, nbytes);

	if (rc || c->counts)
		return rc;
	coll.packed = *out;
	rc = choose_timing(*out, net, &op);
	if (rc) {
		gci_packed_free(*out);
		*out = NULL;
	}
	return rc;
}

int gci_simulate(
	const struct gci_simnet *net, const struct gci_sim_op *op, struct gci_sim_result *r)
{
	struct gci_coll coll = *op->coll;
	struct gci_packed *packed = NULL;
	struct gci_sim_op own = *op;
	int rc = 0;

	memset(r, 0, sizeof(*r));
	if (gci_ineligible(op->algorithm, op->coll))
		return GCOLL_ERR_INVAL;
	if (op->algorithm->traits & GCI_PACKS && !coll.packed) {
		rc = gci_timed_make(&packed, net, op->algorithm, &coll, 0, op->most_steps);
		coll.packed = packed;
	}
	own.coll = &coll;
	if (!rc)
		rc = simulate(net, &own, r);
	gci_packed_free(packed);
	return rc;
}
