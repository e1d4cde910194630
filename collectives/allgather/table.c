/* SPDX-License-Identifier: MIT */
#include "collectives/allgather/allgather.h"

const struct gci_algorithm gci_allgathers[] = {
	{GCI_ALLGATHER, "ring", "blocks travel round a ring of all ranks", 0, 0,
		gci_emit_allgather_ring},
	{GCI_ALLGATHER, "gather-bcast", "binomial gather to rank 0, binomial bcast",
		GCI_USES_SEGMENT | GCI_BY_SEGMENT, 0, gci_emit_allgather_gather_bcast},
	{GCI_ALLGATHER, "simple", "each to each, all at once in the order of ranks", 0, 0,
		gci_emit_allgather_simple},
	{GCI_ALLGATHER, "spreading", "each to each, at rising distance", 0, 0,
		gci_emit_allgather_spreading},
	{GCI_ALLGATHER, "doubling", "recursive doubling over halves of the ranks", 0, 0,
		gci_emit_allgather_doubling},
	{GCI_ALLGATHER, "dissemination", "Bruck's: twice the blocks in every round", 0, 0,
		gci_emit_allgather_dissemination},
	{GCI_ALLGATHER, "magpie", "gather, exchange of coordinators, bcast in each cluster",
		GCI_CAPS_SENDERS, 0, gci_emit_allgather_magpie},
	{GCI_ALLGATHER, "magpie-segmented", "the same, exchanged and passed on in segments",
		GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_allgather_magpie_segmented},
	{GCI_ALLGATHER, "mpich-g2", "recursive doubling up the hierarchy, bcast down",
		GCI_CAPS_SENDERS, 0, gci_emit_allgather_mpich_g2},
	{GCI_ALLGATHER, "rings", "round the ring of each cluster, over each WAN link once",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0,
		gci_emit_allgather_rings},
	{GCI_ALLGATHER, NULL, NULL, 0, 0, NULL},
};
