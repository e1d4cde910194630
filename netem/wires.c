/* SPDX-License-Identifier: MIT */
#include "netem/wires.h"

#include "base/mem.h"
#include "base/prng.h"

#include <math.h>
#include <stddef.h>

#define NONE        UINT32_MAX
#define FLOW_SLOTS  4096 /* connections that share one share their limit */
#define MOST_PROBES 64
#define CARDS       32768 /* of more senders and paths some share one */

/* What the caller knows as one packet. */
struct whole {
	struct gci_wire_packet packet;
	uint32_t refs; /* runs of it that are here */
	uint32_t next_free;
};

/* Segments in a row that are still together. */
struct run {
	uint32_t whole, next; /* next: in a wire's or a card's queue, or free */
	uint64_t since_ns;    /* in that queue */
	uint16_t first, count;
	uint16_t path, hop;
	uint8_t corrupt;
};

struct path {
	int wires[GCI_WIRES_MAX_HOPS], n;
};

struct codel {
	uint64_t above_ns; /* when it will have been too long for an interval; 0: it is not */
	uint64_t next_ns;
	uint32_t count, count_before;
	int dropping;
};

struct wire {
	struct gci_wire_model model;
	struct gci_wire_counts counts;
	uint32_t head, tail; /* waiting runs */
	uint64_t queued;     /* their bytes */
	uint32_t sending;    /* the run in the serializer, or NONE */
	struct codel codel;
	uint64_t newest_ns; /* when the last packet was as late as it is long */
	int is_losing;      /* Gilbert's bad state */
	uint64_t *flow_ns;  /* [FLOW_SLOTS]: when each may send again */
};

/* Of a sender how fast its packets come, and by each path in what order and how fast they leave: those of ways that take
 * longer may well be there at once with what it sent later. */
struct card {
	uint64_t key;
	int is_taken;
	uint64_t free_ns;    /* when it has sent what came */
	uint64_t left_ns;    /* when the last of what left did, or so it counts */
	uint32_t head, tail; /* runs that are due */
};

/* A run arrives at its hop, or is due to leave the last; or a wire's serializer is through with one, or
 * the first of a card may leave. */
struct event {
	uint64_t ns, seq;
	uint32_t run; /* NONE: of a wire, or a card */
	int at;
};

struct calendar {
	struct event *heap;
	size_t n, cap;
};

struct gci_wires {
	struct wire *wires;
	int nwires;
	struct path *paths;
	size_t npaths, paths_cap;
	struct card *cards; /* [CARDS]: by their keys, the next free one where another has it */
	struct whole *wholes;
	struct run *runs;
	size_t nwholes, wholes_cap, nruns, runs_cap;
	uint32_t free_whole, free_run;
	struct calendar within, exits; /* exits: what leaves the last wire of its path */
	uint64_t seq;
	uint64_t least_ns; /* from any event within to the exit that it may bring */
	struct gci_prng prng;
	/* Wholes of which nothing is left, to be told. */
	uint32_t gone;
};

struct gci_wires *gci_wires_new(int nwires, uint64_t seed)
{
	struct gci_wires *w = gci_calloc(1, sizeof(*w));
	int i;

	if (!w)
		return NULL;
	w->wires = gci_calloc((size_t)nwires, sizeof(*w->wires));
	w->cards = gci_calloc(CARDS, sizeof(*w->cards));
	w->nwires = nwires;
	w->prng.state = seed;
	w->free_whole = w->free_run = w->gone = NONE;
	for (i = 0; w->wires && i < nwires; i++)
		w->wires[i].head = w->wires[i].tail = w->wires[i].sending = NONE;
	if (w->wires && w->cards)
		return w;
	gci_wires_free(w);
	return NULL;
}

void gci_wires_free(struct gci_wires *w)
{
	int i;

	for (i = 0; w && w->wires && i < w->nwires; i++)
		gci_free(w->wires[i].flow_ns);
	if (w) {
		gci_free(w->wires);
		gci_free(w->cards);
		gci_free(w->paths);
		gci_free(w->wholes);
		gci_free(w->runs);
		gci_free(w->within.heap);
		gci_free(w->exits.heap);
	}
	gci_free(w);
}

void gci_wires_set(struct gci_wires *w, int wire, const struct gci_wire_model *model)
{
	int i;

	w->wires[wire].model = *model;
	w->least_ns = GCI_NEVER;
	for (i = 0; i < w->nwires; i++) {
		const struct gci_wire_model *m = &w->wires[i].model;
		uint64_t least = m->reorder_ppm || m->jitter_ns > m->delay_ns
					 ? 0
					 : m->delay_ns - m->jitter_ns;

		w->least_ns = least < w->least_ns ? least : w->least_ns;
	}
}

int gci_wires_path(struct gci_wires *w, const int *wires, int n)
{
	int i;

	if (gci_grow(&w->paths, &w->paths_cap, w->npaths + 1, sizeof(*w->paths)))
		return -1;
	for (i = 0; i < n; i++)
		w->paths[w->npaths].wires[i] = wires[i];
	w->paths[w->npaths].n = n;
	return (int)w->npaths++;
}

const struct gci_wire_counts *gci_wires_counts(const struct gci_wires *w, int wire)
{
	return &w->wires[wire].counts;
}

/* ---- events */

static int is_before(const struct event *a, const struct event *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->seq < b->seq;
}

/* There is room: see copy_run. */
static void push(struct calendar *c, struct event e)
{
	size_t i = c->n++;

	for (; i && is_before(&e, &c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		c->heap[i] = c->heap[(i - 1) / 2];
	c->heap[i] = e;
}

static struct event pop(struct calendar *c)
{
	struct event top = c->heap[0], e = c->heap[--c->n];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < c->n) {
		if (child + 1 < c->n && is_before(&c->heap[child + 1], &c->heap[child]))
			child++;
		if (!is_before(&c->heap[child], &e))
			break;
		c->heap[i] = c->heap[child];
		i = child;
	}
	c->heap[i] = e;
	return top;
}

static int is_due(const struct calendar *c, uint64_t now)
{
	return c->n && c->heap[0].ns <= now;
}

/* ---- packets and their runs */

/* A copy of a run; NONE: out of memory. Runs wait in a queue or for one event each, so that there is
 * always room for that. */
static uint32_t copy_run(struct gci_wires *w, const struct run *of)
{
	uint32_t i = w->free_run;
	struct run copy = *of; /* it may move */

	if (i != NONE) {
		w->free_run = w->runs[i].next;
	} else {
		size_t n = w->nruns + 1, events = n + (size_t)w->nwires;

		if (n > NONE || gci_grow(&w->runs, &w->runs_cap, n, sizeof(*w->runs)) ||
			gci_grow(&w->within.heap, &w->within.cap, events, sizeof(struct event)) ||
			gci_grow(&w->exits.heap, &w->exits.cap, n, sizeof(struct event)))
			return NONE;
		i = (uint32_t)w->nruns++;
	}
	w->runs[i] = copy;
	w->wholes[copy.whole].refs++;
	return i;
}

/* True when it was the last of its packet. */
static int free_run(struct gci_wires *w, uint32_t run)
{
	struct run *r = &w->runs[run];

	r->next = w->free_run;
	w->free_run = run;
	return !--w->wholes[r->whole].refs;
}

static void free_whole(struct gci_wires *w, uint32_t whole)
{
	w->wholes[whole].next_free = w->free_whole;
	w->free_whole = whole;
}

static void let_go(struct gci_wires *w, uint32_t run)
{
	uint32_t whole = w->runs[run].whole;

	if (!free_run(w, run))
		return;
	w->wholes[whole].next_free = w->gone;
	w->gone = whole;
}

static uint64_t run_nbytes(const struct gci_wires *w, const struct run *r)
{
	const struct gci_wire_packet *p = &w->wholes[r->whole].packet;

	return (uint64_t)(r->count - 1) * p->segment_nbytes +
	       (r->first + r->count == p->nsegs ? p->last_nbytes : p->segment_nbytes);
}

/* The segments behind the first n, as a run of their own; NONE, out of memory: they are lost. */
static uint32_t split(struct gci_wires *w, uint32_t run, uint16_t n)
{
	uint32_t rest = copy_run(w, &w->runs[run]);

	if (rest != NONE) {
		w->runs[rest].first = (uint16_t)(w->runs[rest].first + n);
		w->runs[rest].count = (uint16_t)(w->runs[rest].count - n);
	}
	w->runs[run].count = n;
	return rest;
}

static uint64_t time_of(uint64_t nbytes, uint64_t bps)
{
	return (uint64_t)((unsigned __int128)nbytes * 8 * GCI_NS_PER_S / bps);
}

/* ---- senders' cards */

static uint64_t card_bps(const struct gci_wires *w, const struct run *r)
{
	return w->wires[w->paths[r->path].wires[0]].model.sender_bps;
}

/* At its sender, or (leaving) at the end of its path. NULL: all that comes was sent at once. */
static struct card *card_of(const struct gci_wires *w, const struct run *r, int leaving)
{
	uint64_t key =
		gci_digest(w->wholes[r->whole].packet.sender, leaving ? 1 + (uint64_t)r->path : 0);
	struct card *c = NULL;
	size_t i;

	if (!card_bps(w, r))
		return NULL;
	for (i = 0; i < MOST_PROBES; i++) {
		c = &w->cards[(key + i) % CARDS];
		if (c->is_taken && c->key == key)
			return c;
		if (!c->is_taken)
			break;
	}
	if (!c->is_taken)
		*c = (struct card){.key = key, .is_taken = 1, .head = NONE, .tail = NONE};
	return c;
}

/* How long its card takes for a run; none, if the model has changed since. */
static uint64_t card_ns(const struct gci_wires *w, const struct run *r)
{
	return card_bps(w, r) ? time_of(run_nbytes(w, r), card_bps(w, r)) : 0;
}

/* When its first byte came, if all was seen at `now`. */
static uint64_t sent_at(const struct gci_wires *w, const struct run *r, uint64_t now)
{
	struct card *c = card_of(w, r, 0);
	uint64_t begin;

	if (!c)
		return now;
	begin = c->free_ns > now ? c->free_ns : now;
	c->free_ns = begin + card_ns(w, r);
	return begin;
}

/* When the first that is due may leave. What is late makes up for it, by a third faster than the card: what the card
 * sends at full rate would be late for ever, and the later with each time that somebody looks late. */
static void push_first(struct gci_wires *w, struct card *c)
{
	const struct run *r = &w->runs[c->head];
	uint64_t ns = card_ns(w, r), at = c->left_ns + ns;

	if (at > r->since_ns + GCI_WIRES_LATE_NS)
		at -= ns / 4;

	push(&w->exits, (struct event){at > r->since_ns ? at : r->since_ns, w->seq++, NONE,
				(int)(c - w->cards)});
}

/* Behind what is due of the same sender; from `ns` on. */
static void wait_for_card(struct gci_wires *w, struct card *c, uint32_t run, uint64_t ns)
{
	w->runs[run].since_ns = ns;
	w->runs[run].next = NONE;
	if (c->head == NONE) {
		c->head = c->tail = run;
		push_first(w, c);
	} else {
		w->runs[c->tail].next = run;
		c->tail = run;
	}
}

/* The first of those that are due, which may leave from `ns` on and does so at `now`. */
static uint32_t leave_card(struct gci_wires *w, struct card *c, uint64_t ns, uint64_t now)
{
	uint32_t run = c->head;

	c->left_ns = now > ns + GCI_WIRES_LATE_NS ? now - GCI_WIRES_LATE_NS : ns;
	c->head = w->runs[run].next;
	if (c->head != NONE)
		push_first(w, c);
	return run;
}

/* ---- what a wire does, in the order in which it does it */

static int happens(struct gci_wires *w, uint32_t ppm)
{
	return ppm && gci_prng_below(&w->prng, 1000000) < ppm;
}

/* Gilbert: what is sent in the bad state is lost. It ends after `loss_burst` segments on average, and
 * begins as often as the loss over all asks for. */
static int is_lost(struct gci_wires *w, struct wire *wire)
{
	const struct gci_wire_model *m = &wire->model;
	double loss = m->loss_ppm / 1e6, chance;

	if (m->loss_burst <= 1 || !m->loss_ppm || m->loss_ppm >= 1000000)
		return happens(w, m->loss_ppm);
	chance = wire->is_losing ? 1.0 / m->loss_burst : loss / (m->loss_burst * (1 - loss));
	if ((double)(gci_prng_next(&w->prng) >> 11) * 0x1p-53 < chance)
		wire->is_losing = !wire->is_losing;
	return wire->is_losing;
}

static uint64_t way_ns(struct gci_wires *w, struct wire *wire, int is_alone)
{
	const struct gci_wire_model *m = &wire->model;
	uint64_t early;

	if (!is_alone)
		return m->delay_ns;
	if (happens(w, m->reorder_ppm)) {
		wire->counts.reordered++;
		return 0;
	}
	if (!m->jitter_ns)
		return m->delay_ns;
	early = gci_prng_below(&w->prng, 2 * m->jitter_ns + 1);
	return m->delay_ns + m->jitter_ns > early ? m->delay_ns + m->jitter_ns - early : 0;
}

static void go(struct gci_wires *w, struct wire *wire, uint32_t run, uint64_t ns, int is_alone)
{
	const struct gci_wire_model *m = &wire->model;
	struct run *r = &w->runs[run];
	uint64_t nbytes = run_nbytes(w, r);

	wire->counts.passed += r->count;
	wire->counts.nbytes += nbytes;
	if (m->sender_bps && (!m->rate_bps || m->sender_bps < m->rate_bps)) {
		ns += time_of(nbytes, m->sender_bps) -
		      (m->rate_bps ? time_of(nbytes, m->rate_bps) : 0);
		ns = ns > wire->newest_ns ? ns : wire->newest_ns;
		wire->newest_ns = ns;
	}
	ns += way_ns(w, wire, is_alone);
	push(++r->hop == w->paths[r->path].n ? &w->exits : &w->within,
		(struct event){ns, w->seq++, run, 0});
}

/* Each packet for itself, where packets are told apart by more than their loss. */
static void go_alone(struct gci_wires *w, struct wire *wire, uint32_t run, uint64_t ns)
{
	uint32_t other = NONE;

	if (happens(w, wire->model.corrupt_ppm)) {
		w->runs[run].corrupt = 1;
		wire->counts.corrupted++;
	}
	if (happens(w, wire->model.duplicate_ppm))
		other = copy_run(w, &w->runs[run]);
	go(w, wire, run, ns, 1);
	if (other == NONE)
		return;
	wire->counts.duplicated++;
	go(w, wire, other, ns, 1);
}

/* Out of the serializer: some of it is lost, the rest goes its way. */
static void cross(struct gci_wires *w, struct wire *wire, uint32_t run, uint64_t ns)
{
	const struct gci_wire_model *m = &wire->model;
	int is_alone = m->jitter_ns || m->reorder_ppm || m->duplicate_ppm || m->corrupt_ppm;
	uint16_t n, count;
	uint32_t rest;
	int lost;

	while (run != NONE) {
		count = w->runs[run].count;
		n = 0;
		do {
			lost = is_lost(w, wire);
			n++;
		} while (!lost && !is_alone && n < count);
		rest = n < count ? split(w, run, n) : NONE;
		if (lost) {
			wire->counts.lost++;
			w->runs[run].count--;
		}
		if (!w->runs[run].count)
			let_go(w, run);
		else if (is_alone)
			go_alone(w, wire, run, ns);
		else
			go(w, wire, run, ns, 0);
		run = rest;
	}
}

/* A connection's own limit: what came too early waits, for a round trip at most. */
static void limit_flow(struct gci_wires *w, struct wire *wire, uint32_t run, uint64_t ns)
{
	const struct gci_wire_model *m = &wire->model;
	const struct run *r = &w->runs[run];
	uint64_t *free_ns, begin, most;

	if (!m->flow_rate_bps) {
		cross(w, wire, run, ns);
		return;
	}
	if (!wire->flow_ns)
		wire->flow_ns = gci_calloc(FLOW_SLOTS, sizeof(*wire->flow_ns));
	if (!wire->flow_ns) {
		wire->counts.overflowed += r->count;
		let_go(w, run);
		return;
	}
	free_ns = &wire->flow_ns[w->wholes[r->whole].packet.flow % FLOW_SLOTS];
	begin = *free_ns > ns ? *free_ns : ns;
	most = time_of(UINT64_C(32) * 1514, m->flow_rate_bps);
	if (begin - ns > (most > 2 * m->delay_ns ? most : 2 * m->delay_ns)) {
		wire->counts.overflowed += r->count;
		let_go(w, run);
		return;
	}
	*free_ns = begin + time_of(run_nbytes(w, r), m->flow_rate_bps);
	cross(w, wire, run, *free_ns);
}

static void serialize(struct gci_wires *w, int at, uint32_t run, uint64_t ns)
{
	struct wire *wire = &w->wires[at];

	wire->sending = run;
	push(&w->within,
		(struct event){ns + time_of(run_nbytes(w, &w->runs[run]), wire->model.rate_bps),
			w->seq++, NONE, at});
}

static void enter(struct gci_wires *w, int at, uint32_t run, uint64_t ns)
{
	struct wire *wire = &w->wires[at];
	struct run *r = &w->runs[run];
	const struct gci_wire_packet *p = &w->wholes[r->whole].packet;
	uint64_t nbytes = run_nbytes(w, r), room = UINT64_MAX;
	uint16_t fits = r->count;

	wire->counts.entered += r->count;
	wire->counts.entered_nbytes += nbytes;
	if (wire->sending == NONE && !wire->model.rate_bps) {
		limit_flow(w, wire, run, ns);
		return;
	}
	if (wire->sending == NONE) {
		serialize(w, at, run, ns);
		return;
	}
	if (wire->model.queue_nbytes)
		room = wire->model.queue_nbytes > wire->queued
			       ? wire->model.queue_nbytes - wire->queued
			       : 0;
	if (nbytes > room) {
		fits = (uint16_t)(room / p->segment_nbytes);
		wire->counts.overflowed += r->count - fits;
	}
	if (!fits) {
		let_go(w, run);
		return;
	}
	r->count = fits;
	r->since_ns = ns;
	r->next = NONE;
	if (wire->head == NONE)
		wire->head = run;
	else
		w->runs[wire->tail].next = run;
	wire->tail = run;
	wire->queued += run_nbytes(w, r);
	if (wire->queued > wire->counts.queue_most_nbytes)
		wire->counts.queue_most_nbytes = wire->queued;
}

/* ---- the queue's other end */

/* Whether CoDel may drop a segment of the first in the queue. */
static int is_late(struct gci_wires *w, struct wire *wire, uint64_t ns)
{
	const struct gci_wire_model *m = &wire->model;
	struct codel *c = &wire->codel;
	const struct run *r = wire->head == NONE ? NULL : &w->runs[wire->head];

	if (!r || ns - r->since_ns < m->codel_target_ns ||
		wire->queued <= w->wholes[r->whole].packet.segment_nbytes) {
		c->above_ns = 0;
		return 0;
	}
	if (!c->above_ns)
		c->above_ns = ns + m->codel_interval_ns;
	return ns >= c->above_ns;
}

static void drop_first(struct gci_wires *w, struct wire *wire)
{
	uint32_t run = wire->head;
	struct run *r = &w->runs[run];
	uint64_t before = run_nbytes(w, r);

	wire->counts.early++;
	if (r->count > 1) {
		r->first++;
		r->count--;
		wire->queued -= before - run_nbytes(w, r);
		return;
	}
	wire->queued -= before;
	wire->head = r->next;
	let_go(w, run);
}

static uint64_t after(const struct wire *wire, uint64_t ns)
{
	return ns + (uint64_t)((double)wire->model.codel_interval_ns / sqrt(wire->codel.count));
}

static void codel(struct gci_wires *w, struct wire *wire, uint64_t ns)
{
	struct codel *c = &wire->codel;
	int late = is_late(w, wire, ns);
	uint32_t more;

	if (!late) {
		c->dropping = 0;
		return;
	}
	if (!c->dropping) {
		drop_first(w, wire);
		c->dropping = is_late(w, wire, ns);
		more = c->count - c->count_before;
		c->count =
			more > 1 && ns - c->next_ns < 16 * wire->model.codel_interval_ns ? more : 1;
		c->count_before = c->count;
		c->next_ns = after(wire, ns);
		return;
	}
	while (c->dropping && ns >= c->next_ns) {
		drop_first(w, wire);
		c->count++;
		c->dropping = is_late(w, wire, ns);
		if (c->dropping)
			c->next_ns = after(wire, c->next_ns);
	}
}

/* The serializer is through with a run. */
static void on_sent(struct gci_wires *w, int at, uint64_t ns)
{
	struct wire *wire = &w->wires[at];
	uint32_t run = wire->sending;

	wire->sending = NONE;
	limit_flow(w, wire, run, ns);
	if (wire->model.codel_target_ns)
		codel(w, wire, ns);
	/* Without a rate any more, all that waited goes at once. */
	while (wire->head != NONE && wire->sending == NONE) {
		run = wire->head;
		wire->head = w->runs[run].next;
		wire->queued -= run_nbytes(w, &w->runs[run]);
		if (wire->model.rate_bps)
			serialize(w, at, run, ns);
		else
			limit_flow(w, wire, run, ns);
	}
}

/* ---- in and out */

static uint32_t take_whole(struct gci_wires *w, const struct gci_wire_packet *p)
{
	uint32_t i = w->free_whole;

	if (i != NONE) {
		w->free_whole = w->wholes[i].next_free;
	} else {
		if (w->nwholes >= NONE ||
			gci_grow(&w->wholes, &w->wholes_cap, w->nwholes + 1, sizeof(*w->wholes)))
			return NONE;
		i = (uint32_t)w->nwholes++;
	}
	w->wholes[i] = (struct whole){.packet = *p};
	return i;
}

/* What is within, up to `now`. */
static void advance(struct gci_wires *w, uint64_t now)
{
	struct event e;

	while (is_due(&w->within, now)) {
		e = pop(&w->within);
		if (e.run == NONE)
			on_sent(w, e.at, e.ns);
		else
			enter(w, w->paths[w->runs[e.run].path].wires[w->runs[e.run].hop], e.run,
				e.ns);
	}
}

int gci_wires_put(struct gci_wires *w, int path, const struct gci_wire_packet *p, uint64_t now)
{
	uint32_t whole, run = NONE;
	uint64_t begin;

	advance(w, now);
	whole = take_whole(w, p);
	if (whole != NONE)
		run = copy_run(w,
			&(struct run){.whole = whole, .count = p->nsegs, .path = (uint16_t)path});
	if (run == NONE) {
		if (whole != NONE)
			free_whole(w, whole);
		return -1;
	}
	begin = sent_at(w, &w->runs[run], now);
	if (begin > now)
		push(&w->within, (struct event){begin, w->seq++, run, 0});
	else
		enter(w, w->paths[path].wires[0], run, now);
	return 0;
}

uint64_t gci_wires_next(const struct gci_wires *w)
{
	uint64_t next = w->exits.n ? w->exits.heap[0].ns : GCI_NEVER;

	if (w->gone != NONE)
		return 0;
	if (w->within.n && w->within.heap[0].ns + w->least_ns < next)
		next = w->within.heap[0].ns + w->least_ns;
	return next;
}

static void leave(struct gci_wires *w, uint32_t run, uint64_t ns, struct gci_wire_out *out)
{
	const struct run *r = &w->runs[run];
	uint32_t whole = r->whole;

	*out = (struct gci_wire_out){.cookie = w->wholes[whole].packet.cookie,
		.due_ns = ns,
		.path = r->path,
		.first = r->first,
		.count = r->count,
		.corrupt = r->corrupt};
	out->last = free_run(w, run);
	if (out->last)
		free_whole(w, whole);
}

int gci_wires_take(struct gci_wires *w, uint64_t now, uint64_t ahead, struct gci_wire_out *out)
{
	struct card *c;
	struct event e;
	uint32_t whole;

	advance(w, now);
	while (is_due(&w->exits, now + ahead)) {
		e = pop(&w->exits);
		c = e.run == NONE ? NULL : card_of(w, &w->runs[e.run], 1);
		if (c) {
			wait_for_card(w, c, e.run, e.ns);
			continue;
		}
		if (e.run == NONE) {
			e.run = leave_card(w, &w->cards[e.at], e.ns, now);
			e.ns = w->runs[e.run].since_ns;
		}
		leave(w, e.run, e.ns, out);
		return 1;
	}
	if (w->gone == NONE)
		return 0;
	whole = w->gone;
	w->gone = w->wholes[whole].next_free;
	*out = (struct gci_wire_out){.cookie = w->wholes[whole].packet.cookie, .last = 1};
	free_whole(w, whole);
	return 1;
}
