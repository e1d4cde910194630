/* SPDX-License-Identifier: MIT */
#include "collectives/planner/sum_order.h"

#include "collectives/blocks/order.h"
#include "collectives/planner/oracle.h"

#include <string.h>

#define BARRED        1e60 /* a cost above all others */
#define NEVER         1e300
#define MOST_IMPROVED 16 /* classes: of more, trees are as they are found */

static int nbarred(const struct gci_network *net, int turned, int class)
{
	int n = net->nclasses, b, sum = 0;

	for (b = 0; b < n; b++)
		sum += net->is_barred[turned ? b * n + class : class * n + b];
	return sum;
}

/* Who may send farther, or all together put out more. */
static int is_better(const struct gci_network *net, int turned, int class, int than)
{
	int x = nbarred(net, turned, class), y = nbarred(net, turned, than);

	return x != y ? x < y
		      : gci_network_size(net, class) * net->out[class] >
				gci_network_size(net, than) * net->out[than];
}

void gci_sum_order_of(struct gci_sum_order *o, const struct gci_network *net,
	const struct gci_topo *t, int turned, int root)
{
	int core[GCI_GRID_MAX_CLUSTERS], c, k;

	o->nclasses = net->nclasses;
	o->nclusters = t->nclusters;
	for (k = 0; k < t->nclusters; k++)
		core[k] = -1;
	for (c = 0; c < net->nclasses; c++) {
		k = o->cluster[c] = t->cluster[*gci_network_members(net, c)];
		if (core[k] < 0 || core[k] == root ||
			(c != root && is_better(net, turned, c, core[k])))
			core[k] = c;
	}
	for (c = 0; c < net->nclasses; c++) {
		o->core[c] = core[o->cluster[c]];
		o->nhosts[c] = gci_topo_size(t, o->cluster[c]);
	}
}

int gci_sum_may_hang(const struct gci_sum_order *o, int root, int a, int b)
{
	if (o->core[b] != b)
		return a == o->core[b];
	if (b == o->core[root])
		return a == root;
	return a == o->core[a];
}

/* Appends those of [a, z); true if it is one. */
static int list_nodes(const unsigned char *in, int a, int z, struct gci_sum_node *out, int *n)
{
	int before = *n, mid = gci_middle(a, z), is_whole = in[a];

	if (z - a > 1) {
		is_whole = list_nodes(in, a, mid, out, n);
		is_whole &= list_nodes(in, mid, z, out, n);
	}
	if (is_whole) {
		out[before] = (struct gci_sum_node){a, z};
		*n = before + 1;
	}
	return is_whole;
}

int gci_sum_nodes(const struct gci_sum_order *o, const int *parent, int root, int class,
	struct gci_sum_node *out)
{
	unsigned char in[GCI_GRID_MAX_CLUSTERS] = {0};
	int c, n = 0;

	if (o->core[class] != class) {
		out[0] = (struct gci_sum_node){o->cluster[class], o->cluster[class] + 1};
		return 1;
	}
	for (c = 0; c < o->nclasses; c++)
		if (o->core[c] == c)
			in[o->cluster[c]] =
				(unsigned char)gci_class_is_below(parent, root, c, class);
	list_nodes(in, 0, o->nclusters, out, &n);
	return n;
}

/* ---- the cheapest: what combines on the way depends on the whole tree */

static double cost_of(
	const struct gci_sum_order *o, const double *cost, const int *parent, int root)
{
	struct gci_sum_node nodes[GCI_GRID_MAX_CLUSTERS];
	double sum = 0;
	int c, n = o->nclasses;

	for (c = 0; c < n; c++)
		if (c != root)
			sum += gci_sum_nodes(o, parent, root, c, nodes) * cost[parent[c] * n + c];
	return sum;
}

/* Each by the cheapest way to the root, as if nothing combined. */
static void find_shortest(int n, const double *cost, int root, int *parent)
{
	double far[GCI_NETWORK_MOST_CLASSES];
	int a, b, round;

	for (b = 0; b < n; b++) {
		parent[b] = -1;
		far[b] = b == root ? 0 : NEVER;
	}
	for (round = 0; round < n; round++)
		for (a = 0; a < n; a++)
			for (b = 0; b < n; b++)
				if (b != root && b != a && far[a] + cost[a * n + b] < far[b]) {
					far[b] = far[a] + cost[a * n + b];
					parent[b] = a;
				}
}

/* Moves one class after the other to where the whole is cheapest. */
static void improve(
	const struct gci_sum_order *o, const double *cost, int root, int *parent, double least)
{
	int n = o->nclasses, a, b;

	for (b = 0; b < n; b++)
		for (a = 0; a < n; a++) {
			int before = parent[b];
			double other;

			if (b == root || a == before || !gci_sum_may_hang(o, root, a, b) ||
				gci_class_is_below(parent, root, a, b))
				continue;
			parent[b] = a;
			other = cost_of(o, cost, parent, root);
			if (other < least)
				least = other;
			else
				parent[b] = before;
		}
}

int gci_sum_tree(const struct gci_sum_order *o, double *cost, int root, int *parent)
{
	int shortest[GCI_NETWORK_MOST_CLASSES] = {0};
	int n = o->nclasses, a, b;
	double least, other;

	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			if (b != root && !gci_sum_may_hang(o, root, a, b))
				cost[a * n + b] = BARRED;
	if (gci_arborescence(n, cost, root, parent))
		return GCOLL_ERR_NOMEM;
	find_shortest(n, cost, root, shortest);
	least = cost_of(o, cost, parent, root);
	other = cost_of(o, cost, shortest, root);
	if (other < least) {
		memcpy(parent, shortest, (size_t)n * sizeof(*parent));
		least = other;
	}
	if (n <= MOST_IMPROVED)
		improve(o, cost, root, parent, least);
	return 0;
}
