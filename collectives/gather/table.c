/* SPDX-License-Identifier: MIT */
#include "collectives/gather/gather.h"

const struct gci_algorithm gci_gathers[] = {
	{GCI_GATHER, "binomial", "binomial tree over all ranks", 0, 0, gci_emit_gather_binomial},
	{GCI_GATHER, "relay", "by one member of each cluster, one sender at a time",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_gather_relay},
	{GCI_GATHER, NULL, NULL, 0, 0, NULL},
};
