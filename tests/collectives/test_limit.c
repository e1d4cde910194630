/* SPDX-License-Identifier: MIT
 * Lower bounds: by hand for known networks, and never above a time that is surely enough. */
#include "tests/test.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/models/limit.h"
#include "tests/collectives/topologies.h"

#include <stdio.h>
#include <string.h>

#define MIB  UINT64_C(1048576)
#define GBIT UINT64_C(1000000000)

/* netem/grids/gridmpi.grid, with other links or NICs where a test needs them. */
static const char gridmpi[] = "[cluster kyoto]\nhosts = k[1-8]\nnic = 1Gbit\nlan_delay = 50us\n"
			      "[cluster tokyo]\nhosts = t[1-8]\nnic = %s\nlan_delay = 50us\n"
			      "[link kyoto tokyo]\ndelay = 10ms\n%s\n";

static void make(struct gci_topo *t, const char *format, const char *nic, const char *link)
{
	char text[600];

	snprintf(text, sizeof(text), format, nic, link);
	topology_parse(t, text);
}

/* Of M bytes: blocks are 1/P of it. */
static uint64_t limit(const struct gci_topo *t, enum gci_kind kind, uint64_t nbytes)
{
	struct gci_coll c = {.kind = kind, .topo = t, .count = nbytes, .esize = 1};

	if (kind >= GCI_REDUCE_SCATTER && kind <= GCI_ALLTOALL)
		c.count = nbytes / (uint64_t)t->nranks;
	return gci_limit_ns(&c, 0);
}

/* Milliseconds that so many bytes take at this rate. */
static double ms(double nbytes, uint64_t bps)
{
	return nbytes * 8 * 1000 * 1514 / 1448 / (double)bps;
}

static void assert_ms(uint64_t ns, double want)
{
	double got = (double)ns / 1e6;

	if (got < want * 0.999999 - 1e-5 || got > want * 1.000001 + 1e-5)
		fail_msg("limit %.6f ms, expected %.6f", got, want);
}

/* DESIGN's table: n = 8 hosts each, B = 1 Gbit/s, W = 10 Gbit/s, L = 10 ms. */
static void by_hand(void **state)
{
	const double m = 32 * 1048576.0, t = ms(m, GBIT);
	struct gci_topo topo;

	(void)state;
	make(&topo, gridmpi, "1Gbit", "rate = 10Gbit");
	assert_ms(limit(&topo, GCI_BCAST, 32 * MIB), 290.67079);
	assert_ms(limit(&topo, GCI_BCAST, 32 * MIB), 10 + t);
	assert_ms(limit(&topo, GCI_REDUCE, 32 * MIB), 10 + t);
	assert_ms(limit(&topo, GCI_ALLREDUCE, 32 * MIB), 2 * t * 15 / 16);
	assert_ms(limit(&topo, GCI_REDUCE_SCATTER, 32 * MIB), 0.05 + t * 15 / 16);
	assert_ms(limit(&topo, GCI_SCATTER, 32 * MIB), 0.05 + t * 15 / 16);
	assert_ms(limit(&topo, GCI_GATHER, 32 * MIB), 0.05 + t * 15 / 16);
	assert_ms(limit(&topo, GCI_ALLGATHER, 32 * MIB), 0.05 + t * 15 / 16);
	assert_ms(limit(&topo, GCI_ALLTOALL, 32 * MIB), 0.05 + t * 15 / 16);
	assert_ms(limit(&topo, GCI_BARRIER, 0), 10);
	/* Small ones: the way is all there is. */
	assert_ms(limit(&topo, GCI_BCAST, 8), 10 + ms(8, GBIT));
	assert_ms(limit(&topo, GCI_ALLREDUCE, 8), 10 + ms(8, GBIT));
	assert_ms(limit(&topo, GCI_ALLGATHER, 16), 10 + ms(8, GBIT));
	assert_ms(limit(&topo, GCI_SCATTER, 16), 10 + ms(8, GBIT));
	assert_int_equal(limit(&topo, GCI_BCAST, 0), 0);
	assert_int_equal(limit(&topo, GCI_ALLTOALL, 0), 0);
	gci_topo_free(&topo);
}

/* Where the link is the narrow part, and where one cluster's NICs are. */
static void narrow_places(void **state)
{
	const double m = 32 * 1048576.0;
	struct gci_topo topo;

	(void)state;
	make(&topo, gridmpi, "1Gbit", "rate = 100Mbit");
	assert_ms(limit(&topo, GCI_BCAST, 32 * MIB), 10 + ms(m, GBIT / 10));
	assert_ms(limit(&topo, GCI_ALLREDUCE, 32 * MIB), 10 + ms(m, GBIT / 10));
	assert_ms(limit(&topo, GCI_ALLGATHER, 32 * MIB), 10 + ms(m / 2, GBIT / 10));
	assert_ms(limit(&topo, GCI_GATHER, 32 * MIB), 10 + ms(m / 2, GBIT / 10));
	/* 64 pairs of ranks, each a block of M / 16. */
	assert_ms(limit(&topo, GCI_ALLTOALL, 32 * MIB), 10 + ms(m * 4, GBIT / 10));
	gci_topo_free(&topo);
	make(&topo, gridmpi, "500Mbit", "rate = 10Gbit");
	assert_ms(limit(&topo, GCI_BCAST, 32 * MIB), 10 + ms(m, GBIT / 2));
	/* The root is in the cluster that is fast; a block is all that the others get. */
	assert_ms(limit(&topo, GCI_SCATTER, 32 * MIB), 0.05 + ms(m * 15 / 16, GBIT));
	/* 30 M through 8 x 1 + 8 x 0.5 Gbit/s. */
	assert_ms(limit(&topo, GCI_ALLREDUCE, 32 * MIB), ms(m * 30, 12 * GBIT));
	gci_topo_free(&topo);
	make(&topo, gridmpi, "1Gbit", "rate = 10Gbit\nflow_rate = 1Mbit\nstreams = 2");
	assert_ms(limit(&topo, GCI_BCAST, MIB), 10 + ms(1048576, 2 * 64 * GBIT / 1000));
	gci_topo_free(&topo);
}

/* The connections that bench was asked for, where each gets so much and no more. */
static void streams(void **state)
{
	static const char pair[] = "[cluster a]\nhosts = a\nnic = 1Gbit\n[cluster b]\nhosts = b\n"
				   "nic = %s\n[link a b]\nrate = 1Gbit\ndelay = 10ms\n%s\n";
	struct gci_coll c = {.kind = GCI_BCAST, .count = MIB, .esize = 1};
	struct gci_topo topo;

	(void)state;
	make(&topo, pair, "1Gbit", "flow_rate = 10Mbit");
	c.topo = &topo;
	assert_ms(gci_limit_ns(&c, 0), 10 + ms(1048576, GBIT * 16 / 100)); /* by default */
	assert_ms(gci_limit_ns(&c, 1), 10 + ms(1048576, GBIT / 100));
	assert_ms(gci_limit_ns(&c, 64), 10 + ms(1048576, GBIT * 64 / 100));
	gci_topo_free(&topo);
}

/* Three cities in a row: the way round by the middle is shorter than the direct one. */
static void round_by_others(void **state)
{
	static const char row[] = "[cluster a]\nhosts = a[1-2]\nnic = 1Gbit\n[cluster b]\n"
				  "hosts = b\nnic = 1Gbit\n[cluster c]\nhosts = c\nnic = %s\n"
				  "[link a b]\nrate = 1Gbit\ndelay = 5ms\n[link b c]\n"
				  "rate = 1Gbit\ndelay = 6ms\n[link a c]\ndelay = 30ms\n"
				  "rate = 100Mbit\n%s\n";
	struct gci_topo topo;

	(void)state;
	make(&topo, row, "1Gbit", "");
	assert_ms(limit(&topo, GCI_BARRIER, 0), 11);
	/* Into c come both links together: 1.1 Gbit/s, so its NIC is the bound. */
	assert_ms(limit(&topo, GCI_BCAST, MIB), 11 + ms(1048576, GBIT));
	gci_topo_free(&topo);
}

/* Rates whose sum is more than a number holds. */
static void absurd_rates(void **state)
{
	static const char two[] = "[cluster a]\nhosts = a[1-2]\nnic = 9223372036854775808bit%s%s\n";
	struct gci_topo topo;

	(void)state;
	make(&topo, two, "", "");
	assert_true(limit(&topo, GCI_ALLREDUCE, MIB) < GCI_NS_PER_MS);
	gci_topo_free(&topo);
}

/* Blocks of different lengths, and unknown rates. */
static void counts(void **state)
{
	uint64_t lengths[16] = {[3] = MIB, [12] = 2 * MIB};
	struct gci_coll c = {
		.kind = GCI_GATHER, .count = 2 * MIB, .esize = 2, .root = 3, .counts = lengths};
	struct gci_topo topo;

	(void)state;
	make(&topo, gridmpi, "1Gbit", "rate = 10Gbit");
	c.topo = &topo;
	assert_ms(gci_limit_ns(&c, 0), 10 + ms(4 * 1048576.0, GBIT)); /* all but the root's own */
	c.kind = GCI_ALLGATHER;
	assert_ms(gci_limit_ns(&c, 0), 0.05 + ms(6 * 1048576.0, GBIT)); /* at those who have none */
	topo.rank_nic_bps[15] = 0;
	assert_int_equal(gci_limit_ns(&c, 0), 0);
	gci_topo_free(&topo);
}

/* All messages of a schedule one after the other, each on an idle network: surely enough. */
static uint64_t one_by_one(const struct gci_algorithm *a, const struct gci_coll *c, int *nmessages)
{
	const struct gci_topo *t = c->topo;
	struct gci_sched s;
	uint64_t sum = 0;
	uint32_t i;
	int r;

	*nmessages = 0;
	for (r = 0; r < t->nranks; r++) {
		assert_int_equal(gci_emit(a, c, r, &s), 0);
		for (i = 0; i < s.nsteps; i++) {
			const struct gci_step *p = &s.steps[i];
			const struct gci_link *l;

			if (p->kind != GCI_STEP_SEND)
				continue;
			++*nmessages;
			l = gci_topo_link(t, t->cluster[r], t->cluster[p->peer]);
			sum += l->delay_ns +
			       (uint64_t)(1 + ms((double)(p->src.length * c->esize),
						      l->rate_bps && l->rate_bps < GBIT
							      ? l->rate_bps
							      : GBIT) *
						      1e6);
		}
		gci_sched_free(&s);
	}
	return sum;
}

static unsigned long compared, single;

static void compare(const struct gci_algorithm *a, const struct gci_coll *c)
{
	int nmessages;
	uint64_t low = gci_limit_ns(c, 0), high = one_by_one(a, c, &nmessages);

	if (low > high)
		fail_msg("%s %s P=%d clusters=%d root=%d: limit %llu ns, but %llu are enough",
			gci_kind_name(a->kind), a->name, c->topo->nranks, c->topo->nclusters,
			c->root, (unsigned long long)low, (unsigned long long)high);
	/* The limit is the time of one message that is all there is to do. */
	if (nmessages == 1 && c->topo->nranks == 2) {
		assert_true(high - low <= 4);
		single++;
	}
	compared++;
}

static void never_too_high(void **state)
{
	static const int sizes[][5] = {{1, 1, 0}, {2, 0}, {4, 0}, {3, 2, 0}, {1, 5, 2, 0}};
	static const uint64_t lengths[64] = {900, 0, 70000, 3, 0, 1, 500000, 12, 1000, 7};
	const struct gci_algorithm *a;
	struct gci_topo topo;
	size_t i;
	int gbit;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (gbit = 1; gbit <= 10; gbit += 9) {
			topology_make(&topo, sizes[i], gbit > 1, gbit);
			gci_each_algorithm (a) {
				struct gci_coll c = {.kind = a->kind,
					.topo = &topo,
					.count = 100000,
					.esize = 4};

				c.root = topo.nranks - 1;
				if (!gci_ineligible(a, &c))
					compare(a, &c);
				c.counts = a->kind >= GCI_REDUCE_SCATTER && a->kind <= GCI_ALLTOALL
						   ? lengths
						   : NULL;
				if (c.counts && !gci_ineligible(a, &c))
					compare(a, &c);
			}
			gci_topo_free(&topo);
		}
	assert_true(compared > 100 && single > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(narrow_places),
		cmocka_unit_test(streams),
		cmocka_unit_test(round_by_others),
		cmocka_unit_test(absurd_rates),
		cmocka_unit_test(counts),
		cmocka_unit_test(never_too_high),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
