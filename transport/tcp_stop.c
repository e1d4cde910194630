/* SPDX-License-Identifier: MIT
 * The orderly end: everybody says goodbye on every stream. */
#include "base/clock.h"
#include "transport/tcp_impl.h"

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

void gci_tcp_close_all(struct gci_tcp *t)
{
	while (!gci_list_empty(&t->conns))
		gci_conn_close(gci_container(t->conns.next, struct gci_conn, link));
}

void gci_tcp_stop(struct gci_tp *tp, uint64_t timeout_ns)
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
