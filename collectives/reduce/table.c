/* SPDX-License-Identifier: MIT */
#include "collectives/reduce/reduce.h"

const struct gci_algorithm gci_reduces[] = {
	{GCI_REDUCE, "gridcoll", "pipeline, or a tree by clusters, by a cost formula",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_gridcoll},
	{GCI_REDUCE, "pipeline", "segments along a path through all ranks, over the WAN once",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_reduce_pipeline},
	{GCI_REDUCE, "binomial", "binomial tree over all ranks",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_KEEPS_RANK_ORDER, 0,
		gci_emit_reduce_binomial},
	{GCI_REDUCE, "clusters", "binomial tree in each cluster, and one over their coordinators",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_clusters},
	{GCI_REDUCE, "gather", "the root takes all vectors and operates", GCI_KEEPS_RANK_ORDER, 0,
		gci_emit_reduce_gather},
	{GCI_REDUCE, "chain", "rank to rank, towards the root", GCI_USES_SEGMENT | GCI_BY_SEGMENT,
		0, gci_emit_reduce_chain},
	{GCI_REDUCE, "binary", "binary tree over all ranks", GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0,
		gci_emit_reduce_binary},
	{GCI_REDUCE, NULL, NULL, 0, 0, NULL},
};
