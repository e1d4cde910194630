/* SPDX-License-Identifier: MIT
 * Whom a rank sends to. */
#ifndef GCI_COLLECTIVES_BLOCKS_PEERS_H
#define GCI_COLLECTIVES_BLOCKS_PEERS_H

#include "collectives/grid/topo.h"
#include "collectives/schedule/schedule.h"

/* Ranks of other clusters that this schedule sends to, over links without a limit for one
 * connection: a sender shares its streams among them. 0 where there is no memory to count: a matter
 * of speed only. */
uint32_t gci_wan_peers(const struct gci_topo *t, const struct gci_sched *s);

#endif
