/* SPDX-License-Identifier: MIT
 * The product's alltoall for links that take what all ranks send at once: every rank sends to its
 * own cluster first, at rising distance, then to the other clusters in the same way. A receiver
 * asks for a block when the one before is about to end, so that senders seldom meet at a NIC, and
 * the WAN's delay is hidden. Where the WAN is narrower than the NICs, it is used from the start.
 *
 * Cost, M being one rank's blocks: (P-1)/P M/B + L. Bound (DESIGN.md): (P-1)/P M/B. */
#include "base/mem.h"
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/route.h"

struct chain {
	uint32_t *steps;
	int n, at_once;
};

struct pace {
	struct gci_builder *b;
	const struct gci_coll *c;
	int mine, index, n; /* this rank's cluster, its place there, members */
	/* The order in which this rank sends and receives: so many blocks at once. */
	struct chain sends, recvs;
};

static void add(struct pace *p, struct chain *chain, uint32_t step)
{
	if (chain->n >= chain->at_once)
		gci_after(p->b, chain->steps[chain->n - chain->at_once]);
	chain->steps[chain->n++] = step;
}

static void send_block(struct pace *p, int to)
{
	struct gci_slice s = gci_in_block(p->c, p->b->rank, to);

	if (s.length)
		add(p, &p->sends, gci_send(p->b, to, gci_tag(0, 0), s));
}

static void recv_block(struct pace *p, int from)
{
	struct gci_slice s = gci_out_block(p->c, p->b->rank, from);

	if (s.length)
		add(p, &p->recvs, gci_recv(p->b, from, gci_tag(0, 0), s));
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

/* Blocks to ask for at once, for the WAN to be busy in the meantime. */
static int wan_ahead(const struct pace *p)
{
	const struct gci_topo *t = p->c->topo;
	uint64_t most = 0, block, n;
	int from;

	for (from = 0; from < t->nclusters; from++) {
		n = from == p->mine ? 0 : gci_wan_in_flight(p->c, from, p->mine);
		most = n > most ? n : most;
	}
	block = p->c->counts ? 1 : p->c->count;
	n = block && most / block > 1 ? most / block + 1 : 2;
	return n < (unsigned)t->nranks ? (int)n : t->nranks;
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
	uint32_t *steps = gci_calloc(2 * (size_t)b->nranks, sizeof(*steps));
	int d;

	if (!steps) {
		b->failed = 1;
		return;
	}
	p.n = gci_topo_size(t, p.mine);
	p.sends = (struct chain){steps, 0, 1};
	p.recvs = (struct chain){steps + b->nranks, 0, 2};
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	local_rounds(&p);
	if (t->nclusters > 1) {
		if (!wan_fills_nic(&p))
			p.sends.n = p.recvs.n = 0;
		p.recvs.at_once = wan_ahead(&p);
	}
	for (d = 1; d < t->nclusters; d++)
		remote_rounds(&p, d);
	gci_free(steps);
}
