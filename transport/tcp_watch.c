/* SPDX-License-Identifier: MIT
 * Deadlines: connecting, strangers, the silence of the network, and TLS records that do not go on.
 * One timer, which runs only while there is something to watch. */
#include "base/clock.h"
#include "base/mem.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>

#define SHORT_MS 200
#define AGAIN_MS 50 /* while something is to be connected again */

int gci_fd_is_ready(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, 0) > 0;
}

/* Strangers from far; and those by TLS whose hello, or whatever followed it, has not come whole:
 * programs send it at once. */
static int says_too_little(const struct gci_conn *c)
{
	if (c->place.crowd == &c->tcp->crowd)
		return 1;
	return c->peer < 0 && c->secure &&
	       (!gci_secure_has_shown(c->secure) || gci_secure_is_midway(c->secure));
}

/* The same of a plain hello that has begun, from a rank's address. */
static int says_half(const struct gci_conn *c, uint64_t now)
{
	return c->state == GCI_CONN_GREETING && c->peer < 0 && !c->secure && c->ngreeting &&
	       now - c->deadline_ns >= (GCI_TCP_HALF_HELLO - 1) * c->tcp->stranger_ns;
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

	if (!dead_ns || !c->secure || c->state == GCI_CONN_LOST || !gci_secure_is_midway(c->secure))
		return;
	if (!c->midway_ns)
		c->midway_ns = now;
	if (now - c->midway_ns < dead_ns || gci_fd_is_ready(c->fd, POLLIN))
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

void gci_tcp_watch(struct gci_tcp *t)
{
	uint64_t ms = t->watch_period_ns / GCI_NS_PER_MS;

	if (t->nstrangers || t->nconnecting)
		ms = ms && ms < SHORT_MS ? ms : SHORT_MS;
	if (t->nagain)
		ms = ms && ms < AGAIN_MS ? ms : AGAIN_MS;
	if (t->halted || !ms ||
		(uv_is_active((uv_handle_t *)&t->watch) && uv_timer_get_due_in(&t->watch) <= ms))
		return;
	uv_update_time(t->loop);
	uv_timer_start(&t->watch, on_watch, ms, 0);
}
