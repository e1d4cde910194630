/* SPDX-License-Identifier: MIT
 * Trees of classes by which sums go up in a fixed order (collectives/blocks/order.h): hosts of a cluster sum along the
 * canonical tree at one of its core class; what that host has of other clusters it combines as far as the order lets
 * it, and passes on as few sums as there are. So any tree of core classes will do, but some send more than one sum. */
#ifndef GCI_COLLECTIVES_PLANNER_SUM_ORDER_H
#define GCI_COLLECTIVES_PLANNER_SUM_ORDER_H

#include "collectives/network/network.h"

struct gci_sum_order {
	int nclasses, nclusters;
	int cluster[GCI_NETWORK_MOST_CLASSES]; /* [class] */
	int core[GCI_NETWORK_MOST_CLASSES]; /* [class]: of its cluster, the class whose hosts hold its sums */
	int nhosts[GCI_NETWORK_MOST_CLASSES]; /* [class]: of its cluster */
};

/* Clusters [a, z), all of whose operands are in one sum. */
struct gci_sum_node {
	int a, z;
};

/* `turned`: all arrows of `net` are. `root`: a class of its own, which holds no sums if there is another one of its
 * cluster; -1: none. */
void gci_sum_order_of(struct gci_sum_order *o, const struct gci_network *net,
	const struct gci_topo *t, int turned, int root);

/* Whether sums of class b may go to class a next, and in the end to `root`. */
int gci_sum_may_hang(const struct gci_sum_order *o, int root, int a, int b);

/* The fewest sums that `class` has of the clusters whose core classes are at it and below; by rising numbers. `out` has
 * room for nclusters. Returns how many: 1 for classes that are not core. */
int gci_sum_nodes(const struct gci_sum_order *o, const int *parent, int root, int class,
	struct gci_sum_node *out);

/* A cheap tree to `root`, parent[class], where each sum that passes an arc costs cost[parent * nclasses + class], at least 0:
 * the better of those that are best if all combines or nothing does, and with few classes each moved to where the whole
 * is cheapest. Sets the cost of what may not hang. 0 or GCOLL_ERR_NOMEM. */
int gci_sum_tree(const struct gci_sum_order *o, double *cost, int root, int *parent);

/* Whether a class of a tree is another one or hangs below it. */
static inline int gci_class_is_below(const int *parent, int root, int class, int other)
{
	while (class != other && class != root)
		class = parent[class];
	return class == other;
}

#endif
