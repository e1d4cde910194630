/* SPDX-License-Identifier: MIT
 * Connections that are lost, on links with replay: who has connected does so again. As long as any
 * stream to the peer is left it tries for ever; when all are lost, until the peer is known to be
 * dead: nobody listens at its port any more, or the network gives no sign of it for dead_ns. The
 * higher rank, which waits to be connected to, looks for the same signs by connecting to the
 * peer's port and closing at once. */
#include "base/clock.h"
#include "base/log.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FIRST_PAUSE_NS (50 * GCI_NS_PER_MS)
#define MOST_PAUSE_NS  (2 * GCI_NS_PER_S)
#define LEAST_TRIES    8
#define TELL_NS        GCI_NS_PER_S /* between two warnings */

/* A peer that was killed, or leaves since the job ends, closes its connections before the launcher can
 * say what is wrong. So a loss is warned of when the job goes on: when the peer has made the connection
 * again with us, or tries have been in vain for a while. */
static void hold_warning(const struct gci_conn *c, const char *cause)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];

	gci_log(GCI_LOG_INFO, "rank %d: lost stream %u to rank %d: %s", t->tp.config.rank,
		c->stream.index, c->peer, cause);
	/* One that never was there is not missed: the peer may be leaving. */
	if (t->stopping || c->state != GCI_CONN_OPEN)
		return;
	if (!p->nheld++) {
		p->held_ns = gci_now_ns();
		p->held_stream = c->stream.index;
		snprintf(p->held_cause, sizeof(p->held_cause), "%s", cause);
	}
}

static void warn(struct gci_tcp *t, struct gci_tcp_peer *p, uint64_t now, const char *how)
{
	unsigned others = t->untold + p->nheld - 1;
	char more[48] = "";

	if (!p->nheld)
		return;
	t->untold += p->nheld;
	p->nheld = 0;
	if (t->told_ns && now - t->told_ns < TELL_NS)
		return;
	if (others)
		snprintf(more, sizeof(more), " (and %u others before)", others);
	t->told_ns = now;
	t->untold = 0;
	gci_log(t->stopping ? GCI_LOG_INFO : GCI_LOG_WARN,
		"rank %d: lost stream %u of %u to rank %d, %s: %s%s", t->tp.config.rank,
		p->held_stream, t->ep.peers[p->rank]->link.streams, p->rank, how, p->held_cause,
		more);
}

void gci_conn_lost(struct gci_conn *c, const char *cause)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];

	if (c->state == GCI_CONN_LOST || c->state == GCI_CONN_CLOSED || gci_ep_status(&t->ep))
		return;
	snprintf(p->cause, sizeof(p->cause), "%s", cause);
	hold_warning(c, cause);
	if (c->state != GCI_CONN_OPEN)
		c->mute = 1;
	c->state = GCI_CONN_LOST;
	c->blocked = 0;
	t->nlost++;
	gci_conn_poll(c);
}

void gci_tcp_on_close(void *user, int peer, const struct gci_life *life)
{
	struct gci_tcp *t = user;
	unsigned i;

	for (i = 0; i < t->ep.peers[peer]->link.streams; i++) {
		struct gci_conn *c = t->peers[peer]->conns[i];

		if (c && c->stream.life == life)
			gci_conn_lost(c, "the peer has lost it");
	}
}

int gci_tcp_has_left(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	const struct gci_ep_peer *e = t->ep.peers[p->rank];

	if (e->replay) /* its goodbye says that nothing is missing */
		return e->leaving && !e->stats.streams;
	return p->nleft == e->link.streams;
}

static void set_again(struct gci_tcp *t, struct gci_tcp_peer *p, uint64_t at_ns)
{
	t->nagain += !p->again_ns;
	t->nagain -= !at_ns;
	p->again_ns = at_ns;
}

void gci_tcp_left(struct gci_tcp *t, struct gci_tcp_peer *p)
{
	set_again(t, p, 0);
	if (!t->stopping)
		gci_ep_left(&t->ep, p->rank);
}

/* Nobody answers any more. */
static void give_up(struct gci_tcp *t, struct gci_tcp_peer *p, const char *why)
{
	if (gci_tcp_has_left(t, p))
		gci_tcp_left(t, p);
	else
		gci_ep_fail(&t->ep, GCOLL_ERR_PEER, p->rank, "rank %d died: %s; then %s", p->rank,
			p->cause, why);
}

static int alone(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	return !t->ep.peers[p->rank]->stats.streams;
}

static uint64_t limit_ns(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	uint64_t dead_ns = t->ep.peers[p->rank]->link.dead_ns;

	return dead_ns ? dead_ns : t->connect_timeout_ns;
}

/* That one or two tries are in vain must not decide. Nor that time has passed in which we have not
 * tried: the program may have computed. */
static int is_dead(const struct gci_tcp *t, const struct gci_tcp_peer *p, uint64_t now)
{
	return alone(t, p) && p->ntries >= LEAST_TRIES && now - p->alive_ns >= limit_ns(t, p);
}

static uint64_t most_pause_ns(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	uint64_t ns = limit_ns(t, p) / LEAST_TRIES;

	return ns < MOST_PAUSE_NS ? ns : MOST_PAUSE_NS;
}

/* Begins to connect all that are missing, or to look whether the peer is there. */
static void try_peer(struct gci_tcp *t, struct gci_tcp_peer *p, uint64_t now)
{
	unsigned i;

	if (is_dead(t, p, now)) {
		give_up(t, p, "it did not answer");
		return;
	}
	if (now - p->held_ns >= MOST_PAUSE_NS)
		warn(t, p, now, "going on without");
	p->ntries++;
	p->pause_ns = p->pause_ns ? 2 * p->pause_ns : FIRST_PAUSE_NS;
	if (p->pause_ns > most_pause_ns(t, p))
		p->pause_ns = most_pause_ns(t, p);
	set_again(t, p, now + p->pause_ns);
	if (!gci_tcp_calls(t, p->rank)) {
		/* What a firewall answers says nothing of the peer. */
		if (alone(t, p) && (!t->behind || !t->behind[p->rank]))
			gci_conn_probe(t, p);
		return;
	}
	for (i = 0; i < t->ep.peers[p->rank]->link.streams && !gci_ep_status(&t->ep); i++)
		if (!p->conns[i] && p->again_ns)
			gci_conn_connect(t, p, i, 1);
}

void gci_tcp_tried(struct gci_tcp *t, struct gci_tcp_peer *p, int error)
{
	if (!error)
		gci_tcp_alive(p, gci_now_ns());
	if (error == ECONNREFUSED && alone(t, p) && p->again_ns)
		give_up(t, p, "nobody listened at its port");
}

void gci_tcp_try_again(struct gci_tcp *t, uint64_t now)
{
	int i;

	for (i = 0; i < t->tp.config.size && t->nagain && !gci_ep_status(&t->ep); i++)
		if (t->peers[i] && t->peers[i]->again_ns && now >= t->peers[i]->again_ns)
			try_peer(t, t->peers[i], now);
}

static void bury(struct gci_conn *c, uint64_t now)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];

	t->nlost--;
	t->ep.peers[c->peer]->stats.streams--;
	if (!c->mute || !p->alive_ns) /* the first one may be lost in its greeting */
		gci_tcp_alive(p, now);
	if (c->open_ns && now - c->open_ns > MOST_PAUSE_NS)
		p->pause_ns = 0; /* it was good for a while: worth a try at once */
	gci_conn_close(c);
	if (gci_ep_status(&t->ep))
		return;
	if (gci_tcp_has_left(t, p))
		gci_tcp_left(t, p);
	else
		set_again(t, p, now + p->pause_ns);
}

void gci_tcp_replace(struct gci_conn *c)
{
	gci_conn_lost(c, "the peer has connected it again");
	if (c->state == GCI_CONN_LOST)
		bury(c, gci_now_ns());
}

void gci_tcp_bury_lost(struct gci_tcp *t)
{
	uint64_t now = gci_now_ns();
	struct gci_list *it, *next;

	for (it = t->conns.next; it != &t->conns && !gci_ep_status(&t->ep); it = next) {
		struct gci_conn *c = gci_container(it, struct gci_conn, link);

		next = it->next;
		if (c->state == GCI_CONN_LOST)
			bury(c, now);
	}
	gci_tcp_try_again(t, now);
	gci_tcp_watch(t);
}

/* One that is being connected may yet fail, and is tried again then. */
static int all_open(const struct gci_tcp *t, const struct gci_tcp_peer *p)
{
	unsigned i;

	for (i = 0; i < t->ep.peers[p->rank]->link.streams; i++)
		if (!p->conns[i] || p->conns[i]->state == GCI_CONN_CONNECTING)
			return 0;
	return 1;
}

void gci_tcp_restored(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];

	t->ep.peers[c->peer]->stats.restored++;
	if (p->again_ns && all_open(t, p))
		set_again(t, p, 0);
	warn(t, p, gci_now_ns(), "which was made again");
	gci_log(GCI_LOG_INFO, "rank %d: stream %u to rank %d is there again", t->tp.config.rank,
		c->stream.index, c->peer);
}
