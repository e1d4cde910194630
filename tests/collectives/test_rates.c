/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/mem.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/candidate.h"
#include "collectives/tuner/rates.h"
#include "testing/random_grid.h"
#include "tests/collectives/topologies.h"

#include <string.h>

#define MOST_STEPS 50000
#define NBYTES     (8u << 20)
#define NFAR       12
#define ROOT       NFAR
#define NRANKS     (NFAR + 2)
#define NIC_BPS    500000000u

/* Twelve hosts that can send 24 times what one of the others takes. */
static const char text[] = "[cluster a]\nhosts = a[1-12]\nnic = 1Gbit\nlan_delay = 50us\n"
			   "[cluster b]\nhosts = b[1-2]\nnic = 500Mbit\nlan_delay = 50us\n"
			   "[link a b]\nrate = 2Gbit\ndelay = 20ms\n";

struct fixture {
	struct gci_topo topo;
	struct gci_simnet net;
};

static void fixture_open(struct fixture *f)
{
	topology_parse(&f->topo, text);
	assert_int_equal(f->topo.nranks, NRANKS);
	assert_int_equal(gci_simnet_init(&f->net, &f->topo, NULL), 0);
}

static void fixture_open_random(struct fixture *f, struct gci_prng *r, int plain)
{
	struct gci_buf grid = {0};

	if (plain)
		gci_random_grid(r, 0, 0, &grid);
	else
		gci_random_switched_grid(r, 0, 0, &grid);
	topology_parse(&f->topo, gci_buf_cstr(&grid));
	gci_buf_free(&grid);
	assert_int_equal(gci_simnet_init(&f->net, &f->topo, NULL), 0);
}

static void fixture_close(struct fixture *f)
{
	gci_simnet_free(&f->net);
	gci_topo_free(&f->topo);
}

static struct gci_coll call_of(const struct fixture *f, enum gci_kind kind, int root)
{
	uint64_t n = gci_kind_has_vector(kind) ? 1 : NRANKS;

	return (struct gci_coll){
		.kind = kind, .topo = &f->topo, .count = NBYTES / n, .esize = 1, .root = root};
}

static void rates(const struct fixture *f, const struct gci_coll *c, const char *name, int rank,
	uint64_t most_steps, uint64_t *bps)
{
	const struct gci_algorithm *a = gci_algorithm_find(c->kind, name);
	uint64_t windows[NRANKS];

	assert_non_null(a);
	assert_int_equal(
		gci_rates(&f->net, a, c, rank, most_steps, &(struct gci_rates){bps, windows}), 0);
}

/* All at once, they send what the root's NIC takes, and little more: whatever is simulated of it. */
static void many_senders_share_a_nic(void **state)
{
	static const uint64_t steps[] = {MOST_STEPS, 3000};
	struct fixture f;
	struct gci_coll c;
	uint64_t bps[NRANKS];
	size_t i;

	(void)state;
	fixture_open(&f);
	c = call_of(&f, GCI_GATHER, ROOT);
	c.segment = 8192;
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		uint64_t sum = 0;
		int r, q;

		for (r = 0; r < NFAR; r++) {
			rates(&f, &c, "sequential", r, steps[i], bps);
			for (q = 0; q < NFAR; q++)
				assert_true(!bps[q]);
			assert_in_range(bps[ROOT], NIC_BPS / NRANKS / 2, NIC_BPS / NRANKS * 2);
			sum += bps[ROOT];
		}
		assert_in_range(sum, NIC_BPS / 5 * 4, NIC_BPS / 4 * 5);
	}
	fixture_close(&f);
}

/* Where nobody meets anybody, a NIC keeps the rate: the sender's own, or it is told that of the path. */
static void others_send_what_comes_through(void **state)
{
	struct fixture f;
	struct gci_coll c;
	uint64_t bps[NRANKS];
	int r, q;

	(void)state;
	fixture_open(&f);
	c = call_of(&f, GCI_SCATTER, ROOT);
	rates(&f, &c, "sequential", ROOT, MOST_STEPS, bps);
	for (q = 0; q < NRANKS; q++)
		assert_true(!bps[q]);
	c = call_of(&f, GCI_BCAST, 0);
	c.segment = 65536;
	for (r = 0; r < NRANKS; r++) {
		rates(&f, &c, "chain", r, MOST_STEPS, bps);
		for (q = 0; q < NRANKS; q++)
			if (r < NFAR && q >= NFAR)
				assert_in_range(bps[q], NIC_BPS / 20 * 19, NIC_BPS);
			else
				assert_true(!bps[q]);
	}
	fixture_close(&f);
}

/* Where far ones are held to a rate, near ones have so little under way that the port does not overflow; where
 * there are none, they need not care. */
static void near_senders_have_little_under_way(void **state)
{
	const struct gci_algorithm *a = gci_algorithm_find(GCI_GATHER, "sequential");
	uint64_t bps[NRANKS], windows[NRANKS];
	const struct gci_rates out = {bps, windows};
	struct fixture f;
	struct gci_coll c;
	int r, q, npaced = 0;

	(void)state;
	fixture_open(&f);
	c = call_of(&f, GCI_GATHER, 0); /* one of the twelve: eleven are near, two far */
	for (r = 0; r < NRANKS; r++) {
		assert_int_equal(gci_rates(&f.net, a, &c, r, MOST_STEPS, &out), 0);
		for (q = 0; q < NRANKS; q++)
			assert_int_equal(!!windows[q], !q && r && r < NFAR);
		if (r && r < NFAR)
			assert_in_range(
				windows[0] * (NFAR - 1), GCI_PORT_NBYTES / 8, GCI_PORT_NBYTES / 2);
		npaced += bps[0] && bps[0] < NIC_BPS / 10 * 8;
		assert_true(r >= NFAR || !bps[0]);
	}
	assert_true(npaced > 0);
	fixture_close(&f);
}

/* Too long, or of different blocks. */
static void what_is_not_simulated(void **state)
{
	const struct gci_algorithm *a = gci_algorithm_find(GCI_GATHER, "sequential");
	struct fixture f;
	struct gci_coll c;
	uint64_t bps[NRANKS], windows[NRANKS], counts[NRANKS];
	const struct gci_rates out = {bps, windows};
	int q;

	(void)state;
	fixture_open(&f);
	c = call_of(&f, GCI_GATHER, ROOT);
	assert_int_equal(gci_rates(&f.net, a, &c, 0, 1, &out), 0);
	assert_in_range(bps[ROOT], NIC_BPS / 20 * 19, NIC_BPS);
	assert_true(!bps[1]);
	for (q = 0; q < NRANKS; q++)
		counts[q] = 1000;
	c.counts = counts;
	assert_int_equal(gci_rates(&f.net, a, &c, 0, MOST_STEPS, &out), 0);
	assert_in_range(bps[ROOT], NIC_BPS / 20 * 19, NIC_BPS);
	fixture_close(&f);
}

/* A tree's parent and child send each other the vector in the first phase and in the last; what goes elsewhere
 * in between does not slow them down. */
static void phases_are_apart(void **state)
{
	struct fixture f;
	struct gci_coll c;
	uint64_t bps[NRANKS];
	int r, q;

	(void)state;
	fixture_open(&f);
	c = call_of(&f, GCI_ALLREDUCE, 0);
	for (r = 0; r < NFAR; r++) {
		rates(&f, &c, "two-tier", r, MOST_STEPS, bps);
		for (q = 0; q < NFAR; q++)
			assert_true(!bps[q]);
	}
	fixture_close(&f);
}

/* Near senders that have done when far ones begin, or begin when those have, send at will. */
static void near_phases_need_no_windows(void **state)
{
	static const char even[] = "[cluster a]\nhosts = a[1-8]\nnic = 1Gbit\nlan_delay = 50us\n"
				   "[cluster b]\nhosts = b[1-8]\nnic = 1Gbit\nlan_delay = 50us\n"
				   "[link a b]\nrate = 10Gbit\ndelay = 10ms\n";
	const struct gci_algorithm *a = gci_algorithm_find(GCI_ALLREDUCE, "rabenseifner-mod");
	uint64_t bps[16], windows[16];
	const struct gci_rates out = {bps, windows};
	struct gci_topo topo;
	struct gci_simnet net;
	struct gci_coll c = {.kind = GCI_ALLREDUCE, .topo = &topo, .count = NBYTES, .esize = 1};
	int r, q, npaced = 0;

	(void)state;
	topology_parse(&topo, even);
	assert_int_equal(gci_simnet_init(&net, &topo, NULL), 0);
	for (r = 0; r < 16; r++) {
		assert_int_equal(gci_rates(&net, a, &c, r, MOST_STEPS, &out), 0);
		for (q = 0; q < 16; q++) {
			npaced += bps[q] != 0;
			assert_true(!windows[q]);
		}
	}
	assert_true(npaced > 0);
	gci_simnet_free(&net);
	gci_topo_free(&topo);
}

/* Where paths share wires, and pairs work in turns: what nobody chose. */
static void rates_cost_little(void **state)
{
	static const enum gci_kind kinds[] = {
		GCI_ALLREDUCE, GCI_REDUCE_SCATTER, GCI_ALLTOALL, GCI_GATHER};
	struct gci_prng r = {17};
	size_t i, k, n = 0;
	double sum = 0;

	(void)state;
	for (i = 0; i < (TEST_SANITIZED ? 2 : 6); i++) {
		struct fixture f;

		fixture_open_random(&f, &r, i % 2);
		for (k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			struct gci_coll c = call_of(&f, kinds[k], 0);
			struct gci_candidate how = {
				.algorithm = gci_algorithm_find(kinds[k], "packed")};
			struct gci_packed *p;
			uint64_t will, paced;

			if (!gci_kind_has_vector(kinds[k]))
				c.count = NBYTES / (unsigned)f.topo.nranks;
			assert_int_equal(gci_packed_make(&p, &c, 0), 0);
			c.packed = p;
			assert_int_equal(
				gci_rates_ns(&f.net, how.algorithm, &c, 0, &paced, &will), 0);
			if (paced > will / 2 * 3)
				fail_msg("grid %zu, %s: %llu ns, %llu at will", i,
					gci_kind_name(kinds[k]), (unsigned long long)paced,
					(unsigned long long)will);
			sum += (double)paced / (double)will;
			n++;
			gci_packed_free(p);
		}
		fixture_close(&f);
	}
	if (sum > 1.1 * (double)n)
		fail_msg("%.2f times as long on average", sum / (double)n);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Part of the busiest NIC or wire, percent, that an alltoall at even rates asks for. */
static uint64_t asked_percent(const struct fixture *f, const struct gci_coll *c)
{
	const struct gci_topo *t = &f->topo;
	size_t n = (size_t)t->nranks;
	uint64_t *bps = gci_calloc(3 * n, sizeof(*bps)), *windows = bps + n, *in = windows + n;
	uint64_t *wires = gci_calloc((size_t)t->nwires, sizeof(*wires)), most = 0;
	int r, q, i;

	for (r = 0; r < t->nranks; r++) {
		uint64_t out = 0;

		memset(bps, 0, 2 * n * sizeof(*bps));
		assert_int_equal(gci_rates_even(c, r, &(struct gci_rates){bps, windows}), 0);
		for (q = 0; q < t->nranks; q++) {
			const int *route;
			int nroute = gci_topo_route(t, t->cluster[r], t->cluster[q], &route);

			out += bps[q];
			in[q] += bps[q];
			for (i = 0; t->cluster[r] != t->cluster[q] && i < nroute; i++)
				wires[route[i]] += bps[q];
		}
		most = larger(most, out * 100 / t->rank_nic_bps[r]);
	}
	for (r = 0; r < t->nranks; r++)
		most = larger(most, in[r] * 100 / t->rank_nic_bps[r]);
	for (i = 0; i < t->nwires; i++)
		most = larger(most, wires[i] * 100 / t->wires[i].rate_bps);
	gci_free(wires);
	gci_free(bps);
	return most;
}

/* On networks that nobody chose, all that is asked for at once goes through. */
static void even_rates_fill_no_queue(void **state)
{
	struct gci_prng r = {23};
	uint64_t counts[1] = {0}, percent;
	size_t i;

	(void)state;
	for (i = 0; i < (TEST_SANITIZED ? 2 : 10); i++) {
		struct gci_packed *p;
		struct gci_coll c;
		struct fixture f;

		fixture_open_random(&f, &r, i % 2);
		c = call_of(&f, GCI_ALLTOALL, 0);
		c.count = (NBYTES / 8 << 4 * (i % 3)) / (unsigned)f.topo.nranks;
		assert_int_equal(gci_packed_make(&p, &c, 0), 0);
		p->timed = 0;
		c.packed = p;
		assert_true(gci_packed_is_even(&c));
		percent = asked_percent(&f, &c);
		if (percent < 94 || percent > 97)
			fail_msg("grid %zu: %llu percent", i, (unsigned long long)percent);
		c.counts = counts; /* of those nobody knows when they end */
		assert_false(gci_packed_is_even(&c));
		gci_packed_free(p);
		fixture_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_senders_share_a_nic),
		cmocka_unit_test(others_send_what_comes_through),
		cmocka_unit_test(near_senders_have_little_under_way),
		cmocka_unit_test(what_is_not_simulated),
		cmocka_unit_test(phases_are_apart),
		cmocka_unit_test(near_phases_need_no_windows),
		cmocka_unit_test(rates_cost_little),
		cmocka_unit_test(even_rates_fill_no_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
