/* SPDX-License-Identifier: MIT
 * Sequential bcast, also called a flat tree: the root sends to every rank in turn.
 * Cost: L + (P-1) M/B, the root's link being used P-1 times. ATCC (Vadhiyar 2001), table 1. */
#include "base/mem.h"
#include "collectives/blocks/blocks.h"
#include "collectives/blocks/bridge.h"
#include "collectives/blocks/phases.h"
#include "collectives/models/hnow.h"
#include "collectives/models/magpie.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/formulas.h"

static void gci_emit_bcast_sequential(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));
	int r;

	if (b->rank != c->root)
		gci_recv_some(b, c->root, gci_tag(0, 0), all);
	for (r = 1; b->rank == c->root && r < b->nranks; r++)
		gci_send_some(b, (c->root + r) % b->nranks, gci_tag(0, 0), all);
}

/* ---- Chain bcast: rank r receives from r-1 and sends to r+1, counted from the root; with
 * segments, a pipeline that ignores clusters.
 * Cost: M/B + (P-2) m/B + the path's latencies, for segments of m. ATCC (Vadhiyar 2001), table
 * 1. */

static void gci_emit_bcast_chain(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));

	if (g.me > 0)
		gci_recv_some(b, gci_group_rank(&g, g.me - 1), gci_tag(0, 0), all);
	if (g.me + 1 < g.n)
		gci_send_some(b, gci_group_rank(&g, g.me + 1), gci_tag(0, 0), all);
}

/* ---- Binary bcast: every rank passes on to two others; members 2i+1 and 2i+2, counted from the
 * root, are the children of member i. With segments, a pipeline at half the NIC's rate, but a short
 * one.
 * Cost: 2 log2 P (M/B + o), in segments of m about 2 M/B + 2 log2 P (m/B + o) + the path's
 * latencies, o being the cost of a message. ATCC (Vadhiyar 2001), table 1. */

static void gci_emit_bcast_binary(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));
	int parent, children[32];
	int k, nchildren = gci_binary(&g, &parent, children);

	if (parent >= 0)
		gci_recv_some(b, gci_group_rank(&g, parent), gci_tag(0, 0), all);
	for (k = 0; k < nchildren; k++)
		gci_send_some(b, gci_group_rank(&g, children[k]), gci_tag(0, 0), all);
}

/* ---- Binomial trees: `binomial` is one over all ranks, blind to clusters; `tree` has the root
 * send to the first rank of each other cluster, then a binomial tree in each.
 * Cost: binomial ceil(log2 P) (M/B + o); tree L + (C-1 + ceil(log2 h)) (M/B + o), o being the cost
 * of a message. MagPIe (Kielmann 2001), 3: every WAN link is crossed once. For short messages. */

static void gci_emit_bcast_binomial(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, c->root);

	gci_bcast(b, &g, gci_vector(c, gci_bcast_buffer(b, c)), gci_tag(0, 0));
}

static void gci_emit_bcast_tree(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root], mine = t->cluster[b->rank], other;
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));
	struct gci_group g =
		gci_group_cluster(c, mine, b->rank, mine == home ? t->index[c->root] : 0);

	if (mine != home && g.me == 0)
		gci_recv_some(b, c->root, gci_tag(0, 0), all);
	for (other = 0; b->rank == c->root && other < t->nclusters; other++)
		if (other != home)
			gci_send_some(b, *gci_topo_members(t, other), gci_tag(0, 0), all);
	gci_bcast(b, &g, all, gci_tag(1, 0));
}

/* ---- The van de Geijn bcast (Barnett et al. 1994), and the farfirst bcast that uses it in each
 * cluster (Matsuda 2006, 3.1).
 *
 * Cost, M/B and L as in Matsuda 2006, table 1:
 * 	vandegeijn	2 M/B, with the WAN crossed as if it were none
 * 	farfirst	L + M/B + 2 M/B */

enum { SCATTER, ALLGATHER, COUNTER };

static void gci_emit_bcast_vandegeijn(struct gci_builder *b, const struct gci_coll *c)
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

static void gci_emit_bcast_farfirst(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- The modified van de Geijn bcast: scatter in the root's cluster, a copy of the parts to the
 * other clusters by n senders to each (one to all, Matsuda 2006, 2.5), allgather in each cluster.
 *
 * Cost, M/B and L as in Matsuda 2006, table 1: L + M/nB + 2 M/B. How the n senders come about:
 * 	-mod		any n; the other nodes forward their parts to them, (h-n)/hn M/B, which
 * 			overlaps with what they send (2.2)
 * 	-mod-early	n = 2^i: the copy comes after split i, when so many nodes hold the vector;
 * 			the other splits follow, on both sides (2.4)
 * 	-mod-merge	n = 2^i: the copy comes when merging has left as many different parts; in
 * 			the other clusters, splits undo it (2.4)
 * With more clusters M/nB counts once for each of those that a node sends to: their senders are
 * different nodes as far as the cluster has enough. */

enum { MOD_SCATTER, MOD_ALLGATHER, FORWARD, MOD_COUNTER };

/* Which of the above. */
struct style {
	enum gci_bridge_how how;
	int merged;
};

/* The bridge to the cluster that is `turn` numbers on; false if it does not begin at `depth`. */
static int bridge(struct gci_bridge *x, const struct gci_builder *b, const struct gci_coll *c,
	const struct style *style, int turn, int depth)
{
	int home = c->topo->cluster[c->root], to = (home + turn) % c->topo->nclusters;

	gci_bridge_make(x, c, b->rank, home, to, style->how, style->merged);
	return x->from.depth == depth;
}

/* Copies to all clusters that get the vector at this depth. Only what was forwarded must have come,
 * and the splits or merges up to here be over; what still comes in meanwhile does no harm. */
static void cross(struct gci_builder *b, const struct gci_coll *c, const struct gci_stage *s,
	const struct style *style, int depth)
{
	uint64_t forwarded[GCI_GRID_MAX_CLUSTERS];
	int i, n = c->topo->nclusters, some = 0;
	uint32_t before = (uint32_t)b->nsteps;
	struct gci_bridge x;

	for (i = 1; i < n; i++)
		if (bridge(&x, b, c, style, i, depth)) {
			forwarded[i] = gci_bridge_forward(b, &x, s, FORWARD);
			some = 1;
		}
	if (!some)
		return;
	gci_no_rounds(b);
	if (before)
		gci_fence(b, before - 1);
	for (i = 1; i < n; i++)
		if (bridge(&x, b, c, style, i, depth)) {
			gci_bridge_send_own(b, &x, s, MOD_COUNTER);
			gci_bridge_send_forwarded(b, &x, s, forwarded[i], MOD_COUNTER);
		}
}

static void emit_home(struct gci_builder *b, const struct gci_coll *c, const struct style *style)
{
	struct gci_bank home = gci_bank_of(c, c->topo->cluster[c->root], b->rank);
	struct gci_stage s = {&home.g, &home.p, GCI_OUT, 0, GCI_IN};
	int depth, n = home.g.n;

	for (depth = 0; gci_nranges(n, depth) < n; depth++) {
		if (!style->merged)
			cross(b, c, &s, style, depth);
		gci_split(b, &s, gci_tag(MOD_SCATTER, 0), depth, depth + 1);
	}
	cross(b, c, &s, style, GCI_WHOLE_DEPTH);
	while (depth-- > 0) {
		gci_merge(b, &s, MOD_ALLGATHER, depth + 1, depth);
		if (style->merged)
			cross(b, c, &s, style, depth);
	}
}

static void emit(struct gci_builder *b, const struct gci_coll *c, const struct style *style)
{
	int home = c->topo->cluster[c->root], mine = c->topo->cluster[b->rank];
	struct gci_bridge x;
	struct gci_stage s = {&x.to.g, &x.to.p, GCI_OUT, 0, GCI_NBUFFERS};

	if (mine == home) {
		emit_home(b, c, style);
		return;
	}
	gci_bridge_make(&x, c, b->rank, home, mine, style->how, style->merged);
	gci_bridge_recv(b, &x, &s, MOD_COUNTER);
	gci_split(b, &s, gci_tag(MOD_SCATTER, 0), x.to.depth, GCI_WHOLE_DEPTH);
	gci_merge(b, &s, MOD_ALLGATHER, GCI_WHOLE_DEPTH, 0);
}

static void gci_emit_bcast_vandegeijn_mod(struct gci_builder *b, const struct gci_coll *c)
{
	static const struct style style = {GCI_BRIDGE_FORWARD, 0};

	emit(b, c, &style);
}

static void gci_emit_bcast_vandegeijn_early(struct gci_builder *b, const struct gci_coll *c)
{
	static const struct style style = {GCI_BRIDGE_HALVES, 0};

	emit(b, c, &style);
}

static void gci_emit_bcast_vandegeijn_merge(struct gci_builder *b, const struct gci_coll *c)
{
	static const struct style style = {GCI_BRIDGE_HALVES, 1};

	emit(b, c, &style);
}

/* ---- MagPIe's original bcast: the root sends the whole message to one coordinator in each other
 * cluster, and each passes it on in its cluster down a binomial tree. A large message's send costs
 * the sender all of its time, because MPI_Isend waits for flow control there (figure 2), so the WAN
 * links are used one after the other: here a SEND begins when the receiver has acknowledged the one
 * before.
 * Cost: (C-1) (M/W + 2L) + ceil(log2 h) M/B for large messages, W being a WAN link's rate;
 * L + ceil(log2 h) (M/B + o) for short ones, o being the cost of a message. MagPIe (Kielmann 2001),
 * 3.1. */

enum { WAN, ACK, LAN };

static void to_coordinators(struct gci_builder *b, const struct gci_coll *c, int waits)
{
	const struct gci_topo *t = c->topo;
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));
	int home = t->cluster[c->root], k;

	for (k = 1; k < t->nclusters; k++) {
		int to = *gci_topo_members(t, (home + k) % t->nclusters);

		gci_send_some(b, to, gci_tag(WAN, 0), all);
		if (!waits)
			continue;
		gci_recv(b, to, gci_tag(ACK, 0), gci_slice(GCI_TMP, 0, 0));
		gci_round(b);
	}
}

static void from_root(struct gci_builder *b, const struct gci_coll *c, int waits)
{
	struct gci_slice all = gci_vector(c, gci_bcast_buffer(b, c));

	gci_recv_some(b, c->root, gci_tag(WAN, 0), all);
	if (!waits)
		return;
	gci_round(b);
	gci_send(b, c->root, gci_tag(ACK, 0), gci_slice(GCI_TMP, 0, 0));
}

static void gci_emit_bcast_magpie(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root], mine = t->cluster[b->rank];
	int waits = c->count * c->esize > GCI_MAGPIE_WAITS_NBYTES;
	struct gci_group g =
		gci_group_cluster(c, mine, b->rank, mine == home ? t->index[c->root] : 0);

	if (b->rank == c->root)
		to_coordinators(b, c, waits);
	else if (g.me == 0)
		from_root(b, c, waits);
	gci_bcast(b, &g, gci_vector(c, gci_bcast_buffer(b, c)), gci_tag(LAN, 0));
}

/* ---- MagPIe's pipelined bcast: segments go down a tree of coordinators, one for each cluster, and
 * each coordinator passes a segment on as it comes, to other coordinators first and then down a
 * tree in its own cluster. So all WAN links on the tree carry segments at a time. With k segments
 * of m, h being heights and d degrees of the two trees, w and l telling WAN from LAN,
 *
 * 	T = (k-1) g + h_w ((d_w - 1) s(m) + L_w + g_w(m)) + h_l ((d_l - 1) s(m) + L_l + s(m))
 * 	g = max(g_w(m), o + d_w s(m) + d_l s(m))
 *
 * MagPIe (Kielmann 2001), 3.1.1 and 3.1.2; s, g and L as in collectives/models/plogp.h. What the
 * caller leaves open is chosen by this formula, as in the paper (collectives/models/magpie.h): k,
 * and for each k the degrees. With a slow WAN and a fast LAN the tree of coordinators is flat. */

enum { PIPELINED_WAN, PIPELINED_LAN };

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
		p.from_tag = gci_tag(PIPELINED_LAN, 0);
		return p;
	}
	find_children(k, s->wan.degree, n, &p.wan_first, &p.wan_end);
	if (k) {
		p.from = coordinator(c, (k - 1) / s->wan.degree);
		p.from_tag = gci_tag(PIPELINED_WAN, 0);
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
		gci_send_some(b, coordinator(c, i), gci_tag(PIPELINED_WAN, number), s);
	for (i = p->lan_first; i < p->lan_end; i++)
		gci_send_some(b, gci_group_rank(&p->group, i), gci_tag(PIPELINED_LAN, number), s);
}

static void gci_emit_bcast_magpie_pipelined(struct gci_builder *b, const struct gci_coll *c)
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

/* ---- Bcast for hosts that differ in what a message costs them (tini in the grid file): `spoc`,
 * `fnf` and `optimal` differ in how they find the tree. For short messages in one cluster; the
 * trees do not know of clusters, nor of the time that bytes take. Multicast is the same among the
 * ranks that take part, and multiple multicasts each have a tree of their own, by their roots.
 *
 * Cost, t_i being the costs of the others in rising order and t_0 the root's: spoc at most the sum
 * over i < log2 P of max(t_0, t_(2^i - 1)); fnf within 1 % of optimal on average; optimal the least
 * there is, at 3^P to find it. HNOW (Banikazemi 1998), 4 to 6. */

/* Who sends to this rank, and to whom it sends. */
static void emit_place(struct gci_builder *b, const struct gci_coll *c, const struct gci_hnow *t,
	int place, const int *children, int nchildren)
{
	uint64_t i, n = gci_nsegments(c->count, c->segment);
	int k;

	for (i = 0; i < n; i++) {
		struct gci_slice s = gci_segment(gci_bcast_buffer(b, c), c->count, c->segment, i);

		s.offset += c->shift;
		if (place)
			gci_recv_some(b, t->rank[t->parent[place]], gci_tag(0, (uint32_t)i), s);
		for (k = 0; k < nchildren; k++)
			gci_send_some(b, t->rank[children[k]], gci_tag(0, (uint32_t)i), s);
	}
}

static void emit_tree(struct gci_builder *b, const struct gci_coll *c, const struct gci_hnow *t)
{
	int *children = gci_calloc((size_t)t->n, sizeof(*children));
	int i, nchildren = 0, place = 0;

	if (!children) {
		b->failed = 1;
		return;
	}
	while (t->rank[place] != b->rank)
		place++;
	for (i = place + 1; i < t->n; i++)
		if (t->parent[i] == place)
			children[nchildren++] = i;
	emit_place(b, c, t, place, children, nchildren);
	gci_free(children);
}

static int spoc(struct gci_hnow *t)
{
	gci_hnow_spoc(t);
	return 0;
}

static void emit_hnow(
	struct gci_builder *b, const struct gci_coll *c, int (*find_tree)(struct gci_hnow *t))
{
	struct gci_hnow t;

	if (gci_hnow_init(&t, c->topo->tini_ns, c->topo->nranks, c->root)) {
		b->failed = 1;
		return;
	}
	if (find_tree(&t))
		b->failed = 1;
	else
		emit_tree(b, c, &t);
	gci_hnow_free(&t);
}

static void gci_emit_bcast_spoc(struct gci_builder *b, const struct gci_coll *c)
{
	emit_hnow(b, c, spoc);
}

static void gci_emit_bcast_fnf(struct gci_builder *b, const struct gci_coll *c)
{
	emit_hnow(b, c, gci_hnow_fnf);
}

static void gci_emit_bcast_optimal(struct gci_builder *b, const struct gci_coll *c)
{
	emit_hnow(b, c, gci_hnow_optimal);
}

/* ---- the algorithms */

const struct gci_algorithm gci_bcasts[] = {
	{GCI_BCAST, "packed",
		"packing of trees: segments down several trees of clusters, by what links and NICs "
		"carry",
		GCI_PACKS, 0, gci_emit_packed, gci_estimate_packed},
	{GCI_BCAST, "tree", "binomial in each cluster, far clusters first",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_bcast_tree,
		gci_estimate_clusters},
	{GCI_BCAST, "sequential", "the root sends to each rank in turn",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_bcast_sequential, gci_estimate_flat},
	{GCI_BCAST, "chain", "rank to rank in rank order", GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0,
		gci_emit_bcast_chain, gci_estimate_chain},
	{GCI_BCAST, "binomial", "binomial tree over all ranks", GCI_USES_SEGMENT | GCI_BY_SEGMENT,
		0, gci_emit_bcast_binomial, gci_estimate_binomial},
	{GCI_BCAST, "binary", "binary tree over all ranks", GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0,
		gci_emit_bcast_binary, gci_estimate_binary},
	{GCI_BCAST, "vandegeijn", "scatter, allgather over all ranks", 0, 0,
		gci_emit_bcast_vandegeijn, gci_estimate_halving},
	{GCI_BCAST, "vandegeijn-mod", "scatter, copy over the WAN by n senders, allgather",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS, 0, gci_emit_bcast_vandegeijn_mod,
		gci_estimate_modified},
	{GCI_BCAST, "vandegeijn-mod-early",
		"the same, copied over the WAN when 2^i <= n nodes have the scattered parts",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS, 0, gci_emit_bcast_vandegeijn_early,
		gci_estimate_modified},
	{GCI_BCAST, "vandegeijn-mod-merge",
		"the same, copied over the WAN when 2^i <= n nodes have merged the parts",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS, 0, gci_emit_bcast_vandegeijn_merge,
		gci_estimate_modified},
	{GCI_BCAST, "farfirst", "whole message over the WAN, then van de Geijn in each cluster",
		GCI_CAPS_SENDERS, 0, gci_emit_bcast_farfirst, gci_estimate_far_first},
	{GCI_BCAST, "magpie", "to each cluster in turn, then binomial in each", GCI_CAPS_SENDERS, 0,
		gci_emit_bcast_magpie, gci_estimate_clusters},
	{GCI_BCAST, "magpie-pipelined", "segments down a tree of clusters, and on in each",
		GCI_USES_SEGMENT | GCI_USES_DEGREE | GCI_CAPS_SENDERS, 0,
		gci_emit_bcast_magpie_pipelined, gci_estimate_clusters},
	{GCI_BCAST, "spoc", "binomial tree, hosts with cheaper messages higher up",
		GCI_USES_SEGMENT, 0, gci_emit_bcast_spoc, gci_estimate_binomial},
	{GCI_BCAST, "fnf", "the fastest host left from whoever reaches it first", GCI_USES_SEGMENT,
		0, gci_emit_bcast_fnf, gci_estimate_binomial},
	{GCI_BCAST, "optimal", "the best tree for hosts whose messages differ in cost",
		GCI_USES_SEGMENT | GCI_PLANS, GCI_HNOW_MOST_OPTIMAL, gci_emit_bcast_optimal,
		gci_estimate_binomial},
	{GCI_BCAST, NULL, NULL, 0, 0, NULL, NULL},
};
