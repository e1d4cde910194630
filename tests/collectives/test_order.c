/* SPDX-License-Identifier: MIT
 * The fixed order of reduction: what ranks do, each knowing its own joins only, makes the one tree
 * that order.h describes, whoever is the root. */
#include "tests/test.h"

#include "base/mem.h"
#include "collectives/blocks/order.h"
#include "tests/collectives/oracle_impl.h"
#include "tests/collectives/topologies.h"

#include <string.h>

#define MAX_RANKS 140

struct rank {
	struct gci_join joins[GCI_MAX_JOINS];
	int njoins, done;
	struct value value;
};

struct play {
	const struct gci_coll *c;
	struct rank ranks[MAX_RANKS];
};

static void begin(struct play *p, const struct gci_coll *c)
{
	int r, i, flat = gci_order_is_flat(c);

	p->c = c;
	for (r = 0; r < c->topo->nranks; r++) {
		struct rank *k = &p->ranks[r];

		k->njoins = gci_joins(c->topo, flat, r, c->root, k->joins);
		k->done = 0;
		k->value = (struct value){1ull << (r % 64), gci_digest(1, (uint64_t)r)};
		assert_in_range(k->njoins, 0, GCI_MAX_JOINS);
		for (i = 0; i < k->njoins; i++) {
			const struct gci_join *j = &k->joins[i];

			assert_true((j->lead == r) != (j->other == r));
			assert_int_equal(j->other == r, r != c->root && i == k->njoins - 1);
		}
	}
}

/* The next join of both of its ranks happens; false when there is none. */
static int go_on(struct play *p)
{
	int r;

	for (r = 0; r < p->c->topo->nranks; r++) {
		struct rank *lead = &p->ranks[r], *other;
		const struct gci_join *j = &lead->joins[lead->done], *k;

		if (lead->done == lead->njoins || j->lead != r)
			continue;
		other = &p->ranks[j->other];
		k = &other->joins[other->done];
		if (other->done == other->njoins || k->lead != r || k->other != j->other)
			continue;
		assert_int_equal(k->other_first, j->other_first);
		lead->value = j->other_first ? combine(other->value, lead->value)
					     : combine(lead->value, other->value);
		lead->done++;
		other->done++;
		return 1;
	}
	return 0;
}

static void check_root(const struct gci_coll *c)
{
	static struct play p;
	struct value leaves[MAX_RANKS], wanted;
	int r, total = 0;

	begin(&p, c);
	for (r = 0; r < c->topo->nranks; r++)
		leaves[r] = p.ranks[r].value;
	wanted = oracle_fold(c, leaves);
	while (go_on(&p))
		total++;
	assert_int_equal(total, c->topo->nranks - 1);
	for (r = 0; r < c->topo->nranks; r++)
		assert_int_equal(p.ranks[r].done, p.ranks[r].njoins);
	if (p.ranks[c->root].value.hash != wanted.hash)
		fail_msg("%d ranks, %d clusters, order %d: not the tree for root %d",
			c->topo->nranks, c->topo->nclusters, (int)c->order, c->root);
}

static void check_sizes(const int *sizes, int mixed)
{
	struct gci_topo t;
	struct gci_coll c = {.kind = GCI_REDUCE, .topo = &t, .count = 1, .esize = 4};

	topology_make(&t, sizes, mixed, 3);
	for (c.root = 0; c.root < t.nranks; c.root++) {
		c.order = GCI_CLUSTER_ORDER;
		check_root(&c);
		c.order = GCI_RANK_ORDER;
		check_root(&c);
	}
	gci_topo_free(&t);
}

static void every_root_makes_the_same_tree(void **state)
{
	int p, mixed;

	(void)state;
	for (p = 1; p <= 67; p++)
		check_sizes((int[]){p, 0}, 0);
	for (mixed = 0; mixed < 2; mixed++) {
		for (p = 1; p <= 33; p += 1 + p / 9) {
			check_sizes((int[]){p, p, 0}, mixed);
			check_sizes((int[]){p, 2 * p, 0}, mixed);
			check_sizes((int[]){p, 1, 3, 0}, mixed);
		}
		check_sizes((int[]){66, 1, 0}, mixed);
		check_sizes((int[]){1, 1, 1, 1, 1, 0}, mixed);
		check_sizes((int[]){5, 3, 1, 7, 2, 0}, mixed);
		check_sizes((int[]){13, 2, 29, 17, 6, 0}, mixed);
	}
}

/* Over all roots, as in a reduce-scatter, nobody has more than twice his share of the work. */
static void roots_spread_the_work(void **state)
{
	int led[MAX_RANKS], p, root, r, i;
	struct gci_join joins[GCI_MAX_JOINS];

	(void)state;
	for (p = 2; p <= 67; p++) {
		struct gci_topo t;

		topology_make(&t, (int[]){p, 0}, 0, 3);
		memset(led, 0, sizeof(led));
		for (root = 0; root < p; root++)
			for (r = 0; r < p; r++)
				for (i = gci_joins(&t, 0, r, root, joins); i-- > 0;)
					led[r] += joins[i].lead == r;
		for (r = 0; r < p; r++) {
			if (!(p & (p - 1)))
				assert_int_equal(led[r], p - 1);
			assert_in_range(led[r], 1, 2 * (p - 1));
		}
		gci_topo_free(&t);
	}
}

/* A root of another cluster gets one operand from each half of the clusters, no more. */
static void few_joins_between_clusters(void **state)
{
	struct gci_join joins[GCI_MAX_JOINS];
	struct gci_topo t;
	int root, r, i, wan;

	(void)state;
	topology_make(&t, (int[]){5, 3, 1, 7, 2, 0}, 1, 3);
	for (root = 0; root < t.nranks; root++) {
		for (r = 0, wan = 0; r < t.nranks; r++)
			for (i = gci_joins(&t, 0, r, root, joins); i-- > 0;)
				wan += joins[i].lead == r &&
				       t.cluster[r] != t.cluster[joins[i].other];
		assert_int_equal(wan, t.nclusters - 1);
	}
	gci_topo_free(&t);
}

static void when_the_tree_is_flat(void **state)
{
	static const struct {
		int sizes[4], mixed, in_order;
	} cases[] = {{{4, 0}, 0, 1}, {{4, 0}, 1, 1}, {{3, 2, 0}, 0, 1}, {{3, 2, 0}, 1, 0},
		{{1, 1, 1, 0}, 1, 1}, {{1, 2, 0}, 1, 1}, {{2, 1, 0}, 1, 0}};
	struct gci_topo t;
	struct gci_coll c = {.kind = GCI_REDUCE, .topo = &t};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		topology_make(&t, cases[i].sizes, cases[i].mixed, 3);
		assert_int_equal(gci_topo_in_rank_order(&t), cases[i].in_order);
		c.order = GCI_RANK_ORDER;
		assert_int_equal(gci_order_is_flat(&c), !cases[i].in_order);
		c.order = GCI_CLUSTER_ORDER;
		assert_false(gci_order_is_flat(&c));
		gci_topo_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_root_makes_the_same_tree),
		cmocka_unit_test(roots_spread_the_work),
		cmocka_unit_test(few_joins_between_clusters),
		cmocka_unit_test(when_the_tree_is_flat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
