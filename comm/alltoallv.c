/* SPDX-License-Identifier: MIT
 * Alltoallv: each rank knows what it sends and what it receives, an algorithm that forwards blocks
 * must know what everybody does. So the counts are shared first, by an allgather, which also finds
 * counts that do not fit. */
#include "base/mem.h"
#include "base/prng.h"
#include "comm/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct alltoallv {
	gcoll_req req;
	struct gci_op share, op;
	uint64_t *arrays; /* what is sent, received, and where the blocks stand in IN and OUT */
	uint64_t *matrix; /* [from * size + to]; while under way */
};

static struct alltoallv *of(gcoll_req *r)
{
	return gci_container(r, struct alltoallv, req);
}

static void end(struct alltoallv *v, int status)
{
	gci_free(v->matrix);
	v->matrix = NULL;
	v->op.coll.counts = NULL;
	gci_req_end(&v->req, status);
}

static void on_done(struct gci_op *op, int status)
{
	end(op->user, status);
}

static int compare(const struct alltoallv *v)
{
	gcoll_comm *c = v->req.comm;
	const uint64_t *expected = v->arrays + c->size;
	uint64_t n = (uint64_t)c->size, i;

	for (i = 0; i < n; i++) {
		uint64_t sent = v->matrix[i * n + (uint64_t)c->rank];

		if (sent == expected[i])
			continue;
		gci_engine_fail(c->engine, GCOLL_ERR_MISMATCH, -1,
			"operation %" PRIu64 ", alltoallv: rank %" PRIu64 " (%s) sends %" PRIu64
			" %s to rank %d (%s), which expects %" PRIu64,
			v->share.number, i, gci_comm_host(c, (int)i), sent,
			gci_type_name(v->op.type), c->rank, gci_comm_host(c, c->rank), expected[i]);
		return GCOLL_ERR_MISMATCH;
	}
	return 0;
}

static void on_shared(struct gci_op *share, int status)
{
	struct alltoallv *v = share->user;

	if (!status)
		status = compare(v);
	if (!status) {
		v->op.coll.counts = v->matrix;
		status = gci_op_prepare(&v->op);
		if (status) /* no rank can go on, all for the same reason */
			gci_engine_fail(v->req.comm->engine, status, -1, "%s", gcoll_last_error());
	}
	if (!status)
		status = gci_op_start(&v->op);
	if (status)
		end(v, status);
}

static int start(gcoll_req *r)
{
	struct alltoallv *v = of(r);
	gcoll_comm *c = r->comm;
	size_t n = (size_t)c->size;
	struct gci_decision d;
	const char *why;
	int rc;

	rc = gci_op_choose(c, &v->op.coll, 0, &d, &why);
	if (rc == GCOLL_ERR_NOMEM)
		return gci_engine_nomem(c->engine);
	if (rc)
		return gci_comm_error(GCOLL_ERR_INVAL, "alltoall: %s %s",
			c->choice[GCI_ALLTOALL].how.algorithm->name, why);
	rc = gci_op_prepare(&v->share);
	if (rc)
		return rc;
	v->matrix = gci_calloc(n, n * sizeof(*v->matrix));
	if (!v->matrix)
		return gci_engine_nomem(c->engine);
	v->share.in = (char *)v->arrays;
	v->share.out = (char *)v->matrix;
	v->share.number = c->next_op++;
	v->op.number = c->next_op++;
	rc = gci_op_start(&v->share);
	if (rc) {
		gci_free(v->matrix);
		v->matrix = NULL;
	}
	return rc;
}

static void drop(gcoll_req *r)
{
	struct alltoallv *v = of(r);

	gci_op_drop(&v->share);
	gci_op_drop(&v->op);
	gci_free(v->matrix);
	gci_free(v->arrays);
}

static void name(const gcoll_req *r, char out[GCI_SIGNATURE_NBYTES])
{
	const struct alltoallv *v = gci_container(r, const struct alltoallv, req);

	snprintf(out, GCI_SIGNATURE_NBYTES, "operation %" PRIu64 ", alltoallv of %s",
		v->share.number, gci_type_name(v->op.type));
}

static const struct gci_req_ops alltoallv_ops = {start, drop, name, NULL};

static int copy_arrays(struct alltoallv *v, const struct gci_call *call)
{
	int n = v->req.comm->size;
	size_t nbytes = (size_t)n * sizeof(*call->counts);
	uint64_t *a = gci_calloc((size_t)n, 4 * sizeof(*a));

	v->arrays = a;
	if (!a)
		return -1;
	memcpy(a, call->counts, nbytes);
	memcpy(a + n, call->rcounts, nbytes);
	gci_prefix(a + 2 * n, call->counts, n);
	gci_prefix(a + 3 * n, call->rcounts, n);
	if (call->displs)
		memcpy(a + 2 * n, call->displs, nbytes);
	if (call->rdispls)
		memcpy(a + 3 * n, call->rdispls, nbytes);
	v->op.coll.in_at = a + 2 * n;
	v->op.coll.out_at = a + 3 * n;
	return 0;
}

/* The first half of the operation as other ranks know it, too. */
static struct gci_op sharing(const struct gci_op *op)
{
	gcoll_comm *c = op->comm;

	return (struct gci_op){.comm = c,
		.rank = c->rank,
		.ranks = c->ranks,
		.digest_more = gci_digest(c->topo_digest, (uint64_t)op->type),
		.name = "alltoallv",
		.shares = 1,
		.shared = op->type,
		.internal = 1,
		.type = GCOLL_UINT64,
		.coll = {.kind = GCI_ALLGATHER,
			.topo = &c->topo,
			.count = (uint64_t)c->size,
			.esize = sizeof(uint64_t)},
		.done = on_shared};
}

static int make_alltoallv(const void *sendbuf, const uint64_t *sendcounts, const uint64_t *sdispls,
	void *recvbuf, const uint64_t *recvcounts, const uint64_t *rdispls, enum gcoll_type type,
	gcoll_comm *c, gcoll_req **req)
{
	int in_place = sendbuf == GCOLL_IN_PLACE, rc;
	struct gci_call call = {.kind = GCI_ALLTOALL,
		.name = "alltoallv",
		.send = sendbuf,
		.recv = recvbuf,
		.has_counts = 1,
		.counts = in_place ? recvcounts : sendcounts,
		.displs = in_place ? rdispls : sdispls,
		.rcounts = recvcounts,
		.rdispls = rdispls,
		.type = type};
	struct gci_op op = {.done = on_done};
	struct alltoallv *v;

	rc = gci_call_check(&call, c, req, &op);
	if (!rc)
		rc = gci_req_create(c, &alltoallv_ops, sizeof(*v), req);
	if (rc)
		return rc;
	v = of(*req);
	v->op = op;
	v->share = sharing(&op);
	v->op.user = v->share.user = v;
	return copy_arrays(v, &call) ? gci_req_give_up(req) : 0;
}

GCI_FORMS(alltoallv, (sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, type, c),
	const void *sendbuf, const uint64_t *sendcounts, const uint64_t *sdispls, void *recvbuf,
	const uint64_t *recvcounts, const uint64_t *rdispls, enum gcoll_type type, gcoll_comm *c)
