/* SPDX-License-Identifier: MIT
 * The measurement of P-LogP parameters, on a link that is made up: what was put into it must come
 * out again, within the time and the bytes that it may use. */
#include "tests/test.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tools/probe/measure.h"

#include <string.h>

#define US  GCI_NS_PER_US
#define MS  GCI_NS_PER_MS
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

/* A link of latency L whose g(m) is a straight line with a step above `kink`, beyond which a byte
 * costs differently, too. Noise is added to what is measured, and every 16th time is far off. */
struct link {
	uint64_t latency_ns, gap_ns; /* L, g(0) */
	uint64_t byte_ps, kink, step_ns, late_byte_ps;
	uint64_t os_ns, or_ns, overhead_byte_ps;
	uint64_t noise_ns, overhead_noise_ns;
	uint64_t socket; /* larger messages are not there before they are received */
	struct gci_prng prng;
};

static uint64_t gap(const struct link *l, uint64_t m)
{
	uint64_t g = l->gap_ns + (m < l->kink ? m : l->kink) * l->byte_ps / 1000;

	return m <= l->kink ? g : g + l->step_ns + (m - l->kink) * l->late_byte_ps / 1000;
}

static uint64_t overhead(const struct link *l, uint64_t least_ns, uint64_t m)
{
	return least_ns + m * l->overhead_byte_ps / 1000;
}

static uint64_t noisy(struct link *l, uint64_t ns, uint64_t noise_ns)
{
	if (noise_ns && !gci_prng_below(&l->prng, 16))
		ns *= 3;
	return ns + gci_prng_below(&l->prng, 2 * noise_ns + 1);
}

/* Time that all of it takes. */
static uint64_t run_trial(struct link *l, const struct gci_trial *t, struct gci_trial_time *times)
{
	uint64_t took = 2 * (l->latency_ns + l->gap_ns);
	uint32_t i;

	for (i = 0; i < t->reps; i++) {
		uint64_t back = l->latency_ns + l->gap_ns;

		times[i].total_ns =
			noisy(l, l->latency_ns + t->n * gap(l, t->nbytes), l->noise_ns) + back +
			t->wait_ns;
		times[i].busy_ns = noisy(l,
			overhead(l, t->kind == GCI_TRIAL_RECEIVE ? l->or_ns : l->os_ns, t->nbytes),
			l->overhead_noise_ns);
		if (t->kind == GCI_TRIAL_RECEIVE && t->nbytes >= l->socket)
			times[i].busy_ns = GCI_TRIAL_LATE;
		took += !t->space_ns || i + 1 == t->reps ? times[i].total_ns : t->space_ns;
		/* They are not to meet. */
		assert_true(!t->space_ns || t->space_ns >= 3 * gap(l, t->nbytes));
	}
	return took;
}

struct used {
	uint64_t ns, nbytes, longest_wait_ns;
	uint32_t trials;
};

static struct used measure(
	struct gci_measure *m, struct link *l, const struct gci_measure_config *config)
{
	struct gci_trial_time times[GCI_SAMPLES_MOST];
	struct used used = {0};
	struct gci_trial t;

	gci_measure_init(m, config);
	while (gci_measure_next(m, &t)) {
		uint64_t took;

		assert_in_range(t.reps, 1, GCI_SAMPLES_MOST);
		assert_in_range(t.n, 1, GCI_MEASURE_ROW);
		assert_true(t.nbytes <= config->most_message);
		took = run_trial(l, &t, times);
		used.ns += took;
		used.nbytes += t.nbytes * t.n * t.reps;
		if (t.wait_ns > used.longest_wait_ns)
			used.longest_wait_ns = t.wait_ns;
		assert_true(++used.trials < 100000);
		gci_measure_done(m, times, took);
	}
	return used;
}

static void assert_close(uint64_t got, uint64_t want, uint64_t percent, uint64_t ns)
{
	uint64_t off = got > want ? got - want : want - got;

	if (off > want * percent / 100 + ns)
		fail_msg("%llu ns, expected %llu within %llu %% and %llu ns",
			(unsigned long long)got, (unsigned long long)want,
			(unsigned long long)percent, (unsigned long long)ns);
}

static const struct gci_measure_config ample = {
	.most_ns = 600 * GCI_NS_PER_S, .most_nbytes = 4096 * MIB, .most_message = 16 * MIB};

/* 10 ms and 1 Gbit/s; no kink. */
static struct link wan(void)
{
	return (struct link){.latency_ns = 10 * MS,
		.gap_ns = 5 * US,
		.byte_ps = 8366,
		.late_byte_ps = 8366,
		.kink = MIB,
		.socket = UINT64_MAX,
		.os_ns = 3 * US,
		.or_ns = 4 * US,
		.overhead_byte_ps = 500};
}

static struct link lan(void)
{
	struct link l = wan();

	l.latency_ns = 50 * US;
	return l;
}

static void assert_found(const struct gci_measure *m, const struct link *l, uint64_t ns)
{
	struct gci_params_link out = {0};
	size_t i;

	assert_int_equal(gci_measure_result(m, &out), 0);
	assert_close(out.latency_ns, l->latency_ns, 1, ns);
	assert_int_equal(out.points[0].nbytes, 0);
	for (i = 0; i < out.npoints; i++) {
		const struct gci_params_point *p = &out.points[i];

		assert_true(!i || p->nbytes > out.points[i - 1].nbytes);
		assert_close(p->gap_ns, gap(l, p->nbytes), 2, ns);
		assert_close(p->os_ns, overhead(l, l->os_ns, p->nbytes), 2, ns);
		assert_close(p->or_ns, overhead(l, l->or_ns, p->nbytes), 2, ns);
	}
	gci_free(out.points);
}

/* Without noise all is found as it is: in 5 rounds each, up to k_m = 18, with nothing between. */
static void exact(void **state)
{
	struct gci_measure m;
	struct link l = wan();
	struct used used = measure(&m, &l, &ample);

	(void)state;
	assert_false(m.out_of_time || m.out_of_bytes);
	assert_close(m.gap_ns, l.gap_ns, 1, 0);
	assert_found(&m, &l, 100);
	assert_int_equal(m.npoints, 20);
	assert_int_equal(m.points[19].nbytes, 256 * KIB);
	/* The receiver waits until the message is surely there. */
	assert_true(used.longest_wait_ns > 2 * l.latency_ns + gap(&l, 256 * KIB));
	l = lan();
	measure(&m, &l, &ample);
	assert_found(&m, &l, 100);
}

/* Saturation ends when the paper says so, where that is possible: on the LAN. */
static void saturation(void **state)
{
	struct gci_measure m;
	struct gci_trial t = {0};
	struct gci_trial_time times[GCI_SAMPLES_MOST];
	struct link l = lan();
	uint32_t want[] = {1, 10, 20, 40, 80, 160, 320, 640, 1280, 2560}, i = 0;

	(void)state;
	gci_measure_init(&m, &ample);
	while (gci_measure_next(&m, &t) && t.kind == GCI_TRIAL_ROW) {
		assert_true(i < 10);
		assert_int_equal(t.n, want[i++]);
		gci_measure_done(&m, times, run_trial(&l, &t, times));
	}
	/* RTT_1 is 110 us: 1 % of it is reached at n = 2200. */
	assert_int_equal(i, 10);
	assert_int_equal(t.kind, GCI_TRIAL_ROUND);
	assert_int_equal(t.nbytes, 0);
}

static void noise(void **state)
{
	struct gci_measure m;
	struct link l = wan();
	struct used used;
	int seed;

	(void)state;
	for (seed = 0; seed < 8; seed++) {
		l = seed % 2 ? lan() : wan();
		l.prng.state = (uint64_t)seed;
		l.noise_ns = seed % 2 ? 2 * US : 40 * US;
		l.overhead_noise_ns = US;
		used = measure(&m, &l, &ample);
		/* Noise is of one sign, half of it a shift that cancels in all but L and overheads.
		 */
		assert_found(&m, &l, l.noise_ns * 5 / 4);
		assert_true(used.nbytes <= ample.most_nbytes);
	}
}

static size_t between(const struct gci_measure *m, uint64_t from, uint64_t to)
{
	size_t i, n = 0;

	for (i = 0; i < m->npoints; i++)
		n += m->points[i].nbytes > from && m->points[i].nbytes < to;
	return n;
}

/* A step at 128 KiB, as MPICH's change of mode was in the paper: sizes around it are tried until
 * they are 1 % apart, and hardly any elsewhere. */
static void kink(void **state)
{
	struct gci_measure m;
	struct link l = wan();
	size_t i, near = 0;

	(void)state;
	l.kink = 128 * KIB + 100;
	l.step_ns = 700 * US;
	l.late_byte_ps = 7000;
	measure(&m, &l, &ample);
	assert_found(&m, &l, 2 * US);
	for (i = 1; i < m.npoints; i++)
		if (m.points[i].nbytes > l.kink && m.points[i - 1].nbytes <= l.kink)
			near = i;
	assert_true(near > 0);
	assert_true(m.points[near].nbytes - m.points[near - 1].nbytes <= l.kink / 98);
	assert_in_range(between(&m, 128 * KIB, 256 * KIB), 5, 12);
	assert_in_range(between(&m, 32 * KIB, 128 * KIB), 1, 3);
	assert_in_range(between(&m, 256 * KIB, 16 * MIB), 0, 8);
}

/* A line that bends at 3 MiB: larger sizes are tried until it is straight again. */
static void grows(void **state)
{
	struct gci_measure m;
	struct link l = wan();

	(void)state;
	l.kink = 200 * KIB;
	l.late_byte_ps = 4000;
	measure(&m, &l, &ample);
	assert_in_range(m.points[m.npoints - 1].nbytes, MIB, 4 * MIB);
	assert_found(&m, &l, 2 * US);
}

/* Whatever is given: it is not exceeded by more than one round trip, and what there is is good. */
static void budgets(void **state)
{
	struct gci_measure m;
	uint64_t ms, mib;

	(void)state;
	for (ms = 1; ms < 100000; ms = ms * 3 + 1) {
		struct gci_measure_config config = ample;
		struct link l = wan();
		struct used used;

		l.or_ns = l.os_ns; /* which may have to stand for it */
		config.most_ns = ms * MS;
		used = measure(&m, &l, &config);
		assert_true(used.ns <= config.most_ns + config.most_ns / 4 + 100 * MS);
		if (m.npoints)
			assert_found(&m, &l, 100);
		else
			assert_true(m.out_of_time && ms < 1000);
		/* Not only small ones. */
		if (m.npoints > 4)
			assert_true(m.points[m.npoints - 1].nbytes >= 64 * KIB);
	}
	for (mib = 0; mib < 64; mib = 2 * mib + 1) {
		struct gci_measure_config config = ample;
		struct link l = wan();
		struct used used;

		l.or_ns = l.os_ns;
		config.most_nbytes = mib * MIB;
		used = measure(&m, &l, &config);
		assert_true(used.nbytes <= config.most_nbytes);
		assert_true(m.out_of_bytes == (mib < 7));
		assert_true(m.npoints >= 1);
		assert_found(&m, &l, 100);
	}
}

/* No time is so absurd that it does not end. */
static void absurd(void **state)
{
	static const uint64_t values[] = {0, 1, UINT64_C(1) << 40, UINT64_MAX / 2, UINT64_MAX};
	struct gci_trial_time times[GCI_SAMPLES_MOST];
	struct gci_params_link out = {0};
	struct gci_measure m;
	struct gci_trial t;
	uint32_t seed, i, trials;

	(void)state;
	for (seed = 0; seed < 300; seed++) {
		struct gci_prng prng = {seed};
		struct gci_measure_config config = {values[gci_prng_below(&prng, 5)],
			values[gci_prng_below(&prng, 5)], UINT64_C(4) << gci_prng_below(&prng, 30)};

		gci_measure_init(&m, &config);
		for (trials = 0; gci_measure_next(&m, &t); trials++) {
			assert_true(trials < 20000);
			assert_true(t.nbytes <= config.most_message);
			for (i = 0; i < t.reps; i++) {
				times[i].total_ns = seed % 3 ? values[gci_prng_below(&prng, 5)]
							     : gci_prng_next(&prng);
				times[i].busy_ns = values[gci_prng_below(&prng, 5)];
			}
			gci_measure_done(&m, times, values[gci_prng_below(&prng, seed % 5 + 1)]);
		}
		assert_true(m.npoints <= GCI_MEASURE_POINTS);
		if (m.npoints) {
			assert_int_equal(gci_measure_result(&m, &out), 0);
			gci_free(out.points);
		}
	}
}

static void intervals(void **state)
{
	struct gci_samples s = {0};
	struct gci_prng prng = {7};
	uint64_t i, in = 0, tries = 2000;
	uint32_t n;

	(void)state;
	assert_int_equal(gci_samples_estimate(&s).n, 0);
	gci_samples_add(&s, 9);
	assert_int_equal(gci_samples_estimate(&s).ns, 9);
	gci_samples_add(&s, 4);
	gci_samples_add(&s, 5);
	assert_int_equal(gci_samples_estimate(&s).ns, 5);
	for (i = 0; i < 100; i++)
		gci_samples_add(&s, 6);
	assert_int_equal(s.n, GCI_SAMPLES_MOST);
	assert_int_equal(gci_samples_estimate(&s).ns, 6);
	assert_int_equal(gci_samples_estimate(&s).err_ns, 0);
	/* The true median, 500000, is in the interval at least as often as promised, about. */
	for (n = GCI_SAMPLES_LEAST; n <= GCI_SAMPLES_MOST; n += 5, in = 0) {
		for (i = 0; i < tries; i++) {
			uint32_t k, low = 0;

			s.n = 0;
			for (k = 0; k < n; k++)
				gci_samples_add(&s, gci_prng_below(&prng, 1000001));
			for (k = 0; k < n; k++)
				low += s.v[k] < 500000;
			/* Its ends are times themselves; the middle of it is not the median. */
			for (k = 0; k < n / 2; k++)
				if ((s.v[n - 1 - k] - s.v[k]) / 2 ==
					gci_samples_estimate(&s).err_ns)
					break;
			in += low > k && low < n - k;
		}
		assert_in_range(in, tries * 88 / 100, tries);
	}
}

/* Messages of more than 100 KiB are never there in time: or(m) goes on as below. */
static void late(void **state)
{
	struct gci_measure m;
	struct link l = wan();

	(void)state;
	l.socket = 100 * KIB;
	measure(&m, &l, &ample);
	assert_found(&m, &l, 100);
	assert_in_range(m.late, 100 * KIB, 128 * KIB);
	/* None at all. */
	l.socket = 0;
	l.or_ns = l.os_ns;
	measure(&m, &l, &ample);
	assert_found(&m, &l, 100);
}

/* A message alone wakes its receiver up: or(m) is no more than what each of a row takes. */
static void woken(void **state)
{
	struct gci_params_link out = {0};
	struct gci_measure m;
	struct link l = wan();
	size_t i;

	(void)state;
	l.or_ns = 400 * US;
	measure(&m, &l, &ample);
	assert_int_equal(gci_measure_result(&m, &out), 0);
	assert_close(out.latency_ns, l.latency_ns, 1, 100);
	for (i = 0; i < out.npoints; i++) {
		assert_close(out.points[i].gap_ns, gap(&l, out.points[i].nbytes), 2, 100);
		assert_true(out.points[i].or_ns <= out.points[i].gap_ns);
	}
	gci_free(out.points);
}

/* A bucket of 64 KiB: messages of that size pass three times as fast as the link keeps up. */
static void saturate(void **state)
{
	struct gci_params_point points[] = {
		{0, 1, 1, 5000}, {64 * KIB, 1, 1, 180000}, {MIB, 1, 1, 8500000}};
	struct gci_params_link l = {.points = points, .npoints = 3};

	(void)state;
	gci_measure_saturate(&l, 0);
	assert_int_equal(points[1].gap_ns, 180000);
	gci_measure_saturate(&l, 1000000000);
	assert_int_equal(points[0].gap_ns, 5000);
	assert_int_equal(points[1].gap_ns, 64 * KIB * 8);
	assert_int_equal(points[2].gap_ns, 8500000);
	gci_measure_saturate(&l, 1);
	assert_int_equal(points[2].gap_ns, MIB * 8 * GCI_NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals),
		cmocka_unit_test(exact),
		cmocka_unit_test(saturation),
		cmocka_unit_test(noise),
		cmocka_unit_test(kink),
		cmocka_unit_test(grows),
		cmocka_unit_test(budgets),
		cmocka_unit_test(absurd),
		cmocka_unit_test(late),
		cmocka_unit_test(saturate),
		cmocka_unit_test(woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
