/* SPDX-License-Identifier: MIT
 * Requests of one collective operation. */
#include "comm/collective.h"

#include "base/mem.h"
#include "base/prng.h"
#include "comm/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
	int rc = gci_op_prepare(&v->op);

	if (rc)
		return rc;
	if (v->place) {
		v->op.out = gci_reallocarray(NULL, v->result_nbytes, 1);
		if (!v->op.out)
			return gci_engine_nomem(r->comm->engine);
	}
	if (!v->op.internal)
		gci_recording_count(r->comm->engine, &v->op.coll);
	v->op.number = r->comm->next_op++;
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
