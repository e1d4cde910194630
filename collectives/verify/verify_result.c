/* SPDX-License-Identifier: MIT
 * The verifier's last passes: what the buffers hold in the end, what barriers have proved, and
 * what was sent between clusters. */
#include "collectives/verify/verify_impl.h"

#include "base/mem.h"

#include <stdlib.h>

#define ALL_RANKS -1

/* What a piece of OUT must hold in the end. */
struct expected {
	struct gci_slice at;
	int leaf;        /* this rank's input, or that of ALL_RANKS combined */
	uint64_t offset; /* in the input, of the first element */
};

struct result_check {
	struct gci_verifier *v;
	int rank;
	const struct expected *expected;
	uint64_t seen;
	struct gci_ival value;
};

static int on_reference(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct result_check *rc = ctx;

	if (v->a != rc->value.a)
		return gci_verify_fault(rc->v, GCI_FAULT_BITS,
			"rank %d: the result of elements [%" PRIu64 "..%" PRIu64
			") is reduced in another order than on other ranks",
			rc->rank, lo, hi);
	return 0;
}

/* All contributions are in it, in the order asked for, and in that of other ranks. */
static int check_reduced(struct result_check *rc, uint64_t lo, uint64_t hi, struct gci_ival v)
{
	struct gci_verifier *vf = rc->v;
	int missing = gci_expr_missing(&vf->exprs, (uint32_t)v.a);
	int rank = rc->rank;

	if (missing >= 0)
		return gci_verify_fault(vf, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] lacks rank %d's contribution", rank, lo,
			missing);
	if (vf->canonical >= 0 && v.a != (uint64_t)vf->canonical)
		return gci_verify_fault(vf, GCI_FAULT_BITS,
			"rank %d: OUT[%" PRIu64 "..%" PRIu64 ") is not reduced in the fixed order",
			rank, lo, hi);
	if (vf->c->kind != GCI_ALLREDUCE)
		return 0;
	if (rank == 0) {
		gci_imap_set(&vf->reference, lo, hi, v);
		return vf->reference.failed ? gci_verify_nomem(vf) : 0;
	}
	rc->value = v;
	return gci_imap_each(&vf->reference, lo, hi, NULL, on_reference, rc);
}

static int on_result(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct result_check *rc = ctx;
	const struct expected *x = rc->expected;
	uint64_t holds = lo + v->b, wanted = x->offset + (lo - x->at.offset);

	if (lo != rc->seen)
		return 1;
	rc->seen = hi;
	if (holds != wanted)
		return gci_verify_fault(rc->v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] holds element %" PRIu64 ", not %" PRIu64,
			rc->rank, lo, holds, wanted);
	if (x->leaf == ALL_RANKS)
		return check_reduced(rc, lo, hi, *v);
	if (v->a != (uint64_t)x->leaf)
		return gci_verify_fault(rc->v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] is not rank %d's", rc->rank, lo, x->leaf);
	return 0;
}

static int check_piece(struct gci_verifier *v, int rank, const struct expected *x)
{
	struct result_check rc = {.v = v, .rank = rank, .expected = x, .seen = x->at.offset};
	uint64_t end = x->at.offset + x->at.length;
	struct gci_imap *out = &v->ranks[rank].held[GCI_OUT];
	int status = gci_imap_each(out, x->at.offset, end, NULL, on_result, &rc);

	if (status == 1 || (!status && rc.seen != end))
		return gci_verify_fault(v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] is undefined at the end", rank, rc.seen);
	return status;
}

/* What block number i of rank's output must hold. */
static struct expected expected_block(const struct gci_coll *c, int rank, int i)
{
	struct expected x = {.at = gci_out_block(c, rank, i), .leaf = i};

	switch (c->kind) {
	case GCI_REDUCE_SCATTER:
		x.leaf = ALL_RANKS;
		x.offset = gci_in_block(c, rank, rank).offset;
		break;
	case GCI_SCATTER:
		x.leaf = c->root;
		x.offset = gci_in_block(c, c->root, rank).offset;
		break;
	case GCI_ALLTOALL:
		x.offset = c->in_place ? gci_out_block(c, i, rank).offset
				       : gci_in_block(c, i, rank).offset;
		break;
	default: /* gather, allgather */
		x.offset = gci_own_at(c, i);
	}
	return x;
}

static int compare_pieces(const void *a, const void *b)
{
	const struct expected *x = a, *y = b;

	return x->at.offset < y->at.offset ? -1 : x->at.offset > y->at.offset;
}

static int on_stray(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct result_check *rc = ctx;

	(void)v;
	return gci_verify_fault(rc->v, GCI_FAULT_RESULT,
		"rank %d: writes OUT[%" PRIu64 "..%" PRIu64 "), not part of its result", rc->rank,
		lo, hi);
}

/* Between the blocks of this part of an operation stand other parts of it. */
static int check_gaps(struct gci_verifier *v, int rank, struct expected *x, int n)
{
	struct result_check rc = {.v = v, .rank = rank};
	uint64_t at = 0, end = v->scheds[rank]->out_len;
	int i, status = 0;

	qsort(x, (size_t)n, sizeof(*x), compare_pieces);
	for (i = 0; i <= n && !status; i++) {
		uint64_t to = i < n ? x[i].at.offset : end;

		if (at < to)
			status = gci_imap_each(
				&v->ranks[rank].held[GCI_OUT], at, to, NULL, on_stray, &rc);
		if (i < n)
			at = x[i].at.offset + x[i].at.length;
	}
	return status;
}

static int check_blocks(struct gci_verifier *v, int rank)
{
	const struct gci_coll *c = v->c;
	int one = c->kind == GCI_SCATTER || c->kind == GCI_REDUCE_SCATTER;
	int n = one ? 1 : v->nranks, i, rc = 0;
	struct expected *x = gci_calloc((size_t)n, sizeof(*x));

	if (!x)
		return gci_verify_nomem(v);
	for (i = 0; i < n && !rc; i++) {
		x[i] = expected_block(c, rank, i);
		rc = check_piece(v, rank, &x[i]);
	}
	if (!rc)
		rc = check_gaps(v, rank, x, n);
	gci_free(x);
	return rc;
}

static int check_vector(struct gci_verifier *v, int rank)
{
	const struct gci_coll *c = v->c;
	struct expected x = {.at = gci_vector(c, GCI_OUT),
		.leaf = c->kind == GCI_BCAST ? c->root : ALL_RANKS,
		.offset = c->shift};
	int rc = check_piece(v, rank, &x);

	return rc ? rc : check_gaps(v, rank, &x, 1);
}

static int64_t join_range(
	struct gci_exprs *x, const int64_t *parts, const int *members, int a, int z)
{
	int mid = gci_middle(a, z);
	int64_t low, high;

	if (z - a == 1)
		return parts ? parts[a] : members ? members[a] : a;
	low = join_range(x, parts, members, a, mid);
	high = join_range(x, parts, members, mid, z);
	return low < 0 || high < 0 ? -1 : gci_expr_join(x, (uint32_t)low, (uint32_t)high);
}

int gci_verify_canonical(struct gci_verifier *v)
{
	const struct gci_topo *t = v->c->topo;
	int64_t *clusters;
	int i;

	v->canonical = -1;
	if (v->c->order == GCI_ANY_ORDER)
		return 0;
	if (gci_order_is_flat(v->c)) {
		v->canonical = join_range(&v->exprs, NULL, NULL, 0, v->nranks);
		return v->canonical < 0 ? gci_verify_nomem(v) : 0;
	}
	clusters = gci_calloc((size_t)t->nclusters, sizeof(*clusters));
	for (i = 0; clusters && i < t->nclusters; i++)
		clusters[i] =
			join_range(&v->exprs, NULL, gci_topo_members(t, i), 0, gci_topo_size(t, i));
	if (clusters)
		v->canonical = join_range(&v->exprs, clusters, NULL, 0, t->nclusters);
	gci_free(clusters);
	return v->canonical < 0 ? gci_verify_nomem(v) : 0;
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
	switch (v->c->kind) {
	case GCI_BARRIER:
		return check_barrier(v, rank);
	case GCI_BCAST:
	case GCI_REDUCE:
	case GCI_ALLREDUCE:
		return gci_has_out(v->c, rank) ? check_vector(v, rank) : 0;
	default:
		return gci_has_out(v->c, rank) ? check_blocks(v, rank) : 0;
	}
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

		if (p->kind == GCI_STEP_RECV || p->kind == GCI_STEP_RECV_REDUCE)
			in += p->dst.length;
		if (p->kind != GCI_STEP_SEND)
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
