/* SPDX-License-Identifier: MIT */
#include "collectives/scatter/scatter.h"

const struct gci_algorithm gci_scatters[] = {
	{GCI_SCATTER, "binomial", "binomial tree over all ranks", 0, 0, gci_emit_scatter_binomial},
	{GCI_SCATTER, NULL, NULL, 0, 0, NULL},
};
