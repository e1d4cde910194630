/* SPDX-License-Identifier: MIT */
#include "collectives/allgather/allgather.h"

const struct gci_algorithm gci_allgathers[] = {
	{GCI_ALLGATHER, "ring", "blocks travel round a ring of all ranks", 0, 0,
		gci_emit_allgather_ring},
	{GCI_ALLGATHER, NULL, NULL, 0, 0, NULL},
};
