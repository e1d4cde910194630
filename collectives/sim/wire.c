/* SPDX-License-Identifier: MIT
 * The simulator's other half, with sim.c: the two call each other (sim_impl.h). Here is how long
 * bytes take. A message is offered, waits for credit or takes allowance, and goes out in pieces:
 * through its host's NIC, the link between clusters and the receiver's NIC, each of which serves
 * what comes in order. What cannot go on yet waits at its sender, as TCP's window makes it wait:
 * while a connection, a link's buffer or the port in front of the receiver has no room. */
#include "collectives/sim/sim_impl.h"

#include "base/clock.h"

#define PIECE_NBYTES  (64u << 10)  /* by which connections of one NIC take turns */
#define LEAST_NBYTES  (8u << 10)   /* no smaller pieces */
#define ALONE_NBYTES  (256u << 10) /* while there is only one, and its process offers no other */
#define MOST_PIECES   32           /* of a message */
#define FRAME_NBYTES  (256u << 10) /* by which messages are dealt to a pair's connections */
#define KERNEL_NBYTES (256u << 10) /* that a connection takes from its process ahead of the NIC */
#define SMALL_NBYTES  1024         /* allowance is not counted for these */

/* ---- a NIC's way out */

static void wake_nic(struct gci_sim *m, int rank, uint64_t ns)
{
	struct gci_sim_rank *r = &m->ranks[rank];

	if (ns < m->now)
		ns = m->now;
	if (r->nic_waits && r->nic_at <= ns)
		return;
	r->nic_waits = 1;
	r->nic_at = ns;
	gci_events_push(&m->events, (struct gci_ev){.ns = ns, .rank = rank, .kind = GCI_EV_NIC});
}

/* The ring is entered at its end: `ring` is the one that is served next. */
static void enter_ring(struct gci_sim_rank *r, struct gci_pair *p)
{
	p->active = 1;
	if (!r->ring) {
		r->ring = r->ring_last = p;
	} else {
		r->ring_last->next_active = p;
		r->ring_last = p;
	}
	p->next_active = NULL;
}

/* A connection takes what its buffer holds, and then the process is done with it. */
static void hand_over(struct gci_sim *m, struct gci_pair *p)
{
	uint64_t most = (uint64_t)KERNEL_NBYTES * (unsigned)p->weight;

	while (p->next_handed) {
		struct gci_sim_message *msg = p->next_handed;

		if (p->unsent_handed + msg->unsent > most && msg->unsent)
			break;
		p->unsent_handed += msg->unsent;
		msg->handed = 1;
		p->next_handed = msg->next;
		gci_sim_end_step(m, p->src, msg->window, msg->send_step, m->now);
	}
}

/* It may be sent. */
static void queue(struct gci_sim *m, struct gci_pair *p, struct gci_sim_message *msg)
{
	struct gci_sim_rank *r = &m->ranks[p->src];
	struct gci_sim_times *times = gci_sim_times(m, msg);

	if (times)
		times->queued_ns = m->now;
	msg->queued = 1;
	p->queued += msg->unsent;
	if (p->tail)
		p->tail->next = msg;
	else
		p->head = msg;
	p->tail = msg;
	if (!p->next_handed)
		p->next_handed = msg;
	if (!p->active)
		enter_ring(r, p);
	hand_over(m, p);
	wake_nic(m, p->src, r->tx_ns);
}

/* ---- credit */

static void expect_credit(struct gci_sim *m, struct gci_sim_message *msg)
{
	gci_events_push(&m->events, (struct gci_ev){.ns = msg->credit_ns,
					    .rank = msg->pair->dst,
					    .window = msg->window,
					    .step = gci_sim_number(m, msg),
					    .kind = GCI_EV_CREDIT});
}

static void count(struct gci_sim *m, const struct gci_pair *p, const struct gci_sim_message *msg)
{
	const struct gci_topo *t = m->net->topo;
	unsigned char *seen = &m->sends_to[p->src * t->nclusters + t->cluster[p->dst]];

	m->r->nmessages++;
	m->r->wan_nbytes[p->link_no] += msg->unsent;
	if (!*seen && msg->unsent) {
		*seen = 1;
		m->r->senders[p->link_no]++;
	}
}

void gci_sim_offer(struct gci_sim *m, struct gci_sim_message *msg)
{
	struct gci_pair *p = msg->pair;
	uint64_t need = msg->unsent + GCI_EAGER_MESSAGE;
	int small = msg->unsent <= SMALL_NBYTES;
	struct gci_sim_times *times = gci_sim_times(m, msg);

	msg->offered = 1;
	if (times)
		times->offered_ns = m->now;
	count(m, p, msg);
	if (msg->credit_ns <= m->now || small) {
		queue(m, p, msg);
		return;
	}
	if (need <= p->eager_left) {
		p->eager_left -= need;
		msg->owes = 1;
		queue(m, p, msg);
	}
	if (msg->asked)
		expect_credit(m, msg);
}

/* From a wire of a way, which takes `all_ns`, to the next one, or from the last to the receiver. `before_ns`: to that wire. */
static uint64_t delay_ns(const struct gci_sim *m, const int *legs, int nlegs, int i,
	uint64_t before_ns, uint64_t all_ns)
{
	uint64_t ns = m->net->topo->wires[legs[i]].delay_ns;

	return i + 1 == nlegs || before_ns + ns > all_ns ? all_ns - before_ns : ns;
}

/* Behind what the links' buffers hold of the other way's data. */
static uint64_t credit_ns(const struct gci_sim *m, const struct gci_pair *p)
{
	uint64_t ns = m->now, before = 0, delay;
	int i;

	for (i = 0; i < p->nback; i++) {
		delay = delay_ns(m, p->back, p->nback, i, before, p->back_ns);
		ns = gci_sim_later(ns, m->wire_free_ns[p->back[i]]) + delay;
		before += delay;
	}
	return p->nback ? ns : ns + p->back_ns;
}

void gci_sim_ask(struct gci_sim *m, struct gci_sim_message *msg)
{
	struct gci_sim_times *times = gci_sim_times(m, msg);

	msg->asked = 1;
	if (times)
		times->asked_ns = m->now;
	msg->credit_ns = credit_ns(m, msg->pair);
	if (msg->offered && (!msg->queued || msg->owes))
		expect_credit(m, msg);
	if (msg->queued && msg->arrived)
		gci_sim_received(m, msg);
}

void gci_sim_credit(struct gci_sim *m, struct gci_sim_message *msg)
{
	struct gci_pair *p = msg->pair;

	if (msg->owes)
		p->eager_left += msg->nbytes + GCI_EAGER_MESSAGE;
	msg->owes = 0;
	if (!msg->queued)
		queue(m, p, msg);
}

/* ---- sending */

static int starts_slowly(const struct gci_sim *m, const struct gci_pair *p)
{
	return m->net->cold && p->link->latency_ns;
}

/* In slow start a connection sends its window once per round trip, and as much more in the next as
 * was acknowledged in this one, if most of the window was needed (Linux, tcp_is_cwnd_limited). How
 * much more may go now; 0: nothing until *until. */
static uint64_t window_left(const struct gci_sim *m, struct gci_pair *p, uint64_t *until)
{
	if (!starts_slowly(m, p))
		return UINT64_MAX;
	if (m->now >= p->round_ns) {
		if (2 * p->round_nbytes > p->window)
			p->window += p->round_nbytes;
		p->round_nbytes = 0;
	}
	*until = gci_sim_later(p->open_ns, p->round_ns);
	return m->now < p->open_ns ? 0 : p->window - p->round_nbytes;
}

/* A round trip begins with what is sent when none is under way: idle connections do not grow. */
static void use_window(const struct gci_sim *m, struct gci_pair *p, uint64_t nbytes)
{
	if (!starts_slowly(m, p))
		return;
	if (m->now >= p->round_ns)
		p->round_ns = m->now + 2 * p->link->latency_ns;
	p->round_nbytes += nbytes;
}

/* When this pair may send: now, or later. */
static uint64_t sendable_ns(const struct gci_sim *m, struct gci_pair *p, uint64_t *most)
{
	const struct gci_sim_rank *to = &m->ranks[p->dst];
	uint64_t at = gci_sim_later(m->now, p->free_ns), room, until = 0, before = 0, full;
	int i;

	*most = window_left(m, p, &until);
	if (!*most)
		at = gci_sim_later(at, until);
	for (i = 0; i < p->nlegs; i++) {
		const int leg = p->legs[i];

		room = m->queue_ns[leg] + before;
		full = gci_sim_later(m->wire_free_ns[leg], m->now + before) +
		       gci_sim_time(m->wire_coming[leg], m->wire_byte_time[leg]);
		if (m->queue_ns[leg] && full > room)
			at = gci_sim_later(at, full - room);
		before += delay_ns(m, p->legs, p->nlegs, i, before, p->link->latency_ns);
	}
	room = to->port_ns + p->link->latency_ns;
	if (m->op->pace_bps && m->net->topo->cluster[p->src] == m->net->topo->cluster[p->dst])
		room = to->port_ns / GCI_SIM_NEAR_PART + p->link->latency_ns;
	if (to->rx_ns > room)
		at = gci_sim_later(at, to->rx_ns - room);
	return at;
}

static int takes_turns(const struct gci_sim *m)
{
	return m->net->host == GCI_HOST_FAIR;
}

/* How many of the pair's connections have something to send: a short message goes by one. */
static uint64_t busy_streams(const struct gci_pair *p)
{
	uint64_t n = p->queued / FRAME_NBYTES + (p->queued % FRAME_NBYTES != 0);

	return n < 1 ? 1 : n < (uint64_t)p->weight ? n : (uint64_t)p->weight;
}

/* Connections take turns packet by packet. Four pieces to a message come close to that, and many
 * pieces take long to simulate. */
static uint64_t piece_of(const struct gci_sim *m, const struct gci_pair *p)
{
	const struct gci_sim_rank *r = &m->ranks[p->src];
	uint64_t part = p->head->nbytes / 4;

	if (!takes_turns(m))
		return UINT64_MAX;
	if (part > PIECE_NBYTES)
		part = gci_sim_later(PIECE_NBYTES, p->head->nbytes / MOST_PIECES);
	if (part < LEAST_NBYTES)
		part = LEAST_NBYTES;
	if (r->ring == r->ring_last && r->cpu_ns <= m->now && part < ALONE_NBYTES)
		part = ALONE_NBYTES;
	return part * busy_streams(p);
}

/* A piece is at a wire, which passes bytes on as they come, after those that came before. */
void gci_sim_enter_wire(struct gci_sim *m, const struct gci_pair *p, const struct gci_ev *e)
{
	const int leg = p->legs[e->leg];
	struct gci_ev next = *e;
	uint64_t before = 0, delay = 0;
	int i;

	for (i = 0; i <= e->leg; i++) {
		before += delay;
		delay = delay_ns(m, p->legs, p->nlegs, i, before, p->link->latency_ns);
	}
	next.ns = gci_sim_later(m->now, m->wire_free_ns[leg]);
	m->wire_free_ns[leg] = next.ns + gci_sim_time(e->nbytes, m->wire_byte_time[leg]);
	m->wire_nbytes[leg] += e->nbytes;
	next.last_ns = gci_sim_later(e->last_ns, m->wire_free_ns[leg]) + delay;
	next.ns += delay;
	m->wire_coming[leg] -= e->leg ? e->nbytes : 0;
	if (++next.leg == p->nlegs)
		next.kind = GCI_EV_ARRIVE;
	gci_events_push(&m->events, next);
}

/* A piece of the pair's first message goes out now. */
static void send_piece(struct gci_sim *m, struct gci_pair *p, uint64_t most)
{
	struct gci_sim_rank *r = &m->ranks[p->src];
	struct gci_sim_message *msg = p->head;
	struct gci_sim_times *times = gci_sim_times(m, msg);
	uint64_t n = piece_of(m, p);
	struct gci_ev e = {.rank = p->dst,
		.window = msg->window,
		.step = gci_sim_number(m, msg),
		.kind = GCI_EV_WIRE};
	int i;

	n = msg->unsent < n ? msg->unsent : n;
	n = n < most ? n : most;
	if (times && msg->unsent == msg->nbytes)
		times->tx_ns = m->now;
	r->tx_ns = m->now + gci_sim_time(n, r->byte_time);
	p->free_ns = gci_sim_later(p->free_ns, m->now) + gci_sim_time(n, p->byte_time);
	e.nbytes = (uint32_t)n;
	e.last_ns = gci_sim_later(r->tx_ns, p->free_ns);
	if (m->net->host == GCI_HOST_HALF_DUPLEX)
		r->rx_ns = gci_sim_later(r->rx_ns, r->tx_ns);
	use_window(m, p, n);
	p->sent += n;
	p->queued -= n;
	r->tx_nbytes += n;
	m->ranks[p->dst].rx_nbytes += n;
	msg->unsent -= n;
	if (msg->handed)
		p->unsent_handed -= n;
	for (i = 1; i < p->nlegs; i++)
		m->wire_coming[p->legs[i]] += n;
	if (p->nlegs) {
		gci_sim_enter_wire(m, p, &e);
	} else {
		e.kind = GCI_EV_ARRIVE;
		e.ns = m->now + p->link->latency_ns;
		e.last_ns += p->link->latency_ns;
		gci_events_push(&m->events, e);
	}
	hand_over(m, p);
	if (msg->unsent)
		return;
	p->head = msg->next;
	if (!p->head)
		p->tail = NULL;
	if (times)
		gci_sim_trace(m, p->src, msg->window, msg->send_step, times->offered_ns,
			times->tx_ns, r->tx_ns);
}

/* The first pair of the ring goes to its end, or out of it. */
static void turn_ring(struct gci_sim_rank *r)
{
	struct gci_pair *p = r->ring;

	r->ring = p->next_active;
	p->next_active = NULL;
	p->active = 0;
	if (p->head)
		enter_ring(r, p);
}

void gci_sim_nic(struct gci_sim *m, int rank)
{
	struct gci_sim_rank *r = &m->ranks[rank];
	uint64_t free_ns =
		m->net->host == GCI_HOST_HALF_DUPLEX ? gci_sim_later(r->tx_ns, r->rx_ns) : r->tx_ns;
	uint64_t soonest = GCI_NEVER, at, most;
	struct gci_pair *last = r->ring_last, *p;

	if (r->nic_at != m->now || !r->nic_waits)
		return; /* another event is sooner, or was */
	r->nic_waits = 0;
	if (!r->ring)
		return;
	if (free_ns > m->now) {
		wake_nic(m, rank, free_ns);
		return;
	}
	do {
		p = r->ring;
		at = sendable_ns(m, p, &most);
		if (at <= m->now) {
			send_piece(m, p, most);
			if (takes_turns(m) || !p->head)
				turn_ring(r);
			if (r->ring)
				wake_nic(m, rank, r->tx_ns);
			return;
		}
		soonest = at < soonest ? at : soonest;
		turn_ring(r);
	} while (p != last);
	wake_nic(m, rank, soonest);
}

/* ---- arriving */

/* Acknowledgements share the way out; they matter while it is busy. */
static void acknowledge(struct gci_sim *m, struct gci_sim_rank *r, uint64_t nbytes)
{
	if (takes_turns(m) && r->tx_ns > m->now)
		r->tx_ns += gci_sim_time(nbytes * m->net->ack_ppm / 1000000, r->byte_time);
}

/* The port's buffer is full. From near, the sender's window has closed by itself; from far, what is
 * under way is lost, and comes again a round trip later. */
static int is_lost(struct gci_sim *m, const struct gci_pair *p, const struct gci_ev *e)
{
	const struct gci_sim_rank *r = &m->ranks[e->rank];
	uint64_t rtt = p->link->latency_ns + p->back_ns;
	struct gci_ev again = *e;

	if (!takes_turns(m) || r->rx_ns <= m->now + r->port_ns || rtt <= r->port_ns)
		return 0;
	again.ns += rtt;
	again.last_ns += rtt;
	gci_events_push(&m->events, again);
	return 1;
}

void gci_sim_arrive(struct gci_sim *m, const struct gci_ev *e)
{
	struct gci_sim_rank *r = &m->ranks[e->rank];
	struct gci_sim_message *msg = &r->messages[e->window][e->step];
	struct gci_sim_times *times = gci_sim_times(m, msg);
	uint64_t free_ns = r->rx_ns;

	if (is_lost(m, msg->pair, e))
		return;
	if (times && msg->unarrived == msg->nbytes)
		times->rx_ns = m->now;
	if (m->net->host == GCI_HOST_HALF_DUPLEX)
		free_ns = gci_sim_later(free_ns, r->tx_ns);
	r->rx_ns = gci_sim_later(free_ns, m->now) + gci_sim_time(e->nbytes, r->byte_time);
	msg->end_ns = gci_sim_later(msg->end_ns, gci_sim_later(r->rx_ns, e->last_ns));
	msg->unarrived -= e->nbytes;
	acknowledge(m, r, e->nbytes);
	if (msg->unarrived)
		return;
	if (times)
		times->came_ns = msg->end_ns;
	gci_events_push(&m->events, (struct gci_ev){.ns = msg->end_ns,
					    .rank = e->rank,
					    .window = e->window,
					    .step = e->step,
					    .kind = GCI_EV_ARRIVED});
}

void gci_sim_arrived(struct gci_sim *m, struct gci_sim_message *msg)
{
	msg->arrived = 1;
	if (msg->asked)
		gci_sim_received(m, msg);
}
