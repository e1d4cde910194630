/* SPDX-License-Identifier: MIT */
#include "collectives/alltoall/alltoall.h"

/* All that all ranks send meets at rank 0, who cuts it into 3 P pieces. */
#define GATHER_SCATTER_RANKS 4096

const struct gci_algorithm gci_alltoalls[] = {
	{GCI_ALLTOALL, "gridcoll", "paced where the WAN takes all senders, or by clusters",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS, 0, gci_emit_alltoall_gridcoll},
	{GCI_ALLTOALL, "circular", "a block with each rank in turn, at rising distance", 0, 0,
		gci_emit_alltoall_circular},
	{GCI_ALLTOALL, "paced", "own cluster first, receivers ask for one block after the other", 0,
		0, gci_emit_alltoall_paced},
	{GCI_ALLTOALL, "gather-scatter", "gather to rank 0, scatter from it, along a binary tree",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, GATHER_SCATTER_RANKS,
		gci_emit_alltoall_gather_scatter},
	{GCI_ALLTOALL, "bruck", "blocks travel by powers of two, in few messages", 0, 0,
		gci_emit_alltoall_bruck},
	{GCI_ALLTOALL, "clusters", "one message per pair of clusters and sender",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_alltoall_clusters},
	{GCI_ALLTOALL, NULL, NULL, 0, 0, NULL},
};
