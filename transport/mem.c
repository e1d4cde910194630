/* SPDX-License-Identifier: MIT
 * A connection is two ends; each holds the bytes on their way to it, as a list of chunks. A step
 * picks one end that may have something to do, at random, and moves bytes out of its stream or
 * into it. */
#include "transport/mem.h"

#include "base/mem.h"
#include "base/prng.h"
#include "transport/stream.h"

#include <stdatomic.h>
#include <string.h>

#define MOST_PIECE  (1u << 20)
#define MOST_FLIGHT (1u << 20) /* bytes on their way to one end: what a socket would hold */

struct chunk {
	struct gci_list link;
	size_t lo, hi;
	uint8_t data[];
};

struct end {
	struct gci_stream stream;
	struct end *other;
	struct mem *owner;
	struct end *next; /* of the same owner */
	struct gci_list chunks;
	size_t flight;
	int eof;    /* nothing more is put into chunks */
	int over;   /* and the stream knows */
	int queued; /* among the net's active ends */
	int closed; /* the owner is gone or dead */
};

struct mem {
	struct gci_tp tp;
	struct gci_ep ep;
	struct gci_mem_net *net;
	struct end *ends;
	atomic_int woken;
};

struct gci_mem_net {
	struct mem **ranks;
	int size;
	struct gci_mem_faults faults;
	struct gci_prng prng;
	uint64_t steps, delivered;
	int flipped;
	uint8_t *open; /* [lower * size + higher]: connected, or asked for by the lower */
	uint8_t *gone; /* by rank: stopped, freed or killed */
	struct end **active;
	size_t nactive, cap_active;
	size_t nends;
	struct end *graveyard; /* ends of freed ranks, chained by next */
};

static void activate(struct gci_mem_net *net, struct end *e)
{
	if (e->queued || e->closed)
		return;
	e->queued = 1;
	net->active[net->nactive++] = e; /* room was made when the end was */
}

static void on_kick(void *user, int peer)
{
	struct mem *m = user;
	struct end *e;

	for (e = m->ends; e; e = e->next)
		if (e->stream.peer == peer)
			activate(m->net, e);
}

static void drop_chunks(struct end *e)
{
	while (!gci_list_empty(&e->chunks)) {
		struct chunk *c = gci_container(e->chunks.next, struct chunk, link);

		gci_list_del(&c->link);
		gci_free(c);
	}
	e->flight = 0;
}

static struct end *new_end(struct mem *m, int peer, unsigned index)
{
	struct end *e = gci_calloc(1, sizeof(*e));

	if (!e || gci_grow(&m->net->active, &m->net->cap_active, m->net->nends + 1,
			  sizeof(*m->net->active)))
		goto fail;
	if (gci_stream_init(&e->stream, &m->ep, peer, index))
		goto fail;
	gci_list_init(&e->chunks);
	e->owner = m;
	e->next = m->ends;
	m->ends = e;
	m->net->nends++;
	return e;
fail:
	gci_free(e);
	gci_ep_fail(&m->ep, GCOLL_ERR_NOMEM, -1, "out of memory for a connection");
	return NULL;
}

/* An end without another: its owner has failed, and this one hears nothing any more. */
static void strand(struct end *e)
{
	if (!e)
		return;
	e->other = e;
	e->closed = 1;
}

static void connect_pair(struct mem *lo, struct mem *hi)
{
	struct gci_ep_peer *a = gci_ep_peer(&lo->ep, hi->tp.config.rank);
	struct gci_ep_peer *b = gci_ep_peer(&hi->ep, lo->tp.config.rank);
	uint32_t i;

	if (!a || !b)
		return;
	if (a->link.streams != b->link.streams || a->link.eager_nbytes != b->link.eager_nbytes) {
		gci_ep_fail(&lo->ep, GCOLL_ERR_MISMATCH, b->rank,
			"rank %d and rank %d disagree about their link", a->rank, b->rank);
		gci_ep_fail(&hi->ep, GCOLL_ERR_MISMATCH, a->rank,
			"rank %d and rank %d disagree about their link", a->rank, b->rank);
		return;
	}
	for (i = 0; i < a->link.streams; i++) {
		struct end *x = new_end(lo, a->rank, i);
		struct end *y = x ? new_end(hi, b->rank, i) : NULL;

		if (!y) {
			strand(x);
			return;
		}
		x->other = y;
		y->other = x;
		a->stats.streams++;
		b->stats.streams++;
		activate(lo->net, x);
		activate(lo->net, y);
	}
}

static void on_need(void *user, int peer)
{
	struct mem *m = user;
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

/* Nothing more comes from this end. */
static void close_end(struct gci_mem_net *net, struct end *e)
{
	if (e->closed)
		return;
	e->closed = 1;
	drop_chunks(e);
	e->other->eof = 1;
	activate(net, e->other);
}

static void kill_rank(struct gci_mem_net *net, struct mem *m)
{
	struct end *e;

	if (!m || net->gone[m->tp.config.rank])
		return;
	net->gone[m->tp.config.rank] = 1;
	for (e = m->ends; e; e = e->next)
		close_end(net, e);
	gci_ep_revoke(&m->ep, GCOLL_ERR_ABORTED);
}

/* Moves up to `most` bytes from the end's stream to the other end. Returns true if any. */
static int move_out(struct end *e, size_t most)
{
	struct iovec iov[GCI_STREAM_OUT];
	struct end *to = e->other;
	struct chunk *c;
	size_t n = 0;
	int i, niov;

	if (e->closed || to->flight >= MOST_FLIGHT)
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
	if (to->closed) { /* as sent to a dead host */
		gci_free(c);
		return 1;
	}
	gci_list_push(&to->chunks, &c->link);
	to->flight += n;
	activate(e->owner->net, to);
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

/* Moves up to `most` of the bytes that wait for this end into its stream. */
static int move_in(struct end *e, size_t most)
{
	struct gci_mem_net *net = e->owner->net;
	struct iovec iov[GCI_STREAM_IN];
	struct chunk *c;
	size_t n;

	if (e->closed || gci_ep_status(&e->owner->ep))
		return 0;
	if (gci_list_empty(&e->chunks)) {
		if (!e->eof || e->over)
			return 0;
		e->over = 1;
		e->owner->ep.peers[e->stream.peer]->stats.streams--;
		if (!gci_stream_end(&e->stream, NULL) &&
			!e->owner->ep.peers[e->stream.peer]->stats.streams)
			gci_ep_left(&e->owner->ep, e->stream.peer);
		return 1;
	}
	c = gci_container(e->chunks.next, struct chunk, link);
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
	activate(net, e->other); /* there may be room now */
	gci_stream_received(&e->stream, n);
	return 1;
}

/* Tries active ends until one has moved something. */
static int move(struct gci_mem_net *net)
{
	uint32_t max = net->faults.max_piece ? net->faults.max_piece : MOST_PIECE;

	while (net->nactive) {
		size_t i = (size_t)gci_prng_below(&net->prng, net->nactive);
		size_t most = 1 + (size_t)gci_prng_below(&net->prng, max);
		struct end *e = net->active[i];
		int in = (int)gci_prng_below(&net->prng, 2);

		if (in ? move_in(e, most) || move_out(e, most)
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
		struct mem *m = net->ranks[i];

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
	if (net->nactive && f->stall_percent && gci_prng_below(&net->prng, 100) < f->stall_percent)
		moved = 1;
	else
		moved = move(net);
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
	net->ranks = gci_calloc((size_t)size, sizeof(struct mem *));
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
	struct end *e;

	if (!net)
		return;
	while (net->graveyard) {
		e = net->graveyard;
		net->graveyard = e->next;
		gci_free(e);
	}
	gci_free(net->active);
	gci_free(net->ranks);
	gci_free(net->open);
	gci_free(net->gone);
	gci_free(net);
}

static void mem_isend(struct gci_tp *tp, struct gci_tp_req *r)
{
	gci_ep_isend(&((struct mem *)tp)->ep, r);
}

static void mem_irecv(struct gci_tp *tp, struct gci_tp_req *r)
{
	gci_ep_irecv(&((struct mem *)tp)->ep, r);
}

static void mem_connect(struct gci_tp *tp, int peer)
{
	gci_ep_peer(&((struct mem *)tp)->ep, peer);
}

static int mem_progress(struct gci_tp *tp, uint64_t timeout_ns)
{
	struct mem *m = (struct mem *)tp;
	uint64_t before = m->ep.callbacks;

	do {
		if (!gci_mem_net_step(m->net))
			break;
	} while (timeout_ns && m->ep.callbacks == before && !atomic_exchange(&m->woken, 0));
	return gci_ep_status(&m->ep);
}

static void mem_wake(struct gci_tp *tp)
{
	atomic_store(&((struct mem *)tp)->woken, 1);
}

static void mem_fail(struct gci_tp *tp, int status)
{
	gci_ep_revoke(&((struct mem *)tp)->ep, status);
}

static int flushed(const struct mem *m)
{
	const struct end *e;

	for (e = m->ends; e; e = e->next)
		if (!e->closed && !e->other->closed &&
			!(e->stream.bye_sent && gci_list_empty(&e->other->chunks)))
			return 0;
	return 1;
}

static void mem_stop(struct gci_tp *tp, uint64_t timeout_ns)
{
	struct mem *m = (struct mem *)tp;
	struct end *e;

	(void)timeout_ns;
	m->ep.silent = 1;
	for (e = m->ends; e; e = e->next) {
		e->stream.bye = 1;
		activate(m->net, e);
	}
	while (!gci_ep_status(&m->ep) && !flushed(m))
		if (!gci_mem_net_step(m->net))
			break;
	for (e = m->ends; e; e = e->next)
		close_end(m->net, e);
	m->net->gone[tp->config.rank] = 1;
}

static void mem_stats(struct gci_tp *tp, int peer, struct gci_tp_stats *out)
{
	const struct gci_ep *ep = &((struct mem *)tp)->ep;

	memset(out, 0, sizeof(*out));
	if (peer >= 0 && peer < tp->config.size && ep->peers[peer])
		*out = ep->peers[peer]->stats;
}

static void mem_free(struct gci_tp *tp)
{
	struct mem *m = (struct mem *)tp;
	struct gci_mem_net *net = m->net;
	struct end *e;
	size_t i, n = 0;

	for (i = 0; i < net->nactive; i++)
		if (net->active[i]->owner != m)
			net->active[n++] = net->active[i];
	net->nactive = n;
	while (m->ends) {
		e = m->ends;
		close_end(net, e);
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
	.connect = mem_connect,
	.progress = mem_progress,
	.wake = mem_wake,
	.fail = mem_fail,
	.stop = mem_stop,
	.stats = mem_stats,
	.free = mem_free,
};

int gci_mem_create(struct gci_tp **tp, struct gci_mem_net *net, const struct gci_tp_config *config)
{
	int rank = config->rank, i;
	struct gci_ep_io io = {.need = on_need, .kick = on_kick};
	struct mem *m;

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
