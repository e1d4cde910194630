/* SPDX-License-Identifier: MIT
 * The simulated network: a step picks one end that may have something to do, at random, and moves
 * bytes out of its stream or into it. */
#include "base/mem.h"
#include "transport/mem_impl.h"

#include <string.h>

#define MOST_PIECE  (1u << 20)
#define MOST_FLIGHT (1u << 20) /* bytes on their way to one end: what a socket would hold */

void gci_mem_activate(struct gci_mem_net *net, struct gci_mem_end *e)
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

void gci_mem_close(struct gci_mem_net *net, struct gci_mem_end *e)
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
