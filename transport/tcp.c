/* SPDX-License-Identifier: MIT
 * The transport's operations, its beginning and its end. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "transport/tcp_impl.h"

#include <string.h>
#include <unistd.h>

#define LEAST_PERIOD_NS (50 * GCI_NS_PER_MS)

struct gci_hello gci_tcp_hello(const struct gci_tcp *t, int peer, unsigned index)
{
	const struct gci_tp_link *link = &t->ep.peers[peer]->link;

	return (struct gci_hello){.epoch = t->tp.config.epoch,
		.from = (uint32_t)t->tp.config.rank,
		.to = (uint32_t)peer,
		.stream = index,
		.streams = link->streams,
		.eager_nbytes = link->eager_nbytes,
		.size = (uint32_t)t->tp.config.size,
		.unchecked = !!link->unchecked,
		.replay = !!link->replay_nbytes,
		.encrypted = !!link->encrypted};
}

const uint8_t *gci_tcp_secret(const struct gci_tcp *t, int peer)
{
	static const uint8_t none[GCI_TCP_SECRET_NBYTES];

	return t->ep.peers[peer]->link.open ? none : t->secret;
}

static const char *on_off(uint32_t on)
{
	return on ? "on" : "off";
}

int gci_tcp_disagree(struct gci_tcp *t, const struct gci_hello *h)
{
	struct gci_hello own = gci_tcp_hello(t, (int)h->from, h->stream);

	if (h->streams == own.streams && h->eager_nbytes == own.eager_nbytes &&
		h->size == own.size && h->stream < own.streams && h->unchecked == own.unchecked &&
		h->replay == own.replay && h->encrypted == own.encrypted)
		return 0;
	return gci_ep_fail(&t->ep, GCOLL_ERR_MISMATCH, (int)h->from,
		"rank %u and rank %d disagree: %u streams, %u eager bytes, %u ranks, checksums %s, "
		"replay %s, encryption %s there; %u, %u, %u, %s, %s, %s here",
		h->from, t->tp.config.rank, h->streams, h->eager_nbytes, h->size,
		on_off(!h->unchecked), on_off(h->replay), on_off(h->encrypted), own.streams,
		own.eager_nbytes, own.size, on_off(!own.unchecked), on_off(own.replay),
		on_off(own.encrypted));
}

void gci_tcp_dirty(struct gci_tcp *t, struct gci_tcp_peer *p)
{
	if (!p->dirty.next)
		gci_list_push(&t->dirty, &p->dirty);
}

static void on_kick(void *user, int peer)
{
	struct gci_tcp *t = user;

	if (t->peers[peer])
		gci_tcp_dirty(t, t->peers[peer]);
}

static void on_need(void *user, int rank)
{
	struct gci_tcp *t = user;
	const struct gci_tp_link *link = &t->ep.peers[rank]->link;
	struct gci_tcp_peer *p = gci_calloc(1, sizeof(*p));
	uint64_t period = link->dead_ns / 8;
	unsigned i;

	if (!p) {
		gci_ep_fail(&t->ep, GCOLL_ERR_NOMEM, -1, "out of memory for the peer %d", rank);
		return;
	}
	p->rank = rank;
	t->peers[rank] = p;
	if (!t->path_open)
		gci_path_open(t, link->path);
	if (link->dead_ns) {
		if (period < LEAST_PERIOD_NS)
			period = LEAST_PERIOD_NS;
		if (!t->watch_period_ns || period < t->watch_period_ns)
			t->watch_period_ns = period;
	}
	for (i = 0; gci_tcp_calls(t, rank) && i < link->streams; i++)
		if (!gci_ep_status(&t->ep))
			gci_conn_connect(t, p, i, 0);
	gci_tcp_watch(t);
}

static void on_async(uv_async_t *async)
{
	gci_container(async, struct gci_tcp, async)->woken = 1;
}

static int tcp_fd(struct gci_tp *tp)
{
	const struct gci_tcp *t = (const struct gci_tcp *)tp;

	return t->loop == &t->own_loop ? t->poller.fd : uv_backend_fd(t->loop);
}

static void tcp_isend(struct gci_tp *tp, struct gci_tp_req *r)
{
	gci_ep_isend(&((struct gci_tcp *)tp)->ep, r);
}

static void tcp_irecv(struct gci_tp *tp, struct gci_tp_req *r)
{
	gci_ep_irecv(&((struct gci_tcp *)tp)->ep, r);
}

static void tcp_detach(struct gci_tp *tp, struct gci_tp_req *r)
{
	gci_ep_detach(&((struct gci_tcp *)tp)->ep, r);
}

static void tcp_connect(struct gci_tp *tp, int peer)
{
	gci_ep_peer(&((struct gci_tcp *)tp)->ep, peer);
}

static int tcp_warm(struct gci_tp *tp, int peer, uint64_t stream_nbytes)
{
	return gci_ep_warm(&((struct gci_tcp *)tp)->ep, peer, stream_nbytes);
}

static void tcp_wake(struct gci_tp *tp)
{
	uv_async_send(&((struct gci_tcp *)tp)->async);
}

static void tcp_fail(struct gci_tp *tp, int status)
{
	gci_ep_revoke(&((struct gci_tcp *)tp)->ep, status);
}

static void tcp_stats(struct gci_tp *tp, int peer, struct gci_tp_stats *out)
{
	const struct gci_tcp *t = (const struct gci_tcp *)tp;
	unsigned i;

	memset(out, 0, sizeof(*out));
	if (peer < 0 || peer >= tp->config.size || !t->ep.peers[peer])
		return;
	*out = t->ep.peers[peer]->stats;
	for (i = 0; t->peers[peer] && i < GCI_TP_MAX_STREAMS; i++)
		if (t->peers[peer]->conns[i])
			gci_sockopt_look(t->peers[peer]->conns[i]->fd, &out->socket);
}

static void destroy(struct gci_tcp *t)
{
	int i;

	for (i = 0; t->peers && i < t->tp.config.size; i++)
		gci_free(t->peers[i]);
	gci_free(t->peers);
	gci_free(t->reach);
	gci_free(t->behind);
	gci_u64set_free(&t->homes);
	gci_secure_ctx_free(t->secure);
	gci_secret_free(t->secret);
	gci_free(t);
}

void gci_tcp_new_handle(struct gci_tcp *t, uv_handle_t *h)
{
	if (t->unref)
		uv_unref(h);
}

void gci_tcp_handle_closed(struct gci_tcp *t)
{
	t->nhandles--;
	if (t->freed && !t->nhandles && t->loop != &t->own_loop)
		destroy(t); /* else release() is waiting for this */
}

static void on_closed(uv_handle_t *h)
{
	gci_tcp_handle_closed(h->data);
}

/* Frees what is left as soon as libuv has let go of the handles: at once on our own loop, in the
 * last handle's callback on the caller's. */
static void release(struct gci_tcp *t)
{
	t->freed = 1;
	if (t->loop == &t->own_loop) {
		while (t->nhandles)
			uv_run(t->loop, UV_RUN_DEFAULT);
		uv_loop_close(t->loop);
	}
	if (!t->nhandles)
		destroy(t);
}

static void close_poller(struct gci_tcp *t)
{
	if (t->poller_watched.data)
		uv_close((uv_handle_t *)&t->poller_watched, on_closed);
	gci_poller_close(&t->poller);
}

static int tcp_waits(struct gci_tp *tp, struct gci_tp_wait *out)
{
	return gci_ep_waits(&((struct gci_tcp *)tp)->ep, out);
}

static void tcp_free(struct gci_tp *tp)
{
	struct gci_tcp *t = (struct gci_tcp *)tp;

	t->freed = 1;
	gci_tcp_halt(t);
	gci_tcp_close_all(t);
	t->path->close(t);
	gci_tcp_pace_free(t);
	uv_close((uv_handle_t *)&t->timer, on_closed);
	uv_close((uv_handle_t *)&t->watch, on_closed);
	uv_close((uv_handle_t *)&t->accept_again, on_closed);
	uv_close((uv_handle_t *)&t->async, on_closed);
	uv_close((uv_handle_t *)&t->listen, on_closed);
	close(t->listen_fd);
	gci_tcp_reap(t);
	close_poller(t);
	gci_ep_free(&t->ep);
	release(t);
}

static const struct gci_tp_ops tcp_ops = {
	.name = "tcp",
	.isend = tcp_isend,
	.irecv = tcp_irecv,
	.detach = tcp_detach,
	.connect = tcp_connect,
	.warm = tcp_warm,
	.pace = gci_tcp_pace,
	.pace_peer = gci_tcp_pace_peer,
	.progress = gci_tcp_progress,
	.fd = tcp_fd,
	.timeout_ns = gci_tcp_timeout_ns,
	.wake = tcp_wake,
	.fail = tcp_fail,
	.stop = gci_tcp_stop,
	.stats = tcp_stats,
	.waits = tcp_waits,
	.free = tcp_free,
};

const char *gci_tcp_path(const struct gci_tp *tp)
{
	const struct gci_tcp *t = (const struct gci_tcp *)tp;

	return t->path_open ? t->path->name : "";
}

static int take_addresses(struct gci_tcp *t, const struct gci_tcp_config *tcp, struct gci_error *e)
{
	const struct gci_reach *own = &t->reach[t->tp.config.rank];
	char here[GCI_REACH_TEXT], there[GCI_REACH_TEXT];
	int i;

	if (tcp->own)
		t->own = *tcp->own;
	for (i = 0; i < own->n && !tcp->own; i++)
		gci_reach_get(own, (unsigned)i, &t->own.at[i]);
	t->own.n = own->n;
	for (i = 0; i < t->tp.config.size; i++)
		if (!gci_reach_meet(own, &t->reach[i]))
			return gci_error_set(e, GCOLL_ERR_INVAL,
				"rank %d takes connections at %.200s only, rank %d at %.200s: "
				"expected addresses of one family, IPv4 or IPv6",
				i, gci_reach_format(&t->reach[i], there), t->tp.config.rank,
				gci_reach_format(own, here));
	return 0;
}

static int take_config(struct gci_tcp *t, const struct gci_tcp_config *tcp, struct gci_error *e)
{
	int size = t->tp.config.size;

	t->listen_fd = tcp->listen_fd;
	t->unref = tcp->loop && tcp->unref;
	t->secret = gci_secret_alloc(sizeof(tcp->secret));
	t->rekey_records = tcp->rekey_records;
	t->stranger_ns = tcp->stranger_ns ? tcp->stranger_ns : GCI_TCP_STRANGER_NS;
	t->connect_timeout_ns =
		tcp->connect_timeout_ns ? tcp->connect_timeout_ns : GCI_TCP_CONNECT_NS;
	t->reach = gci_calloc((size_t)size, sizeof(*t->reach));
	t->peers = gci_calloc((size_t)size, sizeof(struct gci_tcp_peer *));
	if (!t->reach || !t->peers || !t->secret)
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for %d peers", size);
	memcpy(t->secret, tcp->secret, sizeof(tcp->secret));
	memcpy(t->reach, tcp->reach, (size_t)size * sizeof(*t->reach));
	if (tcp->behind) {
		t->behind = gci_calloc((size_t)size, sizeof(*t->behind));
		if (!t->behind)
			return gci_error_set(
				e, GCOLL_ERR_NOMEM, "out of memory for %d peers", size);
		memcpy(t->behind, tcp->behind, (size_t)size * sizeof(*t->behind));
	}
	if (gci_tcp_expect(t))
		return gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for %d peers", size);
	return take_addresses(t, tcp, e);
}

static void on_loop(struct gci_watched *w, int events)
{
	(void)events;
	uv_run(gci_container(w, struct gci_tcp, loop_watched)->loop, UV_RUN_NOWAIT);
}

static void on_poller(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	if (!gci_fork_is_child())
		gci_tcp_look(poll->data, 0);
}

/* Either the poller watches the loop, or the loop the poller. */
static int open_poller(struct gci_tcp *t)
{
	int rc = gci_poller_open(&t->poller);

	if (!rc && t->loop == &t->own_loop) {
		t->loop_watched = (struct gci_watched){uv_backend_fd(t->loop), on_loop, 0};
		return gci_poller_watch(&t->poller, &t->loop_watched, UV_READABLE);
	}
	if (!rc)
		rc = uv_poll_init(t->loop, &t->poller_watched, t->poller.fd);
	if (rc)
		return rc;
	t->nhandles++;
	t->poller_watched.data = t;
	gci_tcp_new_handle(t, (uv_handle_t *)&t->poller_watched);
	return uv_poll_start(&t->poller_watched, UV_READABLE, on_poller);
}

static int open_handles(struct gci_tcp *t, uv_loop_t *given, struct gci_error *e)
{
	int rc = given ? 0 : uv_loop_init(&t->own_loop);

	if (rc)
		return gci_error_set(e, GCOLL_ERR_SYS, "no event loop: %s", uv_strerror(rc));
	t->loop = given ? given : &t->own_loop;
	t->timer.data = t->watch.data = t->accept_again.data = t->async.data = t->listen.data = t;
	rc = open_poller(t);
	if (!rc)
		rc = uv_poll_init(t->loop, &t->listen, t->listen_fd);
	if (rc)
		return gci_error_set(
			e, GCOLL_ERR_SYS, "cannot wait for connections: %s", uv_strerror(rc));
	t->nhandles++;
	rc = uv_async_init(t->loop, &t->async, on_async);
	if (rc) {
		uv_close((uv_handle_t *)&t->listen, on_closed);
		return gci_error_set(e, GCOLL_ERR_SYS, "no event handle: %s", uv_strerror(rc));
	}
	uv_timer_init(t->loop, &t->timer);
	uv_timer_init(t->loop, &t->watch);
	uv_timer_init(t->loop, &t->accept_again);
	t->nhandles += 4;
	gci_tcp_new_handle(t, (uv_handle_t *)&t->listen);
	gci_tcp_new_handle(t, (uv_handle_t *)&t->async);
	gci_tcp_new_handle(t, (uv_handle_t *)&t->watch);
	gci_tcp_new_handle(t, (uv_handle_t *)&t->accept_again);
	return 0;
}

/* 0, or a status: then nothing is left of it. */
static int open_all(struct gci_tcp *t, const struct gci_tp_config *config,
	const struct gci_tcp_config *tcp, struct gci_error *e)
{
	struct gci_ep_io io = {
		.user = t, .need = on_need, .kick = on_kick, .close = gci_tcp_on_close};
	int rc;

	t->tp.ops = &tcp_ops;
	t->path = &gci_path_poll;
	t->poller.fd = t->poller.alarm.fd = -1;
	t->tp.config = *config;
	gci_list_init(&t->dirty);
	gci_list_init(&t->conns);
	gci_list_init(&t->closed);
	rc = take_config(t, tcp, e);
	if (!rc && gci_ep_init(&t->ep, &t->tp.config, &io))
		rc = gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory for %d peers", config->size);
	if (!rc)
		rc = open_handles(t, tcp->loop, e);
	if (!rc)
		return 0;
	if (t->ep.peers)
		gci_ep_free(&t->ep);
	close_poller(t);
	release(t);
	return rc;
}

int gci_tcp_create(struct gci_tp **tp, const struct gci_tp_config *config,
	const struct gci_tcp_config *tcp, struct gci_error *e)
{
	struct gci_tcp *t = gci_calloc(1, sizeof(*t));
	int rc = t ? open_all(t, config, tcp, e)
		   : gci_error_set(e, GCOLL_ERR_NOMEM, "out of memory");

	if (rc) {
		close(tcp->listen_fd);
		return rc;
	}
	t->ep.holds = 1;
	gci_tcp_accept_start(t);
	*tp = &t->tp;
	return 0;
}
