/* SPDX-License-Identifier: MIT */
#include "tests/comm/trial_data.h"

#include "base/mem.h"
#include "base/prng.h"
#include "collectives/blocks/order.h"
#include "collectives/kernels/kernels.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JUNK 0x5a /* in each byte */

struct rank {
	char *in, *in_copy, *out, *want;
	uint64_t in_len, out_len; /* allocated, with an element of junk at both ends */
	uint64_t compare;         /* elements of `want`, from the first */
};

struct trial_data {
	struct trial t;
	const struct gci_topo *topo;
	int n;
	size_t esize;
	uint64_t *counts; /* [from * n + to] */
	uint64_t round;
	char *common; /* result of a reduction, of this round and 1 */
	uint64_t common_round;
	struct rank ranks[TRIAL_MAX_RANKS];
	uint64_t sends[TRIAL_MAX_RANKS][TRIAL_MAX_RANKS];
	uint64_t receives[TRIAL_MAX_RANKS][TRIAL_MAX_RANKS];
	uint64_t send_at[TRIAL_MAX_RANKS][TRIAL_MAX_RANKS];
	uint64_t receive_at[TRIAL_MAX_RANKS][TRIAL_MAX_RANKS];
};

/* Element i of the block that `from` has for `to` (0 where there is only one). */
static void put_value(const struct trial_data *x, int from, int to, uint64_t i, char *out)
{
	uint64_t h = gci_digest(gci_digest(x->t.seed + x->round, (uint64_t)(from * 64 + to)), i);
	double d = (double)((int64_t)(h % 2000001) - 1000000) / 7;
	float f = (float)d;
	size_t at, n;

	if (x->t.type == GCOLL_FLOAT32)
		memcpy(&h, &f, sizeof(f));
	if (x->t.type == GCOLL_FLOAT64)
		memcpy(&h, &d, sizeof(d));
	for (at = 0; at < x->esize; at += n) {
		n = x->esize - at < sizeof(h) ? x->esize - at : sizeof(h);
		memcpy(out + at, &h, n);
	}
}

static void put_block(const struct trial_data *x, char *to, int from, int block, uint64_t len)
{
	uint64_t i;

	for (i = 0; i < len; i++)
		put_value(x, from, block, i, to + i * x->esize);
}

static int by_vector(const struct trial *t)
{
	return t->kind == GCI_BCAST || t->kind == GCI_REDUCE || t->kind == GCI_ALLREDUCE;
}

/* ---- the oracle for reductions: operands in the order of the canonical tree */

static void combine(const struct trial_data *x, char *left, char *right, uint64_t len)
{
	enum gcoll_op op = x->t.op == GCOLL_AVG ? GCOLL_SUM : x->t.op;

	gci_kernel_find(x->t.type, op)(left, left, right, len);
	gci_free(right);
}

/* The operands of ranks[a .. z - 1] for the block `to`. */
static char *fold(const struct trial_data *x, const int *ranks, int a, int z, int to, uint64_t len)
{
	int m = gci_middle(a, z);
	char *left;

	if (z - a == 1) {
		left = gci_calloc(len, x->esize);
		put_block(x, left, ranks[a], to, len);
		return left;
	}
	left = fold(x, ranks, a, m, to, len);
	combine(x, left, fold(x, ranks, m, z, to, len), len);
	return left;
}

static char *fold_clusters(const struct trial_data *x, int a, int z, int to, uint64_t len)
{
	int m = gci_middle(a, z);
	char *left;

	if (z - a == 1)
		return fold(x, gci_topo_members(x->topo, a), 0, gci_topo_size(x->topo, a), to, len);
	left = fold_clusters(x, a, m, to, len);
	combine(x, left, fold_clusters(x, m, z, to, len), len);
	return left;
}

static void put_reduced(const struct trial_data *x, char *out, int to, uint64_t len)
{
	char *all = fold_clusters(x, 0, x->topo->nclusters, to, len);
	uint64_t i;
	uint32_t v;
	float f;

	memcpy(out, all, len * x->esize);
	gci_free(all);
	for (i = 0; i < len && x->t.op == GCOLL_AVG; i++) {
		memcpy(&v, out + 4 * i, 4);
		memcpy(&f, out + 4 * i, 4);
		v /= (uint32_t)x->n;
		f /= (float)x->n;
		memcpy(out + 4 * i, x->t.type == GCOLL_FLOAT32 ? (void *)&f : (void *)&v, 4);
	}
}

/* ---- lengths and places of blocks */

static void make_counts(struct trial_data *x)
{
	const struct trial *t = &x->t;
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
static uint64_t set_places(const struct trial_data *x, const uint64_t *counts, uint64_t *at)
{
	uint64_t end = 0;
	int i;

	for (i = 0; i < x->n; i++) {
		int block = x->t.v == 2 ? x->n - 1 - i : i;

		if (x->t.v == 2)
			end += 1 + (uint64_t)i % 3;
		at[block] = end;
		end += counts[block];
	}
	return end;
}

static void make_buffers(struct trial_data *x, int r)
{
	const struct trial *t = &x->t;
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
	k->in = gci_calloc(k->in_len + 2, x->esize);
	k->in_copy = gci_calloc(k->in_len + 2, x->esize);
	k->out = gci_calloc(k->out_len + 2, x->esize);
	k->want = gci_calloc(k->out_len + 2, x->esize);
	memset(k->in, JUNK, (k->in_len + 2) * x->esize);
	memset(k->out, JUNK, (k->out_len + 2) * x->esize);
	k->in += x->esize; /* what stands before and behind must stay */
	k->in_copy += x->esize;
	k->out += x->esize;
	k->want += x->esize;
	k->compare = k->out_len;
}

/* The input of rank r, where it belongs. */
static void put_input(struct trial_data *x, int r)
{
	const struct trial *t = &x->t;
	struct rank *k = &x->ranks[r];
	int in_place =
		t->in_place && (t->root == r || (t->kind != GCI_REDUCE && t->kind != GCI_GATHER));
	char *buf = in_place && t->kind != GCI_SCATTER ? k->out : k->in;
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
		put_block(x, in_place ? buf + x->receive_at[r][r] * x->esize : buf, r, 0,
			x->counts[r]);
		break;
	case GCI_SCATTER:
	case GCI_REDUCE_SCATTER:
	case GCI_ALLTOALL:
		for (b = 0; b < x->n; b++)
			put_block(x,
				buf + x->esize * (in_place && t->kind == GCI_ALLTOALL
								 ? x->receive_at
								 : x->send_at)[r][b],
				r, b, x->sends[r][b]);
		break;
	default:
		break;
	}
	memcpy(k->in_copy - x->esize, k->in - x->esize, (k->in_len + 2) * x->esize);
	memcpy(k->want, k->out, k->out_len * x->esize);
}

/* The vector that all get, or the root. It is made once in a round. */
static void put_common(struct trial_data *x, char *want)
{
	if (!x->common)
		x->common = gci_calloc(x->t.count, x->esize);
	if (x->common_round != x->round + 1)
		put_reduced(x, x->common, 0, x->t.count);
	x->common_round = x->round + 1;
	memcpy(want, x->common, x->t.count * x->esize);
}

static void put_want(struct trial_data *x, int r)
{
	const struct trial *t = &x->t;
	struct rank *k = &x->ranks[r];
	uint64_t own = t->v ? x->counts[r] : t->count;
	int b;

	switch (t->kind) {
	case GCI_BCAST:
		put_block(x, k->want, t->root, 0, t->count);
		break;
	case GCI_REDUCE:
	case GCI_ALLREDUCE:
		if (t->kind == GCI_ALLREDUCE || r == t->root)
			put_common(x, k->want);
		break;
	case GCI_REDUCE_SCATTER:
		put_reduced(x, k->want, r, own);
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
			put_block(x, k->want + x->receive_at[r][b] * x->esize, b,
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

static int call_v(
	struct trial_data *x, int r, const void *in, void *out, gcoll_comm *c, gcoll_req **req)
{
	const struct trial *t = &x->t;
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

int trial_data_call(struct trial_data *x, int r, gcoll_comm *c, gcoll_req **req)
{
	const struct trial *t = &x->t;
	struct rank *k = &x->ranks[r];
	const void *in = k->in;
	void *out = k->out;

	if (t->in_place && t->kind == GCI_SCATTER)
		out = r == t->root ? GCOLL_IN_PLACE : out;
	else if (t->in_place && (r == t->root || (t->kind != GCI_REDUCE && t->kind != GCI_GATHER)))
		in = GCOLL_IN_PLACE;
	return t->v ? call_v(x, r, in, out, c, req) : call_equal(t, k, in, out, c, req);
}

static int outside_is_whole(const struct trial_data *x, const char *buf, uint64_t len)
{
	size_t i;

	for (i = 0; i < x->esize; i++)
		if (buf[i] != JUNK || buf[(len + 1) * x->esize + i] != JUNK)
			return 0;
	return 1;
}

int trial_data_check(const struct trial_data *x, int r, char *text, size_t size)
{
	const struct trial *t = &x->t;
	const struct rank *k = &x->ranks[r];
	uint64_t i = 0;
	const char *what = NULL;

	while (i < k->compare && !memcmp(k->out + i * x->esize, k->want + i * x->esize, x->esize))
		i++;
	if (i < k->compare)
		what = "is wrong";
	else if (!outside_is_whole(x, k->out - x->esize, k->out_len))
		what = "and no other is wrong, but what stands around the output";
	else if (memcmp(k->in - x->esize, k->in_copy - x->esize, (k->in_len + 2) * x->esize) != 0)
		what = "and no other is wrong, but the input";
	if (!what)
		return 0;
	snprintf(text, size,
		"%s of %" PRIu64 " elements of %zu bytes, %d ranks, root %d, in place %d, v %d: "
		"rank %d, element %" PRIu64 " of %" PRIu64 " %s",
		gci_kind_name(t->kind), t->count, x->esize, x->n, t->root, t->in_place, t->v, r, i,
		k->compare, what);
	return -1;
}

void trial_data_reuse(struct trial_data *x, int r)
{
	const struct rank *k = &x->ranks[r];

	memset(k->in, ~JUNK, k->in_len * x->esize);
	memset(k->out, ~JUNK, k->out_len * x->esize);
}

static void free_buffers(const struct trial_data *x, struct rank *k)
{
	gci_free(k->in - x->esize);
	gci_free(k->in_copy - x->esize);
	gci_free(k->out - x->esize);
	gci_free(k->want - x->esize);
}

void trial_data_fill(struct trial_data *x, uint64_t round)
{
	int r;

	x->round = round;
	for (r = 0; r < x->n; r++) {
		memset(x->ranks[r].out, JUNK, x->ranks[r].out_len * x->esize);
		put_input(x, r);
		put_want(x, r);
	}
}

struct trial_data *trial_data_new(const struct trial *t, const struct gci_topo *topo)
{
	struct trial_data *x = gci_calloc(1, sizeof(*x));
	int r;

	x->t = *t;
	x->topo = topo;
	x->n = topo->nranks;
	x->esize = gcoll_type_size(t->type);
	x->counts = gci_calloc((size_t)(x->n * x->n), sizeof(*x->counts));
	make_counts(x);
	for (r = 0; r < x->n; r++)
		make_buffers(x, r);
	return x;
}

void trial_data_free(struct trial_data *x)
{
	int r;

	if (!x)
		return;
	for (r = 0; r < x->n; r++)
		free_buffers(x, &x->ranks[r]);
	gci_free(x->counts);
	gci_free(x->common);
	gci_free(x);
}
