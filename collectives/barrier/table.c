/* SPDX-License-Identifier: MIT */
#include "collectives/barrier/barrier.h"

const struct gci_algorithm gci_barriers[] = {
	{GCI_BARRIER, "clusters", "gather in each cluster, exchange, release", GCI_CAPS_SENDERS, 0,
		gci_emit_barrier_clusters},
	{GCI_BARRIER, "dissemination", "dissemination over all ranks", 0, 0,
		gci_emit_barrier_dissemination},
	{GCI_BARRIER, "binomial", "all ranks trade, half by half", 0, 0, gci_emit_barrier_binomial},
	{GCI_BARRIER, "tournament", "losers wait for the champion's word", 0, 0,
		gci_emit_barrier_tournament},
	{GCI_BARRIER, "ring", "a token goes twice round a ring", 0, 0, gci_emit_barrier_ring},
	{GCI_BARRIER, NULL, NULL, 0, 0, NULL},
};
