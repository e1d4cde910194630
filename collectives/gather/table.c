/* SPDX-License-Identifier: MIT */
#include "collectives/gather/gather.h"
#include "collectives/tuner/formulas.h"

const struct gci_algorithm gci_gathers[] = {
	{GCI_GATHER, "gridcoll", "relay, or magpie for short blocks, by a cost formula",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_gather_gridcoll,
		gci_estimate_relay_or_clusters},
	{GCI_GATHER, "binomial", "binomial tree over all ranks", 0, 0, gci_emit_gather_binomial,
		gci_estimate_binomial},
	{GCI_GATHER, "relay", "by one member of each cluster, one sender at a time",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_gather_relay,
		gci_estimate_relay},
	{GCI_GATHER, "sequential", "the root receives from each rank in turn",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_gather_sequential,
		gci_estimate_flat},
	{GCI_GATHER, "chain", "rank to rank, with the blocks of all before",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_gather_chain, gci_estimate_chain},
	{GCI_GATHER, "binary", "binary tree over all ranks", GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0,
		gci_emit_gather_binary, gci_estimate_binary},
	{GCI_GATHER, "magpie", "in each cluster, then from each in turn", GCI_CAPS_SENDERS, 0,
		gci_emit_gather_magpie, gci_estimate_clusters},
	{GCI_GATHER, "magpie-segmented", "from each rank in segments, clusters at a time",
		GCI_USES_SEGMENT, 0, gci_emit_gather_magpie_segmented, gci_estimate_flat},
	{GCI_GATHER, NULL, NULL, 0, 0, NULL, NULL},
};
