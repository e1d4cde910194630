/* SPDX-License-Identifier: MIT
 * Rates by number of streams, and the pattern of isends, on networks that are made up. */
#include "tests/test.h"

#include "base/clock.h"
#include "base/prng.h"
#include "collectives/models/isend.h"
#include "collectives/models/measure_isend.h"
#include "collectives/models/ramp.h"

#include <string.h>

#define MS   GCI_NS_PER_MS
#define MIB  UINT64_C(1048576)
#define MBIT UINT64_C(1000000)

/* Connections of a path: each gets at most flow_bps, all of them at most link_bps, after
 * settle_ns in which it is a quarter of that. */
struct path {
	uint64_t flow_bps, link_bps, settle_ns;
};

static uint64_t arrive(const struct path *p, const struct gci_ramp_trial *t, uint64_t *at_ns)
{
	uint64_t bps = p->flow_bps * t->level, now = 10 * MS;
	uint32_t i;

	if (bps > p->link_bps)
		bps = p->link_bps;
	for (i = 0; i < t->n; i++) {
		uint64_t slow = now < p->settle_ns ? 4 : 1;

		now += t->nbytes * 8 * GCI_NS_PER_S / bps * slow;
		at_ns[i] = now;
	}
	return now + 10 * MS;
}

static uint64_t run(struct gci_ramp *r, const struct path *p, const struct gci_ramp_config *c)
{
	static uint64_t at_ns[GCI_RAMP_PIECES];
	struct gci_ramp_trial t;
	uint64_t all_ns = 0, trials = 0, nbytes = 0;

	gci_ramp_init(r, c);
	while (gci_ramp_next(r, &t)) {
		uint64_t took = arrive(p, &t, at_ns);

		assert_in_range(t.n, 1, GCI_RAMP_PIECES);
		assert_in_range(t.level, 1, c->most_level);
		assert_true(++trials < 200);
		nbytes += t.n * t.nbytes * (c->each ? t.level : 1);
		gci_ramp_done(r, gci_ramp_bps(at_ns, t.n, t.nbytes), took);
		all_ns += took;
	}
	assert_true(nbytes <= c->most_nbytes);
	return all_ns;
}

static void assert_near(uint64_t got, uint64_t want)
{
	assert_in_range(got, want - want / 20, want + want / 20);
}

static const struct gci_ramp_config ample = {.most_ns = 100 * GCI_NS_PER_S,
	.most_nbytes = 2048 * MIB,
	.least_ns = 200 * MS,
	.most_level = 16};

static void knee(void **state)
{
	static const struct path paths[] = {{300 * MBIT, 1000 * MBIT, 80 * MS},
		{1000 * MBIT, 1000 * MBIT, 150 * MS}, {1250000, 1000 * MBIT, 0},
		{1000 * MBIT, 8 * MBIT, 0}};
	static const uint32_t want[] = {4, 1, 16, 1}, levels[] = {5, 3, 5, 3};
	struct gci_ramp r;
	size_t i, k;

	(void)state;
	for (i = 0; i < 4; i++) {
		run(&r, &paths[i], &ample);
		assert_false(r.out_of_time || r.out_of_bytes);
		assert_int_equal(r.nrates, levels[i]);
		assert_int_equal(r.rates[gci_params_rate_knee(r.rates, r.nrates)].streams, want[i]);
		for (k = 0; k < r.nrates; k++) {
			uint64_t bps = paths[i].flow_bps << k;

			assert_int_equal(r.rates[k].streams, 1u << k);
			assert_near(
				r.rates[k].bps, bps < paths[i].link_bps ? bps : paths[i].link_bps);
		}
	}
}

/* 6 hosts: 1, 2, 4 and then all; each moves the bytes. */
static void senders(void **state)
{
	struct path p = {1000 * MBIT, 10000 * MBIT, 0};
	struct gci_ramp_config c = ample;
	struct gci_ramp r;

	(void)state;
	c.most_level = 6;
	c.each = 1;
	run(&r, &p, &c);
	assert_int_equal(r.nrates, 4);
	assert_int_equal(r.rates[3].streams, 6);
	assert_int_equal(gci_params_rate_knee(r.rates, r.nrates), 3);
}

static void bounds(void **state)
{
	struct path p = {300 * MBIT, 1000 * MBIT, 80 * MS};
	struct gci_ramp_config c = ample;
	struct gci_ramp r;
	struct gci_ramp_trial t;
	int i;

	(void)state;
	for (c.most_ns = MS; c.most_ns < 5000 * MS; c.most_ns *= 2) {
		assert_true(run(&r, &p, &c) <= c.most_ns + 200 * MS);
		assert_true(r.nrates || c.most_ns < 100 * MS);
	}
	assert_true(c.most_ns > 5000 * MS || r.out_of_time);
	c = ample;
	for (c.most_nbytes = 0; c.most_nbytes < 32 * MIB; c.most_nbytes = 2 * c.most_nbytes + MIB)
		run(&r, &p, &c);
	assert_true(r.out_of_bytes);
	/* Clocks that stand still, or jump. */
	for (i = 0; i < 3; i++) {
		static const uint64_t odd[] = {0, 1, UINT64_MAX};
		int trials = 0;

		gci_ramp_init(&r, &ample);
		while (gci_ramp_next(&r, &t)) {
			assert_true(++trials < 200);
			gci_ramp_done(&r, odd[i], odd[(i + 1) % 3]);
		}
	}
}

/* Connections that are new in a trial get half of what they could. When the time ends there, what
 * they got is no rate. */
static void cold(void **state)
{
	static uint64_t at_ns[GCI_RAMP_PIECES];
	struct path p = {1000 * MBIT, 1000 * MBIT, 0}, half = {500 * MBIT, 500 * MBIT, 0};
	struct gci_ramp_config c = ample;
	struct gci_ramp r;
	struct gci_ramp_trial t;

	(void)state;
	for (c.most_ns = 100 * MS; c.most_ns < 4000 * MS; c.most_ns += 37 * MS) {
		uint32_t warm = 0;
		size_t i;

		gci_ramp_init(&r, &c);
		while (gci_ramp_next(&r, &t)) {
			uint64_t took = arrive(t.level > warm ? &half : &p, &t, at_ns);

			warm = t.level;
			gci_ramp_done(&r, gci_ramp_bps(at_ns, t.n, t.nbytes), took);
		}
		assert_true(r.nrates > 0);
		for (i = 1; i < r.nrates; i++)
			assert_near(r.rates[i].bps, r.rates[0].bps);
	}
	assert_int_equal(r.nrates, 3);
	assert_false(r.out_of_time);
}

static void rate_of_few(void **state)
{
	static const uint64_t at[] = {5, 5, 5, 5, 1000};

	(void)state;
	assert_int_equal(gci_ramp_bps(at, 0, 1000), 0);
	assert_int_equal(gci_ramp_bps(at, 3, 1000), 0);
	assert_int_equal(gci_ramp_bps(at, 4, 1000), 0);
	/* Three of five in 995 ns. */
	assert_int_equal(gci_ramp_bps(at, 5, 1000), 3000 * 8 * GCI_NS_PER_S / 995);
	assert_int_equal(gci_ramp_bps(at, 5, UINT64_MAX), UINT64_MAX);
}

/* ---- isends */

static void make(const struct gci_params_isend *p, uint64_t *ns, uint32_t n, uint64_t seed)
{
	struct gci_prng prng = {seed};
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint64_t v = gci_isend_ns(p, 1, i, 0);

		/* Up to a third more. */
		ns[i] = v + gci_prng_below(&prng, v / 3 + 1);
	}
}

static void spikes(void **state)
{
	static const struct gci_params_isend cases[] = {{2048, 1, 15, 3, 70000, 1000000, 90000},
		{4096, 1, 7, 1, 90000, 900000, 80000}, {65536, 1, 4, 0, 5000, 100000, 0},
		{64, 1, 31, 12, 2000, 9000, 1500}, {64, 1, 0, 5, 0, 90000, 3000}};
	uint64_t ns[GCI_ISEND_MOST];
	struct gci_params_isend got;
	uint32_t i, n, found;

	(void)state;
	for (i = 0; i < 5; i++) {
		const struct gci_params_isend *c = &cases[i];

		found = 0;
		for (n = GCI_ISEND_FIRST; n < GCI_ISEND_MOST && found < GCI_ISEND_SPIKES; n *= 2) {
			make(c, ns, n, i);
			found = gci_isend_pattern(ns, n, &got);
		}
		assert_true(found >= GCI_ISEND_SPIKES);
		assert_int_equal(got.initial, c->initial);
		assert_int_equal(got.mid, c->mid);
		assert_in_range(got.os_spike_ns, c->os_spike_ns, c->os_spike_ns * 4 / 3 + 1);
		if (c->initial)
			assert_in_range(
				got.os_start_ns, c->os_start_ns, c->os_start_ns * 4 / 3 + 1);
		if (c->mid)
			assert_in_range(got.os_mid_ns, c->os_mid_ns, c->os_mid_ns * 4 / 3 + 1);
	}
}

/* Isends that all take about the same, and one or two that were disturbed. */
static void no_spikes(void **state)
{
	static const struct gci_params_isend even = {64, 1, 1000, 0, 3000, 3000, 3000};
	uint64_t ns[GCI_ISEND_MOST];
	struct gci_params_isend got;
	uint32_t seed;

	(void)state;
	for (seed = 0; seed < 20; seed++) {
		make(&even, ns, 256, seed);
		ns[100] = 80000;
		ns[200 + seed] = 300000;
		assert_int_equal(gci_isend_pattern(ns, 256, &got), 0);
		assert_int_equal(got.initial, 256);
		assert_in_range(got.os_start_ns, 3000, 4000);
		assert_int_equal(got.os_spike_ns, got.os_start_ns);
	}
	/* All take long, but for a few. */
	for (seed = 0; seed < 64; seed++)
		ns[seed] = seed % 8 == 5 ? 500 : 50000;
	assert_int_equal(gci_isend_pattern(ns, 64, &got), 0);
	assert_int_equal(got.os_start_ns, 50000);
	memset(ns, 0, sizeof(ns));
	assert_int_equal(gci_isend_pattern(ns, 1, &got), 0);
	assert_int_equal(gci_isend_pattern(ns, GCI_ISEND_MOST, &got), 0);
	ns[3] = ns[4] = ns[9] = UINT64_MAX;
	assert_int_equal(gci_isend_pattern(ns, 16, &got), 3);
	assert_int_equal(got.initial, 3);
}

static void modes(void **state)
{
	(void)state;
	assert_true(gci_isend_is_immediate(1000, 100));
	assert_false(gci_isend_is_immediate(1000, 950));
	assert_false(gci_isend_is_immediate(1000, 1100));
	assert_false(gci_isend_is_immediate(0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knee),
		cmocka_unit_test(senders),
		cmocka_unit_test(bounds),
		cmocka_unit_test(cold),
		cmocka_unit_test(rate_of_few),
		cmocka_unit_test(spikes),
		cmocka_unit_test(no_spikes),
		cmocka_unit_test(modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
