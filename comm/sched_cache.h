/* SPDX-License-Identifier: MIT
 * Schedules kept from one operation to the next, and shared by windows and operations that run at
 * once (op.c). */
#ifndef GCI_COMM_SCHED_CACHE_H
#define GCI_COMM_SCHED_CACHE_H

#include "collectives/coll.h"

#define GCI_CACHED_SCHEDS 16

struct gci_cached_sched {
	const struct gci_algorithm *algorithm;
	struct gci_coll coll;
	struct gci_sched sched;
	uint32_t wan_peers; /* that it sends to, over links without a limit for one connection */
	uint64_t used;      /* when last; 0: the slot is empty */
	uint32_t users;
	int temporary; /* not in the cache */
};

struct gci_sched_cache {
	struct gci_cached_sched slots[GCI_CACHED_SCHEDS];
	uint64_t clock;
};

/* Forgets what was made for this topology, which nobody uses any more. NULL: everything. */
void gci_sched_cache_forget(struct gci_sched_cache *cache, const struct gci_topo *topo);

#endif
