/* SPDX-License-Identifier: MIT
 * Clusters from measured bandwidths, by Figure 2 of Gupta 2007: LANs A and B joined by 10 Mbit/s, C
 * by 3 Mbit/s to both. */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tools/probe/clusters.h"

#include <stdio.h>
#include <string.h>

#define MOST 64

struct measured {
	struct gci_measured m;
	uint64_t bps[MOST * MOST], latency_ns[MOST * MOST];
	char names[MOST][16];
	const char *hosts[MOST];
};

/* site[host] is 'A', 'B', ... */
static void start(struct measured *x, const char *site)
{
	int i, n = (int)strlen(site), seen[256] = {0};

	memset(x, 0, sizeof(*x));
	x->m = (struct gci_measured){.n = n, .hosts = x->hosts, .bps = x->bps};
	for (i = 0; i < n; i++) {
		snprintf(x->names[i], sizeof(x->names[i]), "%c%d", site[i] + 'a' - 'A',
			++seen[(unsigned char)site[i]]);
		x->hosts[i] = x->names[i];
	}
}

/* Figure 2, each value up to `noise` percent more or less. */
static void figure_2(struct measured *x, const char *site, int noise, uint64_t seed)
{
	struct gci_prng r = {seed};
	int a, b, n;

	start(x, site);
	n = x->m.n;
	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++) {
			uint64_t mbit = site[a] == site[b]               ? 100
					: site[a] + site[b] == 'A' + 'B' ? 10
									 : 3;

			x->bps[a * n + b] = mbit * 10000 * (uint64_t)(100 - noise) +
					    gci_prng_below(&r, mbit * 20000 * (uint64_t)noise + 1);
		}
}

/* "001122": the cluster of each host. */
static void expect(const struct measured *x, const char *want)
{
	struct gci_error e = {0};
	struct gci_clusters c;
	int i;

	if (gci_clusters_find(&c, &x->m, &e))
		fail_msg("%s", e.text);
	for (i = 0; i < x->m.n; i++)
		if (c.cluster_of[i] != want[i] - '0')
			fail_msg("%s is in cluster %d, expected %s", x->hosts[i], c.cluster_of[i],
				want);
	gci_clusters_free(&c);
}

static void of_figure_2(void **state)
{
	struct measured x;

	(void)state;
	figure_2(&x, "AAABBBCCC", 0, 0);
	expect(&x, "000111222");
	figure_2(&x, "ABCCBAACB", 0, 0);
	expect(&x, "012210021");
	figure_2(&x, "CCCCCCABBBBBBBBB", 0, 0);
	expect(&x, "0000001222222222");
}

/* Each level of the tree: all; the WAN; A and B apart; no more. */
static void levels(void **state)
{
	static const char *const want[] = {"000000000", "001100010", "012210021", "012210021"};
	struct gci_error e = {0};
	struct gci_buf text = {0};
	struct measured x;
	struct gci_pools p;
	int depth, i, n, at[9];

	(void)state;
	figure_2(&x, "ABCCBAACB", 0, 0);
	assert_int_equal(gci_clusters_tree(&p, &x.m, &e), 0);
	for (depth = 0; depth < 4; depth++) {
		n = gci_pools_cut(&p, depth, at);
		assert_int_equal(n, depth < 3 ? depth + 1 : 3);
		for (i = 0; i < 9; i++)
			assert_int_equal(at[i], want[depth][i] - '0');
	}
	gci_clusters_print_tree(&p, &x.m, &text);
	assert_string_equal(gci_buf_cstr(&text),
		"pool 1, together at 3.00 Mbit/s: a1, a2, a3, b1, b2, b3, c1, c2, c3\n"
		"pool 2 of pool 1, together at 10.0 Mbit/s: a1, a2, a3, b1, b2, b3\n"
		"pool 3 of pool 1, together at 100 Mbit/s: c1, c2, c3\n"
		"pool 4 of pool 2, together at 100 Mbit/s: a1, a2, a3\n"
		"pool 5 of pool 2, together at 100 Mbit/s: b1, b2, b3\n");
	gci_buf_free(&text);
	gci_pools_free(&p);
}

static void with_noise(void **state)
{
	struct measured x;
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < 50; seed++) {
		figure_2(&x, "AAAAAAAABBBBBBBBCCCCCCCC", 5, seed);
		expect(&x, "000000001111111122222222");
		figure_2(&x, "AABBC", 5, seed);
		expect(&x, "00112");
		figure_2(&x, "AAAAAAAAAAAAAAAB", 5, seed);
		expect(&x, "0000000000000001");
		figure_2(&x, "AAAAAAAAAAAAAAAA", 5, seed);
		expect(&x, "0000000000000000");
	}
}

/* One that fits nowhere; all alike; one, and two hosts. */
static void lone_and_equal_ones(void **state)
{
	struct measured x;
	int i;

	(void)state;
	figure_2(&x, "AAACBBB", 0, 0);
	expect(&x, "0001222");
	figure_2(&x, "AAAAAA", 0, 0);
	expect(&x, "000000");
	figure_2(&x, "A", 0, 0);
	expect(&x, "0");
	figure_2(&x, "AC", 0, 0);
	expect(&x, "00"); /* nothing to compare with */
	/* All pairs differ, none is near: nothing holds them together. */
	start(&x, "ABC");
	for (i = 0; i < 9; i++)
		x.bps[i] = 1000;
	x.bps[1] = x.bps[3] = 3000;
	expect(&x, "001");
}

/* A WAN as fast as the NICs, which the paper's bandwidths do not show. */
static void by_latency(void **state)
{
	static const char site[] = "AABBBABA";
	struct gci_prng r = {1};
	struct measured x;
	int a, b;

	(void)state;
	start(&x, site);
	for (a = 0; a < 8; a++)
		for (b = 0; b < 8; b++) {
			x.bps[a * 8 + b] = 930000000 + gci_prng_below(&r, 20000000);
			x.latency_ns[a * 8 + b] = site[a] == site[b]
							  ? 40000 + gci_prng_below(&r, 40000)
							  : 10000000 + gci_prng_below(&r, 100000);
		}
	expect(&x, "00000000");
	x.m.latency_ns = x.latency_ns;
	expect(&x, "00111010");
	/* One LAN with hosts of two speeds: near is near. */
	start(&x, "AAAAAA");
	x.m.latency_ns = x.latency_ns;
	for (a = 0; a < 6; a++)
		for (b = 0; b < 6; b++) {
			x.bps[a * 6 + b] = a < 3 && b < 3 ? 1000000000 : 100000000;
			x.latency_ns[a * 6 + b] = 50000 + gci_prng_below(&r, 50000);
		}
	expect(&x, "000000");
}

static void directions(void **state)
{
	struct gci_error e = {0};
	struct gci_clusters c;
	struct measured x;

	(void)state;
	figure_2(&x, "AAABBB", 0, 0);
	x.bps[0 * 6 + 1] = 0; /* the other direction is there */
	x.bps[4 * 6 + 3] = 0;
	expect(&x, "000111");
	/* A host that hears badly is not with those that hear it well. */
	x.bps[0 * 6 + 2] = x.bps[1 * 6 + 2] = 1000000;
	expect(&x, "001222");
	x.bps[2 * 6 + 5] = x.bps[5 * 6 + 2] = 0;
	assert_int_equal(gci_clusters_find(&c, &x.m, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "no bandwidth between a3 and b3 was measured");
	assert_null(c.cluster_of);
	gci_error_clear(&e);
	x.bps[2 * 6 + 5] = 1;
	x.m.latency_ns = x.latency_ns;
	assert_int_equal(gci_clusters_find(&c, &x.m, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "no latency between a1 and a2 was measured");
	gci_error_clear(&e);
	x.m.n = 0;
	assert_int_equal(gci_clusters_find(&c, &x.m, &e), GCOLL_ERR_INVAL);
	assert_string_equal(e.text, "0 hosts, expected 1 to 1024");
}

static void compare(const struct measured *x, const char *grid, int want, const char *text)
{
	struct gci_error e = {0};
	struct gci_buf out = {0};
	struct gci_clusters c;
	struct gci_grid g;

	if (gci_grid_parse(&g, grid, strlen(grid), "g", &e) || gci_clusters_find(&c, &x->m, &e))
		fail_msg("%s", e.text);
	assert_int_equal(gci_clusters_compare(&c, &x->m, &g, &out), want);
	assert_string_equal(gci_buf_cstr(&out), text);
	gci_buf_free(&out);
	gci_clusters_free(&c);
	gci_grid_free(&g);
}

#define LINKS "[link one two]\n[link one three]\n[link two three]\n"
#define THREE(one, two, three)                                    \
	"[cluster one]\nhosts=" one "\n[cluster two]\nhosts=" two \
	"\n[cluster three]\nhosts=" three "\n" LINKS

static void beside_a_grid_file(void **state)
{
	struct measured x;

	(void)state;
	figure_2(&x, "AAABBBCCC", 5, 3);
	compare(&x, THREE("a[1-3]", "b[1-3]", "c[1-3]"), 0, "");
	compare(&x, THREE("c[1-3]", "a[1-3]", "b[1-3]"), 0, "");
	compare(&x, THREE("a[1-3],b2", "b1,b3", "c[1-3]"), 1,
		"b2: in one by the grid file, measured with two\n");
	compare(&x, THREE("a[1-2],b3", "b[1-2],a3", "c[1-3]"), 2,
		"a3: in two by the grid file, measured with one\n"
		"b3: in one by the grid file, measured with two\n");
	compare(&x, THREE("a[1-3]", "b[1-3]", "c[1-2],d1"), 1,
		"c3: not in the grid file, measured with three\n");
	compare(&x,
		"[cluster one]\nhosts=a[1-3],b[1-3]\n[cluster two]\nhosts=c[1-3]\n[link one two]\n",
		3, "b1, b2, b3: in one by the grid file, measured apart from all others\n");
	/* Two of the file's clusters that look like one: latencies only tell. */
	figure_2(&x, "AAAAAA", 5, 3);
	compare(&x, THREE("a[1-3]", "a[4-5]", "a6"), 0, "");
	memset(x.latency_ns, 1, sizeof(x.latency_ns));
	x.m.latency_ns = x.latency_ns;
	compare(&x, THREE("a[1-3]", "a[4-5]", "a6"), 3,
		"a4, a5: in two by the grid file, measured with one\n"
		"a6: in three by the grid file, measured with one\n");
	figure_2(&x, "ABBBBBBBBBBBBBBBBBB", 0, 0);
	compare(&x, THREE("a1", "x", "b[1-3]"), 15,
		"b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15 and 3 more: not in the grid "
		"file, measured with three\n");
}

static void as_a_grid_file(void **state)
{
	struct gci_error e = {0};
	struct gci_clusters c;
	struct gci_buf text = {0};
	struct measured x;
	struct gci_grid g;
	int i;

	(void)state;
	figure_2(&x, "AACBC", 0, 0);
	for (i = 0; i < 25; i++)
		x.latency_ns[i] = x.bps[i] == 100000000 ? 50000 : 7000000;
	x.latency_ns[0 * 5 + 2] = 9000000; /* a1 > c1: of four the highest but one */
	x.latency_ns[1 * 5 + 2] = 8000000;
	x.m.latency_ns = x.latency_ns;
	assert_int_equal(gci_clusters_find(&c, &x.m, &e), 0);
	if (gci_clusters_grid(&c, &x.m, "found", &g, &e))
		fail_msg("%s", e.text);
	gci_grid_print(&g, &text);
	assert_string_equal(gci_buf_cstr(&text),
		"[cluster a]\nhosts = a1\nhosts = a2\nnic = 104558011bit\nlan_delay = 50000ns\n"
		"[cluster c]\nhosts = c1\nhosts = c2\nnic = 104558011bit\nlan_delay = 50000ns\n"
		"[cluster b]\nhosts = b1\nnic = 10455801bit\n"
		"[link a > c]\nrate = 3136740bit\ndelay = 8000000ns\n"
		"[link a > b]\nrate = 10455801bit\ndelay = 7000000ns\n"
		"[link c > a]\nrate = 3136740bit\ndelay = 7000000ns\n"
		"[link c > b]\nrate = 3136740bit\ndelay = 7000000ns\n"
		"[link b > a]\nrate = 10455801bit\ndelay = 7000000ns\n"
		"[link b > c]\nrate = 3136740bit\ndelay = 7000000ns\n");
	gci_grid_free(&g);
	gci_buf_free(&text);
	/* Names that have nothing, or what another has, in common. */
	x.hosts[1] = "k9";
	x.hosts[2] = "node-b1";
	x.hosts[3] = "node-c1";
	x.hosts[4] = "node-b2";
	assert_int_equal(gci_clusters_grid(&c, &x.m, "found", &g, &e), 0);
	assert_string_equal(g.clusters[0].name, "c1");
	assert_string_equal(g.clusters[1].name, "node");
	assert_string_equal(g.clusters[2].name, "c3");
	gci_grid_free(&g);
	x.hosts[1] = "no host";
	assert_int_equal(gci_clusters_grid(&c, &x.m, "found", &g, &e), GCOLL_ERR_PARSE);
	assert_string_equal(e.text, "found: 6 hosts, expected 5: a name stands for several");
	assert_null(g.clusters);
	gci_error_clear(&e);
	x.hosts[1] = "a1";
	assert_int_equal(gci_clusters_grid(&c, &x.m, "found", &g, &e), GCOLL_ERR_PARSE);
	assert_string_equal(e.text,
		"found:3: host a1 is there twice (first in line 2), expected each host once");
	gci_clusters_free(&c);
}

static void lack_of_memory_anywhere(void **state)
{
	unsigned long n = 0;
	struct measured x;
	int rc;

	(void)state;
	figure_2(&x, "AACBC", 0, 0);
	do {
		struct gci_error e = {0};
		struct gci_clusters c = {0};
		struct gci_buf out = {0};
		struct gci_grid g = {0};

		gci_mem_fail_at(++n);
		rc = gci_clusters_find(&c, &x.m, &e);
		if (!rc)
			rc = gci_clusters_grid(&c, &x.m, "found", &g, &e);
		if (!rc)
			rc = gci_clusters_compare(&c, &x.m, &g, &out);
		assert_int_equal(rc, gci_mem_failed() ? GCOLL_ERR_NOMEM : 0);
		gci_clusters_free(&c);
		gci_grid_free(&g);
		gci_buf_free(&out);
	} while (rc);
	gci_mem_fail_at(0);
	assert_true(n > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_figure_2),
		cmocka_unit_test(levels),
		cmocka_unit_test(with_noise),
		cmocka_unit_test(lone_and_equal_ones),
		cmocka_unit_test(by_latency),
		cmocka_unit_test(directions),
		cmocka_unit_test(beside_a_grid_file),
		cmocka_unit_test(as_a_grid_file),
		cmocka_unit_test(lack_of_memory_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
