/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include "base/mem.h"

#define FIRST_SLOTS 16

static void put(struct gci_hash *t, struct gci_hash_node *n)
{
	struct gci_hash_node **slot = &t->slots[n->hash & (t->nslots - 1)];

	n->next = *slot;
	*slot = n;
}

static int double_slots(struct gci_hash *t)
{
	struct gci_hash bigger = {.nslots = t->nslots ? 2 * t->nslots : FIRST_SLOTS, .n = t->n};
	struct gci_hash_node *n, *next;
	size_t i;

	bigger.slots = gci_calloc(bigger.nslots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -1;
	for (i = 0; i < t->nslots; i++)
		for (n = t->slots[i]; n; n = next) {
			next = n->next;
			put(&bigger, n);
		}
	gci_free(t->slots);
	*t = bigger;
	return 0;
}

int gci_hash_add(struct gci_hash *t, struct gci_hash_node *n, uint64_t hash)
{
	if (t->n >= t->nslots && double_slots(t))
		return -1;
	n->hash = hash;
	put(t, n);
	t->n++;
	return 0;
}

void gci_hash_del(struct gci_hash *t, struct gci_hash_node *n)
{
	struct gci_hash_node **at = t->nslots ? &t->slots[n->hash & (t->nslots - 1)] : NULL;

	while (at && *at && *at != n)
		at = &(*at)->next;
	if (!at || !*at)
		return;
	*at = n->next;
	n->next = NULL;
	t->n--;
}

void gci_hash_free(struct gci_hash *t, void (*drop)(struct gci_hash_node *n))
{
	struct gci_hash_node *n, *next;
	size_t i;

	for (i = 0; drop && i < t->nslots; i++)
		for (n = t->slots[i]; n; n = next) {
			next = n->next;
			drop(n);
		}
	gci_free(t->slots);
	*t = (struct gci_hash){0};
}
