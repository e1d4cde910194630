/* SPDX-License-Identifier: MIT
 * Which candidates are worth a simulation: formulas for all, bounded lists, and that what short
 * lists leave out is little worse. */
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/tuner/candidates.h"
#include "collectives/tuner/estimate.h"
#include "tests/collectives/topologies.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static const char two_sites[] = "[cluster k]\nhosts = k[1-8]\nnic = 1Gbit\nlan_delay = 50us\n"
				"[cluster t]\nhosts = t[1-8]\nnic = 1Gbit\nlan_delay = 50us\n"
				"[link k t]\nrate = 10Gbit\ndelay = 10ms\n";
static const char thin[] = "[cluster a]\nhosts = a[1-4]\nnic = 1Gbit\nlan_delay = 50us\n"
			   "[cluster b]\nhosts = b[1-3]\nnic = 1Gbit\nlan_delay = 50us\n"
			   "[cluster c]\nhosts = c[1-5]\nnic = 100Mbit\nlan_delay = 50us\n"
			   "[link a b]\nrate = 100Mbit\ndelay = 5ms\nflow_rate = 2Mbit\n"
			   "[link a c]\nrate = 200Mbit\ndelay = 40ms\n"
			   "[link b c]\nrate = 50Mbit\ndelay = 20ms\n";
static const char one_site[] = "[cluster a]\nhosts = a[1-7]\nnic = 1Gbit\nlan_delay = 50us\n";

static const char *const grids[] = {two_sites, thin, one_site};

#define NGRIDS 3

struct net {
	struct gci_topo topo;
	struct gci_simnet net;
};

static void open_net(struct net *x, const char *text)
{
	topology_parse(&x->topo, text);
	assert_int_equal(gci_simnet_init(&x->net, &x->topo, NULL), 0);
}

static void close_net(struct net *x)
{
	gci_simnet_free(&x->net);
	gci_topo_free(&x->topo);
}

static struct gci_coll coll_of(const struct net *x, enum gci_kind kind, uint64_t nbytes)
{
	uint64_t n = gci_kind_has_vector(kind) ? 1 : (uint64_t)x->topo.nranks;

	return (struct gci_coll){.kind = kind,
		.topo = &x->topo,
		.count = kind == GCI_BARRIER ? 0 : nbytes / 4 / n,
		.esize = 4};
}

/* A row of an algorithm table is whole: the fallback of gci_estimate is for tests' own algorithms. */
static void all_rows_are_whole(void **state)
{
	const struct gci_algorithm *a;

	(void)state;
	gci_each_algorithm (a) {
		const char *kind = gci_kind_name(a->kind);

		if (!a->estimate)
			fail_msg("%s by %s has no formula: write gci_estimate_NAME in "
				 "collectives/tuner/formulas.c, declare it in formulas.h, and name "
				 "it "
				 "last in the row in collectives/%s/%s.c",
				kind, a->name, kind, kind);
		if (!a->summary || !*a->summary)
			fail_msg("%s by %s has no entry in gridcoll bench --list: put its summary "
				 "third in the row in collectives/%s/%s.c",
				kind, a->name, kind, kind);
	}
}

static void all_have_formulas(void **state)
{
	const struct gci_algorithm *a;
	int i;

	(void)state;
	for (i = 0; i < NGRIDS; i++) {
		struct net x;

		open_net(&x, grids[i]);
		gci_each_algorithm (a) {
			struct gci_coll c = coll_of(&x, a->kind, 1 << 20);
			struct gci_candidate how = {.algorithm = a};
			struct gci_estimator e;
			uint64_t ns;

			assert_int_equal(gci_estimator_init(&e, &x.net, &c), 0);
			ns = gci_estimate(&e, &how);
			if (!ns || ns > 3600 * GCI_NS_PER_S)
				fail_msg("%s by %s: its formula in collectives/tuner/formulas.c "
					 "says %llu ns for 1 MiB on grid %d of this test, expected "
					 "more than 0 and an hour at most",
					gci_kind_name(a->kind), a->name, (unsigned long long)ns, i);
			gci_estimator_free(&e);
		}
		close_net(&x);
	}
}

/* By hand: 1 MiB at 956.4 Mbit/s of payload takes 8771 us; a message 15 us, while the NIC works on
 * the one before; a hop in the LAN 50 us. A chain of 7 ranks in one segment; in 16 of 64 KiB, 548
 * us each. A flat tree. */
static void trees_by_hand(void **state)
{
	static const struct {
		const char *text;
		uint64_t us;
	} cases[] = {{"chain", 6 * (8771 + 15 + 50)},
		{"chain:segment=64KiB", 6 * (548 + 15 + 50) + 15 * 548},
		{"sequential", 15 + 6 * 8771 + 50}, {"binary", 2 * (15 + 2 * 8771 + 50)},
		/* Rank 3 or 5: by two others, each with its largest subtree first. */
		{"binomial", 3 * 8771 + 2 * (15 + 50)}};
	struct net x;
	struct gci_coll c;
	struct gci_estimator e;
	size_t i;

	(void)state;
	open_net(&x, one_site);
	c = coll_of(&x, GCI_BCAST, 1 << 20);
	assert_int_equal(gci_estimator_init(&e, &x.net, &c), 0);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gci_candidate how;
		uint64_t us;

		assert_int_equal(gci_candidate_parse(&how, GCI_BCAST, cases[i].text, NULL), 0);
		us = gci_estimate(&e, &how) / 1000;
		if (us > cases[i].us + 30 || us + 30 < cases[i].us)
			fail_msg(
				"%s: %d us, expected %d", cases[i].text, (int)us, (int)cases[i].us);
	}
	gci_estimator_free(&e);
	close_net(&x);
}

static int is_same(const struct gci_candidate *a, const struct gci_candidate *b)
{
	return a->algorithm == b->algorithm && a->senders == b->senders && a->degree == b->degree &&
	       a->segment_nbytes == b->segment_nbytes;
}

/* What the list promises, whatever its length. */
static void check_list(const struct net *x, const struct gci_coll *c, size_t most)
{
	struct gci_candidate *list;
	size_t i, k, n;

	assert_int_equal(gci_candidates(&x->net, c, most, &list, &n), 0);
	assert_in_range(n, 1, most);
	for (i = 0; i < n; i++) {
		assert_int_equal(list[i].algorithm->kind, c->kind);
		assert_null(gci_ineligible(list[i].algorithm, c));
		assert_true(list[i].segment_nbytes <= c->count * c->esize);
		for (k = 0; k < i; k++)
			assert_false(is_same(&list[i], &list[k]));
		assert_true(most >= GCI_SHORT_LIST || !(list[i].algorithm->traits & GCI_PLANS));
	}
	gci_free(list);
}

/* A message that the other side has no room for goes over a WAN when it was asked for, a way of 10
 * ms later than one that is a little shorter. */
static void credit_crosses_the_wan_first(void **state)
{
	uint64_t ns[2];
	struct net x;
	int i;

	(void)state;
	open_net(&x, two_sites);
	for (i = 0; i < 2; i++) {
		struct gci_coll c = coll_of(&x, GCI_BCAST, GCI_WAN_EAGER - 4 * (unsigned)i);
		struct gci_candidate how;
		struct gci_estimator e;

		assert_int_equal(gci_candidate_parse(&how, GCI_BCAST, "magpie", NULL), 0);
		assert_int_equal(gci_estimator_init(&e, &x.net, &c), 0);
		ns[i] = gci_estimate(&e, &how);
		gci_estimator_free(&e);
	}
	assert_true(ns[0] > ns[1] + 9 * GCI_NS_PER_MS);
	close_net(&x);
}

/* Where the grid's file says how many may send at once, short lists keep to that. */
static void short_lists_keep_to_the_grid(void **state)
{
	char capped[sizeof(two_sites) + 16];
	int i, k, with_senders = 0;

	(void)state;
	snprintf(capped, sizeof(capped), "%ssenders = 2\n", two_sites);
	for (i = 0; i < 2; i++)
		for (k = 0; k < GCI_NKINDS; k++) {
			struct gci_candidate *list;
			struct gci_coll c;
			struct net x;
			size_t m, n;

			open_net(&x, i ? capped : two_sites);
			c = coll_of(&x, (enum gci_kind)k, 1 << 20);
			assert_int_equal(
				gci_candidates(&x.net, &c, GCI_SHORT_LIST - 1, &list, &n), 0);
			for (m = 0; m < n; m++) {
				with_senders += list[m].senders && !i;
				assert_true(!i || (!list[m].senders &&
							  list[m].algorithm->traits &
								  (GCI_CAPS_SENDERS | GCI_PACKS)));
			}
			gci_free(list);
			close_net(&x);
		}
	assert_true(with_senders > 0);
}

/* Nothing is packed or simulated; few bytes go by few pairs between clusters, and in one cluster by many. */
static void rough_ways(void **state)
{
	struct gci_candidate how;
	struct gci_coll c;
	struct net x;
	int k;

	(void)state;
	open_net(&x, two_sites);
	for (k = 0; k < GCI_NKINDS; k++) {
		c = coll_of(&x, (enum gci_kind)k, 64);
		assert_int_equal(gci_candidate_rough(&x.net, &c, &how), 0);
		assert_true(how.algorithm->traits & GCI_CAPS_SENDERS);
		c = coll_of(&x, (enum gci_kind)k, 32 << 20);
		assert_int_equal(gci_candidate_rough(&x.net, &c, &how), 0);
		assert_false(how.algorithm->traits & (GCI_PACKS | GCI_PLANS));
		assert_true(!how.segment_nbytes || how.segment_nbytes >= 16384);
	}
	close_net(&x);
	open_net(&x, one_site);
	c = coll_of(&x, GCI_ALLREDUCE, 64);
	assert_int_equal(gci_candidate_rough(&x.net, &c, &how), 0);
	assert_string_equal(how.algorithm->name, "doubling");
	close_net(&x);
}

static void lists_are_bounded(void **state)
{
	static const size_t most[] = {1, 2, 5, 40, 100000};
	static const uint64_t sizes[] = {0, 4, 64 << 10, 32 << 20};
	struct net x;
	size_t s, m;
	int i, k, order;

	(void)state;
	for (i = 0; i < NGRIDS; i++) {
		open_net(&x, grids[i]);
		for (k = 0; k < GCI_NKINDS; k++)
			for (s = 0; s < 4; s++)
				for (m = 0; m < 5; m++)
					for (order = 0; order < 3; order++) {
						struct gci_coll c =
							coll_of(&x, (enum gci_kind)k, sizes[s]);

						if (order && !gci_kind_reduces(c.kind))
							continue;
						c.order = (enum gci_order)order;
						check_list(&x, &c, most[m]);
					}
		close_net(&x);
	}
}

static void no_memory(void **state)
{
	struct net x;
	struct gci_coll c;
	struct gci_candidate *list;
	size_t n;
	int i, rc;

	(void)state;
	open_net(&x, two_sites);
	c = coll_of(&x, GCI_BCAST, 1 << 20);
	for (i = 1;; i++) {
		gci_mem_fail_at((unsigned long)i);
		rc = gci_candidates(&x.net, &c, 5, &list, &n);
		if (!gci_mem_failed())
			break;
		assert_int_equal(rc, GCOLL_ERR_NOMEM);
		assert_null(list);
		assert_int_equal(n, 0);
	}
	gci_mem_fail_at(0);
	assert_true(i > 3);
	assert_int_equal(rc, 0);
	gci_free(list);
	close_net(&x);
}

static void values_of_parameters(void **state)
{
	static const uint32_t two[] = {1, 2, 4, 8};
	uint32_t counts[GCI_MOST_SENDER_COUNTS];
	uint64_t sizes[GCI_MOST_SEGMENTS];
	struct net x;
	struct gci_coll c;

	(void)state;
	open_net(&x, two_sites);
	assert_int_equal(gci_sender_counts(&x.net, counts), 4);
	assert_memory_equal(counts, two, sizeof(two));
	/* 3 NICs' worth. */
	x.net.links[1].bps = 3 * x.net.nic_bps[0];
	assert_int_equal(gci_sender_counts(&x.net, counts), 5);
	assert_int_equal(counts[2], 3);
	/* The other way 5, after all clusters have their word. */
	x.net.links[2].bps = 5 * x.net.nic_bps[0];
	assert_int_equal(gci_sender_counts(&x.net, counts), 6);
	assert_int_equal(counts[4], 5);
	c = coll_of(&x, GCI_BCAST, 20000);
	assert_int_equal(gci_segment_sizes(&c, GCI_LEAST_SEGMENT, sizes), 4);
	assert_int_equal(sizes[0], 4096);
	assert_int_equal(sizes[2], 16384);
	assert_int_equal(sizes[3], 20000);
	c.kind = GCI_SCATTER;
	c.count = 2;
	assert_int_equal(gci_segment_sizes(&c, 1, sizes), 2);
	assert_int_equal(sizes[0], 4);
	assert_int_equal(sizes[1], 8);
	close_net(&x);
	open_net(&x, one_site);
	assert_int_equal(gci_sender_counts(&x.net, counts), 0);
	close_net(&x);
}

/* The best of so many, by simulation. */
static uint64_t best_of(const struct net *x, const struct gci_coll *c, size_t most, char *name)
{
	struct gci_candidate *list;
	uint64_t ns, best = GCI_NEVER;
	size_t i, n;

	assert_int_equal(gci_candidates(&x->net, c, most, &list, &n), 0);
	for (i = 0; i < n; i++) {
		const struct gci_predict_limits limits = {.most_steps = 200000};

		if (gci_predict(&x->net, c, &list[i], &limits, &ns) || ns >= best)
			continue;
		best = ns;
		gci_candidate_print(&list[i], name);
	}
	gci_free(list);
	assert_true(best != GCI_NEVER);
	return best;
}

/* Five candidates against sixty. */
static void short_lists_have_good_ones(void **state)
{
	static const uint64_t sizes[] = {4 << 10, 64 << 10, 1 << 20};
	unsigned cells = 0, near = 0, percent, worst = 0;
	char few[GCI_CANDIDATE_NBYTES], many[GCI_CANDIDATE_NBYTES];
	size_t s;
	int i, k;

	(void)state;
	for (i = 0; i < NGRIDS; i++)
		for (k = 0; k < GCI_NKINDS; k++)
			for (s = 0; s < (k == GCI_BARRIER ? 1 : 3); s++) {
				struct net x;
				struct gci_coll c;
				uint64_t five, all;

				open_net(&x, grids[i]);
				c = coll_of(&x, (enum gci_kind)k, sizes[s]);
				five = best_of(&x, &c, 5, few);
				all = best_of(&x, &c, 60, many);
				percent = (unsigned)(five * 100 / all) - 100;
				if (five > all * 11 / 10)
					print_message(
						"grid %d, %s of %u: %s, %u %% slower than %s\n", i,
						gci_kind_name(c.kind), (unsigned)sizes[s], few,
						percent, many);
				cells++;
				near += five <= all * 11 / 10;
				worst = percent > worst ? percent : worst;
				close_net(&x);
			}
	print_message("%u of %u within 10 %%, worst %u %% slower\n", near, cells, worst);
	assert_true(near * 20 >= cells * 19);
	assert_true(worst <= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_rows_are_whole),
		cmocka_unit_test(all_have_formulas),
		cmocka_unit_test(trees_by_hand),
		cmocka_unit_test(credit_crosses_the_wan_first),
		cmocka_unit_test(short_lists_keep_to_the_grid),
		cmocka_unit_test(rough_ways),
		cmocka_unit_test(lists_are_bounded),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(values_of_parameters),
		cmocka_unit_test(short_lists_have_good_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
