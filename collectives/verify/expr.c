/* SPDX-License-Identifier: MIT */
#include "collectives/verify/expr.h"

#include "base/mem.h"
#include "base/prng.h"

#include <string.h>

#define NONE UINT32_MAX

struct gci_expr_node {
	uint32_t a, b; /* left, right; leaves: NONE, rank */
};

static uint64_t hash(struct gci_expr_node n)
{
	return gci_mix64((uint64_t)n.a << 32 | n.b);
}

static int grow_table(struct gci_exprs *x)
{
	size_t size = x->table_size ? 2 * x->table_size : 256, i;
	uint32_t *table = gci_calloc(size, sizeof(*table));

	if (!table)
		return -1;
	for (i = 0; i < x->n; i++) {
		size_t at = hash(x->nodes[i]) & (size - 1);

		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = (uint32_t)i + 1;
	}
	gci_free(x->table);
	x->table = table;
	x->table_size = size;
	return 0;
}

/* The number of the node, new or old; -1 when out of memory. *fresh tells which. */
static int64_t intern(struct gci_exprs *x, struct gci_expr_node n, int *fresh)
{
	size_t at;

	*fresh = 0;
	if (2 * (x->n + 1) > x->table_size && grow_table(x))
		return -1;
	for (at = hash(n) & (x->table_size - 1); x->table[at];
		at = (at + 1) & (x->table_size - 1)) {
		uint32_t i = x->table[at] - 1;

		if (x->nodes[i].a == n.a && x->nodes[i].b == n.b)
			return i;
	}
	if (x->n >= NONE - 1 || gci_grow(&x->nodes, &x->cap, x->n + 1, sizeof(n)) ||
		gci_grow(&x->sets, &x->sets_cap, (x->n + 1) * x->nwords, sizeof(*x->sets)))
		return -1;
	x->nodes[x->n] = n;
	memset(x->sets + x->n * x->nwords, 0, x->nwords * sizeof(*x->sets));
	x->table[at] = (uint32_t)++x->n;
	*fresh = 1;
	return (int64_t)x->n - 1;
}

int gci_exprs_init(struct gci_exprs *x, int nranks)
{
	int r, fresh;

	memset(x, 0, sizeof(*x));
	x->nranks = nranks;
	x->nwords = ((size_t)nranks + 63) / 64;
	for (r = 0; r < nranks; r++) {
		if (intern(x, (struct gci_expr_node){NONE, (uint32_t)r}, &fresh) != r) {
			gci_exprs_free(x);
			return -1;
		}
		x->sets[(size_t)r * x->nwords + (size_t)r / 64] = 1ull << (r % 64);
	}
	return 0;
}

void gci_exprs_free(struct gci_exprs *x)
{
	gci_free(x->nodes);
	gci_free(x->sets);
	gci_free(x->table);
	memset(x, 0, sizeof(*x));
}

int64_t gci_expr_join(struct gci_exprs *x, uint32_t a, uint32_t b)
{
	struct gci_expr_node n = {a, b};
	size_t w;
	int64_t e;
	int fresh;

	for (w = 0; w < x->nwords; w++) {
		uint64_t both = x->sets[a * x->nwords + w] & x->sets[b * x->nwords + w];

		if (both)
			return -2 - (int64_t)(w * 64) - __builtin_ctzll(both);
	}
	e = intern(x, n, &fresh);
	for (w = 0; e >= 0 && fresh && w < x->nwords; w++)
		x->sets[(size_t)e * x->nwords + w] =
			x->sets[a * x->nwords + w] | x->sets[b * x->nwords + w];
	return e;
}

int gci_expr_missing(const struct gci_exprs *x, uint32_t e)
{
	int r;

	for (r = 0; r < x->nranks; r++)
		if (!(x->sets[e * x->nwords + (size_t)r / 64] >> (r % 64) & 1))
			return r;
	return -1;
}
