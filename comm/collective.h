/* SPDX-License-Identifier: MIT
 * Calls of collective operations: their arguments checked, one request made of them. */
#ifndef GCI_COMM_COLLECTIVE_H
#define GCI_COMM_COLLECTIVE_H

#include "comm/op.h"
#include "comm/request.h"

/* What a caller gave. */
struct gci_call {
	enum gci_kind kind;
	const char *name;
	const void *send; /* bcast: the buffer is in both */
	void *recv;
	uint64_t count;
	int has_counts;          /* of v calls; then `count` is not used */
	const uint64_t *counts;  /* [rank]; alltoallv: what is sent */
	const uint64_t *rcounts; /* alltoallv: what is received */
	const uint64_t *displs;  /* [rank] or NULL; alltoallv: of what is sent */
	const uint64_t *rdispls; /* alltoallv */
	enum gcoll_type type;
	enum gcoll_op op;
	int root;
	int internal; /* runs whatever algorithm was set */
};

/* Checks the call and fills in op->coll (but counts and displacements) and what else the call says.
 * 0, or GCOLL_ERR_INVAL with gcoll_last_error() set. */
int gci_call_check(const struct gci_call *call, gcoll_comm *c, gcoll_req **req, struct gci_op *op);

/* A request of one operation. On failure *req is NULL. */
int gci_collective_make(const struct gci_call *call, gcoll_comm *c, gcoll_req **req);

/* The three public forms of a call that is one operation. ARGS are the names of the parameters and
 * PARAMS their declarations, both in parentheses; then comes the struct gci_call made of them. */
#define GCI_CALL(name, args, params, ...)                          \
	static int make_##name(GCI_UNPACK params, gcoll_req **req) \
	{                                                          \
		const struct gci_call call = {__VA_ARGS__};        \
                                                                   \
		return gci_collective_make(&call, c, req);         \
	}                                                          \
	GCI_FORMS(name, args, GCI_UNPACK params)

/* Prefix sums: where each of n blocks stands, one after the other. */
void gci_prefix(uint64_t *at, const uint64_t *counts, int n);

#endif
