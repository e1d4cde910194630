/* SPDX-License-Identifier: MIT */
#include "collectives/reduce/reduce.h"

const struct gci_algorithm gci_reduces[] = {
	{GCI_REDUCE, "binomial", "binomial tree over all ranks",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_KEEPS_RANK_ORDER, 0,
		gci_emit_reduce_binomial},
	{GCI_REDUCE, "pipeline", "segments along a path through all ranks, over the WAN once",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_reduce_pipeline},
	{GCI_REDUCE, NULL, NULL, 0, 0, NULL},
};
