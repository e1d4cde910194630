/* SPDX-License-Identifier: MIT
 * Whom a rank sends to. */
#ifndef GCI_COLLECTIVES_BLOCKS_PEERS_H
#define GCI_COLLECTIVES_BLOCKS_PEERS_H

#include "collectives/grid/topo.h"
#include "collectives/schedule/schedule.h"

/* *n: ranks of other clusters that this schedule sends to, over links without a limit for one
 * connection: a sender shares its streams among them. 0 or GCOLL_ERR_NOMEM. */
int gci_wan_peers(const struct gci_topo *t, const struct gci_sched *s, uint32_t *n);

#endif
