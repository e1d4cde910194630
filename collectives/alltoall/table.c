/* SPDX-License-Identifier: MIT */
#include "collectives/alltoall/alltoall.h"
#include "collectives/tuner/formulas.h"

/* All that all ranks send meets at rank 0, who cuts it into 3 P pieces. */
#define GATHER_SCATTER_RANKS 4096

const struct gci_algorithm gci_alltoalls[] = {
	{GCI_ALLTOALL, "gridcoll", "even where all may send at once, or by clusters",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS, 0, gci_emit_alltoall_gridcoll,
		gci_estimate_each_or_columns},
	{GCI_ALLTOALL, "paced", "own cluster first, receivers ask for one block after the other", 0,
		0, gci_emit_alltoall_paced, gci_estimate_each_to_each},
	{GCI_ALLTOALL, "even", "all pairs at once, each at its part of the time", 0, 0,
		gci_emit_alltoall_even, gci_estimate_each_to_each},
	{GCI_ALLTOALL, "circular", "a block with each rank in turn, at rising distance", 0, 0,
		gci_emit_alltoall_circular, gci_estimate_each_to_each},
	{GCI_ALLTOALL, "gather-scatter", "gather to rank 0, scatter from it, along a binary tree",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, GATHER_SCATTER_RANKS,
		gci_emit_alltoall_gather_scatter, gci_estimate_gather_and_scatter},
	{GCI_ALLTOALL, "bruck", "blocks travel by powers of two, in few messages", 0, 0,
		gci_emit_alltoall_bruck, gci_estimate_bruck},
	{GCI_ALLTOALL, "clusters", "one message per pair of clusters and sender",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_alltoall_clusters, gci_estimate_columns},
	{GCI_ALLTOALL, NULL, NULL, 0, 0, NULL, NULL},
};
