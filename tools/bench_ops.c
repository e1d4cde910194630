/* SPDX-License-Identifier: MIT
 * The operations as bench runs them: inputs that tell rank and place, and what each must make of
 * them. Elements are 32-bit integers, or bytes where a size asks for that; reductions are sums.
 *
 * Rank r's input at place i is word(i) + r. i counts through all blocks, so that a block in a wrong
 * place, or of a wrong rank, does not pass; word() changes with each operation. */
#include "tools/bench.h"
#include "tools/shape.h"

#include <string.h>

void gct_bench_shape(const struct gct_bench *b, struct gct_bench_result *r, uint64_t nbytes)
{
	struct gci_coll c = {.kind = r->kind, .topo = &b->comm->topo};

	r->asked_nbytes = r->kind == GCI_BARRIER ? 0 : nbytes;
	r->nbytes = gct_shape(&c, nbytes);
	r->type = c.esize == 1 ? GCOLL_UINT8 : GCOLL_UINT32;
	r->esize = c.esize;
	r->count = c.count;
}

struct gci_coll gct_bench_coll(const struct gct_bench *b, const struct gct_bench_result *r)
{
	return (struct gci_coll){.kind = r->kind,
		.topo = &b->comm->topo,
		.count = r->count,
		.esize = r->esize,
		.root = b->root};
}

static uint32_t word(uint64_t seed, uint64_t i)
{
	return (uint32_t)(seed + i * 2654435761u);
}

/* Element k = word(first + k) + add; of bytes, the word's highest counts. */
static void fill(const struct gct_bench *b, const struct gct_bench_result *r, char *buf, uint64_t n,
	uint64_t first, uint32_t add)
{
	uint64_t i;
	uint32_t w;

	if (r->esize == 1)
		for (i = 0; i < n; i++)
			buf[i] = (char)((word(b->seed, first + i) >> 24) + add);
	else
		for (i = 0; i < n; i++) {
			w = word(b->seed, first + i) + add;
			memcpy(buf + 4 * i, &w, 4);
		}
}

static int is(const struct gct_bench *b, const struct gct_bench_result *r, const char *buf,
	uint64_t first, uint32_t factor, uint32_t add)
{
	uint32_t w, bad = 0;
	uint64_t i;

	if (r->esize == 1)
		for (i = 0; i < r->count; i++)
			bad |= (uint8_t)((uint8_t)buf[i] -
					 (factor * (word(b->seed, first + i) >> 24) + add));
	else
		for (i = 0; i < r->count; i++) {
			memcpy(&w, buf + 4 * i, 4);
			bad |= w ^ (factor * word(b->seed, first + i) + add);
		}
	return !bad;
}

void gct_bench_fill(struct gct_bench *b, const struct gct_bench_result *r)
{
	uint64_t n = r->count, all = n * (uint64_t)b->comm->size;
	uint32_t rank = (uint32_t)b->comm->rank;
	int is_root = b->comm->rank == b->root;

	switch (r->kind) {
	case GCI_BCAST:
		if (is_root && b->pattern)
			memcpy(b->recv, b->pattern, r->nbytes);
		else if (is_root)
			fill(b, r, b->recv, n, 0, rank);
		break;
	case GCI_REDUCE:
	case GCI_ALLREDUCE:
		fill(b, r, b->send, n, 0, rank);
		break;
	case GCI_SCATTER:
		if (is_root)
			fill(b, r, b->send, all, 0, rank);
		break;
	case GCI_REDUCE_SCATTER:
	case GCI_ALLTOALL:
		fill(b, r, b->send, all, 0, rank);
		break;
	case GCI_GATHER:
	case GCI_ALLGATHER:
		fill(b, r, b->send, n, rank * n, rank);
		break;
	default:
		break;
	}
}

/* A block of each rank: from place `first` of its input, and so on every `step`. */
static int is_from_all(
	const struct gct_bench *b, const struct gct_bench_result *r, uint64_t first, uint64_t step)
{
	uint64_t s, p = (uint64_t)b->comm->size;
	int good = 1;

	for (s = 0; s < p; s++)
		good &= is(
			b, r, b->recv + s * r->count * r->esize, first + s * step, 1, (uint32_t)s);
	return good;
}

int gct_bench_check(const struct gct_bench *b, const struct gct_bench_result *r)
{
	uint32_t p = (uint32_t)b->comm->size, sum = p * (p - 1) / 2, root = (uint32_t)b->root;
	uint64_t own = (uint64_t)b->comm->rank * r->count;
	int is_root = b->comm->rank == b->root;

	switch (r->kind) {
	case GCI_BCAST:
		return b->pattern ? !memcmp(b->recv, b->pattern, r->nbytes)
				  : is(b, r, b->recv, 0, 1, root);
	case GCI_REDUCE:
		return !is_root || is(b, r, b->recv, 0, p, sum);
	case GCI_ALLREDUCE:
		return is(b, r, b->recv, 0, p, sum);
	case GCI_REDUCE_SCATTER:
		return is(b, r, b->recv, own, p, sum);
	case GCI_SCATTER:
		return is(b, r, b->recv, own, 1, root);
	case GCI_GATHER:
		return !is_root || is_from_all(b, r, 0, r->count);
	case GCI_ALLGATHER:
		return is_from_all(b, r, 0, r->count);
	case GCI_ALLTOALL:
		return is_from_all(b, r, own, 0);
	default:
		return 1;
	}
}

int gct_bench_run(struct gct_bench *b, const struct gct_bench_result *r)
{
	enum gcoll_type t = r->type;
	gcoll_comm *c = b->comm;
	uint64_t n = r->count;

	switch (r->kind) {
	case GCI_BCAST:
		return gcoll_bcast(b->recv, n, t, b->root, c);
	case GCI_REDUCE:
		return gcoll_reduce(b->send, b->recv, n, t, GCOLL_SUM, b->root, c);
	case GCI_ALLREDUCE:
		return gcoll_allreduce(b->send, b->recv, n, t, GCOLL_SUM, c);
	case GCI_REDUCE_SCATTER:
		return gcoll_reduce_scatter(b->send, b->recv, n, t, GCOLL_SUM, c);
	case GCI_SCATTER:
		return gcoll_scatter(b->send, b->recv, n, t, b->root, c);
	case GCI_GATHER:
		return gcoll_gather(b->send, b->recv, n, t, b->root, c);
	case GCI_ALLGATHER:
		return gcoll_allgather(b->send, b->recv, n, t, c);
	case GCI_ALLTOALL:
		return gcoll_alltoall(b->send, b->recv, n, t, c);
	default:
		return gcoll_barrier(c);
	}
}
