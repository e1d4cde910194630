/* SPDX-License-Identifier: MIT
 * Collective calls: how they are run, what may be wrong in them, and their requests. */
#include "comm/collective.h"

#include "base/mem.h"
#include "base/prng.h"
#include "collectives/blocks/layout.h"
#include "comm/compare.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Operations of the user's, by number. Any thread. */

struct user_op {
	gcoll_op_fn *fn; /* NULL: free for use */
	void *ctx;
	int commutative;
};

static pthread_mutex_t user_ops_lock = PTHREAD_MUTEX_INITIALIZER;
static struct user_op *user_ops;
static size_t nuser_ops, user_ops_cap;

static struct user_op *user_op(enum gcoll_op op)
{
	size_t i = (size_t)op - GCOLL_OP_USER;

	return op >= GCOLL_OP_USER && i < nuser_ops && user_ops[i].fn ? &user_ops[i] : NULL;
}

/* 0, or -1 when there is none of this number. */
static int find_user_op(enum gcoll_op op, gcoll_op_fn **fn, void **ctx, int *commutative)
{
	struct user_op *u;

	pthread_mutex_lock(&user_ops_lock);
	u = user_op(op);
	if (u) {
		*fn = u->fn;
		*ctx = u->ctx;
		*commutative = u->commutative;
	}
	pthread_mutex_unlock(&user_ops_lock);
	return u ? 0 : -1;
}

int gcoll_op_create(gcoll_op_fn *fn, int commutative, void *ctx, enum gcoll_op *op)
{
	size_t i;
	int rc = 0;

	if (!fn || !op)
		return gci_comm_error(GCOLL_ERR_INVAL, "%s is NULL", fn ? "op" : "fn");
	pthread_mutex_lock(&user_ops_lock);
	for (i = 0; i < nuser_ops && user_ops[i].fn; i++)
		;
	if (i == nuser_ops)
		rc = gci_grow(&user_ops, &user_ops_cap, nuser_ops + 1, sizeof(*user_ops));
	if (!rc) {
		nuser_ops += i == nuser_ops;
		user_ops[i] = (struct user_op){fn, ctx, commutative != 0};
		*op = (enum gcoll_op)(GCOLL_OP_USER + (int)i);
	}
	pthread_mutex_unlock(&user_ops_lock);
	return rc ? gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for an operation") : 0;
}

int gcoll_op_free(enum gcoll_op op)
{
	struct user_op *u;
	size_t i, left = 0;

	pthread_mutex_lock(&user_ops_lock);
	u = user_op(op);
	if (u)
		u->fn = NULL;
	for (i = 0; i < nuser_ops; i++)
		left += user_ops[i].fn != NULL;
	if (!left) {
		gci_free(user_ops);
		user_ops = NULL;
		nuser_ops = user_ops_cap = 0;
	}
	pthread_mutex_unlock(&user_ops_lock);
	return u ? 0 : gci_comm_error(GCOLL_ERR_INVAL, "no such operation of the user's");
}

/* ---- What may be wrong in the arguments of a collective call. */

static int invalid(const char *text)
{
	return gci_comm_error(GCOLL_ERR_INVAL, "%s", text);
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
		if (find_user_op(call->op, &op->reducer.fn, &op->reducer.ctx, &commutative))
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

/* ---- Requests of one collective operation. */

struct collective {
	gcoll_req req;
	struct gci_op op;
	uint64_t *arrays; /* counts, then where the blocks stand; NULL: blocks are equal */
	/* Reduce_scatter in place: the result is kept apart until all of the input was used. */
	char *place;
	uint64_t result_nbytes;
	struct gci_compare *compare; /* of an allreduce; NULL: its results are not compared */
};

static struct collective *of(gcoll_req *r)
{
	return gci_container(r, struct collective, req);
}

static void on_compared(void *user, int status)
{
	struct collective *v = user;

	gci_req_end(&v->req, status);
}

static void on_done(struct gci_op *op, int status)
{
	struct collective *v = op->user;

	if (v->compare && !status) {
		status = gci_compare_start(v->compare);
		if (!status)
			return;
	}
	if (v->place) {
		if (!status && v->result_nbytes)
			memcpy(v->place, op->out, v->result_nbytes);
		gci_free(op->out);
		op->out = NULL;
	}
	gci_req_end(&v->req, status);
}

static int start(gcoll_req *r)
{
	struct collective *v = of(r);
	int rc;

	v->op.number = r->comm->next_op;
	rc = gci_op_prepare(&v->op);
	if (rc)
		return rc;
	if (v->place) {
		v->op.out = gci_reallocarray(NULL, v->result_nbytes, 1);
		if (!v->op.out)
			return gci_engine_nomem(r->comm->engine);
	}
	if (!v->op.internal)
		gci_recording_count(r->comm->engine, &v->op.coll);
	r->comm->next_op++;
	rc = v->compare ? gci_compare_prepare(v->compare, &v->op) : 0;
	if (!rc)
		rc = gci_op_start(&v->op);
	if (rc && v->place) {
		gci_free(v->op.out);
		v->op.out = NULL;
	}
	return rc;
}

static void drop(gcoll_req *r)
{
	struct collective *v = of(r);

	gci_op_drop(&v->op);
	gci_compare_free(v->compare);
	if (v->place)
		gci_free(v->op.out);
	gci_free(v->arrays);
}

static void name(const gcoll_req *r, char out[GCI_SIGNATURE_NBYTES])
{
	const struct collective *v = gci_container(r, const struct collective, req);
	char text[GCI_SIGNATURE_NBYTES - 32];

	gci_op_signature(&v->op, text, sizeof(text));
	snprintf(out, GCI_SIGNATURE_NBYTES, "operation %" PRIu64 ", %s", v->op.number, text);
}

static const struct gci_req_ops collective_ops = {start, drop, name, NULL};

void gci_prefix(uint64_t *at, const uint64_t *counts, int n)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < n; i++) {
		at[i] = sum;
		sum += counts[i];
	}
}

static int copy_arrays(struct collective *v, const struct gci_call *call)
{
	size_t n = (size_t)v->req.comm->size;
	uint64_t *at;

	v->arrays = gci_calloc(n, 2 * sizeof(*v->arrays));
	if (!v->arrays)
		return -1;
	at = v->arrays + n;
	memcpy(v->arrays, call->counts, n * sizeof(*at));
	if (call->displs)
		memcpy(at, call->displs, n * sizeof(*at));
	else
		gci_prefix(at, call->counts, (int)n);
	v->op.coll.counts = v->arrays;
	if (call->kind == GCI_SCATTER || call->kind == GCI_REDUCE_SCATTER)
		v->op.coll.in_at = at;
	else
		v->op.coll.out_at = at;
	return 0;
}

int gci_collective_make(const struct gci_call *call, gcoll_comm *c, gcoll_req **req)
{
	struct gci_op op = {.user = NULL};
	struct collective *v;
	int rc = gci_call_check(call, c, req, &op);

	if (!rc)
		rc = gci_req_create(c, &collective_ops, sizeof(*v), req);
	if (rc)
		return rc;
	v = of(*req);
	v->op = op;
	v->op.done = on_done;
	v->op.user = v;
	if (call->kind == GCI_REDUCE_SCATTER && call->send == GCOLL_IN_PLACE) {
		v->place = call->recv;
		v->result_nbytes =
			(call->has_counts ? call->counts[c->rank] : call->count) * op.coll.esize;
	}
	if (call->has_counts && copy_arrays(v, call))
		return gci_req_give_up(req);
	if (call->kind == GCI_ALLREDUCE && !call->internal && c->compares) {
		v->compare = gci_compare_create(c, on_compared, v);
		if (!v->compare)
			return gci_req_give_up(req);
		/* All ranks compare, or none. */
		v->op.digest_more = gci_digest(v->op.digest_more, 1);
	}
	return 0;
}

/* ---- Operations on blocks, one per rank. (alltoallv: comm/alltoallv.c) */

GCI_CALL(reduce_scatter, (sendbuf, recvbuf, count, type, op, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, enum gcoll_op op,
		gcoll_comm *c),
	.kind = GCI_REDUCE_SCATTER, .send = sendbuf, .recv = recvbuf, .count = count, .type = type,
	.op = op)

GCI_CALL(reduce_scatterv, (sendbuf, recvbuf, counts, type, op, c),
	(const void *sendbuf, void *recvbuf, const uint64_t *counts, enum gcoll_type type,
		enum gcoll_op op, gcoll_comm *c),
	.kind = GCI_REDUCE_SCATTER, .name = "reduce_scatterv", .send = sendbuf, .recv = recvbuf,
	.has_counts = 1, .counts = counts, .type = type, .op = op)

GCI_CALL(scatter, (sendbuf, recvbuf, count, type, root, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, int root,
		gcoll_comm *c),
	.kind = GCI_SCATTER, .send = sendbuf, .recv = recvbuf, .count = count, .type = type,
	.root = root)

GCI_CALL(scatterv, (sendbuf, counts, displs, recvbuf, type, root, c),
	(const void *sendbuf, const uint64_t *counts, const uint64_t *displs, void *recvbuf,
		enum gcoll_type type, int root, gcoll_comm *c),
	.kind = GCI_SCATTER, .name = "scatterv", .send = sendbuf, .recv = recvbuf, .has_counts = 1,
	.counts = counts, .displs = displs, .type = type, .root = root)

GCI_CALL(gather, (sendbuf, recvbuf, count, type, root, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, int root,
		gcoll_comm *c),
	.kind = GCI_GATHER, .send = sendbuf, .recv = recvbuf, .count = count, .type = type,
	.root = root)

GCI_CALL(gatherv, (sendbuf, recvbuf, counts, displs, type, root, c),
	(const void *sendbuf, void *recvbuf, const uint64_t *counts, const uint64_t *displs,
		enum gcoll_type type, int root, gcoll_comm *c),
	.kind = GCI_GATHER, .name = "gatherv", .send = sendbuf, .recv = recvbuf, .has_counts = 1,
	.counts = counts, .displs = displs, .type = type, .root = root)

GCI_CALL(allgather, (sendbuf, recvbuf, count, type, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, gcoll_comm *c),
	.kind = GCI_ALLGATHER, .send = sendbuf, .recv = recvbuf, .count = count, .type = type)

GCI_CALL(allgatherv, (sendbuf, recvbuf, counts, displs, type, c),
	(const void *sendbuf, void *recvbuf, const uint64_t *counts, const uint64_t *displs,
		enum gcoll_type type, gcoll_comm *c),
	.kind = GCI_ALLGATHER, .name = "allgatherv", .send = sendbuf, .recv = recvbuf,
	.has_counts = 1, .counts = counts, .displs = displs, .type = type)

GCI_CALL(alltoall, (sendbuf, recvbuf, count, type, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, gcoll_comm *c),
	.kind = GCI_ALLTOALL, .send = sendbuf, .recv = recvbuf, .count = count, .type = type)

/* ---- Operations on vectors, and the barrier. */

GCI_CALL(bcast, (buf, count, type, root, c),
	(void *buf, uint64_t count, enum gcoll_type type, int root, gcoll_comm *c),
	.kind = GCI_BCAST, .send = buf, .recv = buf, .count = count, .type = type, .root = root)

GCI_CALL(reduce, (sendbuf, recvbuf, count, type, op, root, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, enum gcoll_op op,
		int root, gcoll_comm *c),
	.kind = GCI_REDUCE, .send = sendbuf, .recv = recvbuf, .count = count, .type = type,
	.op = op, .root = root)

GCI_CALL(allreduce, (sendbuf, recvbuf, count, type, op, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, enum gcoll_op op,
		gcoll_comm *c),
	.kind = GCI_ALLREDUCE, .send = sendbuf, .recv = recvbuf, .count = count, .type = type,
	.op = op)

GCI_CALL(barrier, (c), (gcoll_comm * c), .kind = GCI_BARRIER)
