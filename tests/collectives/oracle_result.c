/* SPDX-License-Identifier: MIT
 * The naive answer, element by element. Where blocks stand is asked of layout.h; what they hold,
 * and in which order it was combined, is worked out here once more. */
#include "tests/collectives/oracle_impl.h"

#include "base/mem.h"
#include "collectives/blocks/layout.h"

#include <stdlib.h>

static struct value at(const struct contents *of, struct gci_slice s, uint64_t i)
{
	return of->buf[s.buffer][s.offset + i];
}

/* Block `to` of what `from` put in. */
static struct gci_slice given(const struct gci_coll *c, int from, int to)
{
	if (c->kind == GCI_REDUCE || c->kind == GCI_ALLREDUCE || c->kind == GCI_BCAST)
		return gci_vector(c, gci_input(c, from));
	if (c->kind == GCI_ALLTOALL && c->in_place)
		return gci_out_block(c, from, to);
	return gci_in_block(c, from, to);
}

/* A range as its first half and its second, the first being the larger. */
static struct value fold(const struct value *v, int n)
{
	int first = (n + 1) / 2;

	return n == 1 ? *v : combine(fold(v, first), fold(v + first, n - first));
}

static int clusters_rise_with_ranks(const struct gci_topo *t)
{
	int r;

	for (r = 1; r < t->nranks; r++)
		if (t->cluster[r] < t->cluster[r - 1])
			return 0;
	return 1;
}

struct value oracle_fold(const struct gci_coll *c, const struct value *v)
{
	const struct gci_topo *t = c->topo;
	struct value *clusters, *members, result;
	int k, r, n;

	if (c->order == GCI_RANK_ORDER && !clusters_rise_with_ranks(t))
		return fold(v, t->nranks);
	clusters = gci_calloc((size_t)t->nclusters, sizeof(*clusters));
	members = gci_calloc((size_t)t->nranks, sizeof(*members));
	if (!clusters || !members)
		abort();
	for (k = 0; k < t->nclusters; k++) {
		for (r = 0, n = 0; r < t->nranks; r++)
			if (t->cluster[r] == k)
				members[n++] = v[r];
		clusters[k] = fold(members, n);
	}
	result = fold(clusters, t->nclusters);
	gci_free(clusters);
	gci_free(members);
	return result;
}

/* Element i of what block `block` of rank's output must hold. */
static struct value wanted(
	const struct gci_coll *c, const struct contents *at_first, int rank, int block, uint64_t i)
{
	int from = c->kind == GCI_BCAST || c->kind == GCI_SCATTER ? c->root : block, r;
	struct value *v, result;

	if (!gci_kind_reduces(c->kind))
		return at(&at_first[from], given(c, from, rank), i);
	v = gci_calloc((size_t)c->topo->nranks, sizeof(*v));
	if (!v)
		abort();
	for (r = 0; r < c->topo->nranks; r++)
		v[r] = at(&at_first[r], given(c, r, rank), i);
	result = oracle_fold(c, v);
	gci_free(v);
	return result;
}

static const char *check_block(const struct gci_coll *c, const struct contents *at_first, int rank,
	int block, struct gci_slice s, const struct value *out, const struct value *first_out)
{
	uint64_t i;

	for (i = 0; i < s.length; i++) {
		const struct value *v = &out[s.offset + i];
		struct value w = wanted(c, at_first, rank, block, i);

		if (v->sum != w.sum)
			return "wrong value";
		if (c->kind == GCI_ALLREDUCE && v->hash != first_out[s.offset + i].hash)
			return "different bits";
		if ((!gci_kind_reduces(c->kind) || c->order != GCI_ANY_ORDER) && v->hash != w.hash)
			return "not in the fixed order";
	}
	return NULL;
}

/* Nothing may change beside the result. */
static const char *check_rest(
	const struct contents *at_first, const unsigned char *is_result, const struct value *out)
{
	const struct value *before = at_first->buf[GCI_OUT];
	uint64_t i;

	for (i = 0; i < at_first->out_len; i++)
		if (!is_result[i] && (out[i].sum != before[i].sum || out[i].hash != before[i].hash))
			return "writes beside its result";
	return NULL;
}

const char *oracle_check(const struct gci_coll *c, const struct contents *at_first, int rank,
	const struct value *out, const struct value *first_out)
{
	int many = c->kind == GCI_GATHER || c->kind == GCI_ALLGATHER || c->kind == GCI_ALLTOALL;
	int vector = c->kind == GCI_BCAST || c->kind == GCI_REDUCE || c->kind == GCI_ALLREDUCE;
	int n = many ? c->topo->nranks : 1, i;
	unsigned char *is_result;
	const char *wrong = NULL;
	uint64_t k;

	if (!gci_has_out(c, rank) || c->kind == GCI_BARRIER)
		return NULL;
	is_result = gci_calloc(at_first[rank].out_len, 1);
	if (!is_result)
		abort();
	for (i = 0; i < n && !wrong; i++) {
		struct gci_slice s =
			vector ? gci_vector(c, GCI_OUT) : gci_out_block(c, rank, many ? i : rank);

		for (k = 0; k < s.length; k++)
			is_result[s.offset + k] = 1;
		wrong = check_block(c, at_first, rank, i, s, out, first_out);
	}
	if (!wrong)
		wrong = check_rest(&at_first[rank], is_result, out);
	gci_free(is_result);
	return wrong;
}
