/* SPDX-License-Identifier: MIT */
#include "collectives/reduce_scatter/reduce_scatter.h"
#include "collectives/tuner/formulas.h"

const struct gci_algorithm gci_reduce_scatters[] = {
	{GCI_REDUCE_SCATTER, "gridcoll", "rings, or the tree of clusters, by a cost formula",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_scatter_gridcoll, gci_estimate_rings_or_coordinators},
	{GCI_REDUCE_SCATTER, "ring", "parts travel round a ring of all ranks", 0, 0,
		gci_emit_reduce_scatter_ring, gci_estimate_ring},
	{GCI_REDUCE_SCATTER, "rings", "round the ring of each cluster, over each WAN link once",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_reduce_scatter_rings, gci_estimate_rings},
	{GCI_REDUCE_SCATTER, "clusters", "up the tree of a fixed order, across by n senders",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0,
		gci_emit_reduce_scatter_clusters, gci_estimate_coordinators},
	{GCI_REDUCE_SCATTER, "ordered", "each block up the tree of a fixed order",
		GCI_KEEPS_RANK_ORDER, 0, gci_emit_reduce_scatter_ordered, gci_estimate_rounds},
	{GCI_REDUCE_SCATTER, "halving", "recursive halving over all ranks", 0, 0,
		gci_emit_reduce_scatter_halving, gci_estimate_rounds},
	{GCI_REDUCE_SCATTER, NULL, NULL, 0, 0, NULL, NULL},
};
