/* SPDX-License-Identifier: MIT */
#include "collectives/bcast/bcast.h"

const struct gci_algorithm gci_bcasts[] = {
	{GCI_BCAST, "gridcoll", "pipeline or tree, by a cost formula",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_bcast_gridcoll},
	{GCI_BCAST, "pipeline", "segments along a path through all ranks, over the WAN once",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_bcast_pipeline},
	{GCI_BCAST, "tree", "binomial in each cluster, far clusters first",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_bcast_tree},
	{GCI_BCAST, "sequential", "the root sends to each rank in turn",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_bcast_sequential},
	{GCI_BCAST, "chain", "rank to rank in rank order", GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0,
		gci_emit_bcast_chain},
	{GCI_BCAST, "binomial", "binomial tree over all ranks", GCI_USES_SEGMENT | GCI_BY_SEGMENT,
		0, gci_emit_bcast_binomial},
	{GCI_BCAST, "vandegeijn", "scatter, allgather over all ranks", 0, 0,
		gci_emit_bcast_vandegeijn},
	{GCI_BCAST, "vandegeijn-mod", "scatter, copy over the WAN by n senders, allgather",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS, 0, gci_emit_bcast_vandegeijn_mod},
	{GCI_BCAST, "farfirst", "whole message over the WAN, then van de Geijn in each cluster",
		GCI_CAPS_SENDERS, 0, gci_emit_bcast_farfirst},
	{GCI_BCAST, NULL, NULL, 0, 0, NULL},
};
