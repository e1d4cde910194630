/* SPDX-License-Identifier: MIT
 * Hash table with the nodes inside its members, which stay where they are. A zeroed table is empty.
 *
 *	struct gci_hash t = {0};
 *	if (gci_hash_add(&t, &m->node, h))		// h: of m's name, well mixed (base/prng.h)
 *		return GCOLL_ERR_NOMEM;
 *	for (n = gci_hash_first(&t, h); n; n = gci_hash_next(n))	// those with this h
 *		...
 *	gci_hash_del(&t, &m->node);
 *	gci_hash_free(&t, drop);			// drop(n) of each member, unless it is NULL */
#ifndef GCI_BASE_HASH_H
#define GCI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct gci_hash_node {
	struct gci_hash_node *next; /* in its slot */
	uint64_t hash;
};

struct gci_hash {
	struct gci_hash_node **slots;
	size_t nslots; /* a power of two, or 0 */
	size_t n;
};

/* 0, or -1: out of memory, and nothing has changed. */
int gci_hash_add(struct gci_hash *t, struct gci_hash_node *n, uint64_t hash);

/* One that is not in it is legal. */
void gci_hash_del(struct gci_hash *t, struct gci_hash_node *n);

void gci_hash_free(struct gci_hash *t, void (*drop)(struct gci_hash_node *n));

/* From this node on, the first with this hash. */
static inline struct gci_hash_node *gci_hash_from(struct gci_hash_node *n, uint64_t hash)
{
	while (n && n->hash != hash)
		n = n->next;
	return n;
}

static inline struct gci_hash_node *gci_hash_first(const struct gci_hash *t, uint64_t hash)
{
	return t->nslots ? gci_hash_from(t->slots[hash & (t->nslots - 1)], hash) : NULL;
}

static inline struct gci_hash_node *gci_hash_next(const struct gci_hash_node *n)
{
	return gci_hash_from(n->next, n->hash);
}

#endif
