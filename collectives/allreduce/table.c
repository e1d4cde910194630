/* SPDX-License-Identifier: MIT */
#include "collectives/allreduce/allreduce.h"

const struct gci_algorithm gci_allreduces[] = {
	{GCI_ALLREDUCE, "rabenseifner-mod",
		"reduce-scatter, exchange over the WAN by n senders, allgather",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS, 0, gci_emit_allreduce_rabenseifner_mod},
	{GCI_ALLREDUCE, "rabenseifner", "reduce-scatter, allgather over all ranks", 0, 0,
		gci_emit_allreduce_rabenseifner},
	{GCI_ALLREDUCE, "rabenseifner-mod-merge",
		"the same, exchanged when 2^i <= n nodes have merged the reduced parts",
		GCI_USES_SENDERS | GCI_CAPS_SENDERS, 0, gci_emit_allreduce_rabenseifner_merge},
	{GCI_ALLREDUCE, "two-tier", "reduce in each cluster, exchange whole, bcast",
		GCI_CAPS_SENDERS, 0, gci_emit_allreduce_two_tier},
	{GCI_ALLREDUCE, "tree", "canonical tree in each cluster, exchange whole, tree back",
		GCI_CAPS_SENDERS | GCI_KEEPS_CLUSTER_ORDER, 0, gci_emit_allreduce_tree},
	{GCI_ALLREDUCE, NULL, NULL, 0, 0, NULL},
};
