/* SPDX-License-Identifier: MIT */
#include "comm/compare.h"

#include "base/crc32c.h"
#include "base/mem.h"

#include <inttypes.h>

struct gci_compare {
	struct gci_op op; /* an allgather */
	const struct gci_op *of;
	void (*done)(void *user, int status);
	void *user;
	uint32_t mine;
	uint32_t *crcs; /* [rank] */
};

/* Boyer-Moore majority vote: the only sum that more than half of the ranks can have. */
static uint32_t candidate(const uint32_t *crcs, int n)
{
	uint32_t crc = 0;
	int i, votes = 0;

	for (i = 0; i < n; i++) {
		if (!votes)
			crc = crcs[i];
		votes += crcs[i] == crc ? 1 : -1;
	}
	return crc;
}

int gci_compare_same(const uint32_t *crcs, int n, int *odd, uint32_t *most)
{
	int i, have = 0, first = -1;

	*most = candidate(crcs, n);
	for (i = 0; i < n; i++) {
		have += crcs[i] == *most;
		if (crcs[i] != *most && first < 0)
			first = i;
	}
	*odd = 2 * have > n ? first : -1;
	return first < 0;
}

static int judge(struct gci_compare *v)
{
	const gcoll_comm *c = v->op.comm;
	uint32_t most;
	int odd;

	if (gci_compare_same(v->crcs, c->size, &odd, &most))
		return 0;
	if (odd < 0) {
		gci_engine_fail(c->engine, GCOLL_ERR_CORRUPT, -1,
			"operation %" PRIu64 ", allreduce: ranks have different results",
			v->of->number);
	} else {
		int rank = v->op.ranks ? v->op.ranks[odd] : odd;

		gci_engine_fail(c->engine, GCOLL_ERR_CORRUPT, rank,
			"operation %" PRIu64
			", allreduce: rank %d has another result than the others: "
			"its CRC32C is %08" PRIx32 ", theirs %08" PRIx32,
			v->of->number, rank, v->crcs[odd], most);
	}
	return GCOLL_ERR_CORRUPT;
}

static void on_gathered(struct gci_op *op, int status)
{
	struct gci_compare *v = op->user;

	v->done(v->user, status ? status : judge(v));
}

struct gci_compare *gci_compare_create(
	gcoll_comm *c, void (*done)(void *user, int status), void *user)
{
	struct gci_compare *v = gci_calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->crcs = gci_calloc((size_t)c->size, sizeof(*v->crcs));
	if (!v->crcs) {
		gci_free(v);
		return NULL;
	}
	v->done = done;
	v->user = user;
	v->op = (struct gci_op){.comm = c,
		.coll = {.kind = GCI_ALLGATHER,
			.topo = &c->topo,
			.count = 1,
			.esize = sizeof(*v->crcs)},
		.rank = c->rank,
		.ranks = c->ranks,
		.digest_more = c->topo_digest,
		.name = "comparison of results",
		.internal = 1,
		.type = GCOLL_UINT32,
		.op = GCOLL_SUM,
		.in = (char *)&v->mine,
		.out = (char *)v->crcs,
		.done = on_gathered,
		.user = v};
	return v;
}

int gci_compare_prepare(struct gci_compare *v, const struct gci_op *of)
{
	v->of = of;
	v->op.number = of->comm->next_op++;
	return gci_op_prepare(&v->op);
}

int gci_compare_start(struct gci_compare *v)
{
	v->mine = gci_crc32c(0, v->of->out, v->of->coll.count * v->of->coll.esize);
	return gci_op_start(&v->op);
}

void gci_compare_free(struct gci_compare *v)
{
	if (!v)
		return;
	gci_op_drop(&v->op);
	gci_free(v->crcs);
	gci_free(v);
}
