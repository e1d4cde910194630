/* SPDX-License-Identifier: MIT
 * Connections of the simulated network that are lost, and made again. */
#include "base/mem.h"
#include "transport/mem_impl.h"

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

void gci_mem_maybe_lose(struct gci_mem_net *net)
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

void gci_mem_lose(struct gci_mem_end *e)
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

int gci_mem_call_again(struct gci_mem_net *net)
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

void gci_mem_take(struct gci_mem_end *e)
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
