/* SPDX-License-Identifier: MIT
 * Topologies for tests: from cluster sizes, or from grid files with a rank on each host. All abort
 * on failure. */
#ifndef GCI_TESTS_TOPOLOGIES_H
#define GCI_TESTS_TOPOLOGIES_H

#include "collectives/grid/topo.h"

/* `sizes` ends with 0. Ranks are dealt to hosts in the grid's order or, with `shuffle`, round
 * robin over the clusters. NICs of 1 Gbit/s, links of `wan_gbit`, 10 ms. */
void topology_make(struct gci_topo *t, const int *sizes, int shuffle, int wan_gbit);

void topology_parse(struct gci_topo *t, const char *text);

/* The first `nranks` hosts of a file's grid; 0: all. */
void topology_read(struct gci_topo *t, const char *path, int nranks);

#endif
