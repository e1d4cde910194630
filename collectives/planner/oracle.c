/* SPDX-License-Identifier: MIT */
#include "collectives/planner/oracle.h"

#include "base/mem.h"

#include <string.h>

/* ---- arborescences: circles are contracted to nodes of their own, n, n + 1, ... */

struct arc {
	int from, to;
};

struct contraction {
	int n, root, nodes; /* nodes: numbers given so far */
	int most;
	double *cost;    /* [from * most + to], between nodes that are no part of another */
	struct arc *arc; /* [the same]: which of the given arcs it stands for */
	int *alive;      /* [node] */
	int *parent;     /* [node]: among nodes that are alive */
	struct arc *in;  /* [node]: the arc that it was chosen for */
	int *part_of;    /* [node]: what it was contracted to, or -1 */
	int *mark;       /* [node] */
};

static int contraction_init(struct contraction *c, int n, const double *cost, int root)
{
	size_t m = (size_t)(2 * n), k;
	int a, b;

	*c = (struct contraction){.n = n, .root = root, .nodes = n, .most = 2 * n};
	c->cost = gci_calloc(m * m, sizeof(*c->cost));
	c->arc = gci_calloc(m * m, sizeof(*c->arc));
	c->alive = gci_calloc(m, sizeof(*c->alive));
	c->parent = gci_calloc(m, sizeof(*c->parent));
	c->in = gci_calloc(m, sizeof(*c->in));
	c->part_of = gci_calloc(m, sizeof(*c->part_of));
	c->mark = gci_calloc(m, sizeof(*c->mark));
	if (!c->cost || !c->arc || !c->alive || !c->parent || !c->in || !c->part_of || !c->mark)
		return GCOLL_ERR_NOMEM;
	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++) {
			k = (size_t)a * m + (size_t)b;
			c->cost[k] = cost[a * n + b];
			c->arc[k] = (struct arc){a, b};
		}
	for (a = 0; a < 2 * n; a++) {
		c->alive[a] = a < n;
		c->part_of[a] = -1;
	}
	return 0;
}

static void contraction_free(struct contraction *c)
{
	gci_free(c->cost);
	gci_free(c->arc);
	gci_free(c->alive);
	gci_free(c->parent);
	gci_free(c->in);
	gci_free(c->part_of);
	gci_free(c->mark);
}

static size_t at(const struct contraction *c, int from, int to)
{
	return (size_t)from * (size_t)c->most + (size_t)to;
}

static void choose_parent(struct contraction *c, int v)
{
	int u, best = -1;

	for (u = 0; u < c->nodes; u++)
		if (c->alive[u] && u != v &&
			(best < 0 || c->cost[at(c, u, v)] < c->cost[at(c, best, v)]))
			best = u;
	c->parent[v] = best;
	c->in[v] = c->arc[at(c, best, v)];
}

/* A node on a circle of parents that the walk from v runs into; -1: it gets to where walks were before.
 * `walk` is a mark of its own. */
static int find_circle(struct contraction *c, int v, int walk)
{
	while (v != c->root && !c->mark[v]) {
		c->mark[v] = walk;
		v = c->parent[v];
	}
	return v != c->root && c->mark[v] == walk ? v : -1;
}

/* The circle through v becomes one node. What comes in takes the place of the arc to where it comes in. */
static void contract(struct contraction *c, int v)
{
	int z = c->nodes++, u, x = v;

	do {
		c->alive[x] = 0;
		c->part_of[x] = z;
		x = c->parent[x];
	} while (x != v);
	for (u = 0; u < z; u++) {
		size_t in = at(c, u, z), out = at(c, z, u);
		int begun = 0;

		if (!c->alive[u])
			continue;
		x = v;
		do {
			double more = c->cost[at(c, u, x)] - c->cost[at(c, c->parent[x], x)];

			if (!begun || more < c->cost[in]) {
				c->cost[in] = more;
				c->arc[in] = c->arc[at(c, u, x)];
			}
			if (!begun || c->cost[at(c, x, u)] < c->cost[out]) {
				c->cost[out] = c->cost[at(c, x, u)];
				c->arc[out] = c->arc[at(c, x, u)];
			}
			begun = 1;
			x = c->parent[x];
		} while (x != v);
	}
	c->alive[z] = 1;
	/* A circle that is new leads through z: walks begin anew. */
	memset(c->mark, 0, (size_t)c->most * sizeof(*c->mark));
	/* Who had a parent in it has it now; the arc that was chosen is the same. */
	for (u = 0; u < z; u++)
		if (c->alive[u] && u != c->root && c->part_of[c->parent[u]] == z)
			c->parent[u] = z;
	choose_parent(c, z);
}

static void contract_circles(struct contraction *c)
{
	int v, walk = 0, on;

	for (v = 0; v < c->n; v++)
		if (v != c->root)
			choose_parent(c, v);
	for (v = 0; v < c->nodes; v++) {
		if (!c->alive[v] || v == c->root)
			continue;
		on = find_circle(c, v, ++walk);
		if (on >= 0)
			contract(c,
				on); /* the new node is looked at later: it has the highest number */
	}
}

int gci_arborescence(int n, const double *cost, int root, int *parent)
{
	struct contraction c;
	int rc = contraction_init(&c, n, cost, root), v, x;

	if (!rc) {
		contract_circles(&c);
		/* The latest first: the arc into a circle replaces that of the node where it comes in. */
		for (v = c.nodes - 1; v >= n; v--) {
			for (x = c.in[v].to; c.part_of[x] != v; x = c.part_of[x])
				;
			c.in[x] = c.in[v];
		}
		for (v = 0; v < n; v++)
			parent[v] = v == root ? -1 : c.in[v].from;
	}
	contraction_free(&c);
	return rc;
}

/* ---- paths: Dijkstra's */

int gci_shortest_path(int n, const double *cost, int a, int b, double *scratch, int *path)
{
	double *far = scratch;
	int before[GCI_NETWORK_MOST_CLASSES], over[GCI_NETWORK_MOST_CLASSES], i, k, u, len = 1;

	for (i = 0; i < n; i++) {
		before[i] = -1;
		over[i] = 0;
		far[i] = -1; /* not reached */
	}
	far[a] = 0;
	for (k = 0; k < n; k++) {
		for (u = -1, i = 0; i < n; i++)
			if (!over[i] && far[i] >= 0 && (u < 0 || far[i] < far[u]))
				u = i;
		if (u < 0 || u == b)
			break;
		over[u] = 1;
		for (i = 0; i < n; i++) {
			double d = far[u] + cost[u * n + i];

			if (!over[i] && (far[i] < 0 || d < far[i])) {
				far[i] = d;
				before[i] = u;
			}
		}
	}
	for (u = b; before[u] >= 0; u = before[u])
		len++;
	for (i = len, u = b; i-- > 0; u = before[u])
		path[i] = u;
	return len;
}
