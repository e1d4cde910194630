/* SPDX-License-Identifier: MIT
 * A rank of a job in which rank 1 calls something else: one field of its call differs.
 *
 *	gridcoll-run -n 3 mismatch_job KIND kind|count|type|root|op COUNT
 *
 * What the call said, or the next one where this one was over before it could know, is printed. */
#include "tests/comm/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST  (1u << 18)
#define RANKS 3

static uint32_t in[RANKS * MOST], out[RANKS * MOST];
static uint64_t counts[RANKS], sends[RANKS];

struct call {
	const char *kind;
	uint64_t count;
	enum gcoll_type type;
	enum gcoll_op op;
	int root;
};

static int call_vector(const struct call *c)
{
	if (!strcmp(c->kind, "bcast"))
		return gcoll_bcast(out, c->count, c->type, c->root, world);
	if (!strcmp(c->kind, "reduce"))
		return gcoll_reduce(in, out, c->count, c->type, c->op, c->root, world);
	if (!strcmp(c->kind, "allreduce"))
		return gcoll_allreduce(in, out, c->count, c->type, c->op, world);
	expect(!strcmp(c->kind, "barrier"), c->kind);
	return gcoll_barrier(world);
}

static int call_blocks(const struct call *c)
{
	if (!strcmp(c->kind, "reduce_scatter"))
		return gcoll_reduce_scatter(in, out, c->count, c->type, c->op, world);
	if (!strcmp(c->kind, "scatter"))
		return gcoll_scatter(in, out, c->count, c->type, c->root, world);
	if (!strcmp(c->kind, "gather"))
		return gcoll_gather(in, out, c->count, c->type, c->root, world);
	if (!strcmp(c->kind, "allgather"))
		return gcoll_allgather(in, out, c->count, c->type, world);
	if (!strcmp(c->kind, "alltoall"))
		return gcoll_alltoall(in, out, c->count, c->type, world);
	return call_vector(c);
}

static int call(const struct call *c)
{
	if (!strcmp(c->kind, "reduce_scatterv"))
		return gcoll_reduce_scatterv(in, out, counts, c->type, c->op, world);
	if (!strcmp(c->kind, "scatterv"))
		return gcoll_scatterv(in, counts, NULL, out, c->type, c->root, world);
	if (!strcmp(c->kind, "gatherv"))
		return gcoll_gatherv(in, out, counts, NULL, c->type, c->root, world);
	if (!strcmp(c->kind, "allgatherv"))
		return gcoll_allgatherv(in, out, counts, NULL, c->type, world);
	if (!strcmp(c->kind, "alltoallv"))
		return gcoll_alltoallv(in, sends, NULL, out, counts, NULL, c->type, world);
	return call_blocks(c);
}

/* Of blocks of different lengths, two are exchanged: their sum is what it was. */
static void differ(struct call *c, const char *field)
{
	if (!strcmp(field, "kind"))
		c->kind = strcmp(c->kind, "allreduce") != 0 ? "allreduce" : "bcast";
	else if (!strcmp(field, "type"))
		c->type = GCOLL_FLOAT32;
	else if (!strcmp(field, "root"))
		c->root = 1;
	else if (!strcmp(field, "op"))
		c->op = GCOLL_MAX;
	else
		c->count--;
	if (!strcmp(field, "count")) {
		counts[0]++;
		counts[1]--;
	}
}

int main(int argc, char **argv)
{
	struct call c = {.type = GCOLL_INT32, .op = GCOLL_SUM};
	int i, rc;

	expect(argc == 4, "usage");
	c.kind = argv[1];
	c.count = strtoull(argv[3], NULL, 10);
	expect(c.count < MOST, "count");
	must(gcoll_init(&world), "init");
	for (i = 0; i < RANKS; i++)
		counts[i] = sends[i] = c.count;
	if (gcoll_rank(world) == 1)
		differ(&c, argv[2]);
	rc = call(&c);
	if (!rc)
		rc = gcoll_barrier(world);
	printf("%s: %s\n", gcoll_strerror(rc), gcoll_last_error());
	gcoll_finalize(world);
	return rc != 0;
}
