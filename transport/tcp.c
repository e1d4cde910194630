/* SPDX-License-Identifier: MIT
 * The transport's operations, its beginning and its end; deadlines and progress. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Deadlines: connecting, strangers, the silence of the network, and TLS records that do not go on.
 * One timer, which runs only while there is something to watch. */

/* Strangers from far; and those by TLS whose hello, or whatever followed it, has not come whole:
 * programs send it at once. */
static int says_too_little(const struct gci_conn *c)
{
	if (c->hello.place.unauth == &c->tcp->door.unauth)
		return 1;
	return c->peer < 0 && c->tls.engine &&
	       (!gci_secure_has_shown(c->tls.engine) || gci_secure_is_midway(c->tls.engine));
}

/* The same of a plain hello that has begun, from a rank's address. */
static int says_half(const struct gci_conn *c, uint64_t now)
{
	return c->state == GCI_CONN_GREETING && c->peer < 0 && !c->tls.engine && c->hello.n &&
	       now - c->deadline_ns >= (GCI_TCP_HALF_HELLO - 1) * c->tcp->door.stranger_ns;
}

/* Its time is over: maybe only because nobody has called progress for a while. So what is there
 * already comes first. */
static void late(struct gci_conn *c, uint64_t now)
{
	if (c->state == GCI_CONN_CONNECTING) {
		gci_conn_unreachable(c, ETIMEDOUT);
	} else if (says_too_little(c) || says_half(c, now)) {
		gci_conn_event(c, UV_READABLE);
		if (says_too_little(c) || says_half(c, now))
			gci_tcp_turn_away(c, "it has not said who it is");
	} /* else it is of this job, as far as one can see: a program that computes */
}

/* 0, or -1: the kernel does not tell all of it; emulated systems may tell the first bytes alone. */
static int look(const struct gci_conn *c, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	return getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, info, &len) || len < sizeof(*info) ? -1 : 0;
}

/* True if bytes have gone unanswered for `dead_ns`, by the kernel of the other side. One that
 * answers with a closed window lives: its program is busy elsewhere. */
static int silent(struct gci_conn *c, uint64_t now, uint64_t dead_ns)
{
	struct tcp_info info;
	uint64_t since;

	if (look(c, &info))
		return 0;
	if (!info.tcpi_unacked && !info.tcpi_probes) {
		c->silent_ns = 0;
		return 0;
	}
	since = now - info.tcpi_last_ack_recv * GCI_NS_PER_MS;
	/* An idle connection's last answer is old: count from when we saw something under way. */
	if (!c->silent_ns)
		c->silent_ns = now;
	if (since > c->silent_ns)
		c->silent_ns = since;
	return now - c->silent_ns >= dead_ns;
}

/* Whether the peer was heard on another of its streams since `since`. */
static int heard_elsewhere(const struct gci_conn *silent, uint64_t now, uint64_t since)
{
	const struct gci_tcp *t = silent->tcp;
	unsigned i;

	for (i = 0; i < t->ep.peers[silent->peer]->link.streams; i++) {
		const struct gci_conn *c = t->peers[silent->peer]->conns[i];
		struct tcp_info info;

		if (!c || c == silent || c->state != GCI_CONN_OPEN || look(c, &info))
			continue;
		if (now - info.tcpi_last_ack_recv * GCI_NS_PER_MS > since ||
			now - info.tcpi_last_data_recv * GCI_NS_PER_MS > since)
			return 1;
	}
	return 0;
}

/* A stream whose peer is heard on others has waited for half of the time long enough: after a link
 * was mute for seconds TCP's time-outs have doubled to as many, and the operation waits for all of
 * its streams. */
static void check_silence(struct gci_conn *c, uint64_t now)
{
	struct gci_tcp *t = c->tcp;
	uint64_t dead_ns = t->ep.peers[c->peer]->link.dead_ns, mute_ns;
	char where[GCI_ADDRESS_TEXT], text[160];

	if (!dead_ns || !silent(c, now, dead_ns / 2))
		return;
	mute_ns = now - c->silent_ns;
	gci_conn_where(t, c->peer, c->stream.index, where);
	snprintf(text, sizeof(text), "the network has not answered for %.1f s",
		(double)mute_ns / (double)GCI_NS_PER_S);
	if (c->stream.life &&
		heard_elsewhere(c, now, mute_ns < dead_ns ? now - mute_ns / 2 : c->silent_ns)) {
		c->mute = 1;
		gci_conn_lost(c, text);
	} else if (mute_ns >= dead_ns) {
		c->mute = 1;
		gci_ep_fail(
			&t->ep, GCOLL_ERR_PEER, c->peer, "rank %d at %s: %s", c->peer, where, text);
	}
}

/* Lengths of records and of the handshake are not protected by any sum: one that came too long
 * would be waited for without end. Half a record can also mean that its sender computes: nobody is
 * dead for it, the connection is made again. */
static void check_record(struct gci_conn *c, uint64_t now)
{
	struct gci_tcp *t = c->tcp;
	uint64_t dead_ns = t->ep.peers[c->peer]->link.dead_ns;

	if (!dead_ns || !c->tls.engine || c->state == GCI_CONN_LOST ||
		!gci_secure_is_midway(c->tls.engine))
		return;
	if (!c->tls.midway_ns)
		c->tls.midway_ns = now;
	if (now - c->tls.midway_ns < dead_ns || gci_fd_is_ready(c->fd, POLLIN))
		return;
	if (gci_ep_refuse(&t->ep, c->peer, c->stream.life, NULL, "TLS records") == GCI_EP_LOST)
		gci_conn_lost(c, "the rest of a TLS record has not come");
}

static void on_watch(uv_timer_t *timer)
{
	struct gci_tcp *t = timer->data;
	struct gci_list *it, *next;
	uint64_t now = gci_now_ns();

	if (gci_fork_is_child())
		return;
	for (it = t->conns.next; it != &t->conns && !gci_ep_status(&t->ep); it = next) {
		struct gci_conn *c = gci_container(it, struct gci_conn, link);

		next = it->next;
		if (c->state == GCI_CONN_CONNECTING || c->peer < 0) {
			if (c->state == GCI_CONN_CONNECTING && gci_fd_is_ready(c->fd, POLLOUT))
				gci_conn_event(c, UV_WRITABLE); /* the peer lives */
			else if (now >= c->deadline_ns)
				late(c, now);
			/* Its greeting may have taken the place of the next one. */
			if (next != &t->conns &&
				gci_container(next, struct gci_conn, link)->state ==
					GCI_CONN_CLOSED)
				break;
		} else if (c->state == GCI_CONN_GREETING || c->state == GCI_CONN_OPEN) {
			check_silence(c, now);
			check_record(c, now);
		}
	}
	gci_tcp_bury(t);
	gci_tcp_try_again(t, now);
	gci_tcp_watch(t);
}

/* ---- Progress. Frames are pulled by streams: a peer with something to send is `dirty`, and progress
 * offers its frames to those of its streams that can take them, before it waits. A stream whose
 * socket is full waits for the socket, and then pulls by itself. */

/* That a credit waits for company, once or a few times. Shorter timers would be the next to fire,
 * and cost more. */
#define HOLD_NS       (3 * GCI_NS_PER_MS)
#define MOST_HOLDS    4
#define MOST_UNLOOKED 8 /* times in a row that progress does not look at sockets */

/* Offers a peer's frames to its streams, a different one first each time. */
static void flush_peer(struct gci_tcp *t, struct gci_tcp_peer *p)
{
	unsigned i, n = t->ep.peers[p->rank]->link.streams;

	for (i = 0; i < n; i++) {
		struct gci_conn *c = p->conns[p->turn];

		if (!gci_ep_pending(&t->ep, p->rank) && !gci_ep_wants_pads(&t->ep, p->rank))
			break;
		p->turn = (p->turn + 1) % n;
		if (gci_conn_writable(c))
			c->path->write(c);
	}
}

/* Offers what is to be sent to streams that can take it. */
static void gci_tcp_flush(struct gci_tcp *t)
{
	while (!gci_list_empty(&t->dirty)) {
		struct gci_tcp_peer *p = gci_container(t->dirty.next, struct gci_tcp_peer, dirty);

		gci_list_del(&p->dirty);
		flush_peer(t, p);
	}
	if (t->path->flush)
		t->path->flush(t);
	if (t->pacer)
		gci_tcp_pace_look(t);
}

/* Tells connections what is ready. */
static void gci_tcp_look(struct gci_tcp *t, int block)
{
	gci_poller_wait(&t->turn.poller, block);
	gci_tcp_reap(t);
}

/* The loop runs due timers before it waits, too; without uv_stop it would then wait for ever. */
static void on_timer(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

/* A path's flush may have found that frames can go now, or that requests are over. */
static int more_to_do(const struct gci_tcp *t)
{
	return !gci_list_empty(&t->dirty) || gci_ep_busy(&t->ep) || t->loss.nlost;
}

/* One round of the caller's loop. One that nothing keeps alive would not look at its sockets. */
static void run_callers(struct gci_tcp *t, uint64_t timeout_ns)
{
	if (!timeout_ns) {
		uv_ref((uv_handle_t *)&t->turn.async);
		uv_run(t->turn.loop, UV_RUN_NOWAIT);
		gci_tcp_new_handle(t, (uv_handle_t *)&t->turn.async);
		return;
	}
	/* The loop's time may be old, and the timer early then: progress may return too soon. */
	uv_timer_start(&t->turn.timer, on_timer,
		timeout_ns / GCI_NS_PER_MS + !!(timeout_ns % GCI_NS_PER_MS), 0);
	uv_run(t->turn.loop, UV_RUN_ONCE);
	uv_timer_stop(&t->turn.timer);
}

/* Our own loop runs when one of its timers is due, or one of its descriptors ready: what watches
 * over connections, and listens for new ones, not what moves data. Its time stands still while it
 * does not run, but the alarm has rung for its timers. True: its next round must not wait. */
static int run_own(struct gci_tcp *t)
{
	int ms;

	if (!t->turn.poller.alarm_ms)
		uv_update_time(t->turn.loop);
	ms = uv_backend_timeout(t->turn.loop);
	if (!ms) {
		uv_run(t->turn.loop, UV_RUN_NOWAIT);
		ms = uv_backend_timeout(t->turn.loop);
	}
	if (ms > 0)
		gci_poller_wake_by(&t->turn.poller, uv_now(t->turn.loop) + (uint64_t)ms);
	return !ms;
}

/* Looks, and runs the loop, up to timeout_ns. */
static void gci_tcp_wait(struct gci_tcp *t, uint64_t timeout_ns)
{
	if (more_to_do(t) || t->turn.woken)
		timeout_ns = 0;
	t->turn.woken = 0;
	if (t->turn.loop != &t->turn.own_loop) {
		run_callers(t, timeout_ns);
		return;
	}
	if (run_own(t) || more_to_do(t) || t->turn.woken)
		timeout_ns = 0;
	if (timeout_ns && timeout_ns != GCI_NEVER)
		gci_poller_wake_in(&t->turn.poller, timeout_ns);
	gci_tcp_look(t, timeout_ns > 0);
}

/* Nothing more is read or written: requests' memory is about to be given back. Connections stay,
 * so that peers do not take our failure for our death. */
static void gci_tcp_halt(struct gci_tcp *t)
{
	struct gci_list *it;

	if (t->halted)
		return;
	t->halted = 1;
	gci_list_each (it, &t->conns)
		gci_poller_watch(
			&t->turn.poller, &gci_container(it, struct gci_conn, link)->watched, 0);
	uv_poll_stop(&t->door.listen);
	uv_timer_stop(&t->turn.watch);
	uv_timer_stop(&t->door.accept_again);
	if (t->pacer)
		uv_timer_stop(&t->pacer->timer);
	t->path->halt(t);
}

static void call_due(struct gci_tcp *t)
{
	gci_tcp_bury(t);
	if (gci_ep_status(&t->ep))
		gci_tcp_halt(t);
	if (gci_ep_busy(&t->ep) || t->ep.warming)
		gci_ep_run(&t->ep);
	if (gci_ep_status(&t->ep))
		gci_tcp_halt(t);
	else
		gci_tcp_flush(t);
}

/* What comes soon may give credits company. Returns true if somebody was called, or woke us. */
static int wait_for_company(struct gci_tcp *t)
{
	uint64_t before = t->ep.callbacks;
	int i;

	for (i = 0; i < MOST_HOLDS && !gci_list_empty(&t->ep.held) && !gci_ep_status(&t->ep); i++) {
		gci_tcp_wait(t, HOLD_NS);
		call_due(t);
		if (t->ep.callbacks != before || t->turn.woken)
			return 1;
	}
	gci_ep_urge(&t->ep);
	gci_tcp_flush(t);
	return 0;
}

static int gci_tcp_progress(struct gci_tp *tp, uint64_t timeout_ns)
{
	struct gci_tcp *t = (struct gci_tcp *)tp;
	uint64_t before = t->ep.callbacks;

	if (timeout_ns < HOLD_NS)
		gci_ep_urge(&t->ep);
	call_due(t);
	if (gci_ep_busy(&t->ep))
		call_due(t);
	/* Whoever was called may have been what the caller waits for. Sockets come first all the
	 * same, every now and then. */
	if (timeout_ns && t->ep.callbacks != before && t->turn.unlooked++ < MOST_UNLOOKED)
		return gci_ep_status(&t->ep);
	t->turn.unlooked = 0;
	if (t->ep.callbacks != before || gci_ep_busy(&t->ep) || gci_ep_status(&t->ep))
		timeout_ns = 0;
	else if (timeout_ns >= HOLD_NS && wait_for_company(t))
		return gci_ep_status(&t->ep);
	gci_tcp_wait(t, timeout_ns);
	call_due(t);
	return gci_ep_status(&t->ep);
}

void gci_tcp_turn(struct gci_tp *tp)
{
	struct gci_tcp *t = (struct gci_tcp *)tp;

	gci_ep_urge(&t->ep);
	call_due(t);
}

static uint64_t gci_tcp_timeout_ns(struct gci_tp *tp)
{
	struct gci_tcp *t = (struct gci_tcp *)tp;
	int ms;

	if (gci_ep_busy(&t->ep) || !gci_list_empty(&t->dirty) || !gci_list_empty(&t->ep.held) ||
		t->loss.nlost)
		return 0;
	if (t->turn.unref) /* whoever runs the loop knows of its timers */
		return GCI_NEVER;
	/* 0 also when sockets are watched that the descriptor does not know of before the loop
	 * runs. */
	uv_update_time(t->turn.loop);
	ms = uv_backend_timeout(t->turn.loop);
	return ms < 0 ? GCI_NEVER : (uint64_t)ms * GCI_NS_PER_MS;
}

/* ---- The orderly end: everybody says goodbye on every stream. */

static void write_all(struct gci_tcp *t)
{
	struct gci_list *it;

	gci_list_each (it, &t->conns)
		if (gci_conn_writable(gci_container(it, struct gci_conn, link)))
			gci_container(it, struct gci_conn, link)
				->path->write(gci_container(it, struct gci_conn, link));
	gci_tcp_flush(t);
}

/* A lost stream's connection matters no more when neither side has anything for the other. */
static int is_over(const struct gci_tcp *t, int rank)
{
	const struct gci_ep_peer *p = t->ep.peers[rank];

	return p->replay && p->leaving && !gci_ep_owes(&t->ep, rank);
}

static int conn_parted(const struct gci_conn *c)
{
	if (c->peer < 0 || (c->state == GCI_CONN_LEFT && c->shut))
		return 1;
	if (c->tcp->ep.peers[c->peer]->replay)
		return c->state != GCI_CONN_OPEN && is_over(c->tcp, c->peer);
	return c->send_error;
}

/* A lower rank may have streams on their way to us that we have not taken yet; either side's may be
 * lost, and not be made again yet. */
static int peer_parted(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	if (p->nconns == t->ep.peers[p->rank]->link.streams || is_over(t, p->rank))
		return 1;
	return !p->nconns && !p->again_ns;
}

/* Writes what can be written. Returns true when all have said goodbye, we and they. */
static int parted(struct gci_tcp *t)
{
	struct gci_list *it;
	int i;

	write_all(t);
	gci_list_each (it, &t->conns)
		if (!conn_parted(gci_container(it, struct gci_conn, link)))
			return 0;
	for (i = 0; i < t->tp.config.size; i++)
		if (t->peers[i] && !peer_parted(t, t->peers[i]))
			return 0;
	return 1;
}

static void gci_tcp_close_all(struct gci_tcp *t)
{
	while (!gci_list_empty(&t->conns))
		gci_conn_close(gci_container(t->conns.next, struct gci_conn, link));
}

static void gci_tcp_stop(struct gci_tp *tp, uint64_t timeout_ns)
{
	struct gci_tcp *t = (struct gci_tcp *)tp;
	uint64_t now = gci_now_ns(), end = now + timeout_ns;
	struct gci_list *it;

	if (end < now)
		end = GCI_NEVER;
	t->ep.silent = 1;
	t->stopping = 1;
	gci_ep_urge(&t->ep);
	gci_list_each (it, &t->conns)
		gci_container(it, struct gci_conn, link)->stream.bye = 1;
	while (!gci_ep_status(&t->ep) && !parted(t) && now < end) {
		gci_tcp_wait(t, end - now);
		gci_tcp_bury(t);
		now = gci_now_ns();
	}
	/* What is on its way may still arrive; then a goodbye behind it is better than none. */
	gci_list_each (it, &t->conns)
		gci_container(it, struct gci_conn, link)->stream.bye_now = 1;
	if (!gci_ep_status(&t->ep))
		write_all(t);
	gci_tcp_halt(t);
	gci_tcp_close_all(t);
}

/* ---- The transport's operations, its beginning and its end. */

#define LEAST_PERIOD_NS (50 * GCI_NS_PER_MS)

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
	if (t->windows && !link->sockbuf_nbytes)
		p->window_nbytes = t->windows[rank];
	t->peers[rank] = p;
	if (!t->path_open)
		gci_path_open(t, link->path);
	if (link->dead_ns) {
		if (period < LEAST_PERIOD_NS)
			period = LEAST_PERIOD_NS;
		if (!t->turn.watch_period_ns || period < t->turn.watch_period_ns)
			t->turn.watch_period_ns = period;
	}
	for (i = 0; gci_tcp_calls(t, rank) && i < link->streams; i++)
		if (!gci_ep_status(&t->ep))
			gci_conn_connect(t, p, i, 0);
	gci_tcp_watch(t);
}

static void on_async(uv_async_t *async)
{
	gci_container(async, struct gci_tcp, turn.async)->turn.woken = 1;
}

static int tcp_fd(struct gci_tp *tp)
{
	const struct gci_tcp *t = (const struct gci_tcp *)tp;

	return t->turn.loop == &t->turn.own_loop ? t->turn.poller.fd : uv_backend_fd(t->turn.loop);
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

static void tcp_ask(struct gci_tp *tp, struct gci_tp_req *r)
{
	gci_ep_ask(&((struct gci_tcp *)tp)->ep, r);
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
	uv_async_send(&((struct gci_tcp *)tp)->turn.async);
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
	gci_free(t->windows);
	gci_free(t->reach);
	gci_free(t->behind);
	gci_u64set_free(&t->door.homes);
	gci_secure_ctx_free(t->secure);
	gci_secret_free(t->secret);
	gci_free(t);
}

static void on_closed(uv_handle_t *h)
{
	struct gci_tcp *t = h->data;

	t->turn.nhandles--;
	if (t->freed && !t->turn.nhandles && t->turn.loop != &t->turn.own_loop)
		destroy(t); /* else release() is waiting for this */
}

/* Frees what is left as soon as libuv has let go of the handles: at once on our own loop, in the
 * last handle's callback on the caller's. */
static void release(struct gci_tcp *t)
{
	t->freed = 1;
	if (t->turn.loop == &t->turn.own_loop) {
		while (t->turn.nhandles)
			uv_run(t->turn.loop, UV_RUN_DEFAULT);
		uv_loop_close(t->turn.loop);
	}
	if (!t->turn.nhandles)
		destroy(t);
}

static void close_poller(struct gci_tcp *t)
{
	if (t->turn.poller_watched.data)
		uv_close((uv_handle_t *)&t->turn.poller_watched, on_closed);
	gci_poller_close(&t->turn.poller);
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
	uv_close((uv_handle_t *)&t->turn.timer, on_closed);
	uv_close((uv_handle_t *)&t->turn.watch, on_closed);
	uv_close((uv_handle_t *)&t->door.accept_again, on_closed);
	uv_close((uv_handle_t *)&t->turn.async, on_closed);
	uv_close((uv_handle_t *)&t->door.listen, on_closed);
	close(t->door.listen_fd);
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
	.ask = tcp_ask,
	.connect = tcp_connect,
	.warm = tcp_warm,
	.pace = gci_tcp_pace,
	.pace_peer = gci_tcp_pace_peer,
	.window_peer = gci_tcp_window_peer,
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

	t->door.listen_fd = tcp->listen_fd;
	t->turn.unref = tcp->loop && tcp->unref;
	t->secret = gci_secret_alloc(sizeof(tcp->secret));
	t->rekey_records = tcp->rekey_records;
	t->door.stranger_ns = tcp->stranger_ns ? tcp->stranger_ns : GCI_TCP_STRANGER_NS;
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
	uv_run(gci_container(w, struct gci_tcp, turn.loop_watched)->turn.loop, UV_RUN_NOWAIT);
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
	int rc = gci_poller_open(&t->turn.poller);

	if (!rc && t->turn.loop == &t->turn.own_loop) {
		t->turn.loop_watched =
			(struct gci_watched){uv_backend_fd(t->turn.loop), on_loop, 0};
		return gci_poller_watch(&t->turn.poller, &t->turn.loop_watched, UV_READABLE);
	}
	if (!rc)
		rc = uv_poll_init(t->turn.loop, &t->turn.poller_watched, t->turn.poller.fd);
	if (rc)
		return rc;
	t->turn.nhandles++;
	t->turn.poller_watched.data = t;
	gci_tcp_new_handle(t, (uv_handle_t *)&t->turn.poller_watched);
	return uv_poll_start(&t->turn.poller_watched, UV_READABLE, on_poller);
}

static int open_handles(struct gci_tcp *t, uv_loop_t *given, struct gci_error *e)
{
	int rc = given ? 0 : uv_loop_init(&t->turn.own_loop);

	if (rc)
		return gci_error_set(e, GCOLL_ERR_SYS, "no event loop: %s", uv_strerror(rc));
	t->turn.loop = given ? given : &t->turn.own_loop;
	t->turn.timer.data = t->turn.watch.data = t->door.accept_again.data = t->turn.async.data =
		t->door.listen.data = t;
	rc = open_poller(t);
	if (!rc)
		rc = uv_poll_init(t->turn.loop, &t->door.listen, t->door.listen_fd);
	if (rc)
		return gci_error_set(
			e, GCOLL_ERR_SYS, "cannot wait for connections: %s", uv_strerror(rc));
	t->turn.nhandles++;
	rc = uv_async_init(t->turn.loop, &t->turn.async, on_async);
	if (rc) {
		uv_close((uv_handle_t *)&t->door.listen, on_closed);
		return gci_error_set(e, GCOLL_ERR_SYS, "no event handle: %s", uv_strerror(rc));
	}
	uv_timer_init(t->turn.loop, &t->turn.timer);
	uv_timer_init(t->turn.loop, &t->turn.watch);
	uv_timer_init(t->turn.loop, &t->door.accept_again);
	t->turn.nhandles += 4;
	gci_tcp_new_handle(t, (uv_handle_t *)&t->door.listen);
	gci_tcp_new_handle(t, (uv_handle_t *)&t->turn.async);
	gci_tcp_new_handle(t, (uv_handle_t *)&t->turn.watch);
	gci_tcp_new_handle(t, (uv_handle_t *)&t->door.accept_again);
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
	t->path = t->polled = &gci_path_poll;
	t->turn.on_watch = on_watch;
	t->turn.on_closed = on_closed;
	t->turn.poller.fd = t->turn.poller.alarm.fd = -1;
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
