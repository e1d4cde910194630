/* SPDX-License-Identifier: MIT
 * Networks for those who plan allgathers.
 *
 *	nets_paper(&net, &t);
 *	...
 *	nets_free(&net, &t);
 *	nets_each_random(200, seed, check); */
#ifndef GCI_TESTS_COLLECTIVES_NETS_H
#define GCI_TESTS_COLLECTIVES_NETS_H

#include "collectives/allgather/planner.h"

void nets_of_text(struct gci_net *net, struct gci_topo *t, const char *text);

/* The paper's grid, as the lab has it, from the file $GRIDCOLL_TEST_MIN3_GRID. */
void nets_paper(struct gci_net *net, struct gci_topo *t);

void nets_free(struct gci_net *net, struct gci_topo *t);

/* Calls `check` with n random networks, of up to 20 hosts, and their blocks' sizes; half_duplex in
 * every other one. */
void nets_each_random(int n, uint64_t seed,
	void (*check)(const struct gci_net *net, const uint64_t *nbytes, int half_duplex));

#endif
