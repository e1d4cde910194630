/* SPDX-License-Identifier: MIT
 * The verifier's last passes: what the buffers hold in the end, what barriers have proved, and
 * what was sent between clusters. */
#include "collectives/verify_impl.h"

#include "base/mem.h"

struct result_check {
	struct gci_verifier *v;
	int rank;
	uint64_t seen;
	struct gci_ival value;
};

static int on_reference(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct result_check *rc = ctx;

	if (v->a != rc->value.a)
		return gci_verify_fault(rc->v, GCI_FAULT_BITS,
			"rank %d: OUT[%" PRIu64 "..%" PRIu64
			") is reduced in another order than on rank 0",
			rc->rank, lo, hi);
	return 0;
}

static int on_result(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct result_check *rc = ctx;
	const struct gci_coll *c = rc->v->c;
	int missing;

	if (lo != rc->seen)
		return 1;
	rc->seen = hi;
	if (v->b)
		return gci_verify_fault(rc->v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] holds element %" PRIu64, rc->rank, lo,
			lo + v->b);
	if (c->kind == GCI_BCAST)
		return v->a == (uint64_t)c->root
			       ? 0
			       : gci_verify_fault(rc->v, GCI_FAULT_RESULT,
					 "rank %d: OUT[%" PRIu64 "] is not the root's", rc->rank,
					 lo);
	missing = gci_expr_missing(&rc->v->exprs, (uint32_t)v->a);
	if (missing >= 0)
		return gci_verify_fault(rc->v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] lacks rank %d's contribution", rc->rank, lo,
			missing);
	if (rc->rank == 0) {
		gci_imap_set(&rc->v->reference, lo, hi, *v);
		return rc->v->reference.failed ? gci_verify_nomem(rc->v) : 0;
	}
	rc->value = *v;
	return gci_imap_each(&rc->v->reference, lo, hi, NULL, on_reference, rc);
}

static int check_result(struct gci_verifier *v, int rank)
{
	struct result_check rc = {.v = v, .rank = rank};
	uint64_t length = v->scheds[rank]->out_len;
	int status = gci_imap_each(&v->ranks[rank].held[GCI_OUT], 0, length, NULL, on_result, &rc);

	if (status == 1 || (!status && rc.seen != length))
		return gci_verify_fault(v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] is undefined at the end", rank, rc.seen);
	return status;
}

static int check_barrier(struct gci_verifier *v, int rank)
{
	size_t n = v->exprs.nwords, w;
	uint64_t *known = gci_calloc(n, sizeof(*known));
	uint32_t step;
	int r, rc = 0;

	if (!known)
		return gci_verify_nomem(v);
	known[(size_t)rank / 64] |= 1ull << (rank % 64);
	for (step = 0; step < v->scheds[rank]->nsteps; step++)
		for (w = 0; w < n; w++)
			known[w] |= v->ranks[rank].known[step * n + w];
	for (r = 0; r < v->nranks && !rc; r++)
		if (!(known[(size_t)r / 64] >> (r % 64) & 1))
			rc = gci_verify_fault(v, GCI_FAULT_BARRIER,
				"rank %d can leave before rank %d has come", rank, r);
	gci_free(known);
	return rc;
}

int gci_verify_result(struct gci_verifier *v, int rank)
{
	return v->c->kind == GCI_BARRIER ? check_barrier(v, rank) : check_result(v, rank);
}

/* Distinct senders per ordered pair of clusters; `last` is the rank counted latest, + 1. */
struct pair {
	int last, nsenders;
};

static void count_rank(struct gci_verifier *v, int rank, struct pair *pairs)
{
	const struct gci_topo *t = v->c->topo;
	const struct gci_sched *s = v->scheds[rank];
	uint64_t out = 0, in = 0;
	uint32_t k;

	for (k = 0; k < s->nsteps; k++) {
		const struct gci_step *p = &s->steps[k];
		struct pair *pair;

		if (p->kind == GCI_RECV || p->kind == GCI_RECV_REDUCE)
			in += p->dst.length;
		if (p->kind != GCI_SEND)
			continue;
		out += p->src.length;
		if (t->cluster[rank] == t->cluster[p->peer] || !p->src.length)
			continue;
		v->report->wan_elements += p->src.length;
		pair = &pairs[t->cluster[rank] * t->nclusters + t->cluster[p->peer]];
		pair->nsenders += pair->last != rank + 1;
		pair->last = rank + 1;
	}
	v->report->nsteps += s->nsteps;
	v->report->most_out = out > v->report->most_out ? out : v->report->most_out;
	v->report->most_in = in > v->report->most_in ? in : v->report->most_in;
}

int gci_verify_traffic(struct gci_verifier *v, int check_senders)
{
	int nc = v->c->topo->nclusters, r, i, rc = 0;
	struct pair *pairs = gci_calloc((size_t)nc * (size_t)nc, sizeof(*pairs));

	if (!pairs)
		return gci_verify_nomem(v);
	for (r = 0; r < v->nranks; r++)
		count_rank(v, r, pairs);
	for (i = 0; check_senders && !rc && i < nc * nc; i++) {
		int from = i / nc, to = i % nc, most = gci_coll_senders(v->c, from, to);

		if (pairs[i].nsenders > most)
			rc = gci_verify_fault(v, GCI_FAULT_SENDERS,
				"%d ranks of cluster %d send to cluster %d, allowed are %d",
				pairs[i].nsenders, from, to, most);
	}
	gci_free(pairs);
	return rc;
}
