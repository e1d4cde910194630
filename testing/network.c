/* SPDX-License-Identifier: MIT
 * The transport over a network of this process's memory. */
#include "testing/network.h"

#include "base/mem.h"
#include "base/prng.h"
#include "transport/stream.h"

#include <stdatomic.h>
#include <string.h>

/* A part of the bytes on their way. */
struct gci_mem_chunk {
	struct gci_list link;
	size_t lo, hi;
	uint8_t data[];
};

/* A connection is two ends; each holds the bytes on their way to it, as a list of chunks. */
struct gci_mem_end {
	struct gci_stream stream;
	struct gci_mem_end *other;
	struct gci_mem *owner;
	struct gci_mem_end *next; /* of the same owner */
	int peer;
	unsigned index;
	uint32_t life;
	struct gci_list chunks;
	size_t flight;
	int calling; /* the owner has not taken this connection yet: there is no stream */
	int cut;     /* what is sent here does not arrive any more */
	int eof;     /* nothing more is put into chunks */
	int over;    /* and the stream knows */
	int queued;  /* among the net's active ends */
	int closed;  /* the owner is gone or dead */
};

/* A rank's side. */
struct gci_mem {
	struct gci_tp tp;
	struct gci_ep ep;
	struct gci_mem_net *net;
	struct gci_mem_end *ends;
	atomic_int woken;
	int stopping;
};

/* A connection that is to be made again. */
struct gci_mem_call {
	struct gci_mem *from;
	int to;
	unsigned index;
};

struct gci_mem_net {
	struct gci_mem **ranks;
	int size;
	struct gci_mem_faults faults;
	struct gci_prng prng;
	uint64_t steps, delivered;
	int flipped;
	uint8_t *open; /* [lower * size + higher]: connected, or asked for by the lower */
	uint8_t *gone; /* by rank: stopped, freed or killed */
	struct gci_mem_end **active;
	size_t nactive, cap_active;
	size_t nends;
	struct gci_mem_call *calls;
	size_t ncalls, cap_calls;
	uint32_t nlosses;
	struct gci_mem_end *graveyard; /* ends of freed ranks, chained by next */
};

static void gci_mem_activate(struct gci_mem_net *net, struct gci_mem_end *e);
static void gci_mem_close(struct gci_mem_net *net, struct gci_mem_end *e);
static struct gci_mem_end *gci_mem_new_end(struct gci_mem *m, int peer, unsigned index);
static int gci_mem_open_end(struct gci_mem_end *e, uint32_t life);

/* ---- Connections of the simulated network that are lost, and made again. */

/* Some of the bytes on their way arrive, the rest is lost. */
static void cut_end(struct gci_mem_net *net, struct gci_mem_end *e)
{
	size_t keep = (size_t)gci_prng_below(&net->prng, e->flight + 1);
	struct gci_list *it, *next;

	for (it = e->chunks.next; it != &e->chunks; it = next) {
		struct gci_mem_chunk *c = gci_container(it, struct gci_mem_chunk, link);
		size_t n = c->hi - c->lo < keep ? c->hi - c->lo : keep;

		next = it->next;
		e->flight -= c->hi - c->lo - n;
		c->hi = c->lo + n;
		keep -= n;
		if (n)
			continue;
		gci_list_del(&c->link);
		gci_free(c);
	}
	e->eof = 1;
	e->cut = 1;
	gci_mem_activate(net, e);
}

static void gci_mem_maybe_lose(struct gci_mem_net *net)
{
	const struct gci_mem_faults *f = &net->faults;
	struct gci_mem *m;
	struct gci_mem_end *e, *chosen = NULL;
	uint64_t n = 0;

	if (!f->lose_every || net->nlosses >= f->most_losses ||
		gci_prng_below(&net->prng, f->lose_every))
		return;
	m = net->ranks[gci_prng_below(&net->prng, (uint64_t)net->size)];
	for (e = m ? m->ends : NULL; e; e = e->next)
		if (m->ep.peers[e->peer]->replay && !e->closed && !e->cut && !e->other->closed &&
			!gci_prng_below(&net->prng, ++n))
			chosen = e;
	if (!chosen)
		return;
	net->nlosses++;
	cut_end(net, chosen);
	cut_end(net, chosen->other);
}

/* Whom a connection would lead to is not there any more. What it said last may still be on its
 * way by others. */
static void gone(struct gci_mem *m, int peer)
{
	if (m->ep.peers[peer]->stats.streams)
		return;
	if (m->ep.peers[peer]->leaving)
		gci_ep_left(&m->ep, peer);
	else
		gci_ep_fail(&m->ep, GCOLL_ERR_PEER, peer,
			"rank %d died: all connections to it were lost", peer);
}

/* The owner's end is lost: gives its frames back, and sees to a new connection. */
static void gci_mem_lose(struct gci_mem_end *e)
{
	struct gci_mem *m = e->owner;
	struct gci_mem_net *net = m->net;
	struct gci_ep_peer *p = m->ep.peers[e->peer];

	p->stats.streams--;
	gci_mem_close(net, e);
	if (gci_stream_lose(&e->stream))
		return;
	gci_stream_deinit(&e->stream);
	if (e->peer < m->tp.config.rank) { /* who makes it again */
		if (net->gone[e->peer])
			gone(m, e->peer);
		return;
	}
	if (gci_grow(&net->calls, &net->cap_calls, net->ncalls + 1, sizeof(*net->calls))) {
		gci_ep_fail(&m->ep, GCOLL_ERR_NOMEM, -1, "out of memory to call rank %d again",
			e->peer);
		return;
	}
	net->calls[net->ncalls++] = (struct gci_mem_call){m, e->peer, e->index};
}

/* Takes up a connection that is to be made again; 0: there is none. */
static int gci_mem_call_again(struct gci_mem_net *net)
{
	struct gci_mem_end *x, *y;
	struct gci_mem_call call;
	struct gci_mem *to;
	size_t i;

	if (!net->ncalls)
		return 0;
	i = (size_t)gci_prng_below(&net->prng, net->ncalls);
	call = net->calls[i];
	net->calls[i] = net->calls[--net->ncalls];
	if (gci_ep_status(&call.from->ep))
		return 1;
	to = net->ranks[call.to];
	if (!to || net->gone[call.to]) {
		gone(call.from, call.to);
		return 1;
	}
	x = gci_mem_new_end(call.from, call.to, call.index);
	if (!x)
		return 1;
	x->other = x;
	x->closed = 1;
	y = gci_mem_new_end(to, call.from->tp.config.rank, call.index);
	if (!y)
		return 1;
	x->other = y;
	y->other = x;
	x->closed = 0;
	y->life = gci_ep_next_life(&call.from->ep, call.to, call.index);
	if (gci_mem_open_end(x, y->life))
		return 1;
	call.from->ep.peers[call.to]->stats.restored++;
	gci_mem_activate(net, y);
	return 1;
}

/* The owner takes a connection, or turns it away. */
static void gci_mem_take(struct gci_mem_end *e)
{
	struct gci_mem *m = e->owner;
	struct gci_mem_end *old;

	if (gci_ep_next_life(&m->ep, e->peer, e->index) > e->life) {
		gci_mem_close(m->net, e); /* lost already */
		return;
	}
	for (old = m->ends; old; old = old->next)
		if (old->peer == e->peer && old->index == e->index && !old->closed && !old->calling)
			gci_mem_lose(old);
	if (gci_ep_status(&m->ep) || gci_mem_open_end(e, e->life))
		return;
	m->ep.peers[e->peer]->stats.restored++;
}

/* ---- The simulated network: a step picks one end that may have something to do, at random, and moves
 * bytes out of its stream or into it. */

#define MOST_PIECE  (1u << 20)
#define MOST_FLIGHT (1u << 20) /* bytes on their way to one end: what a socket would hold */

/* It may have something to do. */
static void gci_mem_activate(struct gci_mem_net *net, struct gci_mem_end *e)
{
	if (e->queued || e->closed)
		return;
	e->queued = 1;
	net->active[net->nactive++] = e; /* room was made when the end was */
}

static void drop_chunks(struct gci_mem_end *e)
{
	while (!gci_list_empty(&e->chunks)) {
		struct gci_mem_chunk *c = gci_container(e->chunks.next, struct gci_mem_chunk, link);

		gci_list_del(&c->link);
		gci_free(c);
	}
	e->flight = 0;
}

/* Nothing more comes from this end. */
static void gci_mem_close(struct gci_mem_net *net, struct gci_mem_end *e)
{
	if (e->closed)
		return;
	e->closed = 1;
	drop_chunks(e);
	e->other->eof = 1;
	gci_mem_activate(net, e->other);
}

static void kill_rank(struct gci_mem_net *net, struct gci_mem *m)
{
	struct gci_mem_end *e;

	if (!m || net->gone[m->tp.config.rank])
		return;
	net->gone[m->tp.config.rank] = 1;
	for (e = m->ends; e; e = e->next)
		gci_mem_close(net, e);
	gci_ep_revoke(&m->ep, GCOLL_ERR_ABORTED);
}

/* Moves up to `most` bytes from the end's stream to the other end. Returns true if any. */
static int move_out(struct gci_mem_end *e, size_t most)
{
	struct iovec iov[GCI_STREAM_OUT];
	struct gci_mem_end *to = e->other;
	struct gci_mem_chunk *c;
	size_t n = 0;
	int i, niov;

	if (e->closed || e->calling || to->flight >= MOST_FLIGHT)
		return 0;
	niov = gci_stream_out(&e->stream, iov);
	for (i = 0; i < niov; i++)
		n += iov[i].iov_len;
	if (n > most)
		n = most;
	if (!n)
		return 0;
	c = gci_calloc(1, sizeof(*c) + n);
	if (!c) {
		gci_ep_fail(&e->owner->ep, GCOLL_ERR_NOMEM, -1, "out of memory for a packet");
		return 1;
	}
	for (i = 0; c->hi < n; i++) {
		size_t part = iov[i].iov_len < n - c->hi ? iov[i].iov_len : n - c->hi;

		memcpy(c->data + c->hi, iov[i].iov_base, part);
		c->hi += part;
	}
	gci_stream_sent(&e->stream, n);
	if (to->closed || e->cut) { /* as sent to a dead host */
		gci_free(c);
		return 1;
	}
	gci_list_push(&to->chunks, &c->link);
	to->flight += n;
	gci_mem_activate(e->owner->net, to);
	return 1;
}

static void flip(struct gci_mem_net *net, uint8_t *p, size_t n)
{
	net->delivered += n;
	if (!net->faults.flip_after || net->flipped || net->delivered <= net->faults.flip_after)
		return;
	net->flipped = 1;
	p[gci_prng_below(&net->prng, n)] ^= (uint8_t)(1u << gci_prng_below(&net->prng, 8));
}

/* The connection's other end is gone, and all that it had sent has come. */
static void move_end(struct gci_mem_end *e)
{
	struct gci_ep *ep = &e->owner->ep;
	int rc = gci_stream_end(&e->stream, NULL, 0);

	e->over = 1;
	if (rc == GCI_STREAM_LOST) {
		gci_mem_lose(e);
		return;
	}
	ep->peers[e->peer]->stats.streams--;
	if (!rc && !ep->peers[e->peer]->stats.streams)
		gci_ep_left(ep, e->peer);
}

/* Moves up to `most` of the bytes that wait for this end into its stream. */
static int move_in(struct gci_mem_end *e, size_t most)
{
	struct gci_mem_net *net = e->owner->net;
	struct iovec iov[GCI_STREAM_IN];
	struct gci_mem_chunk *c;
	size_t n;

	if (e->closed || gci_ep_status(&e->owner->ep))
		return 0;
	if (e->calling) {
		gci_mem_take(e);
		return 1;
	}
	if (gci_list_empty(&e->chunks)) {
		if (!e->eof || e->over)
			return 0;
		move_end(e);
		return 1;
	}
	c = gci_container(e->chunks.next, struct gci_mem_chunk, link);
	gci_stream_in(&e->stream, iov);
	n = c->hi - c->lo;
	if (n > iov[0].iov_len)
		n = iov[0].iov_len;
	if (n > most)
		n = most;
	flip(net, c->data + c->lo, n);
	memcpy(iov[0].iov_base, c->data + c->lo, n);
	c->lo += n;
	e->flight -= n;
	if (c->lo == c->hi) {
		gci_list_del(&c->link);
		gci_free(c);
	}
	gci_mem_activate(net, e->other); /* there may be room now */
	if (gci_stream_received(&e->stream, n) == GCI_STREAM_LOST) {
		e->over = 1;
		gci_mem_lose(e);
	}
	return 1;
}

static int is_frozen(const struct gci_mem_end *e)
{
	const struct gci_mem_net *net = e->owner->net;
	int rank = net->faults.freeze_rank;

	return net->faults.freeze_after && net->steps > net->faults.freeze_after &&
	       (e->owner->tp.config.rank == rank || e->peer == rank);
}

/* Tries active ends until one has moved something. */
static int move(struct gci_mem_net *net)
{
	uint32_t max = net->faults.max_piece ? net->faults.max_piece : MOST_PIECE;

	while (net->nactive) {
		size_t i = (size_t)gci_prng_below(&net->prng, net->nactive);
		size_t most = 1 + (size_t)gci_prng_below(&net->prng, max);
		struct gci_mem_end *e = net->active[i];
		int in = (int)gci_prng_below(&net->prng, 2);

		if (is_frozen(e))
			;
		else if (in ? move_in(e, most) || move_out(e, most)
			    : move_out(e, most) || move_in(e, most))
			return 1;
		e->queued = 0;
		net->active[i] = net->active[--net->nactive];
	}
	return 0;
}

static int call_due(struct gci_mem_net *net)
{
	int i, called = 0;

	for (i = 0; i < net->size; i++) {
		struct gci_mem *m = net->ranks[i];

		if (!m || !gci_ep_busy(&m->ep))
			continue;
		gci_ep_run(&m->ep);
		called = 1;
	}
	return called;
}

int gci_mem_net_step(struct gci_mem_net *net)
{
	const struct gci_mem_faults *f = &net->faults;
	int moved;

	if (++net->steps == f->kill_after)
		kill_rank(net, net->ranks[f->kill_rank]);
	gci_mem_maybe_lose(net);
	if (net->nactive && f->stall_percent && gci_prng_below(&net->prng, 100) < f->stall_percent)
		moved = 1;
	else
		moved = (net->ncalls && !gci_prng_below(&net->prng, 8) &&
				gci_mem_call_again(net)) ||
			move(net) || gci_mem_call_again(net);
	return call_due(net) || moved;
}

int gci_mem_net_create(
	struct gci_mem_net **out, int size, const struct gci_mem_faults *faults, uint64_t seed)
{
	struct gci_mem_net *net;

	if (size < 1 || (faults && (faults->kill_rank < 0 || faults->kill_rank >= size ||
					   faults->stall_percent > 99)))
		return GCOLL_ERR_INVAL;
	net = gci_calloc(1, sizeof(*net));
	if (!net)
		return GCOLL_ERR_NOMEM;
	net->size = size;
	net->prng.state = seed;
	if (faults)
		net->faults = *faults;
	net->ranks = gci_calloc((size_t)size, sizeof(struct gci_mem *));
	net->open = gci_calloc((size_t)size, (size_t)size);
	net->gone = gci_calloc((size_t)size, 1);
	if (!net->ranks || !net->open || !net->gone) {
		gci_mem_net_free(net);
		return GCOLL_ERR_NOMEM;
	}
	*out = net;
	return 0;
}

void gci_mem_net_free(struct gci_mem_net *net)
{
	struct gci_mem_end *e;

	if (!net)
		return;
	while (net->graveyard) {
		e = net->graveyard;
		net->graveyard = e->next;
		gci_free(e);
	}
	gci_free(net->active);
	gci_free(net->calls);
	gci_free(net->ranks);
	gci_free(net->open);
	gci_free(net->gone);
	gci_free(net);
}

/* ---- A rank's side of the simulated network: its connections, and the transport's functions. */

static void on_kick(void *user, int peer)
{
	struct gci_mem *m = user;
	struct gci_mem_end *e;

	for (e = m->ends; e; e = e->next)
		if (e->peer == peer)
			gci_mem_activate(m->net, e);
}

/* An end that knows its stream's place, but has no stream; NULL: its owner has failed. */
static struct gci_mem_end *gci_mem_new_end(struct gci_mem *m, int peer, unsigned index)
{
	struct gci_mem_end *e = gci_calloc(1, sizeof(*e));

	if (!e || gci_grow(&m->net->active, &m->net->cap_active, m->net->nends + 1,
			  sizeof(*m->net->active))) {
		gci_free(e);
		gci_ep_fail(&m->ep, GCOLL_ERR_NOMEM, -1, "out of memory for a connection");
		return NULL;
	}
	gci_list_init(&e->chunks);
	e->owner = m;
	e->peer = peer;
	e->index = index;
	e->calling = 1;
	e->next = m->ends;
	m->ends = e;
	m->net->nends++;
	return e;
}

/* Gives it a stream; 0, or its owner has failed. */
static int gci_mem_open_end(struct gci_mem_end *e, uint32_t life)
{
	struct gci_mem *m = e->owner;
	int rc = gci_stream_init(&e->stream, &m->ep, e->peer, e->index, life);

	if (rc)
		return rc;
	e->life = life;
	e->calling = 0;
	e->stream.bye = m->stopping;
	m->ep.peers[e->peer]->stats.streams++;
	gci_mem_activate(m->net, e);
	return 0;
}

/* An end without another: its owner has failed, and this one hears nothing any more. */
static void strand(struct gci_mem_end *e)
{
	if (!e)
		return;
	e->other = e;
	e->closed = 1;
}

static void connect_pair(struct gci_mem *lo, struct gci_mem *hi)
{
	struct gci_ep_peer *a = gci_ep_peer(&lo->ep, hi->tp.config.rank);
	struct gci_ep_peer *b = gci_ep_peer(&hi->ep, lo->tp.config.rank);
	uint32_t i;

	if (!a || !b)
		return;
	if (a->link.streams != b->link.streams || a->link.eager_nbytes != b->link.eager_nbytes ||
		!a->link.unchecked != !b->link.unchecked) {
		gci_ep_fail(&lo->ep, GCOLL_ERR_MISMATCH, b->rank,
			"rank %d and rank %d disagree about their link", a->rank, b->rank);
		gci_ep_fail(&hi->ep, GCOLL_ERR_MISMATCH, a->rank,
			"rank %d and rank %d disagree about their link", a->rank, b->rank);
		return;
	}
	for (i = 0; i < a->link.streams; i++) {
		struct gci_mem_end *x = gci_mem_new_end(lo, a->rank, i);
		struct gci_mem_end *y = x ? gci_mem_new_end(hi, b->rank, i) : NULL;

		if (!y) {
			strand(x);
			return;
		}
		x->other = y;
		y->other = x;
		if (gci_mem_open_end(x, gci_ep_next_life(&lo->ep, a->rank, i)) ||
			gci_mem_open_end(y, gci_ep_next_life(&hi->ep, b->rank, i)))
			return;
	}
}

static void on_need(void *user, int peer)
{
	struct gci_mem *m = user;
	struct gci_mem_net *net = m->net;
	int rank = m->tp.config.rank;
	uint8_t *open = &net->open[(size_t)rank * (size_t)net->size + (size_t)peer];

	if (peer < rank || *open)
		return;
	*open = 1;
	if (net->gone[peer])
		gci_ep_fail(&m->ep, GCOLL_ERR_PEER, peer, "rank %d is not there any more", peer);
	else if (net->ranks[peer])
		connect_pair(m, net->ranks[peer]);
}

/* The peer has lost it. */
static void on_close(void *user, int peer, const struct gci_life *life)
{
	struct gci_mem *m = user;
	struct gci_mem_end *e;

	(void)peer;
	for (e = m->ends; e; e = e->next) {
		if (e->closed || e->calling || e->stream.life != life)
			continue;
		gci_mem_lose(e);
		return;
	}
}

static void mem_isend(struct gci_tp *tp, struct gci_tp_req *r)
{
	gci_ep_isend(&((struct gci_mem *)tp)->ep, r);
}

static void mem_irecv(struct gci_tp *tp, struct gci_tp_req *r)
{
	gci_ep_irecv(&((struct gci_mem *)tp)->ep, r);
}

static void mem_detach(struct gci_tp *tp, struct gci_tp_req *r)
{
	gci_ep_detach(&((struct gci_mem *)tp)->ep, r);
}

static void mem_ask(struct gci_tp *tp, struct gci_tp_req *r)
{
	gci_ep_ask(&((struct gci_mem *)tp)->ep, r);
}

static void mem_connect(struct gci_tp *tp, int peer)
{
	gci_ep_peer(&((struct gci_mem *)tp)->ep, peer);
}

static int mem_progress(struct gci_tp *tp, uint64_t timeout_ns)
{
	struct gci_mem *m = (struct gci_mem *)tp;
	uint64_t before = m->ep.callbacks;

	do {
		if (!gci_mem_net_step(m->net))
			break;
	} while (timeout_ns && m->ep.callbacks == before && !atomic_exchange(&m->woken, 0));
	return gci_ep_status(&m->ep);
}

/* The simulated network moves in progress only. */
static int mem_fd(struct gci_tp *tp)
{
	(void)tp;
	return -1;
}

static uint64_t mem_timeout_ns(struct gci_tp *tp)
{
	(void)tp;
	return 0;
}

/* Its time is not the network's. */
static void mem_pace(struct gci_tp *tp, uint32_t group, const struct gci_pace *pace)
{
	(void)tp;
	(void)group;
	(void)pace;
}

static void mem_window_peer(struct gci_tp *tp, int peer, uint64_t nbytes)
{
	(void)tp;
	(void)peer;
	(void)nbytes;
}

static void mem_pace_peer(struct gci_tp *tp, int peer, uint64_t bps, uint32_t burst_nbytes)
{
	(void)tp;
	(void)peer;
	(void)bps;
	(void)burst_nbytes;
}

static int mem_warm(struct gci_tp *tp, int peer, uint64_t stream_nbytes)
{
	return gci_ep_warm(&((struct gci_mem *)tp)->ep, peer, stream_nbytes);
}

static void mem_wake(struct gci_tp *tp)
{
	atomic_store(&((struct gci_mem *)tp)->woken, 1);
}

static void mem_fail(struct gci_tp *tp, int status)
{
	gci_ep_revoke(&((struct gci_mem *)tp)->ep, status);
}

/* True if the peer has all that it can still get from here, and knows that we leave. */
static int parted(const struct gci_mem *m, int peer)
{
	const struct gci_mem *other = m->net->ranks[peer];

	if (!m->ep.peers[peer]->replay || m->net->gone[peer] || gci_ep_status(&other->ep))
		return 1;
	return !gci_ep_owes(&m->ep, peer) && other->ep.peers[m->tp.config.rank]->leaving;
}

static int flushed(const struct gci_mem *m)
{
	const struct gci_mem_end *e;

	for (e = m->ends; e; e = e->next) {
		if (!parted(m, e->peer))
			return 0;
		if (!e->closed && !e->calling && !e->other->closed &&
			!(!e->cut && e->stream.bye_sent && gci_list_empty(&e->other->chunks)))
			return 0;
	}
	return 1;
}

static void mem_stop(struct gci_tp *tp, uint64_t timeout_ns)
{
	struct gci_mem *m = (struct gci_mem *)tp;
	struct gci_mem_end *e;

	(void)timeout_ns;
	m->ep.silent = 1;
	m->stopping = 1;
	for (e = m->ends; e; e = e->next) {
		e->stream.bye = !e->calling;
		gci_mem_activate(m->net, e);
	}
	while (!gci_ep_status(&m->ep) && !flushed(m))
		if (!gci_mem_net_step(m->net))
			break;
	for (e = m->ends; e; e = e->next)
		gci_mem_close(m->net, e);
	m->net->gone[tp->config.rank] = 1;
}

static void mem_stats(struct gci_tp *tp, int peer, struct gci_tp_stats *out)
{
	const struct gci_ep *ep = &((struct gci_mem *)tp)->ep;

	memset(out, 0, sizeof(*out));
	if (peer >= 0 && peer < tp->config.size && ep->peers[peer])
		*out = ep->peers[peer]->stats;
}

static int mem_waits(struct gci_tp *tp, struct gci_tp_wait *out)
{
	return gci_ep_waits(&((struct gci_mem *)tp)->ep, out);
}

static void mem_free(struct gci_tp *tp)
{
	struct gci_mem *m = (struct gci_mem *)tp;
	struct gci_mem_net *net = m->net;
	struct gci_mem_end *e;
	size_t i, n = 0;

	for (i = 0; i < net->nactive; i++)
		if (net->active[i]->owner != m)
			net->active[n++] = net->active[i];
	net->nactive = n;
	for (i = n = 0; i < net->ncalls; i++)
		if (net->calls[i].from != m)
			net->calls[n++] = net->calls[i];
	net->ncalls = n;
	while (m->ends) {
		e = m->ends;
		gci_mem_close(net, e);
		m->ends = e->next;
		gci_stream_deinit(&e->stream);
		e->next = net->graveyard; /* the other end still looks at it */
		net->graveyard = e;
	}
	net->ranks[tp->config.rank] = NULL;
	net->gone[tp->config.rank] = 1;
	gci_ep_free(&m->ep);
	gci_free(m);
}

static const struct gci_tp_ops mem_ops = {
	.name = "mem",
	.isend = mem_isend,
	.irecv = mem_irecv,
	.detach = mem_detach,
	.ask = mem_ask,
	.connect = mem_connect,
	.warm = mem_warm,
	.pace = mem_pace,
	.pace_peer = mem_pace_peer,
	.window_peer = mem_window_peer,
	.progress = mem_progress,
	.fd = mem_fd,
	.timeout_ns = mem_timeout_ns,
	.wake = mem_wake,
	.fail = mem_fail,
	.stop = mem_stop,
	.stats = mem_stats,
	.waits = mem_waits,
	.free = mem_free,
};

struct gci_ep *gci_mem_endpoint(struct gci_tp *tp)
{
	return &((struct gci_mem *)tp)->ep;
}

int gci_mem_create(struct gci_tp **tp, struct gci_mem_net *net, const struct gci_tp_config *config)
{
	int rank = config->rank, i;
	struct gci_ep_io io = {.need = on_need, .kick = on_kick, .close = on_close};
	struct gci_mem *m;

	if (config->size != net->size || rank < 0 || rank >= net->size || net->ranks[rank] ||
		net->gone[rank])
		return GCOLL_ERR_INVAL;
	m = gci_calloc(1, sizeof(*m));
	if (!m)
		return GCOLL_ERR_NOMEM;
	m->tp.ops = &mem_ops;
	m->tp.config = *config;
	m->net = net;
	io.user = m;
	if (gci_ep_init(&m->ep, &m->tp.config, &io)) {
		gci_free(m);
		return GCOLL_ERR_NOMEM;
	}
	net->ranks[rank] = m;
	for (i = 0; i < rank; i++) /* who has asked for us before we were there */
		if (net->ranks[i] && net->open[(size_t)i * (size_t)net->size + (size_t)rank])
			connect_pair(net->ranks[i], m);
	*tp = &m->tp;
	return 0;
}
