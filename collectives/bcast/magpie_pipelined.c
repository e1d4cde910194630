/* SPDX-License-Identifier: MIT
 * MagPIe's pipelined bcast: segments go down a tree of coordinators, one for each cluster, and each
 * coordinator passes a segment on as it comes, to other coordinators first and then down a tree in
 * its own cluster. So all WAN links on the tree carry segments at a time. With k segments of m,
 * h being heights and d degrees of the two trees, w and l telling WAN from LAN,
 *
 *	T = (k-1) g + h_w ((d_w - 1) s(m) + L_w + g_w(m)) + h_l ((d_l - 1) s(m) + L_l + s(m))
 *	g = max(g_w(m), o + d_w s(m) + d_l s(m))
 *
 * MagPIe (Kielmann 2001), 3.1.1 and 3.1.2; s, g and L as in collectives/models/plogp.h. What the
 * caller leaves open is chosen by this formula, as in the paper (collectives/models/magpie.h): k,
 * and for each k the degrees. With a slow WAN and a fast LAN the tree of coordinators is flat. */
#include "collectives/bcast/bcast.h"
#include "collectives/models/magpie.h"

enum { WAN, LAN };

/* What one rank does with each segment. */
struct place {
	int from; /* rank, or -1 */
	uint32_t from_tag;
	int wan_first, wan_end; /* clusters, counted from the root's */
	int lan_first, lan_end; /* members of `group` */
	struct gci_group group;
};

static int coordinator(const struct gci_coll *c, int k)
{
	const struct gci_topo *t = c->topo;

	return k ? *gci_topo_members(t, (t->cluster[c->root] + k) % t->nclusters) : c->root;
}

/* Children of node `i` of n: degree * i + 1 and on. */
static void find_children(int i, int degree, int n, int *first, int *end)
{
	int64_t at = (int64_t)degree * i + 1;

	*first = at < n ? (int)at : n;
	*end = at + degree < n ? (int)at + degree : n;
}

static struct place find_place(
	const struct gci_builder *b, const struct gci_coll *c, const struct gci_magpie_bcast *s)
{
	const struct gci_topo *t = c->topo;
	int n = t->nclusters, home = t->cluster[c->root], mine = t->cluster[b->rank];
	int k = (mine - home + n) % n;
	struct place p = {.from = -1};

	p.group = gci_group_cluster(c, mine, b->rank, k ? 0 : t->index[c->root]);
	find_children(p.group.me, s->lan.degree, p.group.n, &p.lan_first, &p.lan_end);
	if (p.group.me) {
		p.from = gci_group_rank(&p.group, (p.group.me - 1) / s->lan.degree);
		p.from_tag = gci_tag(LAN, 0);
		return p;
	}
	find_children(k, s->wan.degree, n, &p.wan_first, &p.wan_end);
	if (k) {
		p.from = coordinator(c, (k - 1) / s->wan.degree);
		p.from_tag = gci_tag(WAN, 0);
	}
	return p;
}

static void emit_segment(struct gci_builder *b, const struct gci_coll *c, const struct place *p,
	struct gci_slice s, uint32_t number)
{
	int i;

	if (p->from >= 0)
		gci_recv_some(b, p->from, p->from_tag + number, s);
	for (i = p->wan_first; i < p->wan_end; i++)
		gci_send_some(b, coordinator(c, i), gci_tag(WAN, number), s);
	for (i = p->lan_first; i < p->lan_end; i++)
		gci_send_some(b, gci_group_rank(&p->group, i), gci_tag(LAN, number), s);
}

void gci_emit_bcast_magpie_pipelined(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_plogp p = gci_plogp(c->topo);
	struct gci_magpie_bcast trees;
	struct gci_magpie m;
	struct place at;
	uint64_t i, k, segment;

	if (!c->count)
		return;
	gci_magpie_init(&m, &p);
	segment = gci_magpie_segment(&m, c);
	k = gci_nsegments(c->count, segment);
	trees = gci_magpie_bcast(&m, c->count * c->esize, k, c->degree);
	at = find_place(b, c, &trees);
	for (i = 0; i < k; i++) {
		struct gci_slice part = gci_segment(gci_bcast_buffer(b, c), c->count, segment, i);

		part.offset += c->shift;
		emit_segment(b, c, &at, part, (uint32_t)i);
	}
}
