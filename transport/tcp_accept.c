/* SPDX-License-Identifier: MIT
 * Connections that come in. Anyone can connect: until a connection has shown that it knows the
 * job's secret it is a stranger. There are few of them at a time, those who are silent give way to
 * those who come, and nothing they do is more than a line in the log. Whoever comes from an address
 * that no rank has does not take the places of those that do. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "transport/listen.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ACCEPT_AGAIN_NS (100 * GCI_NS_PER_MS)
#define TURN_ACCEPTS    16
#define MOST_NEIGHBOURS 4096

/* One socket for several addresses listens on all there are; see on_own_address(). */
int gci_tcp_listen(const struct gci_address *at, unsigned n, const struct gci_ports *ports,
	uint32_t turn, int *fd, struct gci_reach *reach, struct gci_error *e)
{
	struct gci_address all = at[0], one;
	unsigned i, six = 0;
	int rc;

	for (i = 0; i < n; i++)
		six += at[i].any.sa_family == AF_INET6;
	if (n > 1 && gci_address_make(&all, six ? "::" : "0.0.0.0", 0))
		return gci_error_set(e, GCOLL_ERR_SYS, "no address to listen at");
	rc = gci_listen(&all, ports, turn, fd, e);
	memset(reach, 0, sizeof(*reach));
	for (i = 0; i < n && !rc; i++) {
		one = at[i];
		gci_address_set_port(&one, gci_address_port(&all));
		gci_reach_add(reach, &one);
	}
	return rc;
}

/* Whether the connection came to an address that the others were told of. Those that were left
 * out, on purpose, take none. */
static int on_own_address(const struct gci_tcp *t, int fd)
{
	const struct gci_reach *own = &t->reach[t->tp.config.rank];
	struct gci_address a = {.len = sizeof(a.v6)};
	struct gci_reach here;
	unsigned i;

	if (own->n < 2)
		return 1; /* we listen at that one only */
	if (getsockname(fd, &a.any, &a.len))
		return 0;
	here = gci_reach_of(&a);
	for (i = 0; i < own->n && here.n; i++)
		if ((own->six >> i & 1) == here.six && !memcmp(own->ip[i], here.ip[0], 16))
			return 1;
	return 0;
}

/* An address that reach.h knows, as a number. */
static uint64_t home(const struct gci_reach *r, unsigned i)
{
	return gci_digest_bytes(r->six >> i & 1, r->ip[i], sizeof(r->ip[i]));
}

/* Ranks may all call at once, with all their streams. */
static unsigned most_neighbours(const struct gci_tcp *t)
{
	uint64_t callers = (uint64_t)(t->behind ? t->tp.config.size : t->tp.config.rank);
	uint64_t most = GCI_CROWD_MOST + callers * GCI_TP_MAX_STREAMS;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return GCI_CROWD_MOST;
	if (most > files.rlim_cur / 4)
		most = files.rlim_cur / 4;
	if (most > MOST_NEIGHBOURS)
		most = MOST_NEIGHBOURS;
	return most < GCI_CROWD_MOST ? GCI_CROWD_MOST : (unsigned)most;
}

int gci_tcp_expect(struct gci_tcp *t)
{
	uint64_t seed = gci_digest_bytes(gci_now_ns(), t->secret, GCI_TCP_SECRET_NBYTES);
	unsigned k;
	int i;

	gci_crowd_init(&t->crowd, GCI_CROWD_MOST, seed);
	gci_crowd_init(&t->neighbours, most_neighbours(t), seed);
	for (i = 0; i < t->tp.config.size; i++)
		for (k = 0; k < t->reach[i].n; k++)
			if (gci_u64set_add(&t->homes, home(&t->reach[i], k)))
				return -1;
	return 0;
}

/* Who gives way may have spoken meanwhile: what it said comes first. False: nobody is there. */
static int one_gives_way(struct gci_crowd *crowd, const char *why)
{
	struct gci_crowd_place *p = gci_crowd_gives_way(crowd);
	struct gci_conn *c;

	if (!p)
		return 0;
	c = gci_container(p, struct gci_conn, place);
	gci_conn_event(c, UV_READABLE);
	if (p->crowd)
		gci_tcp_turn_away(c, why);
	return 1;
}

static void make_way(struct gci_tcp *t, struct gci_crowd *crowd)
{
	while (gci_crowd_is_full(crowd) && !gci_ep_status(&t->ep))
		one_gives_way(crowd, "others want its place");
}

static void stranger(struct gci_tcp *t, int fd, const struct gci_address *a)
{
	struct gci_reach from = gci_reach_of(a); /* all that have none are one source */
	struct gci_crowd *crowd;
	struct gci_conn *c;

	crowd = from.n && gci_u64set_has(&t->homes, home(&from, 0)) ? &t->neighbours : &t->crowd;
	make_way(t, crowd);
	c = gci_conn_new(t, fd);
	if (!c)
		return;
	if (gci_ep_status(&t->ep)) { /* whoever had to give way had something to say */
		gci_conn_close(c);
		return;
	}
	t->nstrangers++;
	c->came = 1;
	gci_crowd_enter(crowd, &c->place, from.ip[0]);
	c->deadline_ns = gci_now_ns() + t->stranger_ns;
	gci_conn_event(c, UV_READABLE); /* most speak at once, and most strangers are gone then */
	gci_tcp_watch(t);
}

void gci_tcp_known(struct gci_conn *c)
{
	gci_crowd_leave(&c->place);
	c->tcp->nstrangers -= c->came;
	c->came = 0;
}

void gci_tcp_unknown(struct gci_conn *c)
{
	if (c->came)
		gci_turns_refused(&c->tcp->turns, gci_now_ns());
	gci_tcp_known(c);
}

static void on_accept_again(uv_timer_t *timer)
{
	if (!gci_fork_is_child())
		gci_tcp_accept_start(timer->data);
}

/* The socket stays readable: to wait for it would spin. */
static void pause_accepting(struct gci_tcp *t, uint64_t ns)
{
	uv_poll_stop(&t->listen);
	uv_update_time(t->loop);
	uv_timer_start(
		&t->accept_again, on_accept_again, (ns + GCI_NS_PER_MS - 1) / GCI_NS_PER_MS, 0);
}

/* Who says nothing is worth less than whoever comes, and least where no rank is. True if that has
 * closed a connection: those who turn out to be of the job keep theirs. */
static int shed(struct gci_tcp *t)
{
	const struct gci_list *last = t->closed.prev;

	while (!gci_ep_status(&t->ep) && t->closed.prev == last)
		if (!one_gives_way(
			    t->crowd.n ? &t->crowd : &t->neighbours, "no descriptors are left"))
			return 0;
	return 1;
}

/* accept failed: for lack of descriptors or memory, or because the connection is over already. */
static void accept_failed(struct gci_tcp *t)
{
	int error = errno, files = error == EMFILE || error == ENFILE;

	if (error == EAGAIN || error == EINTR || error == ECONNABORTED)
		return;
	if (files && !gci_fd_is_ready(t->listen_fd, POLLIN))
		return; /* the kernel looks for a descriptor first: nobody else has come */
	gci_log(files && t->said_files ? GCI_LOG_INFO : GCI_LOG_WARN,
		"cannot take a connection now: %s%s", strerror(error),
		error == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
	t->said_files |= files;
	if (files && shed(t))
		return;
	pause_accepting(t, ACCEPT_AGAIN_NS);
}

static void accept_all(struct gci_tcp *t)
{
	struct gci_address a;
	int i, fd;

	for (i = 0; i < TURN_ACCEPTS && !gci_ep_status(&t->ep); i++) {
		a.len = sizeof(a.v6);
		fd = accept4(t->listen_fd, &a.any, &a.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			accept_failed(t);
			return;
		}
		if (on_own_address(t, fd))
			stranger(t, fd, &a);
		else
			close(fd);
	}
}

static void on_listen(uv_poll_t *poll, int status, int events)
{
	struct gci_tcp *t = poll->data;
	uint64_t wait_ns = gci_turns_wait(&t->turns, gci_now_ns());

	(void)status;
	(void)events;
	if (gci_fork_is_child())
		return;
	if (wait_ns) {
		pause_accepting(t, wait_ns);
		return;
	}
	accept_all(t);
	if (t->path->flush)
		t->path->flush(t);
	gci_tcp_reap(t);
}

void gci_tcp_accept_start(struct gci_tcp *t)
{
	if (t->halted || uv_is_active((uv_handle_t *)&t->accept_again))
		return;
	if (!uv_is_active((uv_handle_t *)&t->listen))
		uv_poll_start(&t->listen, UV_READABLE, on_listen);
}

void gci_tcp_turn_away(struct gci_conn *c, const char *why)
{
	struct gci_address a = {.len = sizeof(a.v6)};
	char text[GCI_ADDRESS_TEXT];

	if (gci_log_enabled(GCI_LOG_INFO)) {
		if (getpeername(c->fd, &a.any, &a.len))
			a.len = 0;
		gci_address_format(&a, text);
		gci_log(GCI_LOG_INFO, "turned away a connection from %s: %s", text, why);
	}
	gci_conn_close(c);
}

/* What TLS knows of who speaks must be what its HELLO says. */
static int is_as_named(const struct gci_conn *c, const struct gci_hello *h)
{
	if (!c->secure)
		return !h->encrypted;
	return h->encrypted && gci_secure_name(c->secure).client == h->from;
}

/* A HELLO of a job whose links are open shows no secret: only where ours are, too. */
static int is_open(const struct gci_tcp *t, const uint8_t *greeting, struct gci_hello *h)
{
	static const uint8_t none[GCI_TCP_SECRET_NBYTES];
	struct gci_tp_link link = {0};

	if (gci_hello_decode(greeting, none, h, NULL) || h->from >= (uint32_t)t->tp.config.size)
		return 0;
	t->tp.config.link(t->tp.config.user, (int)h->from, &link);
	return link.open;
}

/* The peer may have lost a connection that looks whole from here. True if the stream has none. */
static int make_room(struct gci_tcp *t, const struct gci_tcp_peer *p, const struct gci_hello *h)
{
	struct gci_conn *old = p->conns[h->stream];

	if (h->replay && h->life < gci_ep_next_life(&t->ep, p->rank, h->stream))
		return 0; /* and has lost this one, too */
	if (old && old->stream.life)
		gci_tcp_replace(old);
	return !p->conns[h->stream] && !gci_ep_status(&t->ep);
}

void gci_tcp_greeted(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p;
	struct gci_error e = {0};
	struct gci_hello h;

	if (gci_hello_decode(c->greeting, t->secret, &h, &e) && !is_open(t, c->greeting, &h)) {
		gci_tcp_turn_away(c, e.text);
		return;
	}
	if (h.epoch != t->tp.config.epoch || h.to != (uint32_t)t->tp.config.rank ||
		h.from == h.to || h.from >= (uint32_t)t->tp.config.size ||
		gci_tcp_calls(t, (int)h.from) || !is_as_named(c, &h)) {
		gci_tcp_turn_away(c, "it is of this job, but not for here");
		return;
	}
	if (!gci_ep_peer(&t->ep, (int)h.from) ||
		gci_conn_send_hello(c, (int)h.from, h.stream, h.life) || gci_tcp_disagree(t, &h)) {
		gci_conn_close(c);
		return;
	}
	p = t->peers[h.from];
	if (!p || !make_room(t, p, &h)) {
		gci_tcp_turn_away(c, "that stream is connected already");
		return;
	}
	if (gci_conn_attach(c, p, h.stream, h.life)) {
		gci_conn_close(c);
		return;
	}
	gci_tcp_known(c);
	gci_sockopt_data(&t->sockopts, c->fd, p->rank, &t->ep.peers[p->rank]->link);
	t->ep.peers[p->rank]->stats.streams++;
	gci_conn_open(c);
	gci_tcp_dirty(t, p);
	gci_tcp_watch(t);
}
