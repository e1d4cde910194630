/* SPDX-License-Identifier: MIT */
#include "collectives/sim/net.h"
#include "tests/test.h"

#include <string.h>

#define MBIT 1000000ull
#define GBIT (1000 * MBIT)
#define MS   1000000ull
#define MOST UINT64_MAX

static struct gci_flight make(struct gci_link there, struct gci_link back, uint64_t a, uint64_t b)
{
	struct gci_flight f;

	gci_flight_make(&f, &there, &back, a, b);
	return f;
}

static void rate_times_round_trip(void **state)
{
	struct gci_link l = {.rate_bps = 10 * GBIT, .delay_ns = 10 * MS}, slow = l;
	struct gci_flight f = make(l, l, 100 * GBIT, 40 * GBIT);

	(void)state;
	assert_int_equal(f.bps, 10 * GBIT);
	assert_int_equal(f.rtt_ns, 20 * MS);
	assert_int_equal(f.nbytes, 25000000);
	assert_int_equal(f.streams, GCI_DEFAULT_STREAMS);
	assert_int_equal(f.stream_nbytes, 6250000);
	assert_int_equal(make(l, l, GBIT, 0).nbytes, 2500000);
	assert_int_equal(make(l, l, 2 * GBIT, GBIT).nbytes, 2500000);
	slow.rate_bps = GBIT;
	slow.delay_ns = 30 * MS;
	assert_int_equal(make(l, slow, 0, 0).nbytes, 50000000); /* its own rate, both delays */
	assert_int_equal(make(slow, l, 0, 0).nbytes, 5000000);
}

/* Unknown is unknown, and nothing overflows. */
static void no_figures(void **state)
{
	struct gci_link none = {0}, all = {.rate_bps = MOST, .delay_ns = MOST, .streams = 1};
	struct gci_flight f = make(none, none, 0, 0);

	(void)state;
	assert_int_equal(f.bps, 0);
	assert_int_equal(f.nbytes, 0);
	assert_int_equal(f.stream_nbytes, 0);
	assert_int_equal(f.streams, GCI_DEFAULT_STREAMS);
	assert_int_equal(make((struct gci_link){.delay_ns = MS}, none, 0, 0).nbytes, 0);
	f = make(all, all, 0, 0);
	assert_true(f.rtt_ns == MOST && f.nbytes == MOST && f.stream_nbytes == MOST);
	gci_flight_inside(&f, MOST, MOST);
	assert_true(f.nbytes == MOST);
}

static void how_many_streams(void **state)
{
	struct gci_link l = {.rate_bps = GBIT, .delay_ns = MS}, eight = l, two = l, capped = l;

	(void)state;
	eight.streams = 8;
	two.streams = 2;
	assert_int_equal(make(eight, two, 0, 0).streams, 8); /* both ways the larger */
	assert_int_equal(make(two, eight, 0, 0).streams, 8);
	assert_int_equal(make(two, l, 0, 0).streams, 2); /* what is said beats what is not */
	assert_int_equal(make(l, two, 0, 0).streams, 2);
	capped.flow_rate_bps = 100 * MBIT;
	assert_int_equal(make(capped, l, 0, 0).streams, 10);
	assert_int_equal(make(l, capped, 0, 0).streams, 10);
	assert_int_equal(make(capped, l, 950 * MBIT, 0).streams, 10);
	assert_int_equal(make(capped, l, 300 * MBIT, 0).streams, GCI_DEFAULT_STREAMS);
	assert_int_equal(make(capped, two, 0, 0).streams, 2);
	capped.flow_rate_bps = MBIT;
	assert_int_equal(make(capped, l, 0, 0).streams, GCI_MOST_FLOWS);
	capped.streams = 64;
	assert_int_equal(make(capped, l, 0, 0).streams, 64);
}

/* More where the path holds much, up to a bound; what is said already is the least. */
static void bulk(void **state)
{
	struct gci_link l = {.rate_bps = GBIT, .delay_ns = MS}, far = l, said = l;
	struct gci_flight f = make(l, l, 0, 0);

	(void)state;
	assert_int_equal(gci_flight_bulk_streams(&f), GCI_DEFAULT_STREAMS); /* 250 kB */
	far.delay_ns = 5 * MS;
	f = make(far, far, 0, 0);
	assert_int_equal(gci_flight_bulk_streams(&f), 9); /* 1.25 MB */
	far.delay_ns = 100 * MS;
	f = make(far, far, 0, 0);
	assert_int_equal(gci_flight_bulk_streams(&f), GCI_MOST_FLOWS);
	said.streams = 64;
	f = make(said, said, 0, 0);
	assert_int_equal(gci_flight_bulk_streams(&f), 64);
}

/* A stream has no more in flight than the most it may send. */
static void capped_flows(void **state)
{
	struct gci_link l = {.rate_bps = GBIT, .delay_ns = 50 * MS, .flow_rate_bps = 8 * MBIT};
	struct gci_flight f = make(l, l, 0, 0);

	(void)state;
	assert_int_equal(f.stream_nbytes, 100000);
	assert_int_equal(f.nbytes, 12500000);
	l.rate_bps = 0; /* the rest unknown */
	assert_int_equal(make(l, l, 0, 0).stream_nbytes, 100000);
	assert_int_equal(make(l, l, 0, 0).nbytes, 0);
}

static void inside(void **state)
{
	struct gci_flight f;

	(void)state;
	gci_flight_inside(&f, 10 * GBIT, MS / 10);
	assert_int_equal(f.streams, 1);
	assert_int_equal(f.nbytes, 250000);
	assert_int_equal(f.stream_nbytes, 250000);
}

/* A topology's links have their number of streams, the same both ways; "streams" is for all. */
static void in_a_topology(void **state)
{
	static const char text[] = "[cluster a]\nhosts = a\nnic = 1Gbit\nlan_delay = 1ms\n"
				   "[cluster b]\nhosts = b\n[cluster c]\nhosts = c\n"
				   "[link a b]\nrate = 2Gbit\ndelay = 10ms\nflow_rate = 100Mbit\n"
				   "[link a > c]\nrate = 1Gbit\ndelay = 10ms\nstreams = 2\n"
				   "[link c > a]\nrate = 1Gbit\ndelay = 10ms\n[link b c]\n";
	static const uint32_t want[] = {1, 10, 2, 10, 1, 4, 2, 4, 1};
	struct gci_simnet net;
	struct gci_flight f;
	struct gci_topo t;
	int i;

	(void)state;
	assert_int_equal(gci_topo_parse(&t, text, strlen(text), "test", NULL), 0);
	assert_int_equal(gci_simnet_init(&net, &t, NULL), 0);
	for (i = 0; i < 9; i++) {
		assert_int_equal(t.links[i].streams, want[i]);
		assert_int_equal(net.links[i].streams, want[i]);
	}
	gci_topo_flight(&t, 0, 1, 0, &f);
	assert_int_equal(f.streams, 10);
	assert_int_equal(f.stream_nbytes, 250000);
	gci_topo_flight(&t, 0, 1, 20, &f);
	assert_int_equal(f.streams, 20);
	assert_int_equal(f.stream_nbytes, 125000);
	gci_topo_flight(&t, 0, 0, 20, &f);
	assert_int_equal(f.streams, 1);
	assert_int_equal(f.stream_nbytes, 250000);
	gci_simnet_streams(&net, 5);
	for (i = 0; i < 9; i++)
		assert_int_equal(net.links[i].streams, i % 4 ? 5 : 1);
	gci_simnet_free(&net);
	gci_topo_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_times_round_trip),
		cmocka_unit_test(no_figures),
		cmocka_unit_test(how_many_streams),
		cmocka_unit_test(bulk),
		cmocka_unit_test(capped_flows),
		cmocka_unit_test(inside),
		cmocka_unit_test(in_a_topology),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
