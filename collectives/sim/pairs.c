/* SPDX-License-Identifier: MIT
 * Pairs of ranks that have messages for each other: a hash table, as few of all have; and what
 * messages cost the processes at their ends. */
#include "collectives/sim/sim_impl.h"

#include "base/mem.h"
#include "base/prng.h"
#include "collectives/blocks/peers.h"

#define INITIAL_NBYTES (10u * 1448) /* window of a new connection */

static uint64_t slot_of(const struct gci_sim *m, int src, int dst)
{
	return gci_digest(0, (uint64_t)src << 32 | (uint32_t)dst) & (m->pairs_cap - 1);
}

static int grow_pairs(struct gci_sim *m)
{
	size_t old_cap = m->pairs_cap, i;
	struct gci_pair **old = m->pairs;

	m->pairs_cap = old_cap ? 2 * old_cap : 256;
	m->pairs = gci_calloc(m->pairs_cap, sizeof(struct gci_pair *));
	if (!m->pairs) {
		m->pairs = old;
		m->pairs_cap = old_cap;
		return -1;
	}
	for (i = 0; i < old_cap; i++) {
		uint64_t at;

		if (!old[i])
			continue;
		for (at = slot_of(m, old[i]->src, old[i]->dst); m->pairs[at];
			at = (at + 1) & (m->pairs_cap - 1))
			;
		m->pairs[at] = old[i];
	}
	gci_free(old);
	return 0;
}

/* Connections that messages of this pair use: a sender to several ranks of other clusters shares
 * those it has among them (comm/op.c). */
static int streams_of(struct gci_sim *m, const struct gci_pair *p)
{
	const struct gci_topo *t = m->net->topo;
	struct gci_sim_rank *r = &m->ranks[p->src];
	uint32_t n = p->link->streams ? p->link->streams : 1;

	if (t->cluster[p->src] == t->cluster[p->dst] ||
		gci_topo_link(t, t->cluster[p->src], t->cluster[p->dst])->flow_rate_bps)
		return (int)n;
	if (!r->wan_peers && gci_wan_peers(t, gci_sim_sched(m, p->src, 0), &r->wan_peers))
		m->failed = 1;
	if (r->wan_peers)
		n = n / r->wan_peers ? n / r->wan_peers : 1;
	return (int)n;
}

/* In an alltoall there are as many as messages: not one by one from the heap. */
static struct gci_pair *new_pair(struct gci_sim *m)
{
	struct gci_pair_slab *s = m->slabs;

	if (!s || s->n == GCI_SLAB_PAIRS) {
		s = gci_calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->next = m->slabs;
		m->slabs = s;
	}
	return &s->pairs[s->n++];
}

int gci_sim_legs(const struct gci_topo *t, int from, int to, int legs[2])
{
	int via = from == to ? 0 : gci_topo_link(t, from, to)->via;

	legs[0] = from * t->nclusters + (via ? via - 1 : to);
	legs[1] = (via ? via - 1 : from) * t->nclusters + to;
	return via ? 2 : 1;
}

static struct gci_pair *make_pair(struct gci_sim *m, int src, int dst)
{
	const struct gci_topo *t = m->net->topo;
	struct gci_pair *p = new_pair(m);

	if (!p)
		return NULL;
	p->src = src;
	p->dst = dst;
	p->link_no = t->cluster[src] * t->nclusters + t->cluster[dst];
	p->link = &m->net->links[p->link_no];
	p->nlegs = gci_sim_legs(t, t->cluster[src], t->cluster[dst], p->legs);
	p->nback = gci_sim_legs(t, t->cluster[dst], t->cluster[src], p->back);
	p->back_ns = m->net->links[t->cluster[dst] * t->nclusters + t->cluster[src]].latency_ns;
	p->eager_left = p->link->eager_nbytes;
	p->weight = streams_of(m, p);
	p->open_ns = m->net->cold ? m->now + 3 * p->link->latency_ns : 0;
	p->window = (uint64_t)INITIAL_NBYTES * (unsigned)p->weight;
	return p;
}

struct gci_pair *gci_sim_pair(struct gci_sim *m, int src, int dst)
{
	uint64_t at;

	if (2 * (m->npairs + 1) > m->pairs_cap && grow_pairs(m)) {
		m->failed = 1;
		return NULL;
	}
	for (at = slot_of(m, src, dst); m->pairs[at]; at = (at + 1) & (m->pairs_cap - 1))
		if (m->pairs[at]->src == src && m->pairs[at]->dst == dst)
			return m->pairs[at];
	m->pairs[at] = make_pair(m, src, dst);
	m->failed |= !m->pairs[at];
	m->npairs += m->pairs[at] != NULL;
	return m->pairs[at];
}

/* ---- what messages cost their hosts */

uint64_t gci_sim_send_ns(struct gci_sim *m, const struct gci_sim_message *msg)
{
	struct gci_pair *p = msg->pair;
	const struct gci_params_isend *isend;
	struct gci_params_point at;

	if (!p->link->params)
		return m->net->send_ns[p->src];
	gci_params_at(p->link->params, msg->unsent, &at);
	isend = gci_isend_at(p->link->params, msg->unsent);
	if (isend && isend->immediate)
		at.os_ns = gci_isend_next(isend, at.gap_ns, &p->isends,
			gci_sim_later(m->now, m->ranks[p->src].cpu_ns)); /* when it begins */
	return at.os_ns;
}

uint64_t gci_sim_recv_ns(const struct gci_sim *m, const struct gci_sim_message *msg)
{
	struct gci_params_point at;

	if (!msg->pair->link->params)
		return m->net->recv_ns;
	gci_params_at(msg->pair->link->params, msg->nbytes, &at);
	return at.or_ns;
}
