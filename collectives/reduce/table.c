/* SPDX-License-Identifier: MIT */
#include "collectives/reduce/reduce.h"
#include "collectives/tuner/formulas.h"

const struct gci_algorithm gci_reduces[] = {
	{GCI_REDUCE, "gridcoll", "pipeline, or a tree by clusters, by a cost formula",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_gridcoll, gci_estimate_path_or_clusters},
	{GCI_REDUCE, "pipeline", "segments along a path through all ranks, over the WAN once",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_reduce_pipeline,
		gci_estimate_path},
	{GCI_REDUCE, "binomial", "binomial tree over all ranks",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_KEEPS_RANK_ORDER, 0,
		gci_emit_reduce_binomial, gci_estimate_binomial},
	{GCI_REDUCE, "clusters", "binomial tree in each cluster, and one over their coordinators",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_clusters, gci_estimate_clusters},
	{GCI_REDUCE, "gather", "the root takes all vectors and operates", GCI_KEEPS_RANK_ORDER, 0,
		gci_emit_reduce_gather, gci_estimate_flat},
	{GCI_REDUCE, "chain", "rank to rank, towards the root", GCI_USES_SEGMENT | GCI_BY_SEGMENT,
		0, gci_emit_reduce_chain, gci_estimate_chain},
	{GCI_REDUCE, "binary", "binary tree over all ranks", GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0,
		gci_emit_reduce_binary, gci_estimate_binary},
	{GCI_REDUCE, "rabenseifner", "reduce-scatter, gather over all ranks", 0, 0,
		gci_emit_reduce_rabenseifner, gci_estimate_halving},
	{GCI_REDUCE, "ordered", "reduce-scatter by the tree of a fixed order, gather",
		GCI_KEEPS_RANK_ORDER, 0, gci_emit_reduce_ordered, gci_estimate_halving},
	{GCI_REDUCE, "ordered-mod", "the same in each cluster, to the root's by n senders",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_ordered_mod, gci_estimate_modified},
	{GCI_REDUCE, NULL, NULL, 0, 0, NULL, NULL},
};
