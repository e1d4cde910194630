/* SPDX-License-Identifier: MIT
 * What is special in each alltoall: how many messages, and how much over the WAN. */
#include "tests/test.h"

#include "tests/collectives/traffic.h"

static struct scheds x;

static void emit(const char *name, struct gci_coll c, const int *sizes, int mixed)
{
	traffic_emit(&x, GCI_ALLTOALL, name, c, sizes, mixed);
}

/* What the ranks of one cluster have for those of another. */
static uint64_t between(int from, int to)
{
	uint64_t sum = 0;
	int s, d;

	for (s = 0; s < x.n; s++)
		for (d = 0; d < x.n; d++)
			if (x.topo.cluster[s] == from && x.topo.cluster[d] == to)
				sum += x.c.counts ? x.c.counts[s * x.n + d] : x.c.count;
	return sum;
}

/* Between any two clusters: as many messages as senders, each to a counterpart of its own, and
 * every block in one of them. */
static void check_wan(void)
{
	int from, to;

	for (from = 0; from < x.topo.nclusters; from++)
		for (to = 0; to < x.topo.nclusters; to++) {
			struct traffic t = traffic_between(&x, from, to);
			int n = from == to ? 0 : gci_coll_senders(&x.c, from, to);

			if (from == to)
				continue;
			assert_int_equal(t.messages, n);
			assert_int_equal(t.senders, n);
			assert_int_equal(t.receivers, n);
			assert_int_equal(t.elements, between(from, to));
		}
}

static void one_message_per_pair_and_sender(void **state)
{
	struct gci_coll c = {.count = 12};
	int mixed;

	(void)state;
	for (mixed = 0; mixed < 2; mixed++)
		for (c.senders = 1; c.senders <= 5; c.senders++)
			for (c.stride = 0; c.stride <= 20; c.stride += 20) {
				emit("clusters", c, (int[]){5, 3, 1, 6, 0}, mixed);
				check_wan();
				scheds_free(&x);
			}
}

static void one_message_for_blocks_of_any_length(void **state)
{
	uint64_t counts[9 * 9];
	struct gci_coll c = {.counts = counts, .count = 10};
	int i;

	(void)state;
	for (i = 0; i < 81; i++)
		counts[i] = (uint64_t)(i * 5 % 7) + (i == 40);
	for (c.senders = 1; c.senders <= 3; c.senders++) {
		emit("clusters", c, (int[]){5, 4, 0}, 1);
		check_wan();
		scheds_free(&x);
	}
}

/* With as many senders as ranks, what a rank collects it sends itself, to whom it is for. */
static void nothing_is_handed_on(void **state)
{
	struct gci_coll c = {.count = 10, .senders = 4};
	int r;

	(void)state;
	emit("clusters", c, (int[]){4, 4, 0}, 0);
	for (r = 0; r < 8; r++) {
		struct traffic t = traffic_from(&x, r);

		assert_int_equal(t.messages, 3 + 1 + 3);
		assert_int_equal(t.elements, 10 * (3 + 4 + 3));
	}
	scheds_free(&x);
}

/* The one sender to each of several clusters is another rank each time. */
static void senders_go_round(void **state)
{
	struct gci_coll c = {.count = 10, .senders = 1};
	int r, to, used[16] = {0};
	uint32_t i;

	(void)state;
	emit("clusters", c, (int[]){4, 4, 4, 4, 0}, 0);
	for (r = 0; r < 4; r++)
		for (i = 0; i < x.s[r].nsteps; i++)
			used[r] += x.s[r].steps[i].kind == GCI_STEP_SEND &&
				   x.topo.cluster[x.s[r].steps[i].peer] != 0;
	for (r = 0, to = 0; r < 4; r++) {
		assert_in_range(used[r], 0, 1);
		to += used[r];
	}
	assert_int_equal(to, 3);
	scheds_free(&x);
}

/* Blocks travel by the powers of two in their distance: one message a round. */
static void bruck_has_few_rounds(void **state)
{
	struct gci_coll c = {.count = 10};
	int p, r, i, rounds, hops;

	(void)state;
	for (p = 2; p <= 20; p++) {
		emit("bruck", c, (int[]){p, 0}, 0);
		for (rounds = 0; 1 << rounds < p;)
			rounds++;
		for (i = 1, hops = 0; i < p; i++)
			hops += __builtin_popcount((unsigned)i);
		for (r = 0; r < p; r++) {
			assert_int_equal(traffic_from(&x, r).messages, rounds);
			assert_int_equal(traffic_from(&x, r).elements, hops * 10);
		}
		scheds_free(&x);
	}
}

/* Two messages for every rank but the first, and no more than three pieces a rank to copy. */
static void gather_scatter_uses_a_binary_tree(void **state)
{
	struct gci_coll c = {.count = 10};
	uint64_t messages = 0;
	int r;

	(void)state;
	emit("gather-scatter", c, (int[]){100, 0}, 0);
	for (r = 0; r < 100; r++) {
		struct traffic t = traffic_from(&x, r);

		messages += t.messages;
		assert_in_range(t.messages, 1, 3);
		assert_in_range(x.s[r].nsteps, 2, 3 * 100 + 7);
	}
	assert_int_equal(messages, 2 * 99);
	scheds_free(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_message_per_pair_and_sender),
		cmocka_unit_test(one_message_for_blocks_of_any_length),
		cmocka_unit_test(nothing_is_handed_on),
		cmocka_unit_test(senders_go_round),
		cmocka_unit_test(bruck_has_few_rounds),
		cmocka_unit_test(gather_scatter_uses_a_binary_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
