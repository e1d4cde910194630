/* SPDX-License-Identifier: MIT */
#include "comm/comms.h"

#include "base/mem.h"
#include "base/prng.h"
#include "comm/comm.h"

#define FIRST_SLOTS 16

static gcoll_comm **slot_of(const struct gci_comms *t, uint32_t id)
{
	return &t->slots[gci_mix64(id) & (t->nslots - 1)];
}

static void put(struct gci_comms *t, gcoll_comm *c)
{
	gcoll_comm **slot = slot_of(t, c->id);

	c->same_slot = *slot;
	*slot = c;
}

static int grow(struct gci_comms *t)
{
	struct gci_comms bigger = {.nslots = t->nslots ? 2 * t->nslots : FIRST_SLOTS, .n = t->n};
	gcoll_comm *c, *next;
	size_t i;

	bigger.slots = gci_calloc(bigger.nslots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < t->nslots; i++)
		for (c = t->slots[i]; c; c = next) {
			next = c->same_slot;
			put(&bigger, c);
		}
	gci_free(t->slots);
	*t = bigger;
	return 0;
}

int gci_comms_add(struct gci_comms *t, gcoll_comm *c)
{
	if (t->n >= t->nslots && grow(t))
		return GCOLL_ERR_NOMEM;
	put(t, c);
	t->n++;
	return 0;
}

void gci_comms_del(struct gci_comms *t, gcoll_comm *c)
{
	gcoll_comm **at = t->nslots ? slot_of(t, c->id) : NULL;

	while (at && *at && *at != c)
		at = &(*at)->same_slot;
	if (!at || !*at)
		return;
	*at = c->same_slot;
	t->n--;
}

gcoll_comm *gci_comms_find(const struct gci_comms *t, uint32_t id)
{
	gcoll_comm *c = t->nslots ? *slot_of(t, id) : NULL;

	while (c && c->id != id)
		c = c->same_slot;
	return c;
}

void gci_comms_free(struct gci_comms *t)
{
	gci_free(t->slots);
	*t = (struct gci_comms){0};
}
