/* SPDX-License-Identifier: MIT */
#include "tests/comm/trial.h"

#include "base/mem.h"
#include "base/prng.h"
#include "collectives/blocks/order.h"
#include "collectives/kernels/kernels.h"
#include "tests/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JUNK 0xa5a5a5a5u

struct rank {
	uint32_t *in, *in_copy, *out, *want;
	uint64_t in_len, out_len; /* allocated, with an element of junk at both ends */
	uint64_t compare;         /* elements of `want`, from the first */
};

struct run {
	struct job *j;
	gcoll_comm *const *comm;
	int n;
	const struct trial *t;
	uint64_t *counts; /* [from * n + to] */
	uint64_t round;
	struct rank ranks[MAX_RANKS];
	uint64_t sends[MAX_RANKS][MAX_RANKS], receives[MAX_RANKS][MAX_RANKS];
	uint64_t send_at[MAX_RANKS][MAX_RANKS], receive_at[MAX_RANKS][MAX_RANKS];
};

/* Element i of the block that `from` has for `to` (0 where there is only one). */
static uint32_t value(const struct run *x, int from, int to, uint64_t i)
{
	uint64_t h = gci_digest(gci_digest(x->t->seed + x->round, (uint64_t)(from * 64 + to)), i);
	float f = (float)(int64_t)(h % 2000001 - 1000000) / 7;
	uint32_t bits = (uint32_t)h;

	if (x->t->type == GCOLL_FLOAT32)
		memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static int by_vector(const struct trial *t)
{
	return t->kind == GCI_BCAST || t->kind == GCI_REDUCE || t->kind == GCI_ALLREDUCE;
}

/* ---- the oracle for reductions: operands in the order of the canonical tree */

static uint32_t combine(const struct run *x, uint32_t left, uint32_t right)
{
	enum gcoll_op op = x->t->op == GCOLL_AVG ? GCOLL_SUM : x->t->op;
	uint32_t out;

	gci_kernel_find(x->t->type, op)(&out, &left, &right, 1);
	return out;
}

static uint32_t fold(const struct run *x, const int *ranks, int a, int z, int to, uint64_t i)
{
	int m = gci_middle(a, z);

	if (z - a == 1)
		return value(x, ranks[a], to, i);
	return combine(x, fold(x, ranks, a, m, to, i), fold(x, ranks, m, z, to, i));
}

static uint32_t fold_clusters(const struct run *x, int a, int z, int to, uint64_t i)
{
	const struct gci_topo *t = &x->comm[0]->topo;
	int m = gci_middle(a, z);

	if (z - a == 1)
		return fold(x, gci_topo_members(t, a), 0, gci_topo_size(t, a), to, i);
	return combine(x, fold_clusters(x, a, m, to, i), fold_clusters(x, m, z, to, i));
}

static uint32_t reduced(const struct run *x, int to, uint64_t i)
{
	uint32_t v = fold_clusters(x, 0, x->comm[0]->topo.nclusters, to, i);
	float f;

	if (x->t->op != GCOLL_AVG)
		return v;
	if (x->t->type != GCOLL_FLOAT32)
		return v / (uint32_t)x->n;
	memcpy(&f, &v, sizeof(f));
	f /= (float)x->n;
	memcpy(&v, &f, sizeof(v));
	return v;
}

/* ---- lengths and places of blocks */

static void make_counts(struct run *x)
{
	const struct trial *t = x->t;
	struct gci_prng prng = {t->seed + t->count};
	int a, b;

	for (a = 0; a < x->n; a++)
		for (b = 0; b < x->n; b++) {
			uint64_t len = gci_prng_below(&prng, 3 * t->count + 2);

			/* A third is empty; in place both ways are of one length. */
			len = !t->v ? t->count : len > 2 * t->count ? 0 : len;
			if (t->kind == GCI_ALLTOALL)
				x->counts[a * x->n + b] =
					t->in_place && b < a ? x->counts[b * x->n + a] : len;
			else if (!a)
				x->counts[b] = len;
		}
	for (a = 0; a < x->n; a++)
		for (b = 0; b < x->n; b++) {
			int all = t->kind == GCI_ALLTOALL;

			x->sends[a][b] = x->counts[all ? a * x->n + b : b];
			x->receives[a][b] = x->counts[all ? b * x->n + a : b];
		}
}

/* Where blocks stand; returns where the last one ends. */
static uint64_t set_places(const struct run *x, const uint64_t *counts, uint64_t *at)
{
	uint64_t end = 0;
	int i;

	for (i = 0; i < x->n; i++) {
		int block = x->t->v == 2 ? x->n - 1 - i : i;

		if (x->t->v == 2)
			end += 1 + (uint64_t)i % 3;
		at[block] = end;
		end += counts[block];
	}
	return end;
}

static void make_buffers(struct run *x, int r)
{
	const struct trial *t = x->t;
	struct rank *k = &x->ranks[r];
	uint64_t all_in = set_places(x, x->sends[r], x->send_at[r]);
	uint64_t all_out = set_places(x, x->receives[r], x->receive_at[r]);
	uint64_t own = t->v ? x->counts[r] : t->count, i;

	/* Of reduce_scatterv the input has no displacements. */
	if (t->kind == GCI_REDUCE_SCATTER && t->v)
		for (all_in = 0, i = 0; i < (uint64_t)x->n; i++) {
			x->send_at[r][i] = all_in;
			all_in += x->sends[r][i];
		}
	k->in_len = by_vector(t) ? t->count : all_in;
	k->out_len = by_vector(t) ? t->count : all_out;
	if (t->kind == GCI_GATHER || t->kind == GCI_ALLGATHER)
		k->in_len = own;
	if (t->kind == GCI_SCATTER || t->kind == GCI_REDUCE_SCATTER)
		k->out_len = t->kind == GCI_REDUCE_SCATTER && t->in_place ? all_in : own;
	k->in = gci_calloc(k->in_len + 2, 4);
	k->in_copy = gci_calloc(k->in_len + 2, 4);
	k->out = gci_calloc(k->out_len + 2, 4);
	k->want = gci_calloc(k->out_len + 2, 4);
	for (i = 0; i < k->in_len + 2; i++)
		k->in[i] = JUNK;
	for (i = 0; i < k->out_len + 2; i++)
		k->out[i] = JUNK;
	k->in++; /* what stands before and behind must stay */
	k->in_copy++;
	k->out++;
	k->want++;
	k->compare = k->out_len;
}

static void put_block(const struct run *x, uint32_t *to, int from, int block, uint64_t len)
{
	uint64_t i;

	for (i = 0; i < len; i++)
		to[i] = value(x, from, block, i);
}

/* The input of rank r, where it belongs. */
static void put_input(struct run *x, int r)
{
	const struct trial *t = x->t;
	struct rank *k = &x->ranks[r];
	int in_place =
		t->in_place && (t->root == r || (t->kind != GCI_REDUCE && t->kind != GCI_GATHER));
	uint32_t *buf = in_place && t->kind != GCI_SCATTER ? k->out : k->in;
	int b;

	switch (t->kind) {
	case GCI_BCAST:
		if (r == t->root)
			put_block(x, k->out, r, 0, t->count);
		break;
	case GCI_REDUCE:
	case GCI_ALLREDUCE:
		put_block(x, buf, r, 0, t->count);
		break;
	case GCI_GATHER:
	case GCI_ALLGATHER:
		put_block(x, in_place ? buf + x->receive_at[r][r] : buf, r, 0, x->counts[r]);
		break;
	case GCI_SCATTER:
	case GCI_REDUCE_SCATTER:
	case GCI_ALLTOALL:
		for (b = 0; b < x->n; b++)
			put_block(x,
				buf + (in_place && t->kind == GCI_ALLTOALL ? x->receive_at
									   : x->send_at)[r][b],
				r, b, x->sends[r][b]);
		break;
	default:
		break;
	}
	memcpy(k->in_copy - 1, k->in - 1, (k->in_len + 2) * 4);
	memcpy(k->want - 1, k->out - 1, (k->out_len + 2) * 4);
}

static void put_want(struct run *x, int r)
{
	const struct trial *t = x->t;
	struct rank *k = &x->ranks[r];
	uint64_t own = t->v ? x->counts[r] : t->count, i;
	int b;

	switch (t->kind) {
	case GCI_BCAST:
		put_block(x, k->want, t->root, 0, t->count);
		break;
	case GCI_REDUCE:
	case GCI_ALLREDUCE:
		if (t->kind == GCI_ALLREDUCE || r == t->root)
			for (i = 0; i < t->count; i++)
				k->want[i] = reduced(x, 0, i);
		break;
	case GCI_REDUCE_SCATTER:
		for (i = 0; i < own; i++)
			k->want[i] = reduced(x, r, i);
		k->compare = own;
		break;
	case GCI_SCATTER:
		if (!t->in_place || r != t->root)
			put_block(x, k->want, t->root, r, own);
		break;
	case GCI_GATHER:
	case GCI_ALLGATHER:
	case GCI_ALLTOALL:
		if (t->kind == GCI_GATHER && r != t->root)
			break;
		for (b = 0; b < x->n; b++)
			put_block(x, k->want + x->receive_at[r][b], b,
				t->kind == GCI_ALLTOALL ? r : 0, x->receives[r][b]);
		break;
	default:
		break;
	}
}

/* ---- the calls */

#define CALL(name, ...)                                           \
	(t->persistent ? gcoll_##name##_init(__VA_ARGS__, c, req) \
		       : gcoll_i##name(__VA_ARGS__, c, req))

static int call_equal(const struct trial *t, struct rank *k, const void *in, void *out,
	gcoll_comm *c, gcoll_req **req)
{
	switch (t->kind) {
	case GCI_BCAST:
		return CALL(bcast, k->out, t->count, t->type, t->root);
	case GCI_REDUCE:
		return CALL(reduce, in, out, t->count, t->type, t->op, t->root);
	case GCI_ALLREDUCE:
		return CALL(allreduce, in, out, t->count, t->type, t->op);
	case GCI_REDUCE_SCATTER:
		return CALL(reduce_scatter, in, out, t->count, t->type, t->op);
	case GCI_SCATTER:
		return CALL(scatter, in, out, t->count, t->type, t->root);
	case GCI_GATHER:
		return CALL(gather, in, out, t->count, t->type, t->root);
	case GCI_ALLGATHER:
		return CALL(allgather, in, out, t->count, t->type);
	case GCI_ALLTOALL:
		return CALL(alltoall, in, out, t->count, t->type);
	default:
		return t->persistent ? gcoll_barrier_init(c, req) : gcoll_ibarrier(c, req);
	}
}

static int call_v(struct run *x, int r, const void *in, void *out, gcoll_req **req)
{
	const struct trial *t = x->t;
	gcoll_comm *c = x->comm[r];
	const uint64_t *in_at = t->v == 2 ? x->send_at[r] : NULL;
	const uint64_t *out_at = t->v == 2 ? x->receive_at[r] : NULL;

	switch (t->kind) {
	case GCI_REDUCE_SCATTER:
		return CALL(reduce_scatterv, in, out, x->counts, t->type, t->op);
	case GCI_SCATTER:
		return CALL(scatterv, in, x->counts, in_at, out, t->type, t->root);
	case GCI_GATHER:
		return CALL(gatherv, in, out, x->counts, out_at, t->type, t->root);
	case GCI_ALLGATHER:
		return CALL(allgatherv, in, out, x->counts, out_at, t->type);
	default:
		return CALL(
			alltoallv, in, x->sends[r], in_at, out, x->receives[r], out_at, t->type);
	}
}

static int call(struct run *x, int r, gcoll_req **req)
{
	const struct trial *t = x->t;
	struct rank *k = &x->ranks[r];
	const void *in = k->in;
	void *out = k->out;

	if (t->in_place && t->kind == GCI_SCATTER)
		out = r == t->root ? GCOLL_IN_PLACE : out;
	else if (t->in_place && (r == t->root || (t->kind != GCI_REDUCE && t->kind != GCI_GATHER)))
		in = GCOLL_IN_PLACE;
	return t->v ? call_v(x, r, in, out, req) : call_equal(t, k, in, out, x->comm[r], req);
}

static void compare(const struct run *x, int r)
{
	const struct trial *t = x->t;
	const struct rank *k = &x->ranks[r];
	uint64_t i;

	for (i = 0; i < k->compare; i++)
		if (k->out[i] != k->want[i])
			fail_msg("%s of %" PRIu64
				 " by %s, %d ranks, root %d, in place %d, v %d: rank %d element "
				 "%" PRIu64 " is %08" PRIx32 ", expected %08" PRIx32,
				gci_kind_name(t->kind), t->count,
				x->comm[0]->choice[t->kind].how.algorithm->name, x->n, t->root,
				t->in_place, t->v, r, i, k->out[i], k->want[i]);
	if (k->out[-1] != JUNK || k->out[k->out_len] != JUNK)
		fail_msg("%s: rank %d wrote outside of its output", gci_kind_name(t->kind), r);
	assert_memory_equal(k->in - 1, k->in_copy - 1, (k->in_len + 2) * 4);
}

static void free_buffers(struct rank *k)
{
	gci_free(k->in - 1);
	gci_free(k->in_copy - 1);
	gci_free(k->out - 1);
	gci_free(k->want - 1);
}

static void one_round(struct run *x, gcoll_req **reqs)
{
	int r, status[MAX_RANKS];

	for (r = 0; r < x->n; r++) {
		uint64_t i;

		for (i = 0; i < x->ranks[r].out_len; i++)
			x->ranks[r].out[i] = JUNK;
		put_input(x, r);
		put_want(x, r);
	}
	for (r = 0; r < x->n; r++)
		if (x->t->persistent ? gcoll_start(reqs[r]) : call(x, r, &reqs[r]))
			fail_msg("%s: %s", gci_kind_name(x->t->kind), gcoll_last_error());
	r = job_run_all(x->j, reqs, status, x->n);
	if (r)
		fail_msg("%s by %s: %d ranks of %d are not done", gci_kind_name(x->t->kind),
			x->comm[0]->choice[x->t->kind].how.algorithm->name, r, x->n);
	for (r = 0; r < x->n; r++) {
		assert_int_equal(status[r], 0);
		compare(x, r);
	}
}

void trial_run_on(struct job *j, gcoll_comm *const *comm, int n, const struct trial *t)
{
	struct run *x = gci_calloc(1, sizeof(*x));
	gcoll_req *reqs[MAX_RANKS] = {NULL};
	int r;

	x->j = j;
	x->comm = comm;
	x->n = n;
	x->t = t;
	x->counts = gci_calloc((size_t)(n * n), sizeof(*x->counts));
	make_counts(x);
	for (r = 0; r < n; r++)
		make_buffers(x, r);
	for (r = 0; r < n && t->persistent; r++)
		if (call(x, r, &reqs[r]))
			fail_msg("%s: %s", gci_kind_name(t->kind), gcoll_last_error());
	for (; x->round < (t->persistent ? 3u : 1u); x->round++)
		one_round(x, reqs);
	for (r = 0; r < n; r++) {
		assert_int_equal(gcoll_req_free(&reqs[r]), 0);
		free_buffers(&x->ranks[r]);
	}
	gci_free(x->counts);
	gci_free(x);
}

void trial_run(struct job *j, const struct trial *t)
{
	trial_run_on(j, j->comm, j->n, t);
}
