/* SPDX-License-Identifier: MIT
 * Making connections: between which addresses, and what to do when that leads nowhere. */
#include "base/clock.h"
#include "base/log.h"
#include "transport/tcp_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MOST_REDIALS 20

/* Whether a firewall keeps rank a from connecting to rank b. */
static int is_kept_out(const struct gci_tcp *t, int a, int b)
{
	return t->behind && t->behind[b] && t->behind[b] != t->behind[a];
}

int gci_tcp_calls(const struct gci_tcp *t, int rank)
{
	int self = t->tp.config.rank;

	if (is_kept_out(t, self, rank))
		return 0;
	return is_kept_out(t, rank, self) || self < rank;
}

/* Both ends of a stream. */
static int ends(const struct gci_tcp *t, const struct gci_tcp_peer *p, unsigned index,
	struct gci_address *from, struct gci_address *to)
{
	uint32_t turn = gci_reach_turn((uint32_t)t->tp.config.rank, (uint32_t)p->rank) + index;

	return gci_reach_pair(&t->own, &t->reach[p->rank], turn, p->attempt[index], from, to);
}

const char *gci_conn_where(
	const struct gci_tcp *t, int rank, unsigned index, char text[GCI_ADDRESS_TEXT])
{
	struct gci_address from, to;

	ends(t, t->peers[rank], index, &from, &to);
	gci_address_format(&to, text);
	return text;
}

#define WAY_TEXT (2 * GCI_ADDRESS_TEXT + 8)

/* "10.1.0.2:5000", or with our end "10.1.0.2:5000 from 10.1.0.1". */
static const char *way(
	const struct gci_tcp *t, const struct gci_tcp_peer *p, unsigned index, char text[WAY_TEXT])
{
	char there[GCI_ADDRESS_TEXT], here[GCI_ADDRESS_TEXT];
	struct gci_address from, to;

	ends(t, p, index, &from, &to);
	gci_address_format(&to, there);
	gci_address_ip(&from, here);
	snprintf(text, WAY_TEXT, "%s%s%s", there, t->own.leave_from ? " from " : "",
		t->own.leave_from ? here : "");
	return text;
}

/* Of what a peer's streams may take together, each of the ways that they can go gets its part. */
static uint64_t patience_ns(const struct gci_tcp *t, int rank)
{
	return t->connect_timeout_ns / gci_reach_npairs(&t->own, &t->reach[rank]);
}

static const char *cause(const struct gci_conn *c, int error, char *text, size_t size)
{
	if (error == ETIMEDOUT && gci_now_ns() >= c->deadline_ns)
		snprintf(text, size, "no answer within %.1f s",
			(double)patience_ns(c->tcp, c->peer) / (double)GCI_NS_PER_S);
	else
		snprintf(text, size, "%s", strerror(error));
	return text;
}

/* A way led nowhere: the next one, if there is another. */
static void go_another_way(struct gci_conn *c, int error)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];
	char bad[WAY_TEXT], good[WAY_TEXT], why[80];
	unsigned index = c->stream.index;

	cause(c, error, why, sizeof(why));
	way(t, p, index, bad);
	if (p->attempt[index] + 1u >= gci_reach_npairs(&t->own, &t->reach[p->rank])) {
		gci_ep_fail(&t->ep, GCOLL_ERR_PEER, p->rank,
			"cannot connect to rank %d at %s: %s%s", p->rank, bad, why,
			p->attempt[index] ? ", nor by any other way" : "");
		return;
	}
	p->attempt[index]++;
	gci_log(t->said_detour ? GCI_LOG_INFO : GCI_LOG_WARN,
		"rank %d: cannot connect to rank %d at %s: %s; trying %s", t->tp.config.rank,
		p->rank, bad, why, way(t, p, index, good));
	t->said_detour = 1;
	gci_conn_close(c);
	gci_conn_connect(t, p, index, 0);
}

void gci_conn_unreachable(struct gci_conn *c, int error)
{
	struct gci_tcp *t = c->tcp;

	if (c->again || c->probes) {
		struct gci_tcp_peer *p = t->peers[c->probes ? c->probes - 1 : c->peer];

		gci_conn_close(c);
		gci_tcp_tried(t, p, error);
	} else {
		go_another_way(c, error);
	}
}

int gci_conn_redial(struct gci_conn *c)
{
	struct gci_tcp *t = c->tcp;
	struct gci_tcp_peer *p = t->peers[c->peer];
	unsigned index = c->stream.index;

	/* Where a loss is survived, that is one. */
	if (c->stream.life || p->redials[index] >= MOST_REDIALS)
		return 0;
	p->redials[index]++;
	if (c->state != GCI_CONN_CONNECTING)
		t->ep.peers[c->peer]->stats.streams--;
	gci_log(GCI_LOG_INFO, "rank %d: rank %d has hung up at once; calling it again",
		t->tp.config.rank, p->rank);
	gci_conn_close(c);
	gci_conn_connect(t, p, index, 0);
	return 1;
}

/* Begins to connect; -1 with errno. The kernel picks the port when it knows both ends, so that one
 * address has ports for as many connections as there are peers. */
static int dial(const struct gci_tcp *t, int fd, const struct gci_address *from,
	const struct gci_address *to)
{
	int yes = 1;

	if (t->own.leave_from) {
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
		if (bind(fd, &from->any, from->len))
			return -1;
	}
	if (connect(fd, &to->any, to->len) && errno != EINPROGRESS && errno != EINTR)
		return -1;
	return 0;
}

/* A connection to `to`, not attached yet; NULL: failed. */
static struct gci_conn *new_caller(struct gci_tcp *t, int rank, const struct gci_address *to)
{
	int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		gci_ep_fail(&t->ep, GCOLL_ERR_SYS, -1, "no socket for a connection to rank %d: %s",
			rank, strerror(errno));
		return NULL;
	}
	return gci_conn_new(t, fd);
}

static void call(
	struct gci_conn *c, int rank, const struct gci_address *from, const struct gci_address *to)
{
	struct gci_tcp *t = c->tcp;

	c->state = GCI_CONN_CONNECTING;
	t->nconnecting++;
	c->deadline_ns = gci_now_ns() + patience_ns(t, rank);
	if (dial(t, c->fd, from, to)) {
		gci_conn_unreachable(c, errno);
		return;
	}
	gci_conn_poll(c);
	gci_tcp_watch(t);
}

void gci_conn_connect(struct gci_tcp *t, struct gci_tcp_peer *p, unsigned index, int again)
{
	struct gci_address from, to;
	struct gci_conn *c;

	ends(t, p, index, &from, &to);
	c = new_caller(t, p->rank, &to);
	if (!c)
		return;
	c->again = again;
	if (gci_conn_attach(c, p, index, gci_ep_next_life(&t->ep, p->rank, index))) {
		gci_conn_close(c);
		return;
	}
	gci_sockopt_data(&t->sockopts, c->fd, p->rank, &t->ep.peers[p->rank]->link);
	call(c, p->rank, &from, &to);
}

void gci_conn_probe(struct gci_tcp *t, struct gci_tcp_peer *p)
{
	struct gci_address from, to;
	struct gci_conn *c;

	/* Any of the cards may be what was lost. */
	ends(t, p, p->nprobes++ % t->ep.peers[p->rank]->link.streams, &from, &to);
	c = new_caller(t, p->rank, &to);
	if (!c)
		return;
	c->probes = 1 + p->rank;
	call(c, p->rank, &from, &to);
}
