/* SPDX-License-Identifier: MIT */
#include "collectives/gather/gather.h"

const struct gci_algorithm gci_gathers[] = {
	{GCI_GATHER, "binomial", "binomial tree over all ranks", 0, 0, gci_emit_gather_binomial},
	{GCI_GATHER, NULL, NULL, 0, 0, NULL},
};
