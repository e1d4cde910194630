/* SPDX-License-Identifier: MIT
 * The simulator where not all of a long operation is simulated, and its limits. */
#include "tests/test.h"

#include "base/mem.h"
#include "collectives/tuner/candidate.h"
#include "tests/collectives/simple_net.h"
#include "tests/collectives/topologies.h"

#include <inttypes.h>
#include <stdio.h>

static void assert_near(uint64_t got, uint64_t want, unsigned percent, const char *what)
{
	uint64_t off = got > want ? got - want : want - got;

	if (off * 100 > want * percent)
		fail_msg("%s: %" PRIu64 " ns, expected %" PRIu64, what, got, want);
}

/* Windows of 1 MiB among four ranks of a cluster; `c` and `op` are filled in. */
static void open_windows(struct gci_simnet *net, struct gci_topo *t, enum gci_kind kind,
	const char *name, uint64_t nbytes, struct gci_coll *c, struct gci_sim_op *op)
{
	simple_open(net, t, (int[]){4, 0}, 1);
	*c = bytes(t, kind, nbytes);
	*op = (struct gci_sim_op){
		.algorithm = gci_algorithm_find(kind, name), .coll = c, .window_nbytes = MIB};
}

/* Many windows are extrapolated from six; smaller ones show what all would take. */
static void many_windows(void **state)
{
	struct gci_sim_result six, seven;
	struct gci_simnet net;
	struct gci_sim_op op;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	open_windows(&net, &t, GCI_ALLREDUCE, "ring", 6 * MIB, &c, &op);
	assert_int_equal(gci_simulate(&net, &op, &six), 0);
	assert_int_equal(six.nwindows, 6);
	assert_false(six.extrapolated);
	c.count = 100 * MIB;
	assert_int_equal(gci_simulate(&net, &op, &seven), 0);
	assert_true(seven.extrapolated);
	/* A window more takes what its bytes take: 1.5 MiB through each NIC. */
	assert_near(seven.ns - six.ns, 94 * (uint64_t)MIB * 8 * 3 / 2, 10, "94 windows more");
	assert_int_equal(seven.wan_nbytes[0], six.wan_nbytes[0] / 6 * 100);
	gci_sim_result_free(&six);
	gci_sim_result_free(&seven);
	net_close(&net, &t);
}

/* The last of those that are simulated is the operation's last, and a short one tells of the others less than these. */
static void a_short_last_window(void **state)
{
	struct gci_sim_result even, more;
	struct gci_simnet net;
	struct gci_sim_op op;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	open_windows(&net, &t, GCI_ALLGATHER, "simple", 25 * MIB, &c, &op);
	assert_int_equal(gci_simulate(&net, &op, &even), 0);
	c.count++;
	assert_int_equal(gci_simulate(&net, &op, &more), 0);
	assert_int_equal(more.nwindows, even.nwindows + 1);
	assert_near(more.ns, even.ns, 1, "a byte more of each");
	assert_near(more.busiest_ns, even.busiest_ns, 1, "of that, at work");
	assert_near(more.wan_nbytes[0], even.wan_nbytes[0], 1, "what was sent");
	gci_sim_result_free(&even);
	gci_sim_result_free(&more);
	net_close(&net, &t);
}

/* Where windows end in another order than they began in; and with one window for all. */
static void windows_in_any_order(void **state)
{
	static const enum gci_kind kinds[] = {GCI_ALLGATHER, GCI_ALLREDUCE, GCI_BCAST};
	static const char *const names[] = {"ring", "rabenseifner-mod", "magpie-pipelined"};
	const int sizes[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0};
	struct gci_sim_result six, many, one;
	struct gci_simnet net;
	struct gci_topo t;
	size_t i;

	(void)state;
	net_open(&net, &t, sizes, 10);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct gci_coll c = bytes(&t, kinds[i], 24 * MIB);
		struct gci_sim_op op = {.algorithm = gci_algorithm_find(kinds[i], names[i]),
			.coll = &c,
			.window_nbytes = 4 * MIB};

		c.count /= gci_kind_has_vector(kinds[i]) ? 1 : 24;
		assert_int_equal(gci_simulate(&net, &op, &six), 0);
		c.count *= 20;
		assert_int_equal(gci_simulate(&net, &op, &many), 0);
		assert_in_range(many.ns, six.ns * 5, six.ns * 20);
		op.most_steps = six.nsteps / 2; /* of three windows: too few to tell */
		assert_int_equal(gci_simulate(&net, &op, &one), 0);
		assert_true(one.nsteps < many.nsteps / 4);
		assert_in_range(one.ns, many.ns / 3, many.ns * 3); /* tells less */
		gci_sim_result_free(&six);
		gci_sim_result_free(&many);
		gci_sim_result_free(&one);
	}
	net_close(&net, &t);
}

/* Times that no clock can hold stay at the most there is. */
static void absurd_sizes(void **state)
{
	static const char text[] = "[cluster a]\nhosts = a[1-2]\nnic = 1kbit\n";
	struct gci_sim_op op;
	struct gci_sim_result r;
	struct gci_simnet net;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	topology_parse(&t, text);
	assert_int_equal(gci_simnet_init(&net, &t, NULL), 0);
	c = bytes(&t, GCI_BCAST, UINT64_MAX / 2);
	op = (struct gci_sim_op){
		.algorithm = gci_algorithm_find(GCI_BCAST, "binomial"), .coll = &c};
	assert_int_equal(gci_simulate(&net, &op, &r), 0);
	assert_true(r.ns == GCI_SIM_MOST);
	assert_true(r.busiest_ns == GCI_SIM_MOST);
	gci_sim_result_free(&r);
	net_close(&net, &t);
}

/* Predictions with limits extrapolate pipelines: as a rule very close to what the whole gives. Not
 * where 32 segments still fit into the allowance of a WAN, and later ones wait for credit; nor
 * where the first ones flood a port. */
static void many_segments(void **state)
{
	const int sizes[] = {5, 4, 0};
	const struct gci_predict_limits limits = {.most_steps = 1000000};
	const struct gci_algorithm *a;
	struct gci_simnet net;
	struct gci_topo t;
	int compared = 0, close = 0;

	(void)state;
	net_open(&net, &t, sizes, 10);
	gci_each_algorithm (a) {
		struct gci_coll c = bytes(&t, a->kind, 4 * MIB);
		struct gci_candidate w = {.algorithm = a, .segment_nbytes = 16 * KIB};
		uint64_t all, quick;

		if (!(a->traits & GCI_USES_SEGMENT) || gci_ineligible(a, &c))
			continue;
		if (!gci_kind_has_vector(a->kind))
			c.count /= 4;
		assert_int_equal(gci_predict(&net, &c, &w, NULL, &all), 0);
		assert_int_equal(gci_predict(&net, &c, &w, &limits, &quick), 0);
		assert_near(quick, all, 60, a->name);
		close += quick * 20 >= all * 19 && quick * 20 <= all * 21;
		compared++;
	}
	assert_true(compared > 10);
	assert_true(close * 10 >= compared * 8);
	net_close(&net, &t);
}

/* What is still under way at a given time takes "longer", after as little effort as that needs;
 * what ends then takes what it takes. Of a whole message, and of a pipeline's first segments. */
static void late_ones_are_given_up(void **state)
{
	static const uint64_t nbytes[] = {16 * KIB, 4 * MIB};
	const int sizes[] = {5, 4, 0};
	struct gci_simnet net;
	struct gci_topo t;
	int i;

	(void)state;
	net_open(&net, &t, sizes, 10);
	for (i = 0; i < 2; i++) {
		struct gci_coll c = bytes(&t, GCI_BCAST, nbytes[i]);
		struct gci_candidate w = {
			.algorithm = gci_algorithm_find(GCI_BCAST, "chain"), .segment_nbytes = KIB};
		uint64_t whole = 0, part = 0, ns, again;
		struct gci_predict_limits limits = {.most_steps = 1000000, .spent = &whole};

		assert_int_equal(gci_predict(&net, &c, &w, &limits, &ns), 0);
		limits.until_ns = ns;
		assert_int_equal(gci_predict(&net, &c, &w, &limits, &again), 0);
		assert_true(again == ns);
		limits.until_ns = ns / 4;
		limits.spent = &part;
		assert_int_equal(gci_predict(&net, &c, &w, &limits, &again), 0);
		assert_true(again == GCI_NEVER);
		assert_true(part * 3 < whole);
	}
	net_close(&net, &t);
}

static void limits(void **state)
{
	const int sizes[] = {8, 0}, apart[] = {3, 3, 0};
	struct gci_sim_op op;
	struct gci_sim_result r;
	struct gci_simnet net;
	struct gci_topo t;
	struct gci_coll c;
	unsigned long n;

	(void)state;
	net_open(&net, &t, sizes, 1);
	c = bytes(&t, GCI_ALLGATHER, KIB);
	op = (struct gci_sim_op){.algorithm = gci_algorithm_find(GCI_ALLGATHER, "ring"),
		.coll = &c,
		.most_steps = 100};
	assert_int_equal(gci_simulate(&net, &op, &r), GCOLL_ERR_INVAL);
	op.most_steps = 1000;
	assert_int_equal(gci_simulate(&net, &op, &r), 0);
	gci_sim_result_free(&r);
	net_close(&net, &t);
	/* Out of memory anywhere: an error, never another time, and nothing is left behind. */
	net_open(&net, &t, apart, 1);
	for (n = 1;; n++) {
		int rc;

		gci_mem_fail_at(n);
		rc = gci_simulate(&net, &op, &r);
		if (!gci_mem_failed())
			break;
		assert_int_equal(rc, GCOLL_ERR_NOMEM);
		gci_sim_result_free(&r);
	}
	gci_mem_fail_at(0);
	gci_sim_result_free(&r);
	net_close(&net, &t);
}

/* Both of two ranks have windows for the other, which wait for credits: those wait behind the data
 * that go the same way, as far as a link keeps any. */
static void credits_wait(void **state)
{
	static const uint64_t bps[] = {0, 100000000};
	const int apart[] = {1, 1, 0};
	struct gci_simnet net;
	struct gci_topo t;
	int i;

	(void)state;
	simple_open(&net, &t, apart, 1);
	net.links[1].eager_nbytes = net.links[2].eager_nbytes = 0;
	for (i = 0; i < 2; i++) {
		struct gci_coll both = bytes(&t, GCI_ALLGATHER, 12 * MIB),
				one = bytes(&t, GCI_BCAST, 12 * MIB);
		struct gci_sim_op op = {.algorithm = gci_algorithm_find(GCI_ALLGATHER, "simple"),
			.coll = &both,
			.window_nbytes = 4 * MIB};
		struct gci_sim_result two_ways, one_way;

		net.links[1].bps = net.links[2].bps = bps[i];
		net.nic_bps[0] = net.nic_bps[1] = i ? 10 * bps[1] : bps[1];
		assert_int_equal(gci_simulate(&net, &op, &two_ways), 0);
		op.algorithm = gci_algorithm_find(GCI_BCAST, "sequential");
		op.coll = &one;
		op.window_nbytes = 2 * MIB;
		assert_int_equal(gci_simulate(&net, &op, &one_way), 0);
		assert_int_equal(two_ways.nwindows, one_way.nwindows);
		if (!i)
			assert_near(two_ways.ns, one_way.ns, 1, "by NICs");
		else
			assert_true(two_ways.ns > one_way.ns + SIMPLE_WAN_NS / 2);
		gci_sim_result_free(&two_ways);
		gci_sim_result_free(&one_way);
	}
	net_close(&net, &t);
}

/* From a to b and to c: links of their own carry that at once; the same one, one after the other.
 */
static void shared_links(void **state)
{
	static const char text[] = "[cluster a]\nhosts = a1\nnic = 10Gbit\n"
				   "[cluster b]\nhosts = b1\nnic = 10Gbit\n"
				   "[cluster c]\nhosts = c1\nnic = 10Gbit\n"
				   "[link a b]\nrate = 100Mbit\ndelay = 1ms\n"
				   "[link b c]\nrate = 100Mbit\ndelay = 1ms\n"
				   "[link a c]\n";
	static const char *const ways[] = {"rate = 100Mbit\ndelay = 2ms\n", "via = b\n"};
	static const int two[] = {0, 2}, three[] = {0, 1, 2};
	uint64_t ns[2], sub_ns[2];
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct gci_topo t, sub;
		struct gci_simnet net;
		struct gci_coll c;
		char grid[512];

		snprintf(grid, sizeof(grid), "%s%s", text, ways[i]);
		topology_parse(&t, grid);
		assert_int_equal(gci_simnet_init(&net, &t, NULL), 0);
		c = bytes(&t, GCI_BCAST, MIB);
		ns[i] = simulate(&net, &c, "sequential");
		gci_simnet_free(&net);
		/* Of a communicator's ranks, too; without any in b the wires are theirs alone. */
		assert_int_equal(gci_topo_sub(&sub, &t, three, 3), 0);
		assert_int_equal(gci_topo_link(&sub, 0, 2)->nroute, i + 1);
		gci_topo_free(&sub);
		assert_int_equal(gci_topo_sub(&sub, &t, two, 2), 0);
		assert_int_equal(gci_topo_link(&sub, 0, 1)->nroute, i + 1);
		assert_int_equal(gci_simnet_init(&net, &sub, NULL), 0);
		c.topo = &sub;
		sub_ns[i] = simulate(&net, &c, "sequential");
		gci_simnet_free(&net);
		gci_topo_free(&sub);
		gci_topo_free(&t);
	}
	assert_in_range(ns[1], ns[0] * 18 / 10, ns[0] * 21 / 10);
	assert_near(sub_ns[1], sub_ns[0], 1, "alone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_windows),
		cmocka_unit_test(a_short_last_window),
		cmocka_unit_test(windows_in_any_order),
		cmocka_unit_test(absurd_sizes),
		cmocka_unit_test(many_segments),
		cmocka_unit_test(late_ones_are_given_up),
		cmocka_unit_test(limits),
		cmocka_unit_test(credits_wait),
		cmocka_unit_test(shared_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
