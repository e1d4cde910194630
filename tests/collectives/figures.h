/* SPDX-License-Identifier: MIT
 * The oracle of Min3-Allgather: figures 3 to 7 of Gupta 2007 and the equations of its section 4,
 * line by line, with every loop as it stands there. */
#ifndef GCI_TESTS_FIGURES_H
#define GCI_TESTS_FIGURES_H

#include "collectives/allgather/plan.h"

/* At most 20 hosts. Aborts on failure. */
void figures_plan(struct gci_plan *plan, const struct gci_net *net, const struct gci_pools *pools,
	const uint64_t *nbytes, int half_duplex);

#endif
