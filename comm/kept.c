/* SPDX-License-Identifier: MIT */
#include "comm/kept.h"

#include "base/mem.h"
#include "collectives/blocks/peers.h"

#include <string.h>

/* ---- schedules */

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

		if (s->used && s->algorithm == a && gci_coll_same(&s->coll, coll)) {
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

/* ---- scratch memory */

char *gci_scratch_get(struct gci_scratch *s, uint64_t nbytes)
{
	char *data;
	int i, slot = -1;

	for (i = 0; i < GCI_SCRATCH_KEPT; i++) {
		if (s->kept[i].used)
			continue;
		if (s->kept[i].data && s->kept[i].nbytes >= nbytes) {
			s->kept[i].used = 1;
			return s->kept[i].data;
		}
		slot = i;
	}
	data = gci_reallocarray(NULL, nbytes, 1);
	if (!data || slot < 0)
		return data;
	gci_free(s->kept[slot].data);
	s->kept[slot].data = data;
	s->kept[slot].nbytes = nbytes;
	s->kept[slot].used = 1;
	return data;
}

void gci_scratch_put(struct gci_scratch *s, char *data)
{
	int i;

	for (i = 0; data && i < GCI_SCRATCH_KEPT; i++)
		if (s->kept[i].data == data) {
			s->kept[i].used = 0;
			return;
		}
	gci_free(data);
}

void gci_scratch_free(struct gci_scratch *s)
{
	int i;

	for (i = 0; i < GCI_SCRATCH_KEPT; i++)
		gci_free(s->kept[i].data);
	memset(s, 0, sizeof(*s));
}
