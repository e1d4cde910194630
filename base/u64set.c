/* SPDX-License-Identifier: MIT */
#include "base/u64set.h"

#include "base/mem.h"
#include "base/prng.h"

#include <string.h>

#define FIRST_CAP 16

/* Where it is, or where it would go. */
static size_t find(const uint64_t *slots, size_t cap, uint64_t x)
{
	size_t i = (size_t)gci_mix64(x) & (cap - 1);

	while (slots[i] && slots[i] != x)
		i = (i + 1) & (cap - 1);
	return i;
}

int gci_u64set_has(const struct gci_u64set *s, uint64_t x)
{
	if (!x)
		return s->has_zero;
	return s->cap && s->slots[find(s->slots, s->cap, x)] == x;
}

/* At most half of the slots are taken. */
static int grow(struct gci_u64set *s)
{
	size_t cap = s->cap ? 2 * s->cap : FIRST_CAP, i;
	uint64_t *slots = gci_calloc(cap, sizeof(*slots));

	if (!slots)
		return -1;
	for (i = 0; i < s->cap; i++)
		if (s->slots[i])
			slots[find(slots, cap, s->slots[i])] = s->slots[i];
	gci_free(s->slots);
	s->slots = slots;
	s->cap = cap;
	return 0;
}

int gci_u64set_add(struct gci_u64set *s, uint64_t x)
{
	size_t i;

	if (gci_u64set_has(s, x))
		return 0;
	if (!x) {
		s->has_zero = 1;
		return 0;
	}
	if (2 * s->n >= s->cap && grow(s))
		return -1;
	i = find(s->slots, s->cap, x);
	s->slots[i] = x;
	s->n++;
	return 0;
}

void gci_u64set_free(struct gci_u64set *s)
{
	gci_free(s->slots);
	memset(s, 0, sizeof(*s));
}
