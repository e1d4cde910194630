/* SPDX-License-Identifier: MIT */
#include "collectives/barrier/barrier.h"
#include "collectives/tuner/formulas.h"

const struct gci_algorithm gci_barriers[] = {
	{GCI_BARRIER, "clusters", "gather in each cluster, exchange, release", GCI_CAPS_SENDERS, 0,
		gci_emit_barrier_clusters, gci_estimate_tree_of_clusters},
	{GCI_BARRIER, "dissemination", "dissemination over all ranks", 0, 0,
		gci_emit_barrier_dissemination, gci_estimate_signals},
	{GCI_BARRIER, "binomial", "all ranks trade, half by half", 0, 0, gci_emit_barrier_binomial,
		gci_estimate_signals},
	{GCI_BARRIER, "tournament", "losers wait for the champion's word", 0, 0,
		gci_emit_barrier_tournament, gci_estimate_twice_signals},
	{GCI_BARRIER, "ring", "a token goes twice round a ring", 0, 0, gci_emit_barrier_ring,
		gci_estimate_two_rings},
	{GCI_BARRIER, NULL, NULL, 0, 0, NULL, NULL},
};
