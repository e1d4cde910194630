/* SPDX-License-Identifier: MIT
 * Progress. Frames are pulled by streams: a peer with something to send is `dirty`, and progress
 * offers its frames to those of its streams that can take them, before it waits. A stream whose
 * socket is full waits for the socket, and then pulls by itself. */
#include "base/clock.h"
#include "transport/tcp_impl.h"

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

void gci_tcp_flush(struct gci_tcp *t)
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

void gci_tcp_look(struct gci_tcp *t, int block)
{
	gci_poller_wait(&t->poller, block);
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
	return !gci_list_empty(&t->dirty) || gci_ep_busy(&t->ep) || t->nlost;
}

/* One round of the caller's loop. One that nothing keeps alive would not look at its sockets. */
static void run_callers(struct gci_tcp *t, uint64_t timeout_ns)
{
	if (!timeout_ns) {
		uv_ref((uv_handle_t *)&t->async);
		uv_run(t->loop, UV_RUN_NOWAIT);
		gci_tcp_new_handle(t, (uv_handle_t *)&t->async);
		return;
	}
	/* The loop's time may be old, and the timer early then: progress may return too soon. */
	uv_timer_start(&t->timer, on_timer,
		timeout_ns / GCI_NS_PER_MS + !!(timeout_ns % GCI_NS_PER_MS), 0);
	uv_run(t->loop, UV_RUN_ONCE);
	uv_timer_stop(&t->timer);
}

/* Our own loop runs when one of its timers is due, or one of its descriptors ready: what watches
 * over connections, and listens for new ones, not what moves data. Its time stands still while it
 * does not run, but the alarm has rung for its timers. True: its next round must not wait. */
static int run_own(struct gci_tcp *t)
{
	int ms;

	if (!t->poller.alarm_ms)
		uv_update_time(t->loop);
	ms = uv_backend_timeout(t->loop);
	if (!ms) {
		uv_run(t->loop, UV_RUN_NOWAIT);
		ms = uv_backend_timeout(t->loop);
	}
	if (ms > 0)
		gci_poller_wake_by(&t->poller, uv_now(t->loop) + (uint64_t)ms);
	return !ms;
}

void gci_tcp_wait(struct gci_tcp *t, uint64_t timeout_ns)
{
	if (more_to_do(t) || t->woken)
		timeout_ns = 0;
	t->woken = 0;
	if (t->loop != &t->own_loop) {
		run_callers(t, timeout_ns);
		return;
	}
	if (run_own(t) || more_to_do(t) || t->woken)
		timeout_ns = 0;
	if (timeout_ns && timeout_ns != GCI_NEVER)
		gci_poller_wake_in(&t->poller, timeout_ns);
	gci_tcp_look(t, timeout_ns > 0);
}

/* Nothing more is read or written: requests' memory is about to be given back. Connections stay,
 * so that peers do not take our failure for our death. */
void gci_tcp_halt(struct gci_tcp *t)
{
	struct gci_list *it;

	if (t->halted)
		return;
	t->halted = 1;
	gci_list_each (it, &t->conns)
		gci_poller_watch(&t->poller, &gci_container(it, struct gci_conn, link)->watched, 0);
	uv_poll_stop(&t->listen);
	uv_timer_stop(&t->watch);
	uv_timer_stop(&t->accept_again);
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
		if (t->ep.callbacks != before || t->woken)
			return 1;
	}
	gci_ep_urge(&t->ep);
	gci_tcp_flush(t);
	return 0;
}

int gci_tcp_progress(struct gci_tp *tp, uint64_t timeout_ns)
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
	if (timeout_ns && t->ep.callbacks != before && t->unlooked++ < MOST_UNLOOKED)
		return gci_ep_status(&t->ep);
	t->unlooked = 0;
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

uint64_t gci_tcp_timeout_ns(struct gci_tp *tp)
{
	struct gci_tcp *t = (struct gci_tcp *)tp;
	int ms;

	if (gci_ep_busy(&t->ep) || !gci_list_empty(&t->dirty) || !gci_list_empty(&t->ep.held) ||
		t->nlost)
		return 0;
	if (t->unref) /* whoever runs the loop knows of its timers */
		return GCI_NEVER;
	/* 0 also when sockets are watched that the descriptor does not know of before the loop
	 * runs. */
	uv_update_time(t->loop);
	ms = uv_backend_timeout(t->loop);
	return ms < 0 ? GCI_NEVER : (uint64_t)ms * GCI_NS_PER_MS;
}
