/* SPDX-License-Identifier: MIT */
#include "collectives/scatter/scatter.h"

const struct gci_algorithm gci_scatters[] = {
	{GCI_SCATTER, "binomial", "binomial tree over all ranks", 0, 0, gci_emit_scatter_binomial},
	{GCI_SCATTER, "relay", "far clusters first, by one member who passes on",
		GCI_USES_SENDERS | GCI_USES_SEGMENT | GCI_CAPS_SENDERS, 0, gci_emit_scatter_relay},
	{GCI_SCATTER, NULL, NULL, 0, 0, NULL},
};
