/* SPDX-License-Identifier: MIT
 * Rates of connections. A group's rate is divided among those of its connections that have
 * something to send: one that begins to takes its part from the others before its first byte, and
 * one whose socket has run empty gives it back at the next look. Where we keep the rate ourselves,
 * one bucket serves the whole group, and nothing is divided. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>

#define LOOK_NS      (2 * GCI_NS_PER_MS)
#define LONG_NBYTES  16384 /* about a packet of a paced connection: more takes several */
#define FIRST_NBYTES 512
#define BARE_NBYTES  (GCI_STREAM_FRAMES * GCI_FRAME_HEAD_NBYTES) /* a turn without payload */
#define MOST_WAIT_NS (20 * GCI_NS_PER_MS)
#define LEAST_PIECE  2896 /* two segments */
#define MOST_PIECE   (64u << 10)

/* Its peer's own; NULL: that has none. */
static struct gci_pace_group *own_of(const struct gci_conn *c)
{
	struct gci_pacer *p = c->tcp->pacer;

	return p && p->own && c->peer >= 0 && p->own[c->peer].pace.bps ? &p->own[c->peer] : NULL;
}

/* NULL: it is not paced. */
static struct gci_pace_group *group_of(const struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;
	uint32_t group;

	if (!t->pacer || c->peer < 0)
		return NULL;
	if (own_of(c))
		return own_of(c);
	group = t->ep.peers[c->peer]->link.pace_group;
	if (!group || t->pacer->groups[group].pace.by == GCI_PACED_BY_NOBODY)
		return NULL;
	return &t->pacer->groups[group];
}

static const struct gci_wire *wire_of(struct gci_conn *c)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	struct gci_address at = {.len = sizeof(at.v6)};

	if (c->pace.wire.mss_nbytes)
		return &c->pace.wire;
	if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		info.tcpi_options = TCPI_OPT_TIMESTAMPS;
	if (getsockname(c->fd, &at.any, &at.len))
		at.any.sa_family = AF_INET;
	c->pace.wire = gci_wire_of(info.tcpi_snd_mss, at.any.sa_family == AF_INET6,
		!!(info.tcpi_options & TCPI_OPT_TIMESTAMPS));
	return &c->pace.wire;
}

static void set_socket_rate(struct gci_conn *c, enum gci_paced_by by, uint64_t bps)
{
	uint64_t rate = gci_pace_socket_rate(by, bps, wire_of(c));
	unsigned long value = rate;

	if (rate == c->pace.socket_rate || (rate == UINT64_MAX && !c->pace.socket_rate))
		return;
	c->pace.socket_rate = rate;
	if (setsockopt(c->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &value, sizeof(value)))
		gci_log(GCI_LOG_INFO, "SO_MAX_PACING_RATE = %lu: %s", value, strerror(errno));
}

static void set_priority(struct gci_conn *c, uint32_t priority)
{
	if (priority == c->pace.priority)
		return;
	c->pace.priority = priority;
	if (setsockopt(c->fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)))
		gci_log(GCI_LOG_INFO, "SO_PRIORITY = %u: %s", priority, strerror(errno));
}

static void share_out(struct gci_tcp *t, const struct gci_pace_group *g)
{
	struct gci_list *it;

	if (g->pace.by == GCI_PACED_BY_US)
		return;
	gci_list_each (it, &t->conns) {
		struct gci_conn *c = gci_container(it, struct gci_conn, link);

		if (!c->pace.busy || group_of(c) != g)
			continue;
		if (g->pace.by == GCI_PACED_BY_CLASS)
			set_priority(c, g->pace.priority);
		else
			set_socket_rate(c, g->pace.by, gci_pace_share(g->pace.bps, g->busy));
	}
}

static struct gci_conn *first_paused(const struct gci_tcp *t)
{
	struct gci_list *it;

	gci_list_each (it, &t->conns)
		if (gci_container(it, struct gci_conn, link)->pace.paused)
			return gci_container(it, struct gci_conn, link);
	return NULL;
}

/* Each once; those that had their turn come last the next time. */
static void resume(struct gci_tcp *t)
{
	unsigned n = t->pacer->npaused;
	struct gci_conn *c;

	while (n-- && !gci_ep_status(&t->ep) && (c = first_paused(t))) {
		gci_list_del(&c->link);
		gci_list_push(&t->conns, &c->link);
		c->pace.paused = 0;
		t->pacer->npaused--;
		if (gci_conn_writable(c))
			c->path->write(c);
	}
	if (t->path->flush)
		t->path->flush(t);
}

static void on_timer(uv_timer_t *timer)
{
	struct gci_tcp *t = timer->data;

	if (!t->halted && !gci_fork_is_child())
		resume(t);
}

static void pause_conn(struct gci_conn *c, uint64_t ns)
{
	struct gci_tcp *t = c->tcp;
	uint64_t ms = ns / GCI_NS_PER_MS + !!(ns % GCI_NS_PER_MS);

	t->pacer->npaused += !c->pace.paused;
	c->pace.paused = 1;
	if (uv_is_active((uv_handle_t *)&t->pacer->timer) &&
		uv_timer_get_due_in(&t->pacer->timer) <= ms)
		return;
	uv_update_time(t->turn.loop);
	uv_timer_start(&t->pacer->timer, on_timer, ms, 0);
}

/* A kernel may send 64 KiB at once, however low the rate is. Where that is too much, a connection has no
 * more than a piece of its peer's burst in its socket, and begins at some moment of the time that this
 * takes. 0: it may have any. */
static uint32_t piece_of(const struct gci_conn *c, const struct gci_pace_group *g)
{
	uint32_t nbytes = g->pace.burst_nbytes / c->tcp->ep.peers[c->peer]->link.streams;

	if (!g->pace.burst_nbytes || nbytes > MOST_PIECE)
		return 0;
	return nbytes < LEAST_PIECE ? LEAST_PIECE : nbytes;
}

/* It takes its part of the rate. */
static void join_in(struct gci_conn *c, struct gci_pace_group *g)
{
	if (c->pace.busy)
		return;
	c->pace.busy = 1;
	g->busy++;
	if (g->is_own && piece_of(c, g))
		gci_sockopt_unsent(c->fd, &c->tcp->ep.peers[c->peer]->link, piece_of(c, g));
	share_out(c->tcp, g);
}

/* TCP counts a pause as credit: the first two of its packets, of a millisecond of the rate each, go
 * out half as far apart as the others. Where many senders begin together, that overflows a short
 * queue. So what comes first is a packet that is hardly any; it spends the credit, and before more
 * goes out, others that begin with this one have taken their parts of the rate. */
static uint64_t room_to_begin(struct gci_conn *c, uint64_t nbytes)
{
	if (c->pace.begun || nbytes <= LONG_NBYTES)
		return UINT64_MAX;
	c->pace.begun = 1;
	return FIRST_NBYTES;
}

/* Ranks that begin at the same moment are spread over the time that a burst takes. */
static uint64_t place_ns(const struct gci_conn *c, const struct gci_pace_group *g)
{
	uint64_t ns = g->pace.burst_nbytes * 8ull * GCI_NS_PER_S / g->pace.bps;
	uint64_t any =
		gci_digest(gci_digest(1, (uint64_t)c->tcp->ep.config->rank), (uint64_t)c->fd);

	return any % (ns < MOST_WAIT_NS ? ns + 1 : MOST_WAIT_NS);
}

/* What its group's bucket has room for; that of a peer pays a burst at once. */
static uint64_t bucket_room(struct gci_conn *c, const struct gci_pace_group *g)
{
	uint64_t now = gci_now_ns(), room = gci_bucket_room(&g->bucket, now);

	if (!room)
		pause_conn(c, gci_bucket_wait_ns(&g->bucket, now));
	return room && g->is_own ? g->pace.burst_nbytes : room;
}

static uint64_t own_room(struct gci_conn *c, const struct gci_pace_group *g, uint64_t nbytes)
{
	uint64_t first, piece = piece_of(c, g);

	if (piece && !c->pace.waited) {
		c->pace.waited = 1;
		pause_conn(c, place_ns(c, g));
		return 0;
	}
	if (g->pace.by == GCI_PACED_BY_US)
		return bucket_room(c, g);
	first = room_to_begin(c, nbytes);
	return piece && piece < first ? piece : first;
}

uint64_t gci_conn_paced_room(struct gci_conn *c, uint64_t nbytes)
{
	struct gci_pace_group *g = group_of(c);

	if (!g)
		return UINT64_MAX;
	/* A rate for one peer is that of the connections that bring it payload. */
	if (g->is_own && !c->pace.busy && nbytes <= BARE_NBYTES)
		return UINT64_MAX;
	if (!g->is_own && g->pace.by == GCI_PACED_BY_US)
		return bucket_room(c, g);
	join_in(c, g);
	if (g->is_own)
		return own_room(c, g, nbytes);
	return g->pace.by == GCI_PACED_BY_CLASS ? UINT64_MAX : room_to_begin(c, nbytes);
}

void gci_conn_paced_spent(struct gci_conn *c, uint64_t nbytes, int more)
{
	struct gci_pace_group *g = group_of(c);
	uint64_t now;

	if (!g || g->pace.by != GCI_PACED_BY_US)
		return;
	now = gci_now_ns();
	gci_bucket_take(&g->bucket, gci_wire_nbytes(wire_of(c), nbytes), now);
	if (more)
		pause_conn(c, gci_bucket_wait_ns(&g->bucket, now));
}

void gci_conn_unpace(struct gci_conn *c)
{
	struct gci_pace_group *g = group_of(c);

	if (c->pace.paused)
		c->tcp->pacer->npaused--;
	if (c->pace.busy && g) {
		g->busy--;
		if (g->is_own)
			gci_sockopt_unsent(
				c->fd, &c->tcp->ep.peers[c->peer]->link, c->pace.pads ? 1 : 0);
		share_out(c->tcp, g);
	}
	c->pace.busy = c->pace.begun = c->pace.paused = 0;
}

/* Nothing waits in the socket, nor on the way out of this host: what is there still goes at the
 * connection's old rate, beside what the others would be given. */
static int is_empty(const struct gci_conn *c)
{
	uint32_t memory[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(memory);
	int unsent = 0;

	if (c->stream.nout || (!ioctl(c->fd, SIOCOUTQNSD, &unsent) && unsent))
		return 0;
	return getsockopt(c->fd, SOL_SOCKET, SO_MEMINFO, memory, &len) ||
	       !memory[SK_MEMINFO_WMEM_ALLOC];
}

void gci_tcp_pace_look(struct gci_tcp *t)
{
	struct gci_list *it;
	uint64_t now;

	now = gci_now_ns();
	if (now - t->pacer->looked_ns < LOOK_NS)
		return;
	t->pacer->looked_ns = now;
	gci_list_each (it, &t->conns) {
		struct gci_conn *c = gci_container(it, struct gci_conn, link);

		if (c->pace.busy && !gci_ep_has_for(&t->ep, c->peer, c->stream.index) &&
			is_empty(c))
			gci_conn_unpace(c);
		if (own_of(c) && own_of(c)->ends && !own_of(c)->busy)
			gci_tcp_pace_peer(&t->tp, c->peer, 0, 0);
	}
}

/* The pacer is there from the first call on. */
static int make(struct gci_tcp *t)
{
	if (t->pacer)
		return 0;
	t->pacer = gci_calloc(1, sizeof(*t->pacer));
	if (!t->pacer)
		return gci_ep_fail(&t->ep, GCOLL_ERR_NOMEM, -1, "out of memory for pacing");
	uv_timer_init(t->turn.loop, &t->pacer->timer);
	t->pacer->timer.data = t;
	t->turn.nhandles++;
	gci_tcp_new_handle(t, (uv_handle_t *)&t->pacer->timer);
	return 0;
}

/* From one way of pacing to another. */
static void begin_anew(struct gci_tcp *t, uint32_t group)
{
	struct gci_pace_group *g = &t->pacer->groups[group];
	struct gci_list *it;

	gci_list_each (it, &t->conns) {
		struct gci_conn *c = gci_container(it, struct gci_conn, link);

		if (c->peer < 0 || t->ep.peers[c->peer]->link.pace_group != group || own_of(c))
			continue;
		if (g->pace.by != GCI_PACED_BY_FQ && g->pace.by != GCI_PACED_BY_TCP)
			set_socket_rate(c, GCI_PACED_BY_NOBODY, 0);
		if (g->pace.by != GCI_PACED_BY_CLASS)
			set_priority(c, 0);
		c->pace.busy = c->pace.begun = 0;
	}
	g->busy = 0;
}

void gci_tcp_pace(struct gci_tp *tp, uint32_t group, const struct gci_pace *pace)
{
	struct gci_tcp *t = (struct gci_tcp *)tp;
	struct gci_pace_group *g;
	enum gci_paced_by before;

	if (!group || group >= GCI_PACE_GROUPS || make(t))
		return;
	g = &t->pacer->groups[group];
	before = g->pace.by;
	g->pace = *pace;
	gci_bucket_set(&g->bucket, pace->bps, gci_now_ns());
	if (before != pace->by)
		begin_anew(t, group);
	else
		share_out(t, g);
	if (t->pacer->npaused)
		uv_timer_start(&t->pacer->timer, on_timer, 0, 0);
}

void gci_tcp_pace_peer(struct gci_tp *tp, int peer, uint64_t bps, uint32_t burst_nbytes)
{
	struct gci_tcp *t = (struct gci_tcp *)tp;
	struct gci_tcp_peer *p = t->peers[peer];
	uint64_t rtt_ns = t->ep.peers[peer] ? t->ep.peers[peer]->link.rtt_ns : 0;
	struct gci_pace_group *g;
	int i;

	if (bps == GCI_PACE_UNTIL_SENT) {
		if (t->pacer && t->pacer->own)
			t->pacer->own[peer].ends = 1;
		return;
	}
	if ((!bps && (!t->pacer || !t->pacer->own)) || make(t))
		return;
	if (!t->pacer->own)
		t->pacer->own = gci_calloc((size_t)t->ep.config->size, sizeof(*t->pacer->own));
	if (!t->pacer->own) /* it goes as its group does */
		return;
	g = &t->pacer->own[peer];
	g->ends = 0;
	if (g->pace.bps == bps && (!bps || g->pace.burst_nbytes == burst_nbytes))
		return;
	if (g->pace.bps && bps && g->pace.burst_nbytes == burst_nbytes) {
		g->pace.bps = bps;
		gci_bucket_set(&g->bucket, bps, gci_now_ns());
		share_out(t, g);
		return;
	}
	for (i = 0; p && i < GCI_TP_MAX_STREAMS; i++) {
		struct gci_conn *c = p->conns[i];
		int was_paused = c && c->pace.paused;

		if (!c)
			continue;
		gci_conn_unpace(c);
		c->pace.waited = 0;
		set_socket_rate(c, GCI_PACED_BY_NOBODY, 0);
		if (was_paused) /* it need not wait any more */
			pause_conn(c, 0);
	}
	*g = (struct gci_pace_group){.pace = {.by = gci_pace_pair_by(bps, burst_nbytes, rtt_ns),
					     .bps = bps,
					     .burst_nbytes = burst_nbytes},
		.is_own = 1};
	gci_bucket_set(&g->bucket, bps, gci_now_ns());
}

void gci_tcp_window_peer(struct gci_tp *tp, int peer, uint64_t nbytes)
{
	struct gci_tcp *t = (struct gci_tcp *)tp;
	struct gci_tcp_peer *p = t->peers[peer];
	int i;

	if (!p) { /* for when it is met */
		if (nbytes && !t->windows)
			t->windows = gci_calloc((size_t)t->ep.config->size, sizeof(*t->windows));
		if (t->windows)
			t->windows[peer] = nbytes;
		return;
	}
	if (p->window_nbytes == nbytes || t->ep.peers[peer]->link.sockbuf_nbytes)
		return;
	p->window_nbytes = nbytes;
	for (i = 0; i < GCI_TP_MAX_STREAMS; i++)
		if (p->conns[i] && !gci_sockopt_window(p->conns[i]->fd, nbytes))
			p->window_nbytes = 0;
}

static void on_closed(uv_handle_t *h)
{
	struct gci_tcp *t = h->data;
	struct gci_pacer *p = t->pacer;

	t->pacer = NULL;
	t->turn.on_closed(h); /* it may be the last one, and the transport is gone then */
	gci_free(p->own);
	gci_free(p);
}

void gci_tcp_pace_free(struct gci_tcp *t)
{
	if (t->pacer)
		uv_close((uv_handle_t *)&t->pacer->timer, on_closed);
}
