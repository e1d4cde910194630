/* SPDX-License-Identifier: MIT */
#include "collectives/scatter/scatter.h"
#include "collectives/tuner/formulas.h"

const struct gci_algorithm gci_scatters[] = {
	{GCI_SCATTER, "gridcoll", "relay, or magpie for short blocks, by a cost formula",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_scatter_gridcoll, gci_estimate_relay_or_clusters},
	{GCI_SCATTER, "binomial", "binomial tree over all ranks", 0, 0, gci_emit_scatter_binomial,
		gci_estimate_binomial},
	{GCI_SCATTER, "relay", "far clusters first, by one member who passes on",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_scatter_relay,
		gci_estimate_relay},
	{GCI_SCATTER, "sequential", "the root sends to each rank in turn",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_scatter_sequential, gci_estimate_flat},
	{GCI_SCATTER, "chain", "rank to rank, the blocks of all that follow",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_scatter_chain, gci_estimate_chain},
	{GCI_SCATTER, "binary", "binary tree over all ranks", GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0,
		gci_emit_scatter_binary, gci_estimate_binary},
	{GCI_SCATTER, "magpie", "to each cluster in turn, then in each of them", GCI_CAPS_SENDERS,
		0, gci_emit_scatter_magpie, gci_estimate_clusters},
	{GCI_SCATTER, "magpie-segmented", "to each rank in segments, clusters in turns",
		GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_scatter_magpie_segmented,
		gci_estimate_flat},
	{GCI_SCATTER, NULL, NULL, 0, 0, NULL, NULL},
};
