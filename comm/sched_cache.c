/* SPDX-License-Identifier: MIT */
#include "comm/sched_cache.h"

#include "base/mem.h"
#include "collectives/blocks/peers.h"

#include <string.h>

/* Everything an emitter reads. Ranks need not be compared: a topology belongs to one. */
static int same_coll(const struct gci_coll *a, const struct gci_coll *b)
{
	return a->kind == b->kind && a->topo == b->topo && a->count == b->count &&
	       a->esize == b->esize && a->root == b->root && a->in_place == b->in_place &&
	       a->order == b->order && a->senders == b->senders && a->degree == b->degree &&
	       a->segment == b->segment && a->like == b->like && a->stride == b->stride &&
	       a->shift == b->shift && a->part == b->part && a->nparts == b->nparts;
}

static int may_be_kept(const struct gci_coll *coll)
{
	return !coll->counts && !coll->in_at && !coll->out_at;
}

/* A kept one with this content, or the slot to put it in; NULL: there is none. */
static struct gci_cached_sched *find_slot(struct gci_sched_cache *cache,
	const struct gci_algorithm *a, const struct gci_coll *coll, int *found)
{
	struct gci_cached_sched *slot = NULL;
	int i;

	*found = 0;
	if (!may_be_kept(coll))
		return NULL;
	for (i = 0; i < GCI_CACHED_SCHEDS; i++) {
		struct gci_cached_sched *s = &cache->slots[i];

		if (s->used && s->algorithm == a && same_coll(&s->coll, coll)) {
			*found = 1;
			return s;
		}
		if (!s->users && (!slot || s->used < slot->used))
			slot = s;
	}
	return slot;
}

struct gci_cached_sched *gci_sched_cache_get(struct gci_sched_cache *cache,
	const struct gci_algorithm *a, const struct gci_coll *coll, int rank)
{
	struct gci_cached_sched *s;
	int found;

	s = find_slot(cache, a, coll, &found);
	if (found) {
		s->users++;
		s->used = ++cache->clock;
		return s;
	}
	if (!s) { /* all are in use: one that is dropped after it */
		s = gci_calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->temporary = 1;
	}
	gci_sched_free(&s->sched);
	s->used = 0;
	if (gci_emit(a, coll, rank, &s->sched) ||
		gci_wan_peers(coll->topo, &s->sched, &s->wan_peers)) {
		gci_sched_free(&s->sched);
		if (s->temporary)
			gci_free(s);
		return NULL;
	}
	s->algorithm = a;
	s->coll = *coll;
	s->users = 1;
	s->used = ++cache->clock;
	return s;
}

void gci_sched_cache_put(struct gci_cached_sched *s)
{
	if (--s->users || !s->temporary)
		return;
	gci_sched_free(&s->sched);
	gci_free(s);
}

void gci_sched_cache_forget(struct gci_sched_cache *cache, const struct gci_topo *topo)
{
	int i;

	for (i = 0; i < GCI_CACHED_SCHEDS; i++) {
		struct gci_cached_sched *s = &cache->slots[i];

		if (topo && s->coll.topo != topo)
			continue;
		gci_sched_free(&s->sched);
		memset(s, 0, sizeof(*s));
	}
}
