/* SPDX-License-Identifier: MIT
 * Trees, and bcasts down them. With h and d of a tree, s, r, g and or of P-LogP (plogp.h),
 *
 * 	gamma  = max(g, or + d s)
 * 	lambda = h ((d - 1) s + r)
 *
 * are bounds for a layer alone; with trees of both layers
 *
 * 	gamma  = max(g_w, or_w + d_w s_w + d_l s_l)
 * 	lambda = lambda_w + lambda_l
 *
 * of which degrees are tried from d_w = g_w / s_w on, since fewer children would leave links idle,
 * and d_l up to what leaves gamma to the WAN. MagPIe (Kielmann 2001), 3.1. */
#include "collectives/models/magpie.h"

#include "collectives/blocks/layout.h"

/* ---- Operations on blocks, of P_w clusters of at most P_l ranks; with a = max(g_w, (P_w-1) s_w +
 * s_l), r_l and r_w being what receiving takes, and the formulas' (k-1) gamma + lambda:
 *
 * 	scatter		gamma = P_l a + or_l
 * 			lambda = (P_l-1) a + (P_w-1) s_w + L_w + g_w
 * 	gather		gamma = max(P_l g_w, P_l r_l + (P_w-1) P_l r_w + os_l)
 * 			lambda = max(L_w + P_l g_w, max(L_l, os_l) + P_l r_l + (P_w-1) P_l r_w)
 * 	exchange	gamma = max((P_w-1) (s_w + max(g_l, or_w)), g_w)
 * 			lambda = (P_w-2) s_w + g_w + L_w
 *
 * MagPIe (Kielmann 2001), 3.2 to 3.4. */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t completion(uint64_t k, uint64_t gamma, uint64_t lambda)
{
	return gci_ns_plus(gci_ns_times(k - 1, gamma), lambda);
}

static void look_up(const struct gci_plogp *p, uint64_t nbytes, uint64_t k,
	struct gci_plogp_times *wan, struct gci_plogp_times *lan)
{
	uint64_t m = nbytes ? (nbytes - 1) / k + 1 : 0;

	*wan = gci_plogp_at(p, GCI_WAN, m);
	*lan = gci_plogp_at(p, GCI_LAN, m);
}

uint64_t gci_magpie_scatter_ns(const struct gci_plogp *p, uint64_t nbytes, uint64_t k)
{
	uint64_t others = (unsigned)p->nclusters - 1, most = (unsigned)p->most, turn, remote;
	struct gci_plogp_times wan, lan;

	look_up(p, nbytes, k, &wan, &lan);
	remote = gci_ns_times(others, wan.send_ns);
	turn = larger(wan.gap_ns, gci_ns_plus(remote, lan.send_ns));
	return completion(k, gci_ns_plus(gci_ns_times(most, turn), lan.or_ns),
		gci_ns_plus(gci_ns_times(most - 1, turn),
			gci_ns_plus(remote, others ? wan.recv_ns : lan.recv_ns)));
}

uint64_t gci_magpie_gather_ns(const struct gci_plogp *p, uint64_t nbytes, uint64_t k)
{
	uint64_t others = (unsigned)p->nclusters - 1, most = (unsigned)p->most, all, cross;
	struct gci_plogp_times wan, lan;

	look_up(p, nbytes, k, &wan, &lan);
	all = gci_ns_plus(gci_ns_times(most, larger(lan.gap_ns, lan.or_ns)),
		gci_ns_times(others * most, larger(lan.gap_ns, wan.or_ns)));
	cross = gci_ns_times(most, wan.gap_ns);
	return completion(k, larger(cross, gci_ns_plus(all, lan.os_ns)),
		larger(gci_ns_plus(wan.latency_ns, cross),
			gci_ns_plus(larger(lan.latency_ns, lan.os_ns), all)));
}

uint64_t gci_magpie_exchange_ns(const struct gci_plogp *p, uint64_t nbytes, uint64_t k)
{
	uint64_t others = (unsigned)p->nclusters - 1, both;
	struct gci_plogp_times wan, lan;

	if (!others)
		return 0;
	look_up(p, nbytes, k, &wan, &lan);
	both = gci_ns_plus(wan.send_ns, larger(lan.gap_ns, wan.or_ns));
	return completion(k, larger(gci_ns_times(others, both), wan.gap_ns),
		gci_ns_plus(gci_ns_times(others - 1, wan.send_ns), wan.recv_ns));
}

/* ---- the best number of segments */

struct operation {
	const struct gci_magpie *m;
	enum gci_kind kind;
	uint64_t nbytes; /* of the vector, or of a block */
	uint32_t degree;
};

/* The bcasts of 3.4: of each coordinator's slab in k segments, which go down a binomial tree one
 * after the other. A segment alone is there after h hops, since who gets it first sends it most. */
static uint64_t spread_ns(const struct gci_plogp *p, uint64_t slab, uint64_t k)
{
	struct gci_magpie_tree t = gci_magpie_tree_of(GCI_MAGPIE_BINOMIAL, p->most);
	struct gci_plogp_times at = gci_plogp_at(p, GCI_LAN, slab ? (slab - 1) / k + 1 : 0);
	uint64_t busy = gci_ns_plus(at.or_ns, gci_ns_times((unsigned)t.degree, at.send_ns));
	uint64_t others = gci_ns_times(k, (unsigned)p->nclusters) - 1;

	if (p->most == 1)
		return 0;
	return gci_ns_plus(gci_ns_times(others, larger(at.gap_ns, busy)),
		gci_ns_times((unsigned)t.height, at.recv_ns));
}

uint64_t gci_magpie_allgather_ns(const struct gci_plogp *p, uint64_t nbytes, uint64_t k)
{
	uint64_t slab = gci_ns_times(nbytes, (unsigned)p->most);
	struct gci_plogp one = *p;

	one.nclusters = 1;
	return gci_ns_plus(p->most > 1 ? gci_magpie_gather_ns(&one, nbytes, 1) : 0,
		gci_ns_plus(gci_magpie_exchange_ns(p, slab, k), spread_ns(p, slab, k)));
}

static uint64_t operation_cost(const void *ctx, uint64_t k)
{
	const struct operation *o = ctx;

	switch (o->kind) {
	case GCI_BCAST:
		return gci_magpie_bcast(o->m, o->nbytes, k, o->degree).ns;
	case GCI_SCATTER:
		return gci_magpie_scatter_ns(&o->m->p, o->nbytes, k);
	case GCI_GATHER:
		return gci_magpie_gather_ns(&o->m->p, o->nbytes, k);
	case GCI_ALLGATHER:
		return gci_magpie_allgather_ns(&o->m->p, o->nbytes, k);
	default:
		return UINT64_MAX;
	}
}

/* As the emitters have it: more steps than a schedule may have are no choice. */
static uint64_t default_cost(const void *ctx, uint64_t k)
{
	const struct operation *o = ctx;
	struct gci_magpie_bcast b;

	if (o->kind != GCI_BCAST)
		return operation_cost(o, k);
	b = gci_magpie_bcast(o->m, o->nbytes, k, o->degree);
	if (k > 1 && k * (unsigned)(1 + b.wan.degree + b.lan.degree) > GCI_PLOGP_MOST_STEPS)
		return UINT64_MAX;
	return b.ns;
}

/* Of the vector, or of a block on average. */
static uint64_t count_of(const struct gci_coll *c)
{
	return c->counts ? gci_total(c) / (unsigned)c->topo->nranks : c->count;
}

static struct operation operation_of(const struct gci_magpie *m, const struct gci_coll *c)
{
	return (struct operation){m, c->kind, gci_ns_times(count_of(c), c->esize), c->degree};
}

uint64_t gci_magpie_segment(const struct gci_magpie *m, const struct gci_coll *c)
{
	struct operation o = operation_of(m, c);
	uint64_t count = count_of(c), most = GCI_PLOGP_MOST_STEPS;

	if (c->segment || !count)
		return c->segment ? c->segment : UINT32_MAX;
	if (c->kind != GCI_BCAST)
		most /= (unsigned)c->topo->nranks;
	return (count - 1) / gci_plogp_segments(count, most, default_cost, &o) + 1;
}

uint64_t gci_magpie_ns(const struct gci_magpie *m, const struct gci_coll *c)
{
	struct operation o = operation_of(m, c);
	uint64_t count = count_of(c);

	return operation_cost(&o, count ? (count - 1) / gci_magpie_segment(m, c) + 1 : 1);
}

/* ---- the original ways */

/* The root sends to each other coordinator; if they are to wait, what comes next waits for an
 * acknowledgement. What is more than the transport's allowance is not sent before the first of them
 * is known to be ready. */
static uint64_t send_turns(const struct gci_plogp *p, uint64_t nbytes)
{
	struct gci_plogp_times wan = gci_plogp_at(p, GCI_WAN, nbytes);
	uint64_t others = (unsigned)p->nclusters - 1, trip = gci_ns_times(2, wan.latency_ns);
	uint64_t ask = nbytes < GCI_WAN_EAGER ? 0 : wan.latency_ns;

	if (!others)
		return 0;
	if (nbytes <= GCI_MAGPIE_WAITS_NBYTES)
		return gci_ns_plus(gci_ns_times(others - 1, wan.send_ns), wan.recv_ns);
	return gci_ns_plus(ask, gci_ns_times(others, gci_ns_plus(wan.gap_ns, trip)));
}

/* The root receives from each other coordinator; of those that need not wait all are under way at
 * once. */
static uint64_t receive_turns(const struct gci_plogp *p, uint64_t nbytes)
{
	struct gci_plogp_times wan = gci_plogp_at(p, GCI_WAN, nbytes);
	uint64_t others = (unsigned)p->nclusters - 1, trip = gci_ns_times(2, wan.latency_ns);

	if (nbytes < GCI_WAN_EAGER)
		return gci_ns_plus(
			wan.latency_ns, larger(wan.gap_ns, gci_ns_times(others, wan.send_ns)));
	return gci_ns_times(others, gci_ns_plus(wan.gap_ns, trip));
}

/* A binomial tree in each cluster, or each block by itself. */
static uint64_t in_clusters(const struct gci_plogp *p, uint64_t nbytes, int is_bcast)
{
	struct gci_magpie_tree t = gci_magpie_tree_of(GCI_MAGPIE_BINOMIAL, p->most);
	struct gci_plogp_times lan = gci_plogp_at(p, GCI_LAN, nbytes);

	if (p->most == 1)
		return 0;
	if (is_bcast)
		return gci_ns_times((unsigned)t.height, lan.recv_ns);
	return gci_ns_plus(gci_ns_times((unsigned)p->most - 2, lan.send_ns), lan.recv_ns);
}

uint64_t gci_magpie_original_ns(const struct gci_magpie *m, const struct gci_coll *c)
{
	struct operation o = operation_of(m, c);

	uint64_t slab = gci_ns_times(o.nbytes, (unsigned)m->p.most), turns;

	if (c->kind != GCI_BCAST && c->kind != GCI_SCATTER && c->kind != GCI_GATHER)
		return UINT64_MAX;
	if (c->kind == GCI_GATHER)
		turns = receive_turns(&m->p, slab);
	else
		turns = send_turns(&m->p, c->kind == GCI_BCAST ? o.nbytes : slab);
	return gci_ns_plus(turns, in_clusters(&m->p, o.nbytes, c->kind == GCI_BCAST));
}

/* ---- trees, and bcasts down them */

static uint64_t segment_of(uint64_t nbytes, uint64_t k)
{
	return nbytes ? (nbytes - 1) / k + 1 : 0;
}

/* ---- trees */

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

static struct gci_magpie_tree tree_of(int n, int degree)
{
	if (degree > n - 1)
		degree = n - 1;
	return (struct gci_magpie_tree){degree, height_of(n, degree)};
}

/* The least degree of a tree that is no higher; more than 1. */
static int least_degree(int n, int height)
{
	int low = 2, high = n - 1;

	while (low < high) {
		int mid = (low + high) / 2;

		if (height_of(n, mid) <= height)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static struct gci_magpie_trees list_trees(int n)
{
	struct gci_magpie_trees t = {{tree_of(n, 1)}, 1, n};
	int height;

	for (height = n > 2 ? height_of(n, 2) : 0; height > 0; height--) {
		struct gci_magpie_tree next = tree_of(n, least_degree(n, height));

		if (next.degree > t.of[t.n - 1].degree) /* else of this height there is none */
			t.of[t.n++] = next;
	}
	return t;
}

void gci_magpie_init(struct gci_magpie *m, const struct gci_plogp *p)
{
	m->p = *p;
	m->wan = list_trees(p->nclusters);
	m->lan = list_trees(p->most);
}

/* ---- T of given trees */

static uint64_t lambda(struct gci_magpie_tree t, const struct gci_plogp_times *at)
{
	if (!t.height)
		return 0;
	return gci_ns_times((unsigned)t.height,
		gci_ns_plus(gci_ns_times((unsigned)t.degree - 1, at->send_ns), at->recv_ns));
}

static uint64_t layer_ns(struct gci_magpie_tree t, const struct gci_plogp_times *at, uint64_t k)
{
	uint64_t busy = gci_ns_plus(at->or_ns, gci_ns_times((unsigned)t.degree, at->send_ns));

	if (!t.height)
		return 0;
	return gci_ns_plus(gci_ns_times(k - 1, larger(at->gap_ns, busy)), lambda(t, at));
}

/* ---- the best ones */

/* Fewer children would leave links idle. */
static struct gci_magpie_tree least_tree(int n, const struct gci_plogp_times *at)
{
	uint64_t d = at->send_ns ? at->gap_ns / at->send_ns : 1;

	d = d < (unsigned)n ? d : (unsigned)n;
	return tree_of(n, d ? (int)d : 1);
}

uint64_t gci_magpie_layer_ns(const struct gci_magpie *m, enum gci_layer layer, uint64_t nbytes,
	uint64_t k, struct gci_magpie_tree *tree)
{
	struct gci_plogp_times at = gci_plogp_at(&m->p, layer, segment_of(nbytes, k));
	const struct gci_magpie_trees *all = layer == GCI_WAN ? &m->wan : &m->lan;
	struct gci_magpie_tree least = least_tree(all->nnodes, &at), best = least;
	uint64_t best_ns = layer_ns(least, &at, k);
	int i;

	for (i = 0; i < all->n; i++) {
		uint64_t ns = layer_ns(all->of[i], &at, k);

		if (all->of[i].degree > least.degree && ns < best_ns) {
			best_ns = ns;
			best = all->of[i];
		}
	}
	if (tree)
		*tree = best;
	return best_ns;
}

uint64_t gci_magpie_bcast_sequential_ns(
	const struct gci_magpie *m, uint64_t nbytes, uint64_t k_wan, uint64_t k_lan)
{
	return gci_ns_plus(gci_magpie_layer_ns(m, GCI_WAN, nbytes, k_wan, NULL),
		gci_magpie_layer_ns(m, GCI_LAN, nbytes, k_lan, NULL));
}

/* Both layers' times for a segment. */
struct layers {
	struct gci_plogp_times wan, lan;
	uint64_t k;
};

/* `wan` with the LAN's trees. */
static void try_trees(const struct gci_magpie *m, const struct layers *at,
	struct gci_magpie_tree wan, struct gci_magpie_bcast *best)
{
	uint64_t s = at->lan.send_ns, gap = at->wan.gap_ns, most = 1, ns, busy;
	int i, one = m->p.nclusters == 1;

	busy = gci_ns_plus(one ? at->lan.or_ns : at->wan.or_ns,
		gci_ns_times((unsigned)wan.degree, at->wan.send_ns));
	if (s && gap > gci_ns_plus(busy, s))
		most = (gap - busy) / s;
	for (i = 0; i < m->lan.n; i++) {
		struct gci_magpie_tree lan = m->lan.of[i];

		if (!one && (unsigned)lan.degree > most)
			break; /* degrees rise */
		ns = larger(gap, gci_ns_plus(busy, gci_ns_times((unsigned)lan.degree, s)));
		ns = gci_ns_times(at->k - 1, ns);
		ns = gci_ns_plus(ns, gci_ns_plus(lambda(wan, &at->wan), lambda(lan, &at->lan)));
		if (ns < best->ns)
			*best = (struct gci_magpie_bcast){wan, lan, ns};
	}
}

struct gci_magpie_bcast gci_magpie_bcast(
	const struct gci_magpie *m, uint64_t nbytes, uint64_t k, uint32_t wan_degree)
{
	struct layers at = {.k = k};
	struct gci_magpie_bcast best;
	struct gci_magpie_tree least;
	int i, n = m->p.nclusters;

	at.wan = gci_plogp_at(&m->p, GCI_WAN, segment_of(nbytes, k));
	at.lan = gci_plogp_at(&m->p, GCI_LAN, segment_of(nbytes, k));
	least = least_tree(n, &at.wan);
	if (wan_degree)
		least = tree_of(n, wan_degree < (unsigned)n ? (int)wan_degree : n);
	best = (struct gci_magpie_bcast){least, m->lan.of[0], UINT64_MAX};
	if (n == 1 && m->p.most == 1)
		best.ns = 0;
	try_trees(m, &at, least, &best);
	for (i = 0; !wan_degree && i < m->wan.n; i++)
		if (m->wan.of[i].degree > least.degree)
			try_trees(m, &at, m->wan.of[i], &best);
	return best;
}

/* ---- single-layer trees */

static int log2_up(int n)
{
	int k = 0;

	while (k < 31 && 1 << k < n)
		k++;
	return k;
}

struct gci_magpie_tree gci_magpie_tree_of(enum gci_magpie_shape shape, int n)
{
	if (n < 2)
		return (struct gci_magpie_tree){0, 0};
	switch (shape) {
	case GCI_MAGPIE_FLAT:
		return (struct gci_magpie_tree){n - 1, 1};
	case GCI_MAGPIE_CHAIN:
		return (struct gci_magpie_tree){1, n - 1};
	case GCI_MAGPIE_BINARY:
		return tree_of(n, 2);
	default:
		return (struct gci_magpie_tree){log2_up(n), log2_up(n)};
	}
}

uint64_t gci_magpie_tree_ns(const struct gci_plogp *p, enum gci_layer layer,
	enum gci_magpie_shape shape, int n, uint64_t nbytes, uint64_t segment_nbytes)
{
	struct gci_magpie_tree t = gci_magpie_tree_of(shape, n);
	uint64_t k = segment_nbytes && nbytes ? (nbytes - 1) / segment_nbytes + 1 : 1;
	struct gci_plogp_times at = gci_plogp_at(p, layer, k > 1 ? segment_nbytes : nbytes);

	if (shape == GCI_MAGPIE_FLAT)
		at.or_ns = 0; /* nobody who receives sends */
	return layer_ns(t, &at, k);
}

struct tree_cost {
	const struct gci_plogp *p;
	enum gci_layer layer;
	enum gci_magpie_shape shape;
	int n;
	uint64_t nbytes;
};

static uint64_t tree_cost(const void *ctx, uint64_t k)
{
	const struct tree_cost *t = ctx;

	return gci_magpie_tree_ns(
		t->p, t->layer, t->shape, t->n, t->nbytes, segment_of(t->nbytes, k));
}

uint64_t gci_magpie_tree_segment(const struct gci_plogp *p, enum gci_layer layer,
	enum gci_magpie_shape shape, int n, uint64_t nbytes)
{
	struct tree_cost t = {p, layer, shape, n, nbytes};

	return segment_of(nbytes, gci_plogp_segments(nbytes, GCI_PLOGP_MOST_STEPS, tree_cost, &t));
}
