/* SPDX-License-Identifier: MIT
 * What is special in each alltoall: how many messages, and how much over the WAN. */
#include "tests/test.h"

#include "base/prng.h"
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/layout.h"
#include "tests/collectives/topologies.h"
#include "tests/collectives/traffic.h"

#include <stdio.h>
#include <stdlib.h>

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

/* ---- all pairs at once */

/* A grid of 2 to 5 clusters in which some rates are not known. */
static void make_random(struct gci_topo *t, struct gci_prng *r)
{
	char text[4096];
	int i, k, n = 2 + (int)(gci_prng_next(r) % 4), at = 0;

	for (i = 0; i < n; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at,
			"[cluster c%d]\nhosts = h%d-[1-%d]\nnic = %dMbit\n", i, i,
			1 + (int)(gci_prng_next(r) % 6), 100 + (int)(gci_prng_next(r) % 900));
	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++) {
			at += snprintf(text + at, sizeof(text) - (size_t)at,
				"[link c%d c%d]\ndelay = %dms\n", i, k,
				1 + (int)(gci_prng_next(r) % 50));
			if (gci_prng_next(r) % 4)
				at += snprintf(text + at, sizeof(text) - (size_t)at,
					"rate = %dMbit\n", 50 + (int)(gci_prng_next(r) % 2000));
		}
	topology_parse(t, text);
}

/* Adds what a rank sends to what its NIC, others' NICs and links have to carry. */
static void add_rates(
	const struct gci_coll *c, int rank, uint64_t *out, uint64_t *in, uint64_t *links)
{
	const struct gci_topo *t = c->topo;
	uint64_t *bps = calloc((size_t)t->nranks, sizeof(*bps));
	int i;

	assert_int_equal(gci_alltoall_even_bps(c, rank, bps), 1);
	assert_int_equal(bps[rank], 0);
	for (i = 0; i < t->nranks; i++) {
		assert_int_equal(!!bps[i], i != rank && gci_block_len(c, rank, i));
		out[rank] += bps[i];
		in[i] += bps[i];
		links[t->cluster[rank] * t->nclusters + t->cluster[i]] += bps[i];
	}
	free(bps);
}

static double most(double a, uint64_t load, uint64_t bps)
{
	double b = bps ? (double)load / (double)bps : 0;

	return a > b ? a : b;
}

/* On any grid: nothing is offered more than it carries, and something nearly that. */
static void pairs_share_what_there_is(void **state)
{
	struct gci_prng r = {20};
	int round, i, k;

	(void)state;
	for (round = 0; round < 200; round++) {
		uint64_t out[32] = {0}, in[32] = {0}, links[25] = {0}, counts[32 * 32];
		struct gci_topo t;
		struct gci_coll c = {.kind = GCI_ALLTOALL, .topo = &t, .count = 1000, .esize = 4};
		double busiest = 0;

		make_random(&t, &r);
		for (i = 0; i < 32 * 32; i++)
			counts[i] = gci_prng_next(&r) % 4 * 10000;
		c.counts = round % 2 ? counts : NULL;
		for (i = 0; i < t.nranks; i++)
			add_rates(&c, i, out, in, links);
		for (i = 0; i < t.nranks; i++) {
			busiest = most(busiest, out[i], t.nic_bps[t.cluster[i]]);
			busiest = most(busiest, in[i], t.nic_bps[t.cluster[i]]);
		}
		for (i = 0; i < t.nclusters; i++)
			for (k = 0; k < t.nclusters; k++)
				if (i != k)
					busiest = most(busiest, links[i * t.nclusters + k],
						gci_topo_link(&t, i, k)->rate_bps);
		if (busiest < 0.95 || busiest > 0.98)
			fail_msg("round %d: the busiest NIC or link is at %.3f", round, busiest);
		gci_topo_free(&t);
	}
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
		cmocka_unit_test(pairs_share_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
