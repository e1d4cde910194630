/* SPDX-License-Identifier: MIT
 * The simulator: times by hand for small cases, and what must hold for every algorithm. What it
 * does not simulate to the end: test_sim_parts.c. */
#include "tests/test.h"

#include "base/clock.h"
#include "collectives/blocks/layout.h"
#include "collectives/models/isend.h"
#include "collectives/models/limit.h"
#include "tests/collectives/simple_net.h"
#include "tests/collectives/topologies.h"

#include <inttypes.h>
#include <stdio.h>

#define MS    GCI_NS_PER_MS
#define WAN_L SIMPLE_WAN_NS

/* From rank 0 to rank 1, at a quarter of what the way takes; what others are held to does not count. */
static void paced_message(const struct gci_simnet *net, const struct gci_coll *c)
{
	static const uint64_t quarter[4] = {0, 250000000, 1000, 0};
	struct gci_sim_op op = {.algorithm = gci_algorithm_find(GCI_BCAST, "sequential"),
		.coll = c,
		.pace_bps = quarter};
	struct gci_sim_result r;

	assert_int_equal(gci_simulate(net, &op, &r), 0);
	assert_in_range(r.ns, WAN_L + 32 * MIB - MS, WAN_L + 32 * MIB);
	gci_sim_result_free(&r);
}

/* One message: its overheads, its bytes, the way; and beyond the allowance no wait for a credit
 * that was given at the start. */
static void one_message(void **state)
{
	const int sizes[] = {2, 0}, apart[] = {1, 1, 0};
	struct gci_simnet net;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	simple_open(&net, &t, sizes, 1);
	c = bytes(&t, GCI_BCAST, 1000);
	assert_int_equal(simulate(&net, &c, "sequential"), 8000);
	c.count = MIB;
	assert_int_equal(simulate(&net, &c, "sequential"), 8 * MIB);
	net.send_ns[0] = 500;
	net.recv_ns = 70;
	assert_int_equal(simulate(&net, &c, "sequential"), 8 * MIB + 570);
	net_close(&net, &t);

	simple_open(&net, &t, apart, 1);
	c = bytes(&t, GCI_BCAST, 1000);
	assert_int_equal(simulate(&net, &c, "sequential"), WAN_L + 8000);
	c.count = MIB; /* with its 64 bytes more than the allowance: waits for the credit */
	assert_int_equal(simulate(&net, &c, "sequential"), 2 * WAN_L + 8 * MIB);
	net.links[1].eager_nbytes = 2 * MIB;
	paced_message(&net, &c);
	assert_int_equal(simulate(&net, &c, "sequential"), WAN_L + 8 * MIB);
	/* A link of half the rate, and connections of a quarter of it. */
	net.links[1].bps = 500000000;
	assert_int_equal(simulate(&net, &c, "sequential"), WAN_L + 16 * MIB);
	net.links[1].pair_bps = 250000000;
	assert_in_range(simulate(&net, &c, "sequential"), WAN_L + 32 * MIB - MS, WAN_L + 32 * MIB);
	net_close(&net, &t);
}

/* Two messages of one NIC: taking turns both end late, one at a time only the second does. Two that
 * come in to one NIC have it one after the other. */
static void sharing(void **state)
{
	const int sizes[] = {3, 0};
	struct gci_sim_op op;
	struct gci_sim_result r;
	struct gci_simnet net;
	struct gci_topo t;
	struct gci_coll c;
	uint64_t early;

	(void)state;
	simple_open(&net, &t, sizes, 1);
	c = bytes(&t, GCI_BCAST, MIB);
	op = (struct gci_sim_op){
		.algorithm = gci_algorithm_find(GCI_BCAST, "sequential"), .coll = &c};
	assert_int_equal(gci_simulate(&net, &op, &r), 0);
	assert_int_equal(r.ns, 16 * MIB);
	early = r.end_ns[1] < r.end_ns[2] ? r.end_ns[1] : r.end_ns[2];
	assert_in_range(early, 15 * MIB, 16 * MIB);
	assert_int_equal(r.wan_nbytes[0], 2 * MIB);
	assert_int_equal(r.nmessages, 2);
	gci_sim_result_free(&r);
	net.host = GCI_HOST_FULL_DUPLEX;
	assert_int_equal(gci_simulate(&net, &op, &r), 0);
	assert_int_equal(r.ns, 16 * MIB);
	early = r.end_ns[1] < r.end_ns[2] ? r.end_ns[1] : r.end_ns[2];
	assert_int_equal(early, 8 * MIB);
	gci_sim_result_free(&r);
	net.host = GCI_HOST_FAIR;
	c = bytes(&t, GCI_GATHER, MIB);
	assert_in_range(simulate(&net, &c, "sequential"), 16 * MIB, 17 * MIB);
	net_close(&net, &t);
}

static void note_arrival(void *ctx, const struct gci_sim_event *e)
{
	uint64_t *came_ns = ctx;

	if (e->s->kind == GCI_STEP_RECV)
		came_ns[e->s->peer] = e->came_ns;
}

static void note_departure(void *ctx, const struct gci_sim_event *e)
{
	uint64_t *ns = ctx;

	if (e->s->kind == GCI_STEP_SEND)
		ns[0] = e->to_ns;
	else if (e->s->kind == GCI_STEP_RECV)
		ns[1] = e->came_ns;
}

/* A wire 50 ms away, which holds 84 ms of what it passes, is busy for 335 ms from when the first byte has come, after a
 * credit's 51 ms: never idle, and what it could not hold has not left its sender, but for a piece of 1 MiB, 44 ms. */
static void far_buffers_are_kept(void **state)
{
	static const char grid[] = "[cluster far]\nhosts = far\n[cluster end]\nhosts = end\n"
				   "[switch s]\n[link far s]\nrate = 1Gbit\ndelay = 50ms\n"
				   "[link s end]\nrate = 200Mbit\ndelay = 1ms\nqueue = 2MB\n";
	uint64_t ns[2] = {0};
	struct gci_simnet net;
	struct gci_topo t;
	struct gci_coll c;
	struct gci_sim_op op = {.algorithm = gci_algorithm_find(GCI_GATHER, "sequential"),
		.coll = &c,
		.trace = note_departure,
		.ctx = ns};
	struct gci_sim_result r;

	(void)state;
	topology_parse(&t, grid);
	assert_int_equal(gci_simnet_init(&net, &t, NULL), 0);
	c = bytes(&t, GCI_GATHER, 8000000);
	c.root = 1;
	assert_int_equal(gci_simulate(&net, &op, &r), 0);
	assert_in_range(ns[0], 250 * MS, 310 * MS);
	assert_in_range(ns[1], 434 * MS, 440 * MS);
	gci_sim_result_free(&r);
	net_close(&net, &t);
}

/* What is far has not come to the wire that it shares with what is near when that does: 100,000 bytes take 40 ms there. */
static void wires_pass_on_what_comes(void **state)
{
	static const char grid[] = "[cluster far]\nhosts = far\n[cluster near]\nhosts = "
				   "near\n[cluster end]\nhosts = end\n"
				   "[switch s]\n[link far s]\nrate = 1Gbit\ndelay = 50ms\n"
				   "[link near s]\nrate = 1Gbit\ndelay = 1ms\n[link s end]\nrate = "
				   "20Mbit\ndelay = 1ms\n";
	uint64_t came_ns[3] = {0};
	struct gci_simnet net;
	struct gci_topo t;
	struct gci_coll c;
	struct gci_sim_op op = {.algorithm = gci_algorithm_find(GCI_GATHER, "sequential"),
		.coll = &c,
		.trace = note_arrival,
		.ctx = came_ns};
	struct gci_sim_result r;

	(void)state;
	topology_parse(&t, grid);
	assert_int_equal(gci_simnet_init(&net, &t, NULL), 0);
	c = bytes(&t, GCI_GATHER, 100000);
	c.root = 2;
	assert_int_equal(gci_simulate(&net, &op, &r), 0);
	assert_in_range(came_ns[1], 42 * MS, 46 * MS);
	assert_in_range(came_ns[0], 91 * MS, 95 * MS);
	gci_sim_result_free(&r);
	net_close(&net, &t);
}

/* A hundred isends, all of them ready at once, one after the other: by equation 1 of Vadhiyar 2004,
 * with the time that those before have taken. */
static void isends(void **state)
{
	struct gci_params_isend pattern = {1000, 1, 15, 3, 70, 9000, 90};
	struct gci_params_point points[] = {{0, 500, 0, 1000}, {1000, 500, 0, 1000}};
	struct gci_params_link link = {
		.points = points, .npoints = 2, .isends = &pattern, .nisends = 1};
	const int sizes[] = {2, 0};
	struct gci_isends row = {0};
	struct gci_simnet net;
	struct gci_topo t;
	struct gci_coll c;
	uint64_t want = 0;
	int i;

	(void)state;
	simple_open(&net, &t, sizes, 1);
	net.nic_bps[0] = 0;
	net.links[0].params = &link;
	c = bytes(&t, GCI_BCAST, 100 * 1000);
	c.segment = 1000;
	for (i = 0; i < 100; i++)
		want += gci_isend_next(&pattern, 1000, &row, want);
	assert_int_equal(simulate(&net, &c, "chain"), want);
	pattern.immediate = 0; /* os is all there is to know */
	assert_int_equal(simulate(&net, &c, "chain"), 100 * 500);
	net_close(&net, &t);
}

/* The root's four streams are two for each far peer, and near ones have one each: what goes far
 * gets two thirds of the NIC and is under way while the rest is sent. */
static void streams(void **state)
{
	const int sizes[] = {3, 2, 0};
	struct gci_simnet net;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	simple_open(&net, &t, sizes, 10);
	c = bytes(&t, GCI_SCATTER, 512 * KIB); /* within the allowance */
	assert_int_equal(net.links[1].streams, 4);
	assert_in_range(simulate(&net, &c, "sequential"), 11 * MIB + WAN_L, 13 * MIB + WAN_L);
	net.links[1].streams = 1;
	assert_in_range(simulate(&net, &c, "sequential"), 15 * MIB + WAN_L, 16 * MIB + WAN_L);
	net_close(&net, &t);
}

/* A short message goes by one of a far peer's four streams, and so has one turn in three beside two
 * to near ranks; and the one that its process offers first does not leave before the others come.
 */
static void short_messages(void **state)
{
	const int sizes[] = {3, 1, 0};
	const uint64_t all = 3 * 32 * KIB * 8;
	struct gci_simnet net;
	struct gci_sim_op op;
	struct gci_sim_result r;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	simple_open(&net, &t, sizes, 10);
	c = bytes(&t, GCI_BCAST, 32 * KIB);
	assert_int_equal(net.links[1].streams, 4);
	assert_in_range(simulate(&net, &c, "sequential"), all * 2 / 3 + WAN_L, all + WAN_L);
	net.send_ns[0] = 500;
	op = (struct gci_sim_op){
		.algorithm = gci_algorithm_find(GCI_BCAST, "sequential"), .coll = &c};
	assert_int_equal(gci_simulate(&net, &op, &r), 0);
	assert_in_range(r.end_ns[1], all * 2 / 3, all + 1500);
	assert_in_range(r.end_ns[2], all * 2 / 3, all + 1500);
	assert_in_range(r.end_ns[3], all * 2 / 3 + WAN_L, all + 1500 + WAN_L);
	gci_sim_result_free(&r);
	net_close(&net, &t);
}

/* A ring's middle hosts send and receive at once, where their ports can. */
static void ports(void **state)
{
	const int sizes[] = {4, 0};
	struct gci_simnet net;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	simple_open(&net, &t, sizes, 1);
	c = bytes(&t, GCI_ALLGATHER, MIB);
	net.host = GCI_HOST_FULL_DUPLEX;
	assert_in_range(simulate(&net, &c, "ring"), 24 * MIB, 25 * MIB);
	net.host = GCI_HOST_HALF_DUPLEX;
	assert_in_range(simulate(&net, &c, "ring"), 48 * MIB, 56 * MIB);
	net_close(&net, &t);
}

/* Cold: connections are opened, and their windows double every round trip. */
static void slow_start(void **state)
{
	const int apart[] = {1, 1, 0};
	struct gci_simnet net;
	struct gci_topo t;
	struct gci_coll c;
	uint64_t warm, ns;

	(void)state;
	simple_open(&net, &t, apart, 1);
	net.links[1].streams = net.links[2].streams = 1;
	c = bytes(&t, GCI_BCAST, 10 * 1448);
	warm = simulate(&net, &c, "sequential");
	net.cold = 1;
	/* One window, once connections are there. */
	assert_int_equal(simulate(&net, &c, "sequential"), warm + 3 * WAN_L);
	/* 1 + 2 + 4 + 8 windows: three round trips more than the last of them takes. */
	c.count = 15 * 10 * 1448;
	ns = simulate(&net, &c, "sequential");
	assert_int_equal(ns, 3 * WAN_L + 6 * WAN_L + WAN_L + 8 * 10 * 1448 * 8);
	/* Four connections have four windows. */
	net.links[1].streams = 4;
	assert_true(simulate(&net, &c, "sequential") < ns - 2 * WAN_L);
	net_close(&net, &t);
}

/* A connection that waits does not grow: whenever the first byte is sent, its window is small. */
static void idle_is_cold(void **state)
{
	const int apart[] = {1, 1, 0};
	struct gci_sim_op op;
	struct gci_sim_result r;
	struct gci_simnet net;
	uint64_t start_ns[2] = {0, 0}, warm, first = 0;
	struct gci_topo t;
	struct gci_coll c;

	(void)state;
	simple_open(&net, &t, apart, 1);
	c = bytes(&t, GCI_BCAST, 4 * MIB);
	warm = simulate(&net, &c, "sequential");
	net.cold = 1;
	op = (struct gci_sim_op){.algorithm = gci_algorithm_find(GCI_BCAST, "sequential"),
		.coll = &c,
		.start_ns = start_ns};
	for (start_ns[0] = 250 * MS; start_ns[0] <= 1000 * MS; start_ns[0] += 250 * MS) {
		assert_int_equal(gci_simulate(&net, &op, &r), 0);
		assert_true(r.ns - start_ns[0] > 2 * warm);
		first = first ? first : r.ns - start_ns[0];
		assert_int_equal(r.ns - start_ns[0], first);
		gci_sim_result_free(&r);
	}
	net_close(&net, &t);
}

/* However they are asked for, so many streams carry the same. */
static void streams_of_the_net(void **state)
{
	static const char text[] = "[cluster a]\nhosts = a\nnic = 100Mbit\n"
				   "[cluster b]\nhosts = b\nnic = 100Mbit\n"
				   "[link a b]\nrate = 100Mbit\ndelay = 10ms\n"
				   "flow_rate = 10Mbit\nstreams = %d\n";
	char one[400], many[400];
	struct gci_simnet net, want;
	struct gci_topo t, wanted;
	struct gci_coll c;
	int n;

	(void)state;
	snprintf(one, sizeof(one), text, 2);
	topology_parse(&t, one);
	for (n = 1; n <= 16; n *= 2) {
		snprintf(many, sizeof(many), text, n);
		topology_parse(&wanted, many);
		assert_int_equal(gci_simnet_init(&net, &t, NULL), 0);
		assert_int_equal(gci_simnet_init(&want, &wanted, NULL), 0);
		gci_simnet_streams(&net, 0);
		assert_int_equal(net.links[1].streams, 2);
		gci_simnet_streams(&net, (uint32_t)n);
		assert_int_equal(net.links[0].streams, 1);
		assert_int_equal(net.links[1].pair_bps, want.links[1].pair_bps);
		c = bytes(&t, GCI_BCAST, MIB);
		assert_int_equal(
			simulate(&net, &c, "sequential"), simulate(&want, &c, "sequential"));
		gci_simnet_free(&net);
		gci_simnet_free(&want);
		gci_topo_free(&wanted);
	}
	gci_topo_free(&t);
}

/* Measured rates and latencies replace the grid's; rates only where they are far from them. */
static void from_measurement(void **state)
{
	const int sizes[] = {2, 2, 0};
	struct gci_params_point points[] = {{0, 100, 200, 300}, {MIB, 1000, 2000, 8000000}};
	struct gci_params_rate lan[] = {{1, 940000000}}, wan[] = {{1, 100000000}, {4, 400000000}};
	struct gci_params_link links[4] = {
		{.latency_ns = 7000, .points = points, .npoints = 2, .rates = lan, .nrates = 1},
		{.latency_ns = 9 * MS, .points = points, .npoints = 2, .rates = wan, .nrates = 2}};
	struct gci_params p = {.nclusters = 2, .links = links};
	struct gci_simnet net;
	struct gci_topo t;
	uint64_t nic;

	(void)state;
	net_open(&net, &t, sizes, 10);
	nic = net.nic_bps[0];
	assert_in_range(nic, 956000000, 957000000);
	gci_simnet_free(&net);
	assert_int_equal(gci_simnet_init(&net, &t, &p), 0);
	assert_int_equal(net.nic_bps[0], nic); /* 940 is near enough */
	assert_int_equal(net.links[0].latency_ns, 7000);
	assert_int_equal(net.links[1].latency_ns, 9 * MS);
	assert_int_equal(net.links[1].pair_bps, 400000000); /* by four streams */
	assert_int_equal(net.links[2].pair_bps, 0);         /* was not measured */
	assert_int_equal(net.links[2].latency_ns, gci_topo_link(&t, 1, 0)->delay_ns);
	gci_simnet_free(&net);
	lan[0].bps = 500000000; /* is not */
	wan[1].bps = 490000000; /* but is all that such NICs can do */
	assert_int_equal(gci_simnet_init(&net, &t, &p), 0);
	assert_int_equal(net.nic_bps[0], 500000000);
	assert_int_equal(net.links[1].pair_bps, 0);
	net_close(&net, &t);
}

/* ---- every algorithm */

struct watch {
	uint64_t nsends, nrecvs, last_ns;
	int wrong;
};

static void watch(void *ctx, const struct gci_sim_event *e)
{
	struct watch *w = ctx;

	w->nsends += e->s->kind == GCI_STEP_SEND;
	w->nrecvs += e->s->kind == GCI_STEP_RECV || e->s->kind == GCI_STEP_RECV_REDUCE;
	w->wrong |= e->from_ns > e->to_ns;
	if (e->s->kind != GCI_STEP_SEND && e->to_ns > w->last_ns)
		w->last_ns = e->to_ns;
}

/* The limit's rates are the model's; only overheads are free to differ. */
static void check(
	const struct gci_simnet *net, const struct gci_algorithm *a, const struct gci_coll *c)
{
	struct watch w = {0};
	struct gci_sim_op op = {.algorithm = a, .coll = c, .trace = watch, .ctx = &w};
	uint64_t limit = gci_limit_ns(c, 0);
	struct gci_sim_result r, again;

	assert_int_equal(gci_simulate(net, &op, &r), 0);
	if (r.ns < limit)
		fail_msg("%s by %s of %" PRIu64 ": %" PRIu64 " ns, the limit is %" PRIu64,
			gci_kind_name(a->kind), a->name, c->count, r.ns, limit);
	assert_false(w.wrong);
	assert_int_equal(w.nsends, r.nmessages);
	assert_int_equal(w.nrecvs, r.nmessages);
	assert_true(w.last_ns <= r.ns);
	assert_int_equal(gci_simulate(net, &op, &again), 0);
	assert_int_equal(r.ns, again.ns);
	assert_memory_equal(r.end_ns, again.end_ns, (size_t)c->topo->nranks * sizeof(*r.end_ns));
	gci_sim_result_free(&r);
	gci_sim_result_free(&again);
}

static void every_algorithm(void **state)
{
	static const int shapes[][5] = {{1, 0}, {2, 1, 0}, {4, 4, 0}, {3, 5, 1, 0}};
	static const uint64_t counts[] = {0, 1, 1000, 100 * KIB};
	const struct gci_algorithm *a;
	struct gci_simnet net;
	struct gci_topo t;
	size_t s, k;

	(void)state;
	for (s = 0; s < sizeof(shapes) / sizeof(*shapes); s++) {
		topology_make(&t, shapes[s], s == 3, 1);
		assert_int_equal(gci_simnet_init(&net, &t, NULL), 0);
		for (k = 0; k < sizeof(counts) / sizeof(*counts); k++)
			gci_each_algorithm (a) {
				struct gci_coll c = bytes(&t, a->kind, counts[k]);

				c.esize = 4;
				c.root = t.nranks / 2;
				net.host = (enum gci_host_model)((s + k) % 3);
				net.cold = k == 2;
				if (!gci_ineligible(a, &c))
					check(&net, a, &c);
			}
		net_close(&net, &t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_message),
		cmocka_unit_test(sharing),
		cmocka_unit_test(wires_pass_on_what_comes),
		cmocka_unit_test(far_buffers_are_kept),
		cmocka_unit_test(streams),
		cmocka_unit_test(short_messages),
		cmocka_unit_test(isends),
		cmocka_unit_test(ports),
		cmocka_unit_test(slow_start),
		cmocka_unit_test(idle_is_cold),
		cmocka_unit_test(streams_of_the_net),
		cmocka_unit_test(from_measurement),
		cmocka_unit_test(every_algorithm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
