/* SPDX-License-Identifier: MIT
 * ATCC's pipeline method: longest paths of trees, the test for saturation, and what is asked. */
#include "base/clock.h"
#include "base/mem.h"
#include "tests/collectives/topologies.h"
#include "tests/test.h"
#include "tools/tune/methods.h"

#include <string.h>

#define P 8

static void path_is(enum gci_kind kind, const char *name, int root, const int *want, int n)
{
	static const int sizes[] = {4, 4, 0};
	const struct gci_algorithm *a = gci_algorithm_find(kind, name);
	struct gci_coll c = {.kind = kind, .count = 1000, .esize = 4, .root = root};
	struct gci_topo t;
	int ranks[P], got;

	assert_non_null(a);
	topology_make(&t, sizes, 0, 10);
	c.topo = &t;
	assert_int_equal(gci_tree_path(a, &c, ranks, &got), 0);
	assert_int_equal(got, n);
	if (n)
		assert_memory_equal(ranks, want, (size_t)n * sizeof(*want));
	gci_topo_free(&t);
}

#define PATH(kind, name, root, ...)                           \
	path_is(kind, name, root, (const int[]){__VA_ARGS__}, \
		(int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))

static void paths(void **state)
{
	(void)state;
	PATH(GCI_BCAST, "sequential", 0, 0, 1);
	PATH(GCI_BCAST, "chain", 0, 0, 1, 2, 3, 4, 5, 6, 7);
	PATH(GCI_BCAST, "chain", 6, 6, 7, 0, 1, 2, 3, 4, 5);
	PATH(GCI_BCAST, "binary", 0, 0, 1, 3, 7);
	PATH(GCI_BCAST, "binomial", 0, 0, 4, 6, 7);
	PATH(GCI_BCAST, "binomial", 3, 3, 7, 1, 2);
	PATH(GCI_SCATTER, "chain", 0, 0, 1, 2, 3, 4, 5, 6, 7);
	PATH(GCI_REDUCE, "chain", 2, 2, 3, 4, 5, 6, 7, 0, 1);
	PATH(GCI_GATHER, "sequential", 0, 0, 1);
	/* Parts from several, or no root. */
	path_is(GCI_BCAST, "vandegeijn", 0, NULL, 0);
	path_is(GCI_ALLREDUCE, "chain", 0, NULL, 0);
	path_is(GCI_ALLGATHER, "ring", 0, NULL, 0);
}

/* What was asked for, and how the network answers. */
struct network {
	int saturated; /* pairs share what one of them would get */
	int npairs, npaths, ncosts;
	int path_ranks[4]; /* by the algorithm's order of asking: ranks in its path */
	uint64_t asked[4]; /* and the segment that the whole ran in */
	uint64_t best;     /* segment of a pipeline */
};

static int pairs(void *ctx, const int *from, const int *to, int n, struct gci_trial *t)
{
	struct network *x = ctx;
	int i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++) {
			assert_true(from[i] != from[k] && to[i] != to[k]);
			assert_true(from[i] != to[k] && to[i] != from[k]);
		}
	x->npairs++;
	*t = (struct gci_trial){1000u * (unsigned)(x->saturated ? n : 1), 1, 1, 0};
	return 0;
}

static int path(void *ctx, const int *ranks, int n, uint64_t segment, struct gci_trial *t)
{
	struct network *x = ctx;

	assert_int_equal(ranks[0], 0);
	x->path_ranks[x->ncosts] = n;
	x->npaths++;
	*t = (struct gci_trial){segment > x->best ? segment : x->best * 2 - segment, 1, 1, 0};
	return 0;
}

static int cost(void *ctx, const struct gci_candidate *how, struct gci_trial *t)
{
	struct network *x = ctx;

	x->asked[x->ncosts++] = how->segment_nbytes;
	*t = (struct gci_trial){5000 - (unsigned)x->ncosts, 1, 1, 0};
	return 0;
}

static int run(struct network *x, struct gci_search_result *r, int *applies)
{
	static const int sizes[] = {4, 4, 0};
	static const uint64_t segments[] = {1024, 2048, 4096, 8192};
	static const char *const names[] = {"sequential", "chain", "binomial", "vandegeijn"};
	struct gci_method methods[4] = {{.fixed = 0}};
	struct gci_coll c = {.kind = GCI_BCAST, .count = 8192, .esize = 1};
	struct gci_search s = {.methods = methods,
		.nmethods = 4,
		.segments = segments,
		.nsegments = 4,
		.count = 8192,
		.esize = 1,
		.cost = cost,
		.ctx = x};
	struct gci_pipeline p = {.coll = &c, .path = path, .pairs = pairs, .ctx = x};
	struct gci_topo t;
	int i, rc;

	topology_make(&t, sizes, 0, 10);
	c.topo = &t;
	for (i = 0; i < 4; i++)
		methods[i].how.algorithm = gci_algorithm_find(GCI_BCAST, names[i]);
	methods[3].fixed = 1;
	rc = gci_search_pipeline(&s, &p, r, applies);
	gci_topo_free(&t);
	return rc;
}

static void few_nodes_tell(void **state)
{
	struct network x = {.best = 4096};
	struct gci_search_result r;
	int i, applies;

	(void)state;
	assert_int_equal(run(&x, &r, &applies), 0);
	assert_true(applies);
	/* Neighbours: one pair of each cluster, and all; across: one, and all. */
	assert_int_equal(x.npairs, 5);
	assert_int_equal(x.npaths, 3 * 4);
	assert_int_equal(x.path_ranks[0], 2);
	assert_int_equal(x.path_ranks[1], 8);
	assert_int_equal(x.path_ranks[2], 4);
	/* Each method as a whole once. */
	assert_int_equal(x.ncosts, 4);
	for (i = 0; i < 3; i++)
		assert_int_equal(x.asked[i], 4096);
	assert_int_equal(x.asked[3], 0);
	assert_int_equal(r.best_ns, 4996);
	assert_int_equal(r.evaluations, 5 + 12 + 4);
	assert_int_equal(r.spent_ns, r.evaluations);
	gci_search_result_free(&r);
}

/* Then nothing else is asked. */
static void saturated(void **state)
{
	struct network x = {.best = 4096, .saturated = 1};
	struct gci_search_result r;
	int applies;

	(void)state;
	assert_int_equal(run(&x, &r, &applies), 0);
	assert_false(applies);
	assert_int_equal(x.npaths + x.ncosts, 0);
	assert_true(r.best_ns == GCI_NEVER);
	gci_search_result_free(&r);
}

static void no_memory(void **state)
{
	int i, rc, applies;

	(void)state;
	for (i = 4;; i++) { /* the first belong to the topology */
		struct network x = {.best = 4096};
		struct gci_search_result r;
		static const int sizes[] = {4, 4, 0};
		struct gci_coll c = {.kind = GCI_BCAST, .count = 64, .esize = 1};
		struct gci_topo t;
		int ranks[P], n;

		topology_make(&t, sizes, 0, 10);
		c.topo = &t;
		gci_mem_fail_at((unsigned long)i - 3);
		rc = gci_tree_path(gci_algorithm_find(GCI_BCAST, "chain"), &c, ranks, &n);
		gci_topo_free(&t);
		if (!gci_mem_failed())
			break;
		assert_int_equal(rc, GCOLL_ERR_NOMEM);
		assert_int_equal(n, 0);
		gci_mem_fail_at(0);
		assert_int_equal(run(&x, &r, &applies), 0);
		gci_search_result_free(&r);
	}
	gci_mem_fail_at(0);
	assert_true(i > 8);
	assert_int_equal(rc, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(few_nodes_tell),
		cmocka_unit_test(saturated),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
