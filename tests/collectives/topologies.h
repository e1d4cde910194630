/* SPDX-License-Identifier: MIT
 * Topologies for tests, from cluster sizes. */
#ifndef GCI_TESTS_TOPOLOGIES_H
#define GCI_TESTS_TOPOLOGIES_H

#include "collectives/grid/topo.h"

/* `sizes` ends with 0. Ranks are dealt to hosts in the grid's order or, with `shuffle`, round
 * robin over the clusters. NICs of 1 Gbit/s, links of `wan_gbit`, 10 ms. Aborts on failure. */
void topology_make(struct gci_topo *t, const int *sizes, int shuffle, int wan_gbit);

#endif
