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
 * caller leaves open is chosen by this formula, as in the paper: k, and for each k the degrees, d_w
 * from g_w/s on, and d_l so low that the LAN does not slow down the WAN; and of degrees only those
 * that are the least for a height. With a slow WAN and a fast LAN the tree of coordinators is
 * flat. */
#include "base/clock.h"
#include "collectives/bcast/bcast.h"
#include "collectives/blocks/path.h"
#include "collectives/models/plogp.h"

#define MOST_SHAPES 20 /* heights of trees of degree 2 or more, and the chain */

enum { WAN, LAN };

/* A tree in which every inner node but one has d children. */
struct shape {
	int degree, height;
};

struct shapes {
	struct shape of[MOST_SHAPES];
	int n;
};

struct model {
	struct gci_plogp p;
	uint64_t nbytes;
	struct shape wan_first; /* of the least degree that is worth a thought */
	int wan_only;           /* the caller has asked for it */
	struct shapes wan, lan;
};

struct choice {
	struct shape wan, lan;
	uint64_t ns;
};

static int height_of(int n, int degree)
{
	int64_t nodes = 1, level = 1;
	int height = 0;

	if (degree < 2)
		return degree ? n - 1 : 0;
	for (; nodes < n; height++) {
		level *= degree;
		nodes += level;
	}
	return height;
}

static struct shape shape_of(int n, int degree)
{
	if (degree > n - 1)
		degree = n - 1;
	return (struct shape){degree, height_of(n, degree)};
}

/* The least degree for each height of a tree with n nodes. */
static struct shapes list_shapes(int n)
{
	struct shapes s = {{shape_of(n, 1)}, 1};
	int height, low = 2;

	if (n <= 2)
		return s;
	for (height = height_of(n, 2); height > 0; height--) {
		int high = n - 1;

		while (low < high) {
			int mid = (low + high) / 2;

			if (height_of(n, mid) <= height)
				high = mid;
			else
				low = mid + 1;
		}
		s.of[s.n++] = shape_of(n, low);
	}
	return s;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t tree_ns(struct shape t, uint64_t s, uint64_t receive_ns)
{
	return t.height ? (unsigned)t.height * ((unsigned)(t.degree - 1) * s + receive_ns) : 0;
}

static void try_shapes(const struct model *m, uint64_t k, struct shape wan, struct choice *best)
{
	uint64_t nbytes = (m->nbytes - 1) / k + 1;
	uint64_t s = gci_plogp_lan_gap(&m->p, nbytes), g = gci_plogp_wan_gap(&m->p, nbytes);
	uint64_t busy = GCI_MESSAGE_COST_NS + (unsigned)wan.degree * s; /* with the WAN */
	uint64_t most = g > busy + s ? (g - busy) / s : 1, ns;
	int i;

	for (i = 0; i < m->lan.n; i++) {
		struct shape lan = m->lan.of[i];

		if (m->p.nclusters > 1 && (unsigned)lan.degree > most)
			break; /* degrees rise */
		ns = (k - 1) * larger(g, busy + (unsigned)lan.degree * s);
		ns += tree_ns(wan, s, m->p.wan_delay_ns + g);
		ns += tree_ns(lan, s, m->p.lan_delay_ns + s);
		if (ns < best->ns)
			*best = (struct choice){wan, lan, ns};
	}
}

static struct choice choose(const struct model *m, uint64_t k)
{
	struct choice best = {m->wan_first, m->lan.of[0], UINT64_MAX};
	uint64_t nbytes = (m->nbytes - 1) / k + 1, least;
	int i, n = m->p.nclusters;

	if (m->wan_only) {
		try_shapes(m, k, m->wan_first, &best);
		return best;
	}
	/* Fewer children would leave links idle. */
	least = gci_plogp_wan_gap(&m->p, nbytes) / gci_plogp_lan_gap(&m->p, nbytes);
	least = least < (unsigned)n ? least : (unsigned)n;
	try_shapes(m, k, shape_of(n, least ? (int)least : 1), &best);
	for (i = 0; i < m->wan.n; i++)
		if ((unsigned)m->wan.of[i].degree > least)
			try_shapes(m, k, m->wan.of[i], &best);
	return best;
}

static uint64_t cost(const void *ctx, uint64_t k)
{
	struct choice s = choose(ctx, k);
	unsigned steps = (unsigned)(1 + s.wan.degree + s.lan.degree);

	return k > 1 && k * steps > GCI_PLOGP_MOST_STEPS ? UINT64_MAX : s.ns;
}

static struct model model_of(const struct gci_coll *c)
{
	struct model m = {.p = gci_plogp(c->topo), .nbytes = c->count * c->esize};
	int n = c->topo->nclusters;

	m.wan = list_shapes(n);
	m.lan = list_shapes(m.p.most);
	m.wan_only = c->degree || n == 1;
	m.wan_first = shape_of(n, c->degree && c->degree < (unsigned)n ? (int)c->degree : n - 1);
	return m;
}

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
	const struct gci_builder *b, const struct gci_coll *c, const struct choice *s)
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
	struct model m;
	struct choice s;
	struct place p;
	uint64_t i, k, segment = c->segment;

	if (!c->count)
		return;
	m = model_of(c);
	if (!segment)
		segment = (c->count - 1) /
				  gci_plogp_segments(c->count, GCI_PLOGP_MOST_STEPS, cost, &m) +
			  1;
	k = gci_nsegments(c->count, segment);
	s = choose(&m, k);
	p = find_place(b, c, &s);
	for (i = 0; i < k; i++) {
		struct gci_slice part = gci_segment(gci_bcast_buffer(b, c), c->count, segment, i);

		part.offset += c->shift;
		emit_segment(b, c, &p, part, (uint32_t)i);
	}
}
