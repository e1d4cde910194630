/* SPDX-License-Identifier: MIT
 * What may be wrong in the arguments of a collective call. */
#include "comm/collective.h"
#include "comm/user_op.h"

#include "base/mem.h"
#include "collectives/blocks/layout.h"

#include <inttypes.h>
#include <stdlib.h>

static int invalid(const char *text)
{
	return gci_comm_error(GCOLL_ERR_INVAL, "%s", text);
}

int gci_check_type(enum gcoll_type type, uint64_t count)
{
	size_t size = gcoll_type_size(type);

	if (type == GCOLL_ELEMENT_BASE)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"GCOLL_ELEMENT of 0 or too many bytes, expected an element type of 1 to %d",
			GCOLL_ELEMENT_MAX_NBYTES);
	if (!size)
		return gci_comm_error(GCOLL_ERR_INVAL, "no such element type: %d", (int)type);
	if (count > PTRDIFF_MAX / size)
		return invalid("more elements than memory can hold");
	return 0;
}

int gci_check_root(const char *what, int root, const gcoll_comm *c)
{
	if (root >= 0 && root < c->size)
		return 0;
	return gci_comm_error(GCOLL_ERR_INVAL, "%s %d, expected 0 to %d", what, root, c->size - 1);
}

/* Elements from the start of the first to the end of the last of n blocks. */
static int extent(const uint64_t *counts, const uint64_t *displs, int n, uint64_t *out)
{
	uint64_t end = 0, sum = 0;
	int i;

	*out = 0;
	for (i = 0; i < n; i++) {
		if (__builtin_add_overflow(sum, counts[i], &sum) ||
			(displs && __builtin_add_overflow(displs[i], counts[i], &end)))
			return invalid("more elements than memory can hold");
		if (displs && counts[i] && end > *out)
			*out = end;
	}
	if (!displs)
		*out = sum;
	return 0;
}

/* Elements that the call's buffers have on this rank, where they are used. */
struct extents {
	uint64_t in, out;
};

static int find_extents(const struct gci_call *call, const gcoll_comm *c, struct extents *x)
{
	const uint64_t *rcounts = call->rcounts ? call->rcounts : call->counts;
	const uint64_t *rdispls = call->rcounts ? call->rdispls : call->displs;
	uint64_t own = call->has_counts ? call->counts[c->rank] : call->count, all = 0, rall = 0;
	int rc = 0;

	if (call->has_counts) {
		rc = extent(call->counts, call->displs, c->size, &all);
		if (!rc)
			rc = extent(rcounts, rdispls, c->size, &rall);
	} else if (__builtin_mul_overflow(call->count, (uint64_t)c->size, &all)) {
		rc = invalid("more elements than memory can hold");
	} else {
		rall = all;
	}
	switch (call->kind) {
	case GCI_REDUCE_SCATTER:
	case GCI_SCATTER:
		*x = (struct extents){all, own};
		break;
	case GCI_GATHER:
	case GCI_ALLGATHER:
		*x = (struct extents){own, rall};
		break;
	case GCI_ALLTOALL:
		*x = (struct extents){all, rall};
		break;
	default:
		*x = (struct extents){call->count, call->count};
		return 0;
	}
	return rc;
}

/* A block to receive in, by where it begins. */
struct place {
	uint64_t at;
	int rank;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int already_apart(const uint64_t *counts, const uint64_t *displs, int n)
{
	uint64_t end = 0;
	int i;

	for (i = 0; i < n; i++) {
		if (!counts[i])
			continue;
		if (displs[i] < end)
			return 0;
		end = displs[i] + counts[i];
	}
	return 1;
}

/* What two ranks send to one place would be of either, as it happens. Ends are no more than memory
 * holds (find_extents). */
static int check_apart(const struct gci_call *call, const gcoll_comm *c)
{
	const uint64_t *counts = call->rcounts ? call->rcounts : call->counts;
	const uint64_t *displs = call->rcounts ? call->rdispls : call->displs;
	struct place *p;
	int i, n = 0, rc = 0;

	if (!call->has_counts || !displs || already_apart(counts, displs, c->size))
		return 0;
	p = gci_calloc((size_t)c->size, sizeof(*p));
	if (!p)
		return gci_req_error(c->engine, gci_engine_nomem(c->engine));
	for (i = 0; i < c->size; i++)
		if (counts[i])
			p[n++] = (struct place){displs[i], i};
	qsort(p, (size_t)n, sizeof(*p), compare_places);
	for (i = 1; i < n && !rc; i++)
		if (p[i - 1].at + counts[p[i - 1].rank] > p[i].at)
			rc = gci_comm_error(GCOLL_ERR_INVAL,
				"the blocks of rank %d (%" PRIu64 " elements at %" PRIu64
				") and rank %d (%" PRIu64 " at %" PRIu64 ") overlap in recvbuf",
				p[i - 1].rank, counts[p[i - 1].rank], p[i - 1].at, p[i].rank,
				counts[p[i].rank], p[i].at);
	gci_free(p);
	return rc;
}

static int overlap(const void *a, uint64_t a_nbytes, const void *b, uint64_t b_nbytes)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return a_nbytes && b_nbytes && x < y + b_nbytes && y < x + a_nbytes;
}

/* The side of the call that may be GCOLL_IN_PLACE on this rank. */
static int check_in_place(const struct gci_call *call, const gcoll_comm *c, int *in_place)
{
	int sends = call->send == GCOLL_IN_PLACE, receives = call->recv == GCOLL_IN_PLACE;
	int at_root = call->kind == GCI_REDUCE || call->kind == GCI_GATHER;

	*in_place = sends || receives;
	if (!*in_place)
		return 0;
	if (call->kind == GCI_SCATTER)
		return receives && !sends && c->rank == call->root
			       ? 0
			       : invalid("GCOLL_IN_PLACE, expected as recvbuf of the root only");
	if (call->kind == GCI_BCAST || receives)
		return invalid("GCOLL_IN_PLACE is not for this buffer");
	if (at_root && c->rank != call->root)
		return invalid("GCOLL_IN_PLACE, expected as sendbuf of the root only");
	return 0;
}

static int check_buffers(const struct gci_call *call, const gcoll_comm *c, struct gci_op *op)
{
	uint64_t esize = op->coll.esize;
	struct extents x;
	int in_place, rc = check_in_place(call, c, &in_place);

	if (!rc)
		rc = find_extents(call, c, &x);
	if (rc)
		return rc;
	if (x.in > PTRDIFF_MAX / esize || x.out > PTRDIFF_MAX / esize)
		return invalid("more elements than memory can hold");
	op->in = (char *)call->send;
	op->out = call->recv;
	op->coll.in_place = in_place;
	if (in_place && call->kind == GCI_REDUCE_SCATTER) { /* comm/collective.c sees to it */
		op->coll.in_place = 0;
		op->in = call->recv;
		op->out = NULL;
		return op->in || !x.in ? 0 : invalid("recvbuf is NULL");
	}
	if (!gci_has_in(&op->coll, c->rank)) {
		op->in = NULL;
		x.in = 0;
	}
	if (!gci_has_out(&op->coll, c->rank)) {
		op->out = NULL;
		x.out = 0;
	}
	if ((x.in && !op->in) || (x.out && !op->out))
		return invalid(x.in && !op->in ? "the buffer to send from is NULL"
					       : "the buffer to receive in is NULL");
	if (overlap(op->in, x.in * esize, op->out, x.out * esize))
		return invalid("sendbuf and recvbuf overlap");
	return call->kind != GCI_SCATTER && op->out ? check_apart(call, c) : 0;
}

static int check_reduction(const struct gci_call *call, const gcoll_comm *c, struct gci_op *op)
{
	int commutative = 1;

	if (call->op >= GCOLL_OP_USER) {
		if (gci_user_op_find(call->op, &op->reducer.fn, &op->reducer.ctx, &commutative))
			return invalid("no such operation of the user's: was it freed?");
		if (op->coll.esize > GCI_TP_FRAME_NBYTES)
			return invalid("elements to reduce are of at most 256 KiB");
	} else {
		op->reducer.kernel = gci_kernel_find(call->type, call->op);
		if (!op->reducer.kernel)
			return gci_comm_error(GCOLL_ERR_INVAL, "%s is not defined on %s",
				gci_op_name(call->op), gci_type_name(call->type));
	}
	op->reducer.type = call->type;
	op->average = call->op == GCOLL_AVG;
	if (!commutative)
		op->coll.order = GCI_RANK_ORDER;
	else
		op->coll.order = c->fixed_order ? GCI_CLUSTER_ORDER : GCI_ANY_ORDER;
	return 0;
}

int gci_call_check(const struct gci_call *call, gcoll_comm *c, gcoll_req **req, struct gci_op *op)
{
	int rc;

	if (!req)
		return invalid("req is NULL");
	*req = NULL;
	if (!c)
		return invalid("the communicator is NULL");
	rc = gci_check_type(call->type, call->has_counts ? 0 : call->count);
	if (!rc && gci_kind_has_root(call->kind))
		rc = gci_check_root("root", call->root, c);
	if (rc)
		return rc;
	if (call->has_counts && (!call->counts || (call->kind == GCI_ALLTOALL && !call->rcounts)))
		return invalid("the counts are NULL");
	op->comm = c;
	op->rank = c->rank;
	op->ranks = c->ranks;
	op->digest_more = c->topo_digest;
	op->name = call->name;
	op->internal = call->internal;
	op->type = call->type;
	op->op = gci_kind_reduces(call->kind) ? call->op : GCOLL_SUM;
	op->coll.kind = call->kind;
	op->coll.topo = &c->topo;
	op->coll.count = call->has_counts ? 0 : call->count;
	op->coll.esize = (uint32_t)gcoll_type_size(call->type);
	op->coll.root = gci_kind_has_root(call->kind) ? call->root : 0;
	rc = check_buffers(call, c, op);
	if (!rc && gci_kind_reduces(call->kind))
		rc = check_reduction(call, c, op);
	return rc;
}
