/* SPDX-License-Identifier: MIT
 * The product's alltoall for links that take what all ranks send at once: every rank sends to its
 * own cluster first, at rising distance, then to the other clusters in the same way. A receiver
 * asks for a block when the one before comes and what is left of it takes no longer than the
 * asking, so that senders seldom meet at a NIC. Where the WAN is narrower than the NICs, it is used
 * at once.
 *
 * Cost, M being one rank's blocks: (P-1)/P M/B + L, and what of a round trip half a block does not
 * fill, for each block over the WAN. Bound (DESIGN.md): (P-1)/P M/B. */
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/route.h"

/* Blocks are cut in two, so that the next sender is asked when half of one has come. Shorter pieces
 * would be sent without being asked for: transports let some data through for short messages. */
#define SEGMENTS      2
#define LEAST_SEGMENT (64u << 10)

struct pace {
	struct gci_builder *b;
	const struct gci_coll *c;
	int mine, index, n; /* this rank's cluster, its place there, members */
	struct gci_turns receivers;
	uint32_t sent; /* the last step of the block before */
	int has_sent;
};

static struct gci_route_segments cut(const struct pace *p, uint64_t length)
{
	uint64_t least = LEAST_SEGMENT / p->c->esize + 1, s = (length + SEGMENTS - 1) / SEGMENTS;

	return (struct gci_route_segments){s > least ? s : least, SEGMENTS};
}

static void send_block(struct pace *p, int to)
{
	struct gci_slice s = gci_in_block(p->c, p->b->rank, to);
	struct gci_route_segments segments = cut(p, s.length);
	uint64_t q, n = gci_route_count(&segments, s.length);
	uint32_t step = 0;

	for (q = 0; q < n; q++) {
		step = gci_send(
			p->b, to, gci_tag(0, (uint32_t)q), gci_route_slice(&segments, s, q));
		if (p->has_sent)
			gci_after(p->b, p->sent);
	}
	if (!n)
		return;
	p->sent = step;
	p->has_sent = 1;
}

static void recv_block(struct pace *p, int from)
{
	struct gci_slice s = gci_out_block(p->c, p->b->rank, from);
	struct gci_route_segments segments = cut(p, s.length);
	uint64_t q, n = gci_route_count(&segments, s.length);

	if (n)
		gci_turn(&p->receivers, s.length);
	for (q = 0; q < n; q++) {
		struct gci_slice part = gci_route_slice(&segments, s, q);

		gci_turn_step(&p->receivers, gci_recv(p->b, from, gci_tag(0, (uint32_t)q), part),
			part.length, 1);
	}
}

static void local_rounds(struct pace *p)
{
	const int *members = gci_topo_members(p->c->topo, p->mine);
	int k;

	for (k = 1; k < p->n; k++) {
		send_block(p, members[(p->index + k) % p->n]);
		recv_block(p, members[(p->index - k + p->n) % p->n]);
	}
}

/* Member i sends to member i + k of the cluster `distance` further on; so the receiver, as its
 * sender does, goes by rising k. */
static void remote_rounds(struct pace *p, int distance)
{
	const struct gci_topo *t = p->c->topo;
	int to = (p->mine + distance) % t->nclusters, k, j;
	int from = (p->mine - distance + t->nclusters) % t->nclusters;
	int nto = gci_topo_size(t, to), nfrom = gci_topo_size(t, from);

	for (k = 0; k < nto; k++)
		send_block(p, gci_topo_members(t, to)[(p->index + k) % nto]);
	for (k = 0; k < p->n; k++)
		for (j = (p->index - k + p->n) % p->n; j < nfrom; j += p->n)
			recv_block(p, gci_topo_members(t, from)[j]);
}

/* Elements to ask for ahead, for the WAN to be busy in the meantime. */
static uint64_t wan_ahead(const struct pace *p)
{
	const struct gci_topo *t = p->c->topo;
	uint64_t most = 0, n;
	int from;

	for (from = 0; from < t->nclusters; from++) {
		n = from == p->mine ? 0 : gci_wan_in_flight(p->c, from, p->mine);
		most = n > most ? n : most;
	}
	return most;
}

/* True if the WAN alone can keep this rank's NIC busy. */
static int wan_fills_nic(const struct pace *p)
{
	const struct gci_topo *t = p->c->topo;
	int other;

	for (other = 0; other < t->nclusters; other++)
		if (other != p->mine && !gci_wan_fills_nic(t, other, p->mine, p->n))
			return 0;
	return 1;
}

void gci_emit_alltoall_paced(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct pace p = {.b = b, .c = c, .mine = t->cluster[b->rank], .index = t->index[b->rank]};
	int d;

	p.n = gci_topo_size(t, p.mine);
	p.receivers = (struct gci_turns){.b = b, .ahead = LEAST_SEGMENT / c->esize};
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	local_rounds(&p);
	if (t->nclusters > 1 && !wan_fills_nic(&p)) {
		p.has_sent = 0;
		p.receivers = (struct gci_turns){.b = b};
	}
	p.receivers.ahead = wan_ahead(&p);
	for (d = 1; d < t->nclusters; d++)
		remote_rounds(&p, d);
}
