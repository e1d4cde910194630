/* SPDX-License-Identifier: MIT
 * Vectors over all links between clusters: how segments are dealt, what each link then carries, and
 * how near that is to what the links allow. */
#include "tests/test.h"

#include "collectives/blocks/spread.h"
#include "collectives/models/limit.h"
#include "collectives/tuner/candidate.h"
#include "tests/collectives/topologies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static const enum gci_kind kinds[] = {GCI_BCAST, GCI_REDUCE, GCI_ALLREDUCE};

/* Four clusters of one; links of so many Mbit/s, in the order ab, ac, ad, bc, bd, cd. */
static void four_clusters(struct gci_topo *t, const int mbit[6])
{
	static const char *const pairs[] = {"a b", "a c", "a d", "b c", "b d", "c d"};
	char text[2048];
	int i, n = 0;

	for (i = 0; i < 4; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			"[cluster %c]\nhosts = %c1\nnic = 10Gbit\nlan_delay = 50us\n", 'a' + i,
			'a' + i);
	for (i = 0; i < 6; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			"[link %s]\nrate = %dMbit\ndelay = 10ms\n", pairs[i], mbit[i]);
	topology_parse(t, text);
}

static void deal(enum gci_kind kind, const int mbit[6], int nsegments, uint64_t counts[4])
{
	struct gci_topo t;
	struct gci_coll c = {.kind = kind, .topo = &t, .count = MIB, .esize = 1};
	struct gci_deal d;
	int i;

	four_clusters(&t, mbit);
	assert_int_equal(gci_deal_init(&d, &c), 0);
	for (i = 0; i < nsegments; i++)
		gci_deal_next(&d);
	for (i = 0; i < 4; i++)
		counts[i] = gci_deal_count(&d, i);
	gci_deal_free(&d);
	gci_topo_free(&t);
}

static void dealt_by_rates(void **state)
{
	static const int equal[6] = {100, 100, 100, 100, 100, 100};
	/* Cluster d is far from all; b and c are far from each other, and from d. */
	static const int far_d[6] = {100, 100, 10, 100, 10, 10};
	static const int far_all[6] = {100, 100, 100, 1, 1, 1};
	uint64_t n[4];

	(void)state;
	deal(GCI_BCAST, equal, 300, n);
	assert_int_equal(n[0], 0);
	assert_int_equal(n[1], 100);
	assert_int_equal(n[2], 100);
	assert_int_equal(n[3], 100);
	deal(GCI_ALLREDUCE, equal, 400, n);
	assert_int_equal(n[0], 100);
	assert_int_equal(n[3], 100);
	/* All have to come to d over its three links: a third by each. */
	deal(GCI_BCAST, far_d, 300, n);
	assert_int_equal(n[1], 100);
	assert_int_equal(n[2], 100);
	assert_int_equal(n[3], 100);
	/* Nothing is to cross d's links twice. */
	deal(GCI_ALLREDUCE, far_d, 300, n);
	assert_true(n[3] <= 3);
	/* The root deals with nearly all by itself. */
	deal(GCI_REDUCE, far_all, 300, n);
	assert_in_range(n[0], 280, 300);
}

/* Links of 50 Mbit/s, which no NIC is slower than. */
#define NRANKS 12
static const char five_clusters[] = "[cluster a]\nhosts = a[1-3]\nnic = 1Gbit\n"
				    "[cluster b]\nhosts = b1\nnic = 1Gbit\n"
				    "[cluster c]\nhosts = c[1-2]\nnic = 1Gbit\n"
				    "[cluster d]\nhosts = d[1-4]\nnic = 1Gbit\n"
				    "[cluster e]\nhosts = e[1-2]\nnic = 1Gbit\n";

static void open_five(struct gci_topo *t)
{
	char text[2048];
	int a, b, n = snprintf(text, sizeof(text), "%s", five_clusters);

	for (a = 0; a < 5; a++)
		for (b = 0; b < a; b++)
			n += snprintf(text + n, sizeof(text) - (size_t)n,
				"[link %c %c]\nrate = 50Mbit\ndelay = 10ms\n", 'a' + b, 'a' + a);
	topology_parse(t, text);
	assert_int_equal(t->nranks, NRANKS);
}

/* Elements that go out from each rank to each cluster. */
static void count_sent(const struct gci_coll *c, uint64_t sent[NRANKS][5])
{
	const struct gci_algorithm *a = gci_algorithm_find(c->kind, "spread");
	struct gci_sched s;
	uint32_t i;
	int r;

	memset(sent, 0, sizeof(uint64_t[NRANKS][5]));
	for (r = 0; r < NRANKS; r++) {
		assert_int_equal(gci_emit(a, c, r, &s), 0);
		for (i = 0; i < s.nsteps; i++)
			if (s.steps[i].kind == GCI_STEP_SEND)
				sent[r][c->topo->cluster[s.steps[i].peer]] += s.steps[i].src.length;
		gci_sched_free(&s);
	}
}

/* Links carry equal numbers of segments: of bcast and reduce (C-1)th parts, of allreduce two Cth
 * parts, whatever the clusters' sizes are. In bcast what goes to the root is nothing. */
static void links_share(void **state)
{
	uint64_t sent[NRANKS][5];
	struct gci_topo t;
	size_t i;
	int a, b;

	(void)state;
	open_five(&t);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct gci_coll c = {
			.kind = kinds[i], .topo = &t, .count = 4000, .esize = 4, .segment = 10};

		count_sent(&c, sent);
		for (a = 0; a < 5; a++)
			for (b = 0; b < 5; b++) {
				uint64_t sum = 0;
				int k;

				for (k = t.first[a]; k < t.first[a + 1]; k++)
					sum += sent[k][b];
				if (a != b)
					assert_int_equal(sum, kinds[i] == GCI_ALLREDUCE     ? 1600
							      : kinds[i] == GCI_BCAST && !b ? 0
											    : 1000);
			}
	}
	gci_topo_free(&t);
}

/* The root sends all once, and its cluster's others pass it on or send it over the WAN, not both;
 * who owns a fourth of it sends that to three clusters. */
static void nics_share(void **state)
{
	uint64_t sent[NRANKS][5];
	struct gci_coll c = {.kind = GCI_BCAST, .count = 4000, .esize = 4, .segment = 10};
	struct gci_topo t;
	int r, k;

	(void)state;
	open_five(&t);
	c.topo = &t;
	count_sent(&c, sent);
	for (r = 0; r < NRANKS; r++) {
		uint64_t sum = 0;

		for (k = 0; k < 5; k++)
			sum += sent[r][k];
		if (!r)
			assert_int_equal(sum, 4000);
		else
			assert_true(sum <= (t.cluster[r] ? 4000 + 3000 : 4000));
	}
	gci_topo_free(&t);
}

/* Where a connection carries little, as many ranks send as the link has room for, and all pairs of
 * them and the other cluster's take part. */
static void all_pairs(void **state)
{
	static const char text[] = "[cluster a]\nhosts = a[1-4]\nnic = 1Gbit\n"
				   "[cluster b]\nhosts = b[1-4]\nnic = 1Gbit\n"
				   "[link a > b]\nrate = 100Mbit\ndelay = 10ms\nflow_rate = 2Mbit\n"
				   "streams = 1\n[link b > a]\nrate = 5Mbit\ndelay = 10ms\n"
				   "flow_rate = 2Mbit\n";
	static const enum gci_kind both[] = {GCI_BCAST, GCI_ALLREDUCE};
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct gci_topo t;
		struct gci_coll c = {.kind = both[i], .count = 1000, .esize = 4, .segment = 4};
		uint64_t pairs[8][8] = {{0}};
		struct gci_sched s;
		uint32_t k;
		int r, p;

		topology_parse(&t, text);
		c.topo = &t;
		assert_int_equal(gci_topo_senders(&t, 0, 1), 4);
		assert_int_equal(gci_topo_senders(&t, 1, 0), 2);
		for (r = 0; r < 4; r++) {
			assert_int_equal(
				gci_emit(gci_algorithm_find(c.kind, "spread"), &c, r, &s), 0);
			for (k = 0; k < s.nsteps; k++)
				if (s.steps[k].kind == GCI_STEP_SEND)
					pairs[r][s.steps[k].peer] += s.steps[k].src.length;
			gci_sched_free(&s);
		}
		for (r = 0; r < 4; r++)
			for (p = 4; p < 8; p++)
				assert_in_range(pairs[r][p], 1000 / 16 - 10, 1000 / 16 + 10);
		gci_topo_free(&t);
	}
}

static uint64_t default_ns(struct gci_coll *c, struct gci_topo *t)
{
	struct gci_candidate how = {.algorithm = gci_algorithm_find(c->kind, NULL)};
	struct gci_simnet net;
	uint64_t ns;

	assert_int_equal(gci_simnet_init(&net, t, NULL), 0);
	assert_int_equal(gci_predict(&net, c, &how, NULL, &ns), 0);
	gci_simnet_free(&net);
	return ns;
}

/* On MagPIe's grid a path through all clusters takes seven times as long. */
static void near_the_limit(void **state)
{
	struct gci_topo t;
	size_t i, k;

	(void)state;
	topology_read(&t, getenv("GRIDCOLL_TEST_MAGPIE_GRID"), 0);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		for (k = 1; k <= 16; k *= 4) {
			struct gci_coll c = {
				.kind = kinds[i], .topo = &t, .count = k * MIB, .esize = 1};
			uint64_t ns = default_ns(&c, &t), limit = gci_limit_ns(&c, 0);

			if (ns > limit + limit / (k > 1 ? 10 : 5))
				fail_msg("%s of %d MiB: %.0f ms, limit %.0f ms",
					gci_kind_name(kinds[i]), (int)k, (double)ns / 1e6,
					(double)limit / 1e6);
		}
	gci_topo_free(&t);
}

/* Four clusters that have more for each other than goes unasked: nobody's data waits to be asked
 * for until another's has come. */
static void nothing_waits(void **state)
{
	static const int equal[6] = {100, 100, 100, 100, 100, 100};
	static const enum gci_kind all[] = {
		GCI_BCAST, GCI_REDUCE, GCI_ALLREDUCE, GCI_REDUCE_SCATTER, GCI_ALLGATHER};
	struct gci_topo t;
	size_t i;

	(void)state;
	four_clusters(&t, equal);
	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct gci_coll c = {.kind = all[i], .topo = &t, .count = 32 * MIB, .esize = 1};
		uint64_t ns, limit;

		if (!gci_kind_has_vector(all[i]))
			c.count /= 4;
		ns = default_ns(&c, &t);
		limit = gci_limit_ns(&c, 0);
		if (ns > limit + limit / 10)
			fail_msg("%s: %.0f ms, limit %.0f ms", gci_kind_name(all[i]),
				(double)ns / 1e6, (double)limit / 1e6);
	}
	gci_topo_free(&t);
}

/* Bytes that rank r may send to `peer`, or asks it for, before anything has come from there. */
static uint64_t at_once(const struct gci_sched *s, int peer, enum gci_step_kind kind)
{
	unsigned char *waits = calloc(s->nsteps + 1, 1);
	uint64_t nbytes = 0;
	uint32_t i, k;

	assert_non_null(waits);
	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];

		for (k = p->deps; k < p->deps + p->ndeps; k++)
			waits[i] |= waits[s->deps[k]];
		if (p->peer == peer && p->kind == kind && !waits[i] && !p->patient)
			nbytes += kind == GCI_STEP_SEND ? p->src.length : p->dst.length;
		waits[i] |= p->peer == peer && p->kind == GCI_STEP_RECV;
	}
	free(waits);
	return nbytes;
}

/* A link's buffer never has to hold more than a round trip and some segments, however much there is
 * to send from the beginning. */
static void buffers_hold_little(void **state)
{
	struct gci_topo t;
	size_t i;
	int r, peer;

	(void)state;
	topology_read(&t, getenv("GRIDCOLL_TEST_MAGPIE_GRID"), 0);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct gci_coll c = {.kind = kinds[i], .topo = &t, .count = 4 * MIB, .esize = 1};
		uint64_t most = 20000 + 4 * gci_spread_size(&c);

		for (r = 0; r < t.nranks; r++) {
			struct gci_sched s;

			assert_int_equal(
				gci_emit(gci_algorithm_find(c.kind, "spread"), &c, r, &s), 0);
			for (peer = 0; peer < t.nranks; peer++) {
				if (c.kind != GCI_BCAST || !r)
					assert_true(at_once(&s, peer, GCI_STEP_SEND) <= most);
				else if (!peer)
					assert_true(at_once(&s, peer, GCI_STEP_RECV) <= most);
			}
			gci_sched_free(&s);
		}
	}
	gci_topo_free(&t);
}

/* Where connections carry little there is no buffer to fill, and a slow one must not hold up
 * others. */
static void slow_connections_take_no_turns(void **state)
{
	static const char *const rates[] = {"flow_rate = 2Mbit\n", ""};
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct gci_topo t;
		struct gci_coll c = {.kind = GCI_BCAST, .topo = &t, .count = 4 * MIB, .esize = 1};
		uint32_t k, npatient = 0;
		struct gci_sched s;
		char text[512];
		int r;

		snprintf(text, sizeof(text),
			"[cluster a]\nhosts = a[1-4]\nnic = 1Gbit\n[cluster b]\nhosts = b[1-4]\n"
			"nic = 1Gbit\n[link a b]\nrate = 10Mbit\ndelay = 10ms\n%s",
			rates[i]);
		topology_parse(&t, text);
		for (r = 0; r < 4; r++) {
			assert_int_equal(
				gci_emit(gci_algorithm_find(c.kind, "spread"), &c, r, &s), 0);
			for (k = 0; k < s.nsteps; k++)
				npatient += s.steps[k].patient != 0;
			gci_sched_free(&s);
		}
		assert_int_equal(npatient > 0, i);
		gci_topo_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dealt_by_rates),
		cmocka_unit_test(links_share),
		cmocka_unit_test(nics_share),
		cmocka_unit_test(all_pairs),
		cmocka_unit_test(near_the_limit),
		cmocka_unit_test(buffers_hold_little),
		cmocka_unit_test(slow_connections_take_no_turns),
		cmocka_unit_test(nothing_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
