/* SPDX-License-Identifier: MIT */
#include "collectives/planner/pack.h"

#include "base/mem.h"
#include "collectives/blocks/order.h"
#include "collectives/planner/cuts.h"
#include "collectives/planner/game.h"
#include "collectives/planner/oracle.h"
#include "collectives/planner/spans.h"

#include <string.h>

#define FEW_CLASSES  8 /* up to so many, all that may help is tried */
#define LEAST_ROUNDS 6
#define MOST_ROUNDS  60 /* of pricing */
#define GAME_ROUNDS  100
#define LONG_GAME    1000
#define EXPLORED     10    /* steps, one after the other, to seek columns by */
#define EXPLORED_ONE 50    /* the same of a single commodity, whose steps cost little */
#define CLOSE        0.003 /* bisection ends when T is known to that part */
#define MOST_ROWS    8     /* times the resources */
#define NEAR_MOST    .98   /* of the fullest: what gets a row */
#define EXACT        1e-6  /* and of given shares to that */
#define TINY         1e-5  /* shares below count as none */
#define FAR_COST     1.02  /* of a NIC, for what passes links */
#define NEVER_NS     1e300
#define BARRED_NS    1e18 /* of a way that is none */
#define BARRED_PRICE 1e30 /* and for a byte */
#define LAZY         1e-6 /* prices, where delay alone counts */

/* Copies on one resource, of what comes there so long after its start at the earliest, and travels for so long in all. */
struct load {
	int resource;
	double copies, before_ns, all_ns;
};

/* What a resource can do only from so long after the start on, and until so long before the end. The first rows are of all
 * that each does. */
struct row {
	int resource, next; /* of the same resource; -1: the last */
	double before_ns, after_ns;
};

struct column {
	int commodity;
	double delay_ns;
	struct load *loads;
	int nloads;
	int *way;
	int nway, root, meet;
};

struct pack {
	const struct gci_packing_wish *w;
	const struct gci_network *net;
	struct gci_network back; /* GCI_SUMS: arrows turned */
	int n, m;         /* classes; resources: the network's, then each class's processors */
	double *capacity; /* [resource]: bytes per ns */
	double *hop_ns, *far_ns; /* [from * n + to]: of a segment: one hop, shortest way */
	double *back_hop_ns, *back_far_ns; /* [the same]: of `back` */
	struct column *pool;
	size_t npool, cap;
	double *share; /* [column]: of its commodity */
	double *best;  /* [column]: the best so far; those of new columns are 0 */
	struct row *rows;
	int nrows;
	double *price; /* [row]: sum to 1 */
	double *toll;  /* [resource]: what its rows cost, for T */
	struct gci_spans
		*spans; /* [resource]: scratch of fit_spans; NULL: by_spans is not wanted */
	double *work;   /* [resource]: scratch */
	double *log_price, *answer; /* [resource]: of an exploration */
	double *least;              /* [commodity]: the same */
	size_t *cheapest;           /* [commodity]: the same */
	double best_ns;
	double *least_ns; /* [resource]: that nothing on it can do without, before and after; NULL: no bound is wanted */
	struct gci_edge *edges; /* [resource]: scratch of the bound */
	double bound_ns;
	double *arc_cost, *arc_price, *scratch; /* [from * n + to], [the same], [n] */
	int *path;                              /* scratch: [2 n] */
	int failed;
};

int gci_packing_rounds(int nhosts)
{
	int n = 0;

	while (1 << n < nhosts)
		n++;
	return n;
}

int gci_packing_lan_hops(int nhosts)
{
	int n = gci_packing_rounds(nhosts);

	return nhosts > GCI_BINOMIAL_HOSTS ? 2 * n : n;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

/* ---- ways */

static void fill_hops(const struct pack *p, const struct gci_network *net, double *hop, double *far)
{
	int n = p->n, a, b, v;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++) {
			hop[a * n + b] = net->delay_ns[a * n + b] + p->w->message_ns +
					 p->w->segment_nbytes / net->rate[a * n + b];
			if (net->is_barred[a * n + b])
				hop[a * n + b] = BARRED_NS;
			far[a * n + b] = a == b ? 0 : hop[a * n + b];
		}
	for (v = 0; v < n; v++)
		for (a = 0; a < n; a++)
			for (b = 0; b < n; b++)
				far[a * n + b] =
					smaller(far[a * n + b], far[a * n + v] + far[v * n + b]);
}

/* From the first host of class `from` that has it to the last of the others of class `to`. */
static double rest_ns(const struct pack *p, const struct gci_network *net, const double *hop,
	int from, int to, int sums)
{
	int hosts = gci_network_size(net, to);

	if (from == to && sums)
		return gci_packing_rounds(p->w->order->nhosts[to]) * hop[from * p->n + to];
	if (from == to)
		return gci_packing_lan_hops(hosts) * hop[from * p->n + to];
	return hop[from * p->n + to] +
	       (hosts > 2 ? hosts - 2 : 0) * p->w->segment_nbytes / net->out[from];
}

/* A tree as it is made: depths, latest ends below, and its arcs. */
struct tree {
	const int *parent, *rest; /* [class] */
	int root;
	double *depth, *leaf, *below; /* [class] */
	double *copies; /* [class]: what its first host sends to its parent, or gets from there */
	int *order;
	double delay_ns;
};

static int tree_alloc(struct tree *t, int n)
{
	memset(t, 0, sizeof(*t));
	t->depth = gci_calloc((size_t)(4 * n), sizeof(*t->depth));
	t->order = gci_calloc((size_t)n, sizeof(*t->order));
	if (!t->depth || !t->order)
		return GCOLL_ERR_NOMEM;
	t->leaf = t->depth + n;
	t->below = t->leaf + n;
	t->copies = t->below + n;
	return 0;
}

static void tree_free(struct tree *t)
{
	gci_free(t->depth);
	gci_free(t->order);
}

/* Parents before their children. */
static void order_tree(struct tree *t, int n)
{
	int i, c, k = 0;

	t->order[k++] = t->root;
	for (i = 0; i < k; i++)
		for (c = 0; c < n; c++)
			if (c != t->root && t->parent[c] == t->order[i])
				t->order[k++] = c;
}

/* `sums`: in the order that is to be kept. */
static void measure_tree(const struct pack *p, const struct gci_network *net, const double *hop,
	struct tree *t, const int *parent, const int *rest, int root, int sums)
{
	struct gci_sum_node nodes[GCI_GRID_MAX_CLUSTERS];
	int n = p->n, i, c;

	t->parent = parent;
	t->rest = rest;
	t->root = root;
	order_tree(t, n);
	t->depth[root] = 0;
	t->delay_ns = 0;
	for (i = 0; i < n; i++) {
		c = t->order[i];
		t->copies[c] = sums ? gci_sum_nodes(p->w->order, parent, root, c, nodes) : 1;
		if (i)
			t->depth[c] = t->depth[parent[c]] + hop[parent[c] * n + c] +
				      (t->copies[c] - 1) * p->w->segment_nbytes /
					      net->rate[parent[c] * n + c];
	}
	for (c = 0; c < n; c++) {
		t->leaf[c] = t->depth[c];
		if (gci_network_size(net, c) > 1)
			t->leaf[c] = larger(t->leaf[c],
				t->depth[rest[c]] + rest_ns(p, net, hop, rest[c], c, sums));
		t->below[c] = t->leaf[c];
		t->delay_ns = larger(t->delay_ns, t->leaf[c]);
	}
	for (i = n; i-- > 1;) {
		c = t->order[i];
		t->below[parent[c]] = larger(t->below[parent[c]], t->below[c]);
	}
}

/* What messages cost their hosts, as a resource. */
static int processors(const struct pack *p, int class)
{
	return gci_network_nresources(p->net) + class;
}

/* NICs are a little dearer for what passes links: of ways that cost the same those within a cluster. */
static double nic_cost(const struct pack *p, int from, int to)
{
	int pair = from * p->n + to;

	return p->net->route_at[pair] < p->net->route_at[pair + 1] ? FAR_COST : 1;
}

/* `before_ns` at its sender, of `all_ns`. */
static void add_loads(struct pack *p, struct column *c, int from, int to, double copies,
	double before_ns, double all_ns)
{
	int way[GCI_MOST_ON_A_WAY], i, n = gci_network_way(p->net, from, to, way);
	double nic = nic_cost(p, from, to);

	for (i = 0; i < n; i++) {
		double at = smaller(before_ns + gci_network_before(p->net, from, to, i), all_ns);

		c->loads[c->nloads++] =
			(struct load){way[i], i && i < n - 1 ? copies : nic * copies, at, all_ns};
	}
	c->loads[c->nloads++] = (struct load){processors(p, from), copies, before_ns, all_ns};
	c->loads[c->nloads++] = (struct load){processors(p, to), copies, before_ns, all_ns};
}

/* Room for so many arcs. */
static int column_init(struct pack *p, struct column *c, int commodity, int narcs, int nway)
{
	/* Ways may be of different lengths: the longest has all links that routes have. */
	int i, most = 0;

	for (i = 0; i < p->n * p->n; i++)
		if (p->net->route_at[i + 1] - p->net->route_at[i] > most)
			most = p->net->route_at[i + 1] - p->net->route_at[i];
	memset(c, 0, sizeof(*c));
	c->meet = -1;
	c->commodity = commodity;
	c->nway = nway;
	c->loads = gci_calloc((size_t)(narcs * (most + 4)), sizeof(*c->loads));
	c->way = gci_calloc((size_t)nway, sizeof(*c->way));
	return c->loads && c->way ? 0 : GCOLL_ERR_NOMEM;
}

static void column_free(struct column *c)
{
	gci_free(c->loads);
	gci_free(c->way);
}

/* What the root of a reduce has of its own goes the other way first, to where its cluster's sums are. */
static void load_root(struct pack *p, struct column *c, const struct tree *t)
{
	int core = p->w->order->core[t->root];

	if (core != t->root)
		add_loads(p, c, core, t->root, 1, t->depth[core], t->leaf[core]);
}

/* When what goes to a class starts at its sender, who is `depth_ns` from the root: it, and all behind, has `below_ns` from
 * there on. Turned, it comes from there. */
static double start_of(int turned, double depth_ns, double below_ns, double all_ns)
{
	return turned ? below_ns - depth_ns : larger(all_ns - (below_ns - depth_ns), 0);
}

/* Loads of a tree's arcs, each with `more` to travel behind it, `most` at most. */
static void load_tree(struct pack *p, struct column *c, const struct tree *t, int turned,
	double more_ns, double most_ns)
{
	int k, n = p->n, hosts;

	for (k = 0; k < n; k++) {
		double below = smaller(t->below[k] + more_ns, most_ns);
		double leaf = smaller(t->leaf[k] + more_ns, most_ns);

		if (k != t->root)
			add_loads(p, c, turned ? k : t->parent[k], turned ? t->parent[k] : k,
				t->copies[k],
				start_of(turned, t->depth[turned ? k : t->parent[k]], t->below[k],
					below),
				below);
		hosts = gci_network_size(p->net, k);
		if (hosts > 1)
			add_loads(p, c, turned ? k : t->rest[k], turned ? t->rest[k] : k, hosts - 1,
				turned ? 0 : start_of(0, t->depth[t->rest[k]], t->leaf[k], leaf),
				leaf);
	}
}

/* ---- the cheapest column of a commodity, at p->arc_price and a price for delay */

/* `plain`: NICs cost the same for all. */
static void fill_prices(struct pack *p, const double *price, int plain)
{
	int n = p->n, a, b, i;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++) {
			double sum =
				price[gci_nic_out(p->net, a)] /
					p->capacity[gci_nic_out(p->net, a)] +
				price[gci_nic_in(p->net, b)] / p->capacity[gci_nic_in(p->net, b)];
			int pair = a * n + b;

			sum *= plain ? 1 : nic_cost(p, a, b);
			sum += price[processors(p, a)] / p->capacity[processors(p, a)] +
			       price[processors(p, b)] / p->capacity[processors(p, b)];
			for (i = p->net->route_at[pair]; i < p->net->route_at[pair + 1]; i++) {
				int r = 2 * n + p->net->route[i];

				sum += price[r] / p->capacity[r];
			}
			p->arc_price[pair] = p->net->is_barred[pair] ? BARRED_PRICE : sum;
		}
}

/* Hosts but the first: of a core class each other, of another one those of the core class. */
static void find_sum_rest(const struct pack *p, int *rest)
{
	int c;

	for (c = 0; c < p->n; c++)
		rest[c] = p->w->order->core[c];
}

/* mu < 0: delay alone. The detour of an arc over the shortest way: along a path from the root they add up to
 * exactly what comes later there. */
static int find_tree(struct pack *p, const struct gci_network *net, const double *hop,
	const double *far, int turned, int root, double mu, int sums, int *way)
{
	int n = p->n, a, b, *parent = way, *rest = way + n;
	double e = mu < 0 ? LAZY : 1, m = mu < 0 ? 1 : mu, cost, least;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			p->arc_cost[a * n + b] =
				e * p->arc_price[turned ? b * n + a : a * n + b] +
				m * (far[root * n + a] + hop[a * n + b] - far[root * n + b]);
	if (sums) {
		find_sum_rest(p, rest);
		return gci_sum_tree(p->w->order, p->arc_cost, root, parent);
	}
	if (gci_arborescence(n, p->arc_cost, root, parent))
		return GCOLL_ERR_NOMEM;
	for (b = 0; b < n; b++) {
		rest[b] = b;
		/* Of sums, the quickest may meet: see find_meeting. */
		if (gci_network_size(net, b) < 2 || (mu < 0 && p->w->shape == GCI_SUMS))
			continue;
		for (a = 0, least = 0; a < n; a++) {
			cost = e * p->arc_price[turned ? b * n + a : a * n + b] +
			       m * (far[root * n + a] + rest_ns(p, net, hop, a, b, 0));
			if (!a || cost < least) {
				least = cost;
				rest[b] = a;
			}
		}
	}
	return 0;
}

/* The tree of `via`, which has it from the root. */
static void hang_tree(int *parent, int root, int via)
{
	parent[via] = root;
	parent[root] = -1;
}

/* Of sums: all that may hang at `via` does. */
static void hang_sums(const struct gci_sum_order *o, int *parent, int root, int via)
{
	int c, home = o->core[root];

	for (c = 0; c < o->nclasses; c++)
		if (o->core[c] == c && c != root && c != home)
			parent[c] = c == via ? home : via;
}

static int make_tree(struct pack *p, int commodity, int via, double mu, struct column *c)
{
	int n = p->n, root = p->w->commodities[commodity].from, rc, sums = p->w->order != NULL;
	struct tree t;

	rc = column_init(p, c, commodity, 2 * n + 1, 2 * n);
	if (tree_alloc(&t, n))
		rc = GCOLL_ERR_NOMEM;
	if (!rc)
		rc = find_tree(
			p, p->net, p->hop_ns, p->far_ns, 0, sums ? root : via, mu, sums, c->way);
	if (!rc) {
		if (via != root && sums)
			hang_sums(p->w->order, c->way, root, via);
		else if (via != root)
			hang_tree(c->way, root, via);
		measure_tree(p, p->net, p->hop_ns, &t, c->way, c->way + n, root, sums);
		c->delay_ns = t.delay_ns;
		c->root = root;
		load_tree(p, c, &t, 0, 0, t.delay_ns);
		if (sums)
			load_root(p, c, &t);
	}
	tree_free(&t);
	return rc;
}

/* How long what is below class x takes to or from it, and all else to or from the root. */
static void measure_sides(
	const struct pack *p, const struct tree *t, int x, double *below, double *else_ns)
{
	int k;

	*below = *else_ns = 0;
	for (k = 0; k < p->n; k++)
		if (gci_class_is_below(t->parent, t->root, k, x))
			*below = larger(*below, t->leaf[k] - t->depth[x]);
		else
			*else_ns = larger(*else_ns, t->leaf[k]);
}

/* Hosts have what they sum from, and give it to, their own class. */
static int is_clean(const struct pack *p, const struct tree *t)
{
	int k, clean = 1;

	for (k = 0; k < p->n; k++)
		clean &= t->rest[k] == k || gci_network_size(p->net, k) == 1;
	return clean;
}

/* Whether what is below class x, and all else, are two sums, in a fixed order as well. */
static int are_halves(const struct pack *p, const int *parent, int root, int x)
{
	struct gci_sum_node nodes[GCI_GRID_MAX_CLUSTERS];
	int mid;

	if (!p->w->order)
		return 1;
	if (p->w->order->core[x] != x)
		return 0;
	mid = gci_middle(0, p->w->order->nclusters);
	return gci_sum_nodes(p->w->order, parent, root, x, nodes) == 1 &&
	       ((!nodes->a && nodes->z == mid) ||
		       (nodes->a == mid && nodes->z == p->w->order->nclusters));
}

/* Where a class hangs at the root in both trees, the two can tell each other what they have of the sum: that takes
 * one way from one to the other, not two. The best such class, if that is shorter. */
static void find_meeting(
	const struct pack *p, const struct tree *in, const struct tree *out, struct column *c)
{
	double in_x, in_root, out_x, out_root, at_root, at_x, ns;
	int x, root = in->root, clean = is_clean(p, in) && is_clean(p, out);

	for (x = 0; clean && x < p->n; x++) {
		if (x == root || in->parent[x] != root || out->parent[x] != root ||
			!are_halves(p, in->parent, root, x))
			continue;
		measure_sides(p, in, x, &in_x, &in_root);
		measure_sides(p, out, x, &out_x, &out_root);
		at_root = larger(in_root, in_x + in->depth[x]);
		at_x = larger(in_x, in_root + out->depth[x]);
		ns = larger(at_root + out_root, at_x + out_x);
		if (ns >= c->delay_ns)
			continue;
		c->delay_ns = ns;
		c->meet = x;
	}
}

static int make_sum(struct pack *p, int root, double mu, struct column *c)
{
	int n = p->n, rc = column_init(p, c, 0, 4 * n, 4 * n);
	struct tree in, out;

	if (tree_alloc(&in, n))
		rc = GCOLL_ERR_NOMEM;
	if (tree_alloc(&out, n))
		rc = GCOLL_ERR_NOMEM;
	if (!rc)
		rc = find_tree(p, &p->back, p->back_hop_ns, p->back_far_ns, 1, root, mu,
			p->w->order != NULL, c->way);
	if (!rc)
		rc = find_tree(p, p->net, p->hop_ns, p->far_ns, 0, root, mu, 0, c->way + 2 * n);
	if (!rc) {
		measure_tree(p, &p->back, p->back_hop_ns, &in, c->way, c->way + n, root,
			p->w->order != NULL);
		measure_tree(p, p->net, p->hop_ns, &out, c->way + 2 * n, c->way + 3 * n, root, 0);
		c->delay_ns = in.delay_ns + out.delay_ns;
		c->root = root;
		find_meeting(p, &in, &out, c);
		/* Of sums that meet, with all of the other tree before or behind it, which is a little more than there is:
		   exactly, by sides, plans of 60 random networks came out no better. */
		load_tree(p, c, &in, 1, out.delay_ns, c->delay_ns);
		load_tree(p, c, &out, 0, in.delay_ns, c->delay_ns);
	}
	tree_free(&in);
	tree_free(&out);
	return rc;
}

static int make_path(struct pack *p, int commodity, double mu, struct column *c)
{
	int n = p->n, a = p->w->commodities[commodity].from, b = p->w->commodities[commodity].to, i,
	    len;
	double e = mu < 0 ? LAZY : 1, m = mu < 0 ? 1 : mu, before = 0;

	for (i = 0; i < n * n; i++)
		p->arc_cost[i] = e * p->arc_price[i] + m * p->hop_ns[i];
	if (a == b) {
		p->path[0] = p->path[1] = a;
		len = 2;
	} else {
		len = gci_shortest_path(n, p->arc_cost, a, b, p->scratch, p->path);
	}
	if (column_init(p, c, commodity, len, len))
		return GCOLL_ERR_NOMEM;
	memcpy(c->way, p->path, (size_t)len * sizeof(*c->way));
	for (i = 1; i < len; i++)
		c->delay_ns += p->hop_ns[c->way[i - 1] * n + c->way[i]];
	for (i = 1; i < len; i++) {
		add_loads(p, c, c->way[i - 1], c->way[i], 1, before, c->delay_ns);
		before += p->hop_ns[c->way[i - 1] * n + c->way[i]];
	}
	return 0;
}

/* ---- the pool */

static int is_known(const struct pack *p, const struct column *c)
{
	size_t i;

	for (i = 0; i < p->npool; i++) {
		const struct column *o = &p->pool[i];

		if (o->commodity == c->commodity && o->nway == c->nway && o->root == c->root &&
			!memcmp(o->way, c->way, (size_t)c->nway * sizeof(*c->way)))
			return 1;
	}
	return 0;
}

static double part_of(const struct pack *p, const struct column *c)
{
	return p->w->commodities[c->commodity].part * p->w->nbytes;
}

static double after_ns(const struct load *l)
{
	return l->all_ns - l->before_ns;
}

/* How much of a resource's time a column takes if it gets all of its commodity. */
static double work_of(const struct pack *p, const struct column *c, const struct load *l)
{
	return part_of(p, c) * l->copies / p->capacity[l->resource];
}

/* The same as a part of what it can use of T. */
static double busy_part(
	const struct pack *p, const struct column *c, const struct load *l, double ns)
{
	return work_of(p, c, l) / larger(ns - l->all_ns, ns * 1e-6);
}

/* And by spans, of the time that a row has of T. */
static double entry(const struct pack *p, const struct column *c, const struct load *l,
	const struct row *row, double ns)
{
	if (!p->spans)
		return busy_part(p, c, l, ns);
	if (l->before_ns < row->before_ns || after_ns(l) < row->after_ns)
		return 0;
	return work_of(p, c, l) / larger(ns - row->before_ns - row->after_ns, ns * 1e-6);
}

static double value(const struct pack *p, const struct column *c, double ns)
{
	double sum = 0;
	int i, k;

	for (i = 0; i < c->nloads; i++)
		for (k = c->loads[i].resource; k >= 0; k = p->rows[k].next)
			sum += p->price[k] * entry(p, c, &c->loads[i], &p->rows[k], ns);
	return sum;
}

/* Takes *c over. True if it is new. */
static int add_column(struct pack *p, struct column *c)
{
	size_t cap = p->cap;

	if (is_known(p, c)) {
		column_free(c);
		return 0;
	}
	if (gci_grow(&p->pool, &p->cap, p->npool + 1, sizeof(*p->pool))) {
		column_free(c);
		p->failed = 1;
		return 0;
	}
	if (cap != p->cap) {
		size_t share_cap = cap, best_cap = cap;

		if (gci_grow(&p->share, &share_cap, p->cap, sizeof(*p->share)) ||
			gci_grow(&p->best, &best_cap, p->cap, sizeof(*p->best)))
			p->failed = 1;
	}
	if (p->failed) {
		column_free(c);
		return 0;
	}
	p->share[p->npool] = p->best[p->npool] = 0;
	p->pool[p->npool++] = *c;
	return 1;
}

/* `root`: of a sum. */
static int make_column(struct pack *p, int commodity, int root, double mu, struct column *c)
{
	int from = p->w->commodities[commodity].from;
	int rc = p->w->shape == GCI_TREES   ? make_tree(p, commodity, from, mu, c)
		 : p->w->shape == GCI_PATHS ? make_path(p, commodity, mu, c)
					    : make_sum(p, root, mu, c);

	if (rc) {
		column_free(c);
		p->failed = 1;
	}
	return rc;
}

/* Where sums may meet; else one. */
static int nroots(const struct pack *p)
{
	return p->w->shape == GCI_SUMS ? p->n : 1;
}

/* To each class, which brings it to all others: where all links are alike all trees cost the same, and of those
 * that the oracle might find these are the quickest that leave the root's links to one another. */
static void add_stars(struct pack *p)
{
	struct column c;
	int via;

	for (via = 0; via < p->n && !p->failed; via++) {
		if (p->w->order && p->w->order->core[via] != via)
			continue;
		if (!make_tree(p, 0, via, -1, &c)) {
			add_column(p, &c);
		} else {
			column_free(&c);
			p->failed = 1;
		}
	}
}

static void add_first(struct pack *p)
{
	struct column c;
	int i, r;

	for (i = 0; i < p->m; i++)
		p->price[i] = 1;
	fill_prices(p, p->price, 0);
	for (i = 0; i < p->w->ncommodities; i++)
		for (r = 0; r < nroots(p); r++) {
			if (p->w->shape == GCI_SUMS && p->w->order && p->w->order->core[r] != r)
				continue;
			if (!make_column(p, i, r, 0, &c))
				add_column(p, &c);
			if (!make_column(p, i, r, -1, &c))
				add_column(p, &c);
		}
	if (p->w->shape == GCI_TREES && p->w->ncommodities == 1)
		add_stars(p);
}

/* ---- how long given shares take */

/* Of the time until then, the part for which the fullest resource is busy. */
static double largest_load(struct pack *p, const double *share, double ns)
{
	double most = 0;
	size_t j;
	int i;

	memset(p->work, 0, (size_t)p->m * sizeof(*p->work));
	for (j = 0; j < p->npool; j++) {
		const struct column *c = &p->pool[j];

		for (i = 0; share[j] > TINY && i < c->nloads; i++)
			p->work[c->loads[i].resource] +=
				share[j] * busy_part(p, c, &c->loads[i], ns);
	}
	for (i = 0; i < p->m; i++)
		most = larger(most, p->work[i]);
	return most;
}

/* For how long the fullest one is busy. *theta_ns: the most of what is still to travel. */
static double busy_ns(struct pack *p, const double *share, double *theta_ns)
{
	double most = 0;
	size_t j;
	int i;

	*theta_ns = 0;
	memset(p->work, 0, (size_t)p->m * sizeof(*p->work));
	for (j = 0; j < p->npool; j++) {
		const struct column *c = &p->pool[j];

		for (i = 0; share[j] > TINY && i < c->nloads; i++) {
			*theta_ns = larger(*theta_ns, c->loads[i].all_ns);
			p->work[c->loads[i].resource] += share[j] * work_of(p, c, &c->loads[i]);
		}
	}
	for (i = 0; i < p->m; i++)
		most = larger(most, p->work[i]);
	return most;
}

static void add_row(struct pack *p, int resource, double before_ns, double after_ns)
{
	struct row *r = &p->rows[resource];

	for (; r->next >= 0; r = &p->rows[r->next])
		if (r->before_ns == before_ns && r->after_ns == after_ns)
			return;
	if (p->nrows >= MOST_ROWS * p->m || (r->before_ns == before_ns && r->after_ns == after_ns))
		return;
	r->next = p->nrows;
	p->price[p->nrows] = 0;
	p->rows[p->nrows++] = (struct row){resource, -1, before_ns, after_ns};
}

/* The least T for each resource alone. Where that is most, a row is added. */
static double fit_spans(struct pack *p, const double *share)
{
	double most_ns, ns;
	size_t j;
	int i;

	busy_ns(p, share, &most_ns);
	ns = most_ns; /* what is on its way for the longest has to be in time, too */
	for (i = 0; i < p->m; i++)
		gci_spans_clear(&p->spans[i]);
	for (j = 0; j < p->npool; j++) {
		const struct column *c = &p->pool[j];

		for (i = 0; share[j] > TINY && i < c->nloads; i++)
			gci_spans_add(&p->spans[c->loads[i].resource], c->loads[i].before_ns,
				after_ns(&c->loads[i]), share[j] * work_of(p, c, &c->loads[i]),
				most_ns);
	}
	for (i = 0; i < p->m; i++) {
		gci_spans_find(&p->spans[i]);
		ns = larger(ns, p->spans[i].ns);
	}
	for (i = 0; i < p->m; i++)
		if (p->spans[i].ns > ns * NEAR_MOST)
			add_row(p, i, p->spans[i].before_ns, p->spans[i].after_ns);
	return ns;
}

/* The least T, or a little more, in which these shares fit if each resource has what has theta to travel until T - theta. */
static double fit_all(struct pack *p, const double *share)
{
	double lo, hi, most = busy_ns(p, share, &lo);

	hi = lo + most + 1;
	while (hi - lo > hi * EXACT) {
		double mid = (lo + hi) / 2;

		if (largest_load(p, share, mid) > 1)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

/* By the reading that is asked for. */
static double fit(struct pack *p, const double *share)
{
	return p->spans ? fit_spans(p, share) : fit_all(p, share);
}

/* Shares that fit into T = ns. */
static void keep_best(struct pack *p, const double *share, double ns)
{
	if (p->best_ns && ns >= p->best_ns)
		return;
	p->best_ns = ns;
	memmove(p->best, share, p->npool * sizeof(*share));
}

/* All of each commodity by its quickest column (`busy`: by that which keeps any resource busy the
 * shortest). */
static void try_single(struct pack *p, int busy)
{
	int i, k;
	size_t j, won = 0;

	for (i = 0; i < p->w->ncommodities; i++) {
		double least = -1, cost;

		for (j = 0; j < p->npool; j++) {
			const struct column *c = &p->pool[j];

			if (c->commodity != i)
				continue;
			p->share[j] = 0;
			cost = c->delay_ns;
			if (busy) {
				memset(p->work, 0, (size_t)p->m * sizeof(*p->work));
				for (cost = 0, k = 0; k < c->nloads; k++) {
					double *w = &p->work[c->loads[k].resource];

					*w += c->loads[k].copies /
					      p->capacity[c->loads[k].resource];
					cost = larger(cost, *w);
				}
			}
			if (least < 0 || cost < least) {
				least = cost;
				won = j;
			}
		}
		p->share[won] = 1;
	}
	keep_best(p, p->share, fit(p, p->share));
}

/* ---- the game */

/* Shares that make the largest load least, and prices that make it largest. */
static int play(struct pack *p, double ns, int nrounds)
{
	struct gci_game g;
	size_t j, k = 0, nentries = 0;
	int i, r, rc;

	for (j = 0; j < p->npool; j++)
		for (i = 0; i < p->pool[j].nloads; i++)
			for (r = p->pool[j].loads[i].resource; r >= 0; r = p->rows[r].next)
				nentries++;
	rc = gci_game_init(&g, p->npool, nentries, p->nrows, p->w->ncommodities);
	for (j = 0; !rc && j < p->npool; j++) {
		const struct column *c = &p->pool[j];

		g.group[j] = c->commodity;
		g.barred[j] = c->delay_ns >= ns; /* it cannot be in time */
		for (i = 0; i < c->nloads; i++)
			for (r = c->loads[i].resource; r >= 0; r = p->rows[r].next) {
				g.resource[k] = r;
				g.amount[k] = entry(p, c, &c->loads[i], &p->rows[r], ns);
				k += g.amount[k] > 0;
			}
		g.first[j + 1] = k;
	}
	if (!rc)
		gci_game_play(&g, nrounds, p->share, p->price);
	gci_game_free(&g);
	return rc;
}

/* ---- pricing */

/* Detours' price beside that of bytes; -1: delays alone count. */
static const double mu_of[] = {0, .3, 1, 4, -1};

#define TRIES ((int)(sizeof(mu_of) / sizeof(*mu_of)))

/* At which classes sums may meet: those whose best column is among the few cheapest. */
static void choose_roots(const struct pack *p, double ns, unsigned char *wanted)
{
	double *least = p->scratch, v;
	size_t j;
	int r, k, best;

	memset(wanted, 0, (size_t)p->n);
	for (r = 0; r < p->n; r++)
		least[r] = -1;
	for (j = 0; j < p->npool; j++) {
		v = value(p, &p->pool[j], ns);
		r = p->pool[j].root;
		least[r] = least[r] < 0 ? v : smaller(least[r], v);
	}
	for (k = 0; k < nroots(p) && k < FEW_CLASSES; k++) {
		for (best = -1, r = 0; r < nroots(p); r++)
			if (!wanted[r] && least[r] >= 0 && (best < 0 || least[r] < least[best]))
				best = r;
		if (best >= 0)
			wanted[best] = 1;
	}
}

/* The cheapest columns of a commodity at today's prices, by these of mu_of[], go into the pool, if they are cheaper than
 * what is there. True if any did. */
static int price_commodity(
	struct pack *p, int commodity, double ns, const unsigned char *roots, int first, int end)
{
	double least = -1, v, unit;
	struct column c;
	size_t j, n = p->npool;
	int i, r, found = 0;

	for (j = 0; j < n; j++)
		if (p->pool[j].commodity == commodity) {
			v = value(p, &p->pool[j], ns);
			least = least < 0 ? v : smaller(least, v);
		}
	unit = least / (p->w->commodities[commodity].part * p->w->nbytes);
	for (i = first; i < end; i++)
		for (r = 0; r < nroots(p); r++) {
			if (!roots[r])
				continue;
			if (make_column(p, commodity, r, mu_of[i] < 0 ? -1 : mu_of[i] * unit, &c))
				return 0;
			if (value(p, &c, ns) < least * (1 - 1e-4) - 1e-12)
				found |= add_column(p, &c);
			else
				column_free(&c);
		}
	return found;
}

static void set_tolls(struct pack *p, double ns)
{
	int i;

	memset(p->toll, 0, (size_t)p->m * sizeof(*p->toll));
	for (i = 0; i < p->nrows; i++) {
		const struct row *r = &p->rows[i];
		double left = larger(ns - r->before_ns - r->after_ns, ns * 1e-6);

		p->toll[r->resource] += p->price[i] * ns / left;
	}
}

static int price_all(struct pack *p, double ns, int first, int end)
{
	unsigned char roots[GCI_NETWORK_MOST_CLASSES] = {1};
	int i, found = 0;

	for (i = 0; i < p->nrows; i++)
		p->price[i] += 1e-12;
	set_tolls(p, ns);
	fill_prices(p, p->toll, 0);
	if (p->w->shape == GCI_SUMS)
		choose_roots(p, ns, roots);
	for (i = 0; i < p->w->ncommodities; i++)
		found |= price_commodity(p, i, ns, roots, first, end);
	return found;
}

/* p->answer: what each resource has if each commodity takes what is cheapest for it at today's prices. */
static void find_answer(struct pack *p, double ns)
{
	size_t j;
	int i, k;

	for (i = 0; i < p->w->ncommodities; i++)
		p->least[i] = -1;
	for (j = 0; j < p->npool; j++) {
		const struct column *c = &p->pool[j];
		double v = value(p, c, ns);

		if (p->least[c->commodity] >= 0 && v >= p->least[c->commodity])
			continue;
		p->least[c->commodity] = v;
		p->cheapest[c->commodity] = j;
	}
	memset(p->answer, 0, (size_t)p->m * sizeof(*p->answer));
	for (i = 0; i < p->w->ncommodities; i++) {
		const struct column *c = &p->pool[p->cheapest[i]];

		for (k = 0; k < c->nloads; k++)
			p->answer[c->loads[k].resource] += busy_part(p, c, &c->loads[k], ns);
	}
}

/* Where there are many classes, the few trees that there are at first do not tell which would be better. So these are
 * looked for at prices that rise, step by step, where what was cheapest at the last ones goes. Paths gain nothing by it. */
static void explore(struct pack *p, double ns)
{
	int one = p->w->shape == GCI_TREES && p->w->ncommodities == 1;
	int nsteps = one ? EXPLORED_ONE : EXPLORED, step, i;
	double width, more = one ? .5 : 1;

	memset(p->log_price, 0, (size_t)p->m * sizeof(*p->log_price));
	for (step = 0; step < nsteps && !p->failed; step++) {
		gci_game_weights(p->log_price, p->m, p->price);
		price_all(p, ns, step % TRIES, step % TRIES + 1);
		find_answer(p, ns);
		for (width = 0, i = 0; i < p->m; i++)
			width = larger(width, p->answer[i]);
		for (i = 0; i < p->m; i++)
			p->log_price[i] += more * p->answer[i] / width;
	}
}

static double least_delay(const struct pack *p)
{
	double most = 0, least;
	size_t j;
	int i;

	for (i = 0; i < p->w->ncommodities; i++) {
		least = -1;
		for (j = 0; j < p->npool; j++)
			if (p->pool[j].commodity == i && (least < 0 || p->pool[j].delay_ns < least))
				least = p->pool[j].delay_ns;
		most = larger(most, least);
	}
	return most;
}

/* ---- what any way takes */

/* A resource has nothing to do before the least delay of any way to it, and after the last that passes it the least
 * delay from it: each the least of all ways, which may be others. */
static int fill_least(struct pack *p)
{
	int n = p->n, way[GCI_MOST_ON_A_WAY], a, b, i, k, sums = p->w->shape == GCI_SUMS;
	double *d = p->arc_cost, to, from, hop, *before, *after;

	p->least_ns = gci_calloc(3 * (size_t)p->m, sizeof(*p->least_ns));
	p->edges = gci_calloc((size_t)p->m, sizeof(*p->edges));
	if (!p->least_ns || !p->edges)
		return GCOLL_ERR_NOMEM;
	before = p->least_ns + p->m;
	after = before + p->m;
	for (i = 0; i < p->m; i++)
		before[i] = after[i] = NEVER_NS;
	gci_network_distances(p->net, d);
	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++) {
			if (a == b && gci_network_size(p->net, a) == 1)
				continue;
			to = from = sums ? 0 : NEVER_NS;
			for (i = 0; i < p->w->ncommodities && !sums; i++) {
				const struct gci_commodity *c = &p->w->commodities[i];

				to = smaller(to, d[c->from * n + a]);
				from = smaller(
					from, p->w->shape == GCI_PATHS ? d[b * n + c->to] : 0);
			}
			hop = p->net->delay_ns[a * n + b];
			k = gci_network_way(p->net, a, b, way);
			for (i = 0; i < k; i++) {
				double here = gci_network_before(p->net, a, b, i);

				before[way[i]] = smaller(before[way[i]], to + here);
				after[way[i]] = smaller(after[way[i]], from + hop - here);
			}
		}
	for (i = 0; i < p->m; i++)
		p->least_ns[i] = before[i] + after[i];
	return 0;
}

/* At p->arc_price, to bring a byte to all hosts but one of the root's class. */
static double tree_price(struct pack *p, int turned, int root, int *way)
{
	int n = p->n, c;
	double sum = 0;

	if (find_tree(p, turned ? &p->back : p->net, turned ? p->back_hop_ns : p->hop_ns,
		    turned ? p->back_far_ns : p->far_ns, turned, root, 0, 0, way)) {
		p->failed = 1;
		return 0;
	}
	for (c = 0; c < n; c++) {
		int from = way[c], rest = way[n + c];

		if (c != root)
			sum += p->arc_price[turned ? c * n + from : from * n + c];
		sum += (gci_network_size(p->net, c) - 1) *
		       p->arc_price[turned ? c * n + rest : rest * n + c];
	}
	return sum;
}

/* A sum has a host that is the first to know all of it. What went before has a tree to it in it, and after that
 * something comes in at each other host. */
static double sum_price(struct pack *p, int *way)
{
	int n = p->n, a, b;
	double least = -1, in, all = 0, root_in, ns;

	for (b = 0; b < n; b++) {
		for (in = p->arc_price[b], a = 1; a < n; a++)
			in = smaller(in, p->arc_price[a * n + b]);
		all += gci_network_size(p->net, b) * in;
	}
	for (b = 0; b < n; b++) {
		for (root_in = p->arc_price[b], a = 1; a < n; a++)
			root_in = smaller(root_in, p->arc_price[a * n + b]);
		ns = all - root_in + tree_price(p, 1, b, way);
		least = least < 0 ? ns : smaller(least, ns);
	}
	return least;
}

static double path_price(struct pack *p, int a, int b)
{
	double sum = 0;
	int i, len;

	if (a == b)
		return p->arc_price[a * p->n + a];
	memcpy(p->arc_cost, p->arc_price, (size_t)(p->n * p->n) * sizeof(*p->arc_cost));
	len = gci_shortest_path(p->n, p->arc_cost, a, b, p->scratch, p->path);
	for (i = 1; i < len; i++)
		sum += p->arc_price[p->path[i - 1] * p->n + p->path[i]];
	return sum;
}

/* By the prices of the network alone: processors are no law of nature. */
static void raise_bound(struct pack *p)
{
	double *price = p->work, total = 0, cost = 0;
	int i, nresources = gci_network_nresources(p->net), nedges = 0;

	for (i = 0; i < nresources; i++)
		total += p->price[i];
	for (i = 0; i < p->m; i++) {
		price[i] = i < nresources && total > 0 ? p->price[i] / total : 0;
		if (price[i] > 0 && p->least_ns[i] < NEVER_NS)
			p->edges[nedges++] = (struct gci_edge){price[i], p->least_ns[i]};
	}
	fill_prices(p, price, 1);
	for (i = 0; i < p->w->ncommodities; i++) {
		const struct gci_commodity *c = &p->w->commodities[i];

		cost += c->part * p->w->nbytes *
			(p->w->shape == GCI_SUMS           ? sum_price(p, p->path)
				: p->w->shape == GCI_PATHS ? path_price(p, c->from, c->to)
							   : tree_price(p, 0, c->from, p->path));
	}
	if (nedges)
		p->bound_ns = larger(p->bound_ns, gci_edges_carry_ns(p->edges, nedges, cost));
}

/* Plays for T = ns, and prices: *hi comes down to what shares fit in; *found if a column is new. */
static int try_time(struct pack *p, double ns, int nrounds, double *hi, int *found)
{
	double fits, reached;
	int nrows = p->nrows;

	if (play(p, ns, nrounds))
		return GCOLL_ERR_NOMEM;
	if (p->least_ns)
		raise_bound(p);
	reached = fits = fit(p, p->share);
	if (fits <= ns * (1 + CLOSE) || (!p->spans && largest_load(p, p->share, ns) <= 1.0005))
		reached = smaller(fits, ns);
	*hi = smaller(*hi, reached);
	keep_best(p, p->share, fits);
	*found = price_all(p, ns, 0, TRIES) || p->nrows > nrows;
	return p->failed ? GCOLL_ERR_NOMEM : 0;
}

/* An oracle takes the square of the number of classes, or more, and each commodity asks it. */
static int most_rounds(const struct pack *p)
{
	int some = FEW_CLASSES * FEW_CLASSES * larger(FEW_CLASSES / p->w->ncommodities, 1), n;

	n = p->n > FEW_CLASSES ? MOST_ROUNDS * some / (p->n * p->n) : MOST_ROUNDS;
	return n < LEAST_ROUNDS ? LEAST_ROUNDS : n > MOST_ROUNDS ? MOST_ROUNDS : n;
}

/* Bisection on T: it is enough when shares fit, and it is not when they don't and no column that is new
 * would help. */
static int search(struct pack *p)
{
	double lo, hi, ns;
	int round, found, rc = 0;

	add_first(p);
	if (p->failed)
		return GCOLL_ERR_NOMEM;
	try_single(p, 0);
	try_single(p, 1);
	lo = least_delay(p);
	hi = p->best_ns;
	for (round = 0; !rc && round < most_rounds(p) && hi - lo >= CLOSE * hi; round++) {
		ns = (lo + hi) / 2;
		if (p->n > FEW_CLASSES && p->w->shape != GCI_PATHS && !p->spans)
			explore(p, ns);
		rc = try_time(p, ns, GAME_ROUNDS, &hi, &found);
		if (hi > ns && !found)
			lo = ns;
	}
	/* Shares that are nearer to the best, of the columns that were found. */
	return rc ? rc : try_time(p, hi, LONG_GAME, &hi, &found);
}

/* ---- the result */

static int take_columns(struct pack *p, struct gci_packing *out)
{
	size_t j, n = 0, k = 0;
	double theta_ns;
	int i;

	for (j = 0; j < p->npool; j++)
		n += p->best[j] > TINY;
	out->columns = gci_calloc(n, sizeof(*out->columns));
	if (!out->columns)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < p->w->ncommodities; i++)
		for (j = 0; j < p->npool; j++) {
			struct column *c = &p->pool[j];

			if (p->best[j] <= TINY || c->commodity != i)
				continue;
			out->columns[k++] = (struct gci_column){.commodity = i,
				.share = (uint32_t)(p->best[j] * GCI_SHARES + .5),
				.delay_ns = c->delay_ns,
				.way = c->way,
				.nway = c->nway,
				.root = c->root,
				.meet = c->meet};
			if (!out->columns[k - 1].share)
				out->columns[k - 1].share = 1;
			c->way = NULL;
		}
	out->ncolumns = (int)k;
	out->least_ns = larger(p->best_ns, least_delay(p));
	out->ns = larger(p->spans ? fit_all(p, p->best) : p->best_ns, least_delay(p));
	out->busy_ns = busy_ns(p, p->best, &theta_ns);
	out->bound_ns = p->bound_ns;
	return 0;
}

static int pack_init(struct pack *p, const struct gci_packing_wish *w)
{
	size_t n = (size_t)w->net->nclasses, m, k, most_rows;

	memset(p, 0, sizeof(*p));
	p->w = w;
	p->net = w->net;
	p->n = w->net->nclasses;
	p->m = gci_network_nresources(w->net) + p->n;
	m = (size_t)p->m;
	most_rows = (w->by_spans ? MOST_ROWS : 1) * m;
	p->hop_ns = gci_calloc(6 * n * n, sizeof(*p->hop_ns));
	p->scratch = gci_calloc(n, sizeof(*p->scratch));
	p->rows = gci_calloc(most_rows, sizeof(*p->rows));
	p->price = gci_calloc(most_rows, sizeof(*p->price));
	p->work = gci_calloc(5 * m, sizeof(*p->work));
	p->least = gci_calloc((size_t)w->ncommodities, sizeof(*p->least));
	p->cheapest = gci_calloc((size_t)w->ncommodities, sizeof(*p->cheapest));
	p->path = gci_calloc(2 * n + 2, sizeof(*p->path));
	if (!p->hop_ns || !p->scratch || !p->rows || !p->price || !p->work || !p->path ||
		!p->least || !p->cheapest)
		return GCOLL_ERR_NOMEM;
	p->far_ns = p->hop_ns + n * n;
	p->back_hop_ns = p->far_ns + n * n;
	p->back_far_ns = p->back_hop_ns + n * n;
	p->arc_cost = p->back_far_ns + n * n;
	p->arc_price = p->arc_cost + n * n;
	p->capacity = p->work + m;
	p->log_price = p->capacity + m;
	p->answer = p->log_price + m;
	p->toll = p->answer + m;
	memcpy(p->capacity, p->net->capacity, (m - n) * sizeof(*p->capacity));
	for (k = 0; k < n; k++)
		p->capacity[m - n + k] =
			gci_network_size(p->net, (int)k) * w->segment_nbytes / w->message_ns;
	for (k = 0; k < m; k++)
		p->rows[k] = (struct row){.resource = (int)k, .next = -1};
	p->nrows = (int)m;
	if (w->by_spans) {
		p->spans = gci_calloc(m, sizeof(*p->spans));
		if (!p->spans)
			return GCOLL_ERR_NOMEM;
	}
	fill_hops(p, p->net, p->hop_ns, p->far_ns);
	if (w->shape == GCI_SUMS) {
		if (gci_network_reverse(&p->back, p->net))
			return GCOLL_ERR_NOMEM;
		fill_hops(p, &p->back, p->back_hop_ns, p->back_far_ns);
	}
	return w->bound ? fill_least(p) : 0;
}

static void pack_free(struct pack *p)
{
	size_t j;

	for (j = 0; j < p->npool; j++)
		column_free(&p->pool[j]);
	gci_free(p->pool);
	gci_free(p->share);
	gci_free(p->best);
	gci_free(p->hop_ns);
	gci_free(p->scratch);
	gci_free(p->rows);
	gci_free(p->price);
	gci_free(p->work);
	gci_free(p->spans);
	gci_free(p->path);
	gci_free(p->least);
	gci_free(p->cheapest);
	gci_free(p->least_ns);
	gci_free(p->edges);
	gci_network_free(&p->back);
}

int gci_pack(struct gci_packing *out, const struct gci_packing_wish *w)
{
	struct pack p;
	int rc = pack_init(&p, w);

	memset(out, 0, sizeof(*out));
	if (!rc)
		rc = search(&p);
	if (!rc)
		rc = take_columns(&p, out);
	pack_free(&p);
	return rc;
}

void gci_packing_free(struct gci_packing *p)
{
	int i;

	for (i = 0; i < p->ncolumns; i++)
		gci_free(p->columns[i].way);
	gci_free(p->columns);
	memset(p, 0, sizeof(*p));
}
