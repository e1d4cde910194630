/* SPDX-License-Identifier: MIT
 * The van de Geijn bcast (Barnett et al. 1994), its modification for two and more clusters
 * (Matsuda 2006, 2.2), and the farfirst bcast it is compared with (Matsuda 2006, 3.1).
 *
 * Cost, M/B and L as in Matsuda 2006, table 1:
 *	vandegeijn	2 M/B, with the WAN crossed as if it were none
 *	vandegeijn-mod	L + M/nB + 2 M/B, n senders
 *	farfirst	L + M/B + 2 M/B */
#include "collectives/bcast/bcast.h"

enum { SCATTER, ALLGATHER, FORWARD, COUNTER };

void gci_emit_bcast_vandegeijn(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_parts p = gci_parts_of(c, g.n);

	gci_scatter(b, &g, &p, GCI_IN, SCATTER);
	gci_allgather(b, &g, &p, GCI_IN, ALLGATHER);
}

/* This rank's cluster, beginning with the root where it is the root's. */
static struct gci_group my_cluster(const struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int mine = t->cluster[b->rank];

	return gci_group_cluster(
		c, mine, b->rank, mine == t->cluster[c->root] ? t->index[c->root] : 0);
}

/* The part of member `i` of the root's cluster, as held by member `holder`: its own in OUT, those
 * forwarded to it in TMP one after the other (*at begins as 0 and is moved on), all of the root's
 * in IN. */
static struct gci_slice held(const struct gci_parts *p, int i, int holder, uint64_t *at)
{
	struct gci_slice s = gci_parts_slice(p, holder ? GCI_OUT : GCI_IN, i, i + 1);

	if (!holder || i == holder)
		return s;
	s.buffer = GCI_TMP;
	s.offset = *at;
	*at += s.length;
	return s;
}

/* Members 0 .. senders-1 of the root's cluster hold the parts of all (member i's with i mod
 * senders) and send them straight to their final counterparts (Matsuda 2006, 2.2). The root needs
 * nothing forwarded. */
static void forward(
	struct gci_builder *b, const struct gci_group *g, const struct gci_parts *p, int senders)
{
	int i, holder = g->me % senders;
	uint64_t at = 0;

	if (g->me >= senders && holder)
		gci_send_some(b, gci_group_rank(g, holder), gci_tag(FORWARD, 0),
			gci_parts_slice(p, GCI_OUT, g->me, g->me + 1));
	for (i = g->me + senders; g->me && g->me < senders && i < g->n; i += senders) {
		struct gci_slice s = held(p, i, g->me, &at);

		b->tmp_len = s.offset + s.length;
		gci_recv_some(b, gci_group_rank(g, i), gci_tag(FORWARD, 0), s);
	}
}

static void counter_send(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	const struct gci_parts *p, int to, int senders)
{
	struct gci_group peers = gci_group_cluster(c, to, b->rank, 0);
	struct gci_parts q = gci_parts_of(c, peers.n);
	uint64_t at = 0;
	int i, k, end;

	for (i = g->me; g->me < senders && i < g->n; i += senders) {
		struct gci_slice mine = held(p, i, g->me, &at);

		for (gci_parts_meeting(p, i, &q, &k, &end); k < end; k++) {
			struct gci_slice s = gci_parts_overlap(p, i, &q, k);

			s.offset += mine.offset - gci_part_at(p, i);
			s.buffer = mine.buffer;
			gci_send_some(
				b, gci_group_rank(&peers, k), gci_tag(COUNTER, (uint32_t)i), s);
		}
	}
}

static void counter_recv(struct gci_builder *b, const struct gci_group *home,
	const struct gci_parts *p, const struct gci_group *g, const struct gci_parts *q,
	int senders)
{
	int i, end;

	for (gci_parts_meeting(q, g->me, p, &i, &end); i < end; i++)
		gci_recv_some(b, gci_group_rank(home, i % senders), gci_tag(COUNTER, (uint32_t)i),
			gci_parts_overlap(p, i, q, g->me));
}

void gci_emit_bcast_vandegeijn_mod(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int mine = t->cluster[b->rank], from = t->cluster[c->root], to;
	struct gci_group g = my_cluster(b, c);
	struct gci_group home = gci_group_cluster(c, from, b->rank, t->index[c->root]);
	struct gci_parts p = gci_parts_of(c, home.n), q = gci_parts_of(c, g.n);
	int senders = gci_fewest_senders(c, from);

	if (mine == from) {
		gci_scatter(b, &g, &p, GCI_IN, SCATTER);
		if (t->nclusters > 1)
			forward(b, &g, &p, senders);
		gci_round(b);
		for (to = 0; to < t->nclusters; to++)
			if (to != from)
				counter_send(b, c, &g, &p, to, senders);
		gci_allgather(b, &g, &p, GCI_IN, ALLGATHER);
	} else {
		counter_recv(b, &home, &p, &g, &q, senders);
		gci_allgather(b, &g, &q, GCI_NBUFFERS, ALLGATHER);
	}
}

void gci_emit_bcast_farfirst(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int mine = t->cluster[b->rank], home = t->cluster[c->root], to;
	struct gci_group g = my_cluster(b, c);
	struct gci_parts p = gci_parts_of(c, g.n);
	uint32_t tag = gci_tag(COUNTER, 0);

	if (!c->count)
		return;
	/* Far first: the root's own cluster waits for the WAN (Matsuda 2006, 3.1). */
	for (to = 0; b->rank == c->root && to < t->nclusters; to++) {
		gci_round(b);
		if (to != home)
			gci_send(b, *gci_topo_members(t, to), tag, gci_slice(GCI_IN, 0, c->count));
	}
	if (mine != home && g.me == 0)
		gci_recv(b, c->root, tag, gci_slice(GCI_OUT, 0, c->count));
	gci_scatter(b, &g, &p, gci_bcast_buffer(b, c), SCATTER);
	gci_allgather(b, &g, &p, mine == home ? GCI_IN : GCI_OUT, ALLGATHER);
}
