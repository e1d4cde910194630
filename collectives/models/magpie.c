/* SPDX-License-Identifier: MIT
 * Trees, and bcasts down them. With h and d of a tree, s, r, g and or of P-LogP (plogp.h),
 *
 *	gamma  = max(g, or + d s)
 *	lambda = h ((d - 1) s + r)
 *
 * are bounds for a layer alone; with trees of both layers
 *
 *	gamma  = max(g_w, or_w + d_w s_w + d_l s_l)
 *	lambda = lambda_w + lambda_l
 *
 * of which degrees are tried from d_w = g_w / s_w on, since fewer children would leave links idle,
 * and d_l up to what leaves gamma to the WAN. MagPIe (Kielmann 2001), 3.1. */
#include "collectives/models/magpie.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

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
