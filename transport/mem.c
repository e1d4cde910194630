/* SPDX-License-Identifier: MIT
 * A rank's side of the simulated network: its connections, and the transport's functions. */
#include "base/mem.h"
#include "transport/mem_impl.h"

#include <string.h>

static void on_kick(void *user, int peer)
{
	struct gci_mem *m = user;
	struct gci_mem_end *e;

	for (e = m->ends; e; e = e->next)
		if (e->peer == peer)
			gci_mem_activate(m->net, e);
}

struct gci_mem_end *gci_mem_new_end(struct gci_mem *m, int peer, unsigned index)
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

int gci_mem_open_end(struct gci_mem_end *e, uint32_t life)
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

static void mem_pace_peer(struct gci_tp *tp, int peer, uint64_t bps)
{
	(void)tp;
	(void)peer;
	(void)bps;
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
	.connect = mem_connect,
	.warm = mem_warm,
	.pace = mem_pace,
	.pace_peer = mem_pace_peer,
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
