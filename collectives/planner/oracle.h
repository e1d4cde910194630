/* SPDX-License-Identifier: MIT
 * The cheapest trees and paths through a network at given prices. */
#ifndef GCI_COLLECTIVES_PLANNER_ORACLE_H
#define GCI_COLLECTIVES_PLANNER_ORACLE_H

#include "collectives/network/network.h"

/* The cheapest arborescence from `root`: parent[n]; cost[from * n + to]. parent[root] is -1. Among equals
 * that of the lowest numbers. 0 or GCOLL_ERR_NOMEM. Cost: O(n^2) and as much for each circle. */
int gci_arborescence(int n, const double *cost, int root, int *parent);

/* The cheapest path from a to b over arcs of at least 0; a != b. Returns how many nodes, or 0. */
int gci_shortest_path(int n, const double *cost, int a, int b, double *scratch, int *path);

#endif
