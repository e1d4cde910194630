/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/prng.h"
#include "collectives/models/params.h"

#include <string.h>

static struct gci_params_point points[] = {
	{0, 1000, 900, 2000}, {1024, 1100, 900, 4048}, {4096, 2100, 3900, 10192}};
static const struct gci_params_link measured = {.latency_ns = 5000, .points = points, .npoints = 3};

static void expect(
	const struct gci_params_link *l, uint64_t nbytes, uint64_t os, uint64_t or, uint64_t gap)
{
	struct gci_params_point at;

	gci_params_at(l, nbytes, &at);
	if (at.nbytes != nbytes || at.os_ns != os || at.or_ns != or || at.gap_ns != gap)
		fail_msg("%llu bytes: os %llu, or %llu, gap %llu", (unsigned long long)at.nbytes,
			(unsigned long long)at.os_ns, (unsigned long long)at.or_ns,
			(unsigned long long)at.gap_ns);
}

static void straight_lines(void **state)
{
	(void)state;
	expect(&measured, 0, 1000, 900, 2000);
	expect(&measured, 1024, 1100, 900, 4048);
	expect(&measured, 4096, 2100, 3900, 10192);
	expect(&measured, 512, 1050, 900, 3024);
	expect(&measured, 1, 1000, 900, 2002);
	expect(&measured, 1025, 1100, 900, 4050);
	expect(&measured, 2560, 1600, 2400, 7120);
	expect(&measured, 7168, 3100, 6900, 16336);
	/* 4 GiB beyond: 2 ns, 125/384 ns and 375/384 ns to a byte */
	expect(&measured, 4096 + (UINT64_C(1) << 32), 2100 + (UINT64_C(1) << 32) * 125 / 384,
		3900 + (UINT64_C(1) << 32) * 375 / 384, 10192 + (UINT64_C(1) << 33));
}

static void of_little(void **state)
{
	struct gci_params_link none = {0}, one = {.points = points, .npoints = 1};

	(void)state;
	expect(&none, 0, 0, 0, 0);
	expect(&none, UINT64_MAX, 0, 0, 0);
	expect(&one, 0, 1000, 900, 2000);
	expect(&one, UINT64_MAX, 1000, 900, 2000);
}

static void falling_lines_end_level(void **state)
{
	struct gci_params_point p[] = {{0, 1000, 10, 3000}, {100, 900, 20, 2000}};
	struct gci_params_link l = {.points = p, .npoints = 2};

	(void)state;
	expect(&l, 50, 950, 15, 2500);
	expect(&l, 100, 900, 20, 2000);
	expect(&l, 1000, 900, 110, 2000);
	/* os rises, the gap falls: it covers os all the same */
	p[1].os_ns = 1500;
	expect(&l, 1000, 6000, 110, 6000);
	p[1].or_ns = 1010;
	expect(&l, 1000, 6000, 10010, 10010);
}

static void no_overflow(void **state)
{
	struct gci_params_point p[] = {{0, 0, 0, 0}, {1, UINT64_MAX / 4, 1, UINT64_MAX}};
	struct gci_params_link l = {.points = p, .npoints = 2};
	uint64_t half = UINT64_C(1) << 63;

	(void)state;
	expect(&l, 1, UINT64_MAX / 4, 1, UINT64_MAX);
	expect(&l, 3, UINT64_MAX / 4 * 3, 3, UINT64_MAX);
	expect(&l, half, UINT64_MAX, half, UINT64_MAX);
	expect(&l, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	p[1].nbytes = UINT64_MAX;
	expect(&l, UINT64_MAX, UINT64_MAX / 4, 1, UINT64_MAX);
	expect(&l, half, UINT64_MAX / 8, 0, half);
}

/* Where what was measured rises, what is in between does, and stays between its neighbours. */
static void monotone(void **state)
{
	struct gci_prng r = {4};
	struct gci_params_point p[8], at, last;
	struct gci_params_link l = {.points = p, .npoints = 8};
	uint64_t nbytes;
	int i, k;

	(void)state;
	for (k = 0; k < 200; k++) {
		memset(p, 0, sizeof(p));
		for (i = 1; i < 8; i++) {
			p[i].nbytes = p[i - 1].nbytes + 1 + gci_prng_below(&r, 1u << (4 * i - 3));
			p[i].os_ns = p[i - 1].os_ns + gci_prng_below(&r, 1000);
			p[i].or_ns = p[i - 1].or_ns + gci_prng_below(&r, 3);
			p[i].gap_ns = p[i - 1].gap_ns + (p[i].os_ns - p[i - 1].os_ns) +
				      gci_prng_below(&r, 1u << 20);
		}
		gci_params_at(&l, 0, &last);
		for (nbytes = 0; nbytes < UINT64_C(1) << 40; nbytes += 1 + nbytes / 50) {
			gci_params_at(&l, nbytes, &at);
			assert_true(at.os_ns >= last.os_ns && at.or_ns >= last.or_ns);
			assert_true(at.gap_ns >= last.gap_ns && at.gap_ns >= at.os_ns);
			last = at;
		}
	}
}

static void rates(void **state)
{
	struct gci_params_rate r[] = {{2, 100}, {4, 180}, {16, 300}};
	struct gci_params_link l = {.rates = r, .nrates = 3}, none = {0};

	(void)state;
	assert_int_equal(gci_params_rate(&l, 1), 100);
	assert_int_equal(gci_params_rate(&l, 2), 100);
	assert_int_equal(gci_params_rate(&l, 3), 100);
	assert_int_equal(gci_params_rate(&l, 4), 180);
	assert_int_equal(gci_params_rate(&l, 15), 180);
	assert_int_equal(gci_params_rate(&l, UINT32_MAX), 300);
	assert_int_equal(gci_params_rate(&none, 1), 0);
}

static void parse_grid(struct gci_grid *g)
{
	static const char text[] = "[cluster a]\nhosts=x\n[cluster b]\nhosts=y\n[link a b]\n"
				   "delay=1ms\n";
	struct gci_error e = {0};

	if (gci_grid_parse(g, text, sizeof(text) - 1, "g", &e))
		fail_msg("%s", e.text);
}

static void copy_list(void *out, size_t *n, const void *from, size_t count, size_t size)
{
	void *list = gci_calloc(count, size);

	assert_non_null(list);
	memcpy(list, from, count * size);
	memcpy(out, &list, sizeof(list));
	*n = count;
}

static void dilation(void **state)
{
	static const struct gci_params_rate r[] = {{1, 1000}, {2, 3}};
	static const struct gci_params_isend s[] = {{64, 1, 3, 4, 10, 20, 30}};
	struct gci_params_link *l;
	struct gci_params p;
	struct gci_grid g;

	(void)state;
	parse_grid(&g);
	assert_int_equal(gci_params_init(&p, &g, "2026-11-21T16:29:00Z"), 0);
	l = gci_params_link(&p, 1, 0);
	l->latency_ns = 7;
	copy_list(&l->points, &l->npoints, points, 3, sizeof(*points));
	copy_list(&l->rates, &l->nrates, r, 2, sizeof(*r));
	copy_list(&l->senders, &l->nsenders, r, 1, sizeof(*r));
	copy_list(&l->isends, &l->nisends, s, 1, sizeof(*s));
	gci_params_dilate(&p, 1);
	assert_int_equal(l->latency_ns, 7);
	gci_params_dilate(&p, 20);
	assert_int_equal(l->latency_ns, 140);
	expect(l, 1024, 22000, 18000, 80960);
	assert_int_equal(l->rates[0].bps, 50);
	assert_int_equal(l->senders[0].bps, 50);
	assert_int_equal(l->rates[0].streams, 1);
	assert_int_equal(l->rates[1].bps, 1); /* 0 would be: not measured */
	assert_int_equal(l->isends[0].os_start_ns, 200);
	assert_int_equal(l->isends[0].os_spike_ns, 400);
	assert_int_equal(l->isends[0].os_mid_ns, 600);
	assert_int_equal(l->isends[0].initial, 3);
	assert_int_equal(gci_params_link(&p, 0, 1)->latency_ns, 0);
	gci_params_undilate(&p, 20);
	assert_int_equal(l->latency_ns, 7);
	expect(l, 1024, 1100, 900, 4048);
	assert_int_equal(l->rates[0].bps, 1000);
	gci_params_undilate(&p, 4);
	assert_int_equal(l->latency_ns, 2); /* 1.75 */
	l->latency_ns = UINT64_MAX;
	gci_params_dilate(&p, 2);
	assert_true(l->latency_ns == UINT64_MAX);
	gci_params_undilate(&p, UINT32_MAX);
	assert_true(l->latency_ns == (UINT64_C(1) << 32) + 1);
	gci_params_free(&p);
	gci_grid_free(&g);
}

static void of_a_grid(void **state)
{
	struct gci_params p;
	struct gci_grid g;
	unsigned long n;

	(void)state;
	parse_grid(&g);
	gci_grid_dilate(&g, 20);
	assert_int_equal(gci_params_init(&p, &g, "2026-11-21T16:29:00Z"), 0);
	assert_true(p.grid_digest == gci_grid_digest(&g));
	assert_int_equal(p.dilation, 20);
	assert_int_equal(p.nclusters, 2);
	assert_string_equal(p.clusters[1], "b");
	gci_params_free(&p);
	for (n = 1; n <= 4; n++) {
		gci_mem_fail_at(n);
		assert_int_equal(gci_params_init(&p, &g, ""), GCOLL_ERR_NOMEM);
		assert_true(gci_mem_failed());
		assert_null(p.clusters);
	}
	gci_mem_fail_at(0);
	gci_grid_free(&g);
}

/* Of streams that a pair of hosts is worth. */
static void knees(void **state)
{
	struct gci_params_rate r[] = {{1, 100}, {2, 195}, {4, 286}, {8, 300}, {100, 320}};
	struct gci_params_link l = {.rates = r};

	(void)state;
	assert_int_equal(gci_params_knee(&l), 0);
	l.nrates = 1; /* of one number nobody can tell */
	assert_int_equal(gci_params_knee(&l), 0);
	l.nrates = 2;
	assert_int_equal(gci_params_knee(&l), 2);
	l.nrates = 4; /* 286 is 95.3 % of 300 */
	assert_int_equal(gci_params_knee(&l), 4);
	l.nrates = 5;
	assert_int_equal(gci_params_knee(&l), 64); /* the most there may be */
}

/* What the file says stays; the grid keeps its digest, as text, too. */
static void senders_of_a_grid(void **state)
{
	static const char text[] = "[cluster a]\nhosts = x[1-9]\n[cluster b]\nhosts = y[1-9]\n"
				   "[link a b]\ndelay = 1ms\n";
	struct gci_params_rate knee[] = {{1, 100}, {2, 200}, {4, 390}, {8, 400}};
	struct gci_params_rate rising[] = {{1, 100}, {8, 800}};
	struct gci_params_link *there, *back;
	struct gci_params p;
	struct gci_grid g;

	(void)state;
	assert_int_equal(gci_grid_parse(&g, text, strlen(text), "g", NULL), 0);
	assert_int_equal(gci_params_init(&p, &g, "now"), 0);
	assert_int_equal(gci_params_senders(&p, &g), 0); /* nothing was measured */
	there = gci_params_link(&p, 0, 1);
	back = gci_params_link(&p, 1, 0);
	there->senders = knee;
	there->nsenders = 4;
	back->senders = rising;
	back->nsenders = 2;
	assert_int_equal(gci_params_senders(&p, &g), 1);
	assert_int_equal(gci_grid_link(&g, 0, 1)->senders, 4);
	assert_int_equal(gci_grid_link(&g, 1, 0)->senders, 0); /* no knee was seen */
	assert_true(g.amended);
	there->nsenders = 1;
	g.links[0].senders = 3;
	assert_int_equal(gci_params_senders(&p, &g), 0);
	assert_int_equal(gci_grid_link(&g, 0, 1)->senders, 3);
	there->senders = back->senders = NULL;
	gci_params_free(&p);
	gci_grid_free(&g);
}

static void streams_of_a_grid(void **state)
{
	static const char text[] = "[cluster a]\nhosts = x\n[cluster b]\nhosts = y\n"
				   "[link a > b]\nstreams = 3\n[link b > a]\ndelay = 1ms\n";
	struct gci_params_rate r[] = {{1, 100}, {8, 800}};
	struct gci_grid g, again;
	struct gci_params p;
	struct gci_buf b = {0};

	(void)state;
	assert_int_equal(gci_grid_parse(&g, text, strlen(text), "g", NULL), 0);
	assert_int_equal(gci_params_init(&p, &g, "now"), 0);
	assert_int_equal(gci_params_streams(&p, &g), 0); /* nothing was measured */
	assert_int_equal(g.amended, 0);
	gci_params_link(&p, 0, 1)->rates = gci_params_link(&p, 1, 0)->rates = r;
	gci_params_link(&p, 0, 1)->nrates = gci_params_link(&p, 1, 0)->nrates = 2;
	assert_int_equal(gci_params_streams(&p, &g), 1);
	gci_params_link(&p, 0, 1)->rates = gci_params_link(&p, 1, 0)->rates = NULL;
	gci_grid_print(&g, &b);
	assert_int_equal(gci_grid_parse(&again, (char *)b.data, b.len, "again", NULL), 0);
	assert_int_equal(gci_grid_link(&again, 0, 1)->streams, 3);
	assert_int_equal(gci_grid_link(&again, 1, 0)->streams, 8);
	assert_true(gci_grid_digest(&again) == gci_grid_digest(&g));
	assert_int_equal(again.dilation, 1);
	assert_true(again.amended);
	gci_buf_free(&b);
	gci_params_free(&p);
	gci_grid_free(&again);
	gci_grid_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(straight_lines),
		cmocka_unit_test(of_little),
		cmocka_unit_test(falling_lines_end_level),
		cmocka_unit_test(no_overflow),
		cmocka_unit_test(monotone),
		cmocka_unit_test(rates),
		cmocka_unit_test(dilation),
		cmocka_unit_test(of_a_grid),
		cmocka_unit_test(knees),
		cmocka_unit_test(streams_of_a_grid),
		cmocka_unit_test(senders_of_a_grid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
