/* SPDX-License-Identifier: MIT
 * What is kept from one operation to the next: schedules, shared by windows and operations that run
 * at once, and scratch memory, since the first touch of a page costs more than a good deal of what is
 * then done with it.
 *
 *	struct gci_cached_sched *s = gci_sched_cache_get(&cache, algorithm, &coll, rank);
 *	... s->sched ...
 *	gci_sched_cache_put(s);
 *
 * One thread. */
#ifndef GCI_COMM_KEPT_H
#define GCI_COMM_KEPT_H

#include "collectives/coll.h"

#define GCI_CACHED_SCHEDS 16
#define GCI_SCRATCH_KEPT  3 /* as many as windows are under way at once where a way holds little */

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

/* The schedule of `rank`, from the cache or made now; NULL: out of memory. Those of operations with
 * counts[] are not kept: the arrays are their callers'. */
struct gci_cached_sched *gci_sched_cache_get(struct gci_sched_cache *cache,
	const struct gci_algorithm *a, const struct gci_coll *coll, int rank);
void gci_sched_cache_put(struct gci_cached_sched *s);

/* Forgets what was made for this topology, which nobody uses any more. NULL: everything. */
void gci_sched_cache_forget(struct gci_sched_cache *cache, const struct gci_topo *topo);

struct gci_scratch {
	struct {
		char *data;
		uint64_t nbytes;
		int used;
	} kept[GCI_SCRATCH_KEPT];
};

/* At least nbytes, not zeroed; NULL when out of memory. */
char *gci_scratch_get(struct gci_scratch *s, uint64_t nbytes);

/* Gives back what get returned; NULL is legal. */
void gci_scratch_put(struct gci_scratch *s, char *data);

void gci_scratch_free(struct gci_scratch *s);

#endif
