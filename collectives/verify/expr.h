/* SPDX-License-Identifier: MIT
 * Symbolic values: expression trees over the ranks' contributions, each tree stored once, so that
 * equal trees have equal numbers. OP is taken neither as associative nor as commutative: the bits
 * of a minimum of floats, for one, depend on the order of operands when these are +0 and -0. */
#ifndef GCI_COLLECTIVES_VERIFY_EXPR_H
#define GCI_COLLECTIVES_VERIFY_EXPR_H

#include <stddef.h>
#include <stdint.h>

struct gci_expr_node;

struct gci_exprs {
	int nranks;
	size_t nwords; /* of a set of ranks */
	struct gci_expr_node *nodes;
	size_t n, cap;
	uint64_t *sets; /* [expr * nwords]: whose contributions are in it */
	size_t sets_cap;
	uint32_t *table; /* open addressing; expr + 1, 0: empty */
	size_t table_size;
};

/* Expression r, for 0 <= r < nranks, is rank r's contribution. 0 or -1 (out of memory). */
int gci_exprs_init(struct gci_exprs *x, int nranks);
void gci_exprs_free(struct gci_exprs *x);

/* The expression a OP b: its number, -1 when out of memory, -2 - r when rank r's contribution is
 * in both. */
int64_t gci_expr_join(struct gci_exprs *x, uint32_t a, uint32_t b);

/* The first rank whose contribution is missing, or -1. */
int gci_expr_missing(const struct gci_exprs *x, uint32_t e);

#endif
