/* SPDX-License-Identifier: MIT
 * Grid files, read and printed. (What is refused: test_grid_refused.c) */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "collectives/grid/topo.h"
#include "tests/collectives/grids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TWO(nic, hosts, delay)                                     \
	"[cluster a]\nhosts=" hosts "\nnic=" nic "\n[cluster b]\n" \
	"hosts=b\n[link a b]\ndelay=" delay "\n"

static void whole_file(void **state)
{
	static const char text[] = "; a comment\n"
				   "[cluster kyoto]\n"
				   "hosts = k[1-3]        ; k1 ... k3\n"
				   "hosts = x,y z\n"
				   "nic = 1Gbit\n"
				   "lan_delay = 50us\n"
				   "\n"
				   "  [cluster tokyo]\n"
				   "  hosts = t[01-02]-ib\n"
				   "[link kyoto tokyo]\n"
				   "rate = 10Gbit\n"
				   "delay = 10ms\n"
				   "queue = 25MB\n"
				   "loss = 0.01%\n"
				   "flow_rate = 1.4Mbit\n"
				   "streams = 4\n"
				   "senders = 8";
	const struct gci_link *l;
	struct gci_grid g;

	(void)state;
	grid_of(&g, text);
	assert_int_equal(g.nclusters, 2);
	assert_int_equal(g.nhosts, 8);
	assert_string_equal(g.clusters[0].name, "kyoto");
	assert_int_equal(g.clusters[0].nhosts, 6);
	assert_true(g.clusters[0].nic_bps == 1000000000);
	assert_true(g.clusters[0].lan_delay_ns == 50000);
	assert_true(g.clusters[1].nic_bps == 0);
	assert_string_equal(gci_grid_host(&g, 2), "k3");
	assert_string_equal(gci_grid_host(&g, 5), "z");
	assert_string_equal(gci_grid_host(&g, 7), "t02-ib");
	assert_int_equal(gci_grid_cluster_of(&g, 5), 0);
	assert_int_equal(gci_grid_cluster_of(&g, 6), 1);
	assert_int_equal(gci_grid_find_host(&g, "t01-ib"), 6);
	assert_int_equal(gci_grid_find_host(&g, "t1"), -1);
	assert_int_equal(g.nlinks, 2);
	assert_null(gci_grid_link(&g, 0, 0));
	l = gci_grid_link(&g, 1, 0);
	assert_int_equal(l->from, 1);
	assert_int_equal(l->to, 0);
	assert_true(l->rate_bps == 10000000000ull);
	assert_true(l->delay_ns == 10000000);
	assert_true(l->queue_nbytes == 25000000);
	assert_int_equal(l->loss_ppm, 100);
	assert_true(l->flow_rate_bps == 1400000);
	assert_int_equal(l->streams, 4);
	assert_int_equal(l->senders, 8);
	gci_grid_free(&g);
}

static void each_direction_its_own(void **state)
{
	struct gci_grid g;

	(void)state;
	grid_of(&g,
		AB "[link a > b]\nrate=1Gbit\ndelay=1ms\n[link b > a]\nrate=2Gbit\ndelay=2ms\n");
	assert_true(gci_grid_link(&g, 0, 1)->rate_bps == 1000000000);
	assert_true(gci_grid_link(&g, 1, 0)->rate_bps == 2000000000);
	assert_true(gci_grid_link(&g, 1, 0)->delay_ns == 2000000);
	gci_grid_free(&g);
}

/* Osaka in the middle: what the path by way of it has follows from its links. */
static void a_city_in_the_middle(void **state)
{
	static const char text[] = "[cluster kyoto]\nhosts = k1\n"
				   "[cluster osaka]\nhosts = o1\nlan_delay = 1ms\n"
				   "[cluster tokyo]\nhosts = t1\n"
				   "[link kyoto tokyo]\nvia = osaka\nsenders = 3\n"
				   "[link kyoto osaka]\nrate = 10Gbit\ndelay = 2ms\nloss = 1%\n"
				   "[link osaka > tokyo]\nrate = 4Gbit\ndelay = 9ms\nloss = 10%\n"
				   "[link tokyo > osaka]\nflow_rate = 1Mbit\ndelay = 8ms\n";
	struct gci_buf out = {0};
	const struct gci_link *l;
	struct gci_grid g, again;

	(void)state;
	grid_of(&g, text);
	gci_grid_print(&g, &out);
	grid_of(&again, gci_buf_cstr(&out));
	l = gci_grid_link(&again, 0, 2);
	assert_int_equal(l->own, 0);
	assert_int_equal(l->nroute, 2);
	assert_true(l->rate_bps == 4000000000ull);
	assert_true(l->delay_ns == 10000000);
	assert_int_equal(l->loss_ppm, 109000);
	assert_int_equal(l->senders, 3);
	l = gci_grid_link(&again, 2, 0);
	assert_true(l->rate_bps == 10000000000ull);
	assert_true(l->flow_rate_bps == 1000000);
	assert_true(l->delay_ns == 9000000);
	gci_grid_free(&g);
	gci_grid_free(&again);
	gci_buf_free(&out);
}

/* The wires that a path passes, by the names of their far ends. */
static void assert_path(
	const struct gci_grid *g, const char *from, const char *to, const char *want)
{
	const struct gci_link *l =
		gci_grid_link(g, gci_grid_find_end(g, from), gci_grid_find_end(g, to));
	char got[256] = "";
	int i;

	for (i = 0; i < l->nroute; i++) {
		strcat(got, i ? " " : "");
		strcat(got, gci_grid_end(g, g->wires[g->routes[l->route + i]].to));
	}
	assert_string_equal(got, want);
}

static void assert_same_links(const struct gci_grid *a, const struct gci_grid *b)
{
	int i, k;

	assert_int_equal(a->nwires, b->nwires);
	assert_int_equal(a->nlinks, b->nlinks);
	for (i = 0; i < a->nlinks; i++) {
		const struct gci_link *x = &a->links[i], *y = &b->links[i];

		assert_true(x->rate_bps == y->rate_bps && x->delay_ns == y->delay_ns);
		assert_true(x->queue_nbytes == y->queue_nbytes && x->loss_ppm == y->loss_ppm);
		assert_true(x->streams == y->streams && x->senders == y->senders);
		assert_true(x->budget_bps == y->budget_bps && x->own == y->own);
		assert_int_equal(x->nroute, y->nroute);
		for (k = 0; k < x->nroute; k++)
			assert_int_equal(a->routes[x->route + k], b->routes[y->route + k]);
	}
}

#define FOUR_CITIES                                                  \
	"[cluster a]\nhosts = a1\nlan_delay = 1ms\n"                 \
	"[cluster b]\nhosts = b1\nlan_delay = 1ms\n"                 \
	"[cluster c]\nhosts = c1\nuplink = 1Gbit\n"                  \
	"[cluster d]\nhosts = d1\n[switch x]\n[switch y]\n"          \
	"[link a b]\nrate = 10Gbit\ndelay = 4ms\nqueue = 1MB\n"      \
	"[link b x]\nrate = 5Gbit\ndelay = 2ms\nloss = 1%\n"         \
	"[link x c]\nrate = 8Gbit\ndelay = 3ms\n"                    \
	"[link c d]\nrate = 9Gbit\ndelay = 1ms\nflow_rate = 1Mbit\n" \
	"[link y d]\ndelay = 1ms\n[link x y]\ndelay = 4ms\n"

/* Through switches and past clusters, by the least delay or as the file says; and the same of what is printed. */
static void paths_of_several_links(void **state)
{
	struct gci_buf out = {0}, fast = {0};
	struct gci_grid g, again;

	(void)state;
	grid_of(&g, FOUR_CITIES "[route a > d]\nvia = b, x,y\nstreams = 3\nbudget = 1Gbit\n"
				"[route b d]\nvia = x, c\n[route c a]\nsenders = 2\n");
	assert_path(&g, "a", "b", "b");
	assert_path(&g, "b", "c", "x c c"); /* down its uplink */
	assert_path(&g, "a", "c", "b x c c");
	assert_path(&g, "c", "a", "uplink x b a");
	assert_path(&g, "a", "d", "b x y d");
	assert_path(&g, "d", "a", "c x b a"); /* not by c's uplink */
	assert_path(&g, "b", "d", "x c d");
	assert_path(&g, "d", "b", "c x b");
	assert_true(gci_grid_link(&g, 0, 2)->rate_bps == 1000000000);
	assert_true(gci_grid_link(&g, 0, 2)->delay_ns == 8000000); /* 9 less the LAN of b */
	assert_int_equal(gci_grid_link(&g, 0, 2)->loss_ppm, 10000);
	assert_true(gci_grid_link(&g, 3, 0)->rate_bps == 5000000000);
	assert_true(gci_grid_link(&g, 3, 0)->flow_rate_bps == 1000000);
	assert_int_equal(gci_grid_link(&g, 0, 3)->streams, 3);
	assert_int_equal(gci_grid_link(&g, 2, 0)->senders, 2);
	assert_int_equal(gci_grid_is_simple(&g), 0);
	gci_grid_print(&g, &out);
	grid_of(&again, gci_buf_cstr(&out));
	assert_same_links(&g, &again);
	gci_grid_dilate(&again, 4);
	assert_true(gci_grid_link(&again, 0, 2)->rate_bps == 250000000);
	gci_grid_print(&again, &fast);
	gci_grid_free(&g);
	grid_of(&g, gci_buf_cstr(&fast));
	assert_same_links(&g, &again);
	assert_true(gci_grid_digest(&g) == gci_grid_digest(&again));
	gci_grid_free(&again);
	gci_grid_free(&g);
	gci_buf_free(&fast);
	gci_buf_free(&out);
}

/* What is printed is read again, however long: names of 34 characters, and a route past many switches. */
static void long_routes(void **state)
{
	static const char names[] = "[cluster a234567890123456789012345678901234]\nhosts = a\n"
				    "[cluster b234567890123456789012345678901234]\nhosts = b\n"
				    "[switch s]\n[link a234567890123456789012345678901234 s]\n"
				    "[link s b234567890123456789012345678901234]\n";
	struct gci_buf text = {0}, out = {0}, via = {0};
	struct gci_grid g, again;
	int i;

	(void)state;
	grid_of(&g, names);
	g.links[0].streams = 4;
	gci_grid_print(&g, &out);
	grid_of(&again, gci_buf_cstr(&out));
	assert_int_equal(again.links[0].streams, 4);
	gci_grid_free(&again);
	gci_grid_free(&g);
	gci_buf_free(&out);
	gci_buf_printf(&text, AB);
	for (i = 0; i < 20; i++)
		gci_buf_printf(&text, "[switch switch%02d]\n", i);
	gci_buf_printf(&text, "[link a switch00]\n[link switch19 b]\n");
	for (i = 0; i < 20; i++) {
		if (i)
			gci_buf_printf(&text, "[link switch%02d switch%02d]\n", i - 1, i);
		gci_buf_printf(&via, "%sswitch%02d", i ? "," : "via=", i);
	}
	gci_buf_printf(&text, "[route a b]\n%s\n", gci_buf_cstr(&via));
	grid_of(&g, gci_buf_cstr(&text));
	gci_grid_print(&g, &out);
	grid_of(&again, gci_buf_cstr(&out));
	assert_same_links(&g, &again);
	gci_grid_free(&again);
	gci_grid_free(&g);
	gci_buf_free(&out);
	gci_buf_free(&via);
	gci_buf_free(&text);
}

/* Of two ways of the same delay that of fewer links. */
static void equal_paths(void **state)
{
	struct gci_grid g;

	(void)state;
	grid_of(&g, AB "[switch x]\n[switch y]\n[switch z]\n"
		       "[link a x]\ndelay = 1ms\n[link x y]\ndelay = 1ms\n[link y b]\ndelay = 1ms\n"
		       "[link a z]\ndelay = 2ms\n[link z b]\ndelay = 1ms\n");
	assert_path(&g, "a", "b", "z b");
	assert_path(&g, "b", "a", "z a");
	gci_grid_free(&g);
}

static void windows_line_ends(void **state)
{
	struct gci_grid g;

	(void)state;
	grid_of(&g, "[cluster a]\r\nhosts = a1\r\nnic = 1Gbit\r\n");
	assert_string_equal(gci_grid_host(&g, 0), "a1");
	gci_grid_free(&g);
}

/* One slow host: its card, in the topology, its communicators and what is printed. */
static void cards_of_hosts(void **state)
{
	static const int pair[] = {2, 1};
	struct gci_buf out = {0};
	struct gci_topo t, sub;
	struct gci_grid g, again;

	(void)state;
	grid_of(&g, "[cluster a]\nhosts = a[1-3]\nnic = 10Gbit\n[host a2]\nnic = 1Gbit\n");
	gci_grid_dilate(&g, 2);
	gci_grid_print(&g, &out);
	grid_of(&again, gci_buf_cstr(&out));
	assert_true(gci_grid_nic_bps(&again, 0) == 5000000000);
	assert_true(gci_grid_nic_bps(&again, 1) == 500000000);
	assert_true(gci_grid_digest(&g) == gci_grid_digest(&again));
	assert_int_equal(gci_topo_create(&t, &again, NULL, 3), 0);
	assert_int_equal(gci_topo_sub(&sub, &t, pair, 2), 0);
	assert_true(sub.rank_nic_bps[0] == 5000000000 && sub.rank_nic_bps[1] == 500000000);
	gci_topo_free(&sub);
	gci_topo_free(&t);
	gci_grid_free(&again);
	gci_grid_free(&g);
	gci_buf_free(&out);
}

/* A host's own cost goes before its cluster's, wherever its section stands. */
static void message_initiation_costs(void **state)
{
	struct gci_grid g;

	(void)state;
	grid_of(&g, "[host a2]\ntini = 300us\n[cluster a]\nhosts = a[1-3]\ntini = 100us\n"
		    "[cluster b]\nhosts = b[1-2]\n[host b2]\ntini=1ms\n[host b1]\n"
		    "[link a b]\ndelay=1ms\n");
	assert_true(gci_grid_tini_ns(&g, 0) == 100000);
	assert_true(gci_grid_tini_ns(&g, 1) == 300000);
	assert_true(gci_grid_tini_ns(&g, 2) == 100000);
	assert_true(gci_grid_tini_ns(&g, 3) == 0);
	assert_true(gci_grid_tini_ns(&g, 4) == 1000000);
	gci_grid_dilate(&g, 2);
	assert_true(gci_grid_tini_ns(&g, 1) == 600000);
	assert_true(gci_grid_tini_ns(&g, 2) == 200000);
	gci_grid_free(&g);
}

/* Each key by itself: a host's own goes before its cluster's. */
static void how_hosts_are_reached(void **state)
{
	static const char model[] = "[cluster a]\nhosts = a[1-3]\n[cluster b]\nhosts = b\n"
				    "[link a b]\ndelay=1ms\n";
	struct gci_access access;
	uint64_t digest;
	struct gci_grid g;

	(void)state;
	grid_of(&g, model);
	digest = gci_grid_digest(&g);
	access = gci_grid_access(&g, 1);
	assert_null(access.interfaces);
	assert_int_equal(access.ports.lo, 0);
	gci_grid_free(&g);
	grid_of(&g, "[host a2]\ninterfaces = !ib0, 10.1.0.0/16 ; not the third\n"
		    "[cluster a]\nhosts = a[1-3]\ninterfaces = eth1,eth2\nports = 5000-5063\n"
		    "[cluster b]\nhosts = b\n[host a3]\nports = 6000-6001\n"
		    "[link a b]\ndelay=1ms\n");
	access = gci_grid_access(&g, 0);
	assert_string_equal(access.interfaces, "eth1,eth2");
	assert_int_equal(access.ports.hi, 5063);
	access = gci_grid_access(&g, 1);
	assert_string_equal(access.interfaces, "!ib0, 10.1.0.0/16");
	assert_int_equal(access.ports.lo, 5000);
	access = gci_grid_access(&g, 2);
	assert_string_equal(access.interfaces, "eth1,eth2");
	assert_int_equal(access.ports.lo, 6000);
	assert_null(gci_grid_access(&g, 3).interfaces);
	/* What was measured of a grid holds whichever way its hosts are reached. */
	assert_true(gci_grid_digest(&g) == digest);
	gci_grid_free(&g);
}

/* Kept in the text that ranks get; no property of the model. */
static void who_lets_nobody_in(void **state)
{
	static const char model[] = "[cluster a]\nhosts=a\n[cluster b]\nhosts=b\n[link a b]\n";
	struct gci_buf text = {0};
	struct gci_grid g, again;
	uint64_t digest;

	(void)state;
	grid_of(&g, model);
	digest = gci_grid_digest(&g);
	assert_false(g.clusters[0].outward || g.clusters[1].outward);
	gci_grid_free(&g);
	grid_of(&g, "[cluster a]\nhosts=a\ninbound = yes\n[cluster b]\nhosts=b\ninbound=no\n"
		    "[link a b]\n");
	assert_true(gci_grid_digest(&g) == digest);
	gci_grid_dilate(&g, 3);
	gci_grid_print(&g, &text);
	grid_of(&again, gci_buf_cstr(&text));
	assert_false(again.clusters[0].outward);
	assert_true(again.clusters[1].outward);
	gci_buf_free(&text);
	gci_grid_free(&again);
	gci_grid_free(&g);
}

static void byte_order_mark(void **state)
{
	static const char text[] = "\xef\xbb\xbf[cluster a]\nhosts = a1\n";
	struct gci_error e = {0};
	struct gci_grid g;

	(void)state;
	assert_int_equal(gci_grid_parse(&g, text, sizeof(text) - 1, "g.grid", &e), 0);
	assert_string_equal(gci_grid_host(&g, 0), "a1");
	gci_grid_free(&g);
}

static void dilation(void **state)
{
	struct gci_grid g;

	(void)state;
	grid_of(&g, "[cluster a]\nhosts=a\nnic=1Gbit\nlan_delay=50us\n[cluster b]\nhosts=b\n"
		    "[link a b]\nrate=10Gbit\ndelay=10ms\nflow_rate=1Mbit\nqueue=25MB\nloss=1%\n");
	gci_grid_dilate(&g, 1);
	assert_true(g.clusters[0].nic_bps == 1000000000);
	gci_grid_dilate(&g, 20);
	assert_true(g.clusters[0].nic_bps == 50000000);
	assert_true(g.clusters[0].lan_delay_ns == 1000000);
	assert_true(g.clusters[1].nic_bps == 0);
	assert_true(g.links[1].rate_bps == 500000000);
	assert_true(g.links[1].delay_ns == 200000000);
	assert_true(g.links[1].flow_rate_bps == 50000);
	assert_true(g.links[1].queue_nbytes == 25000000); /* what is in flight stays */
	assert_int_equal(g.links[1].loss_ppm, 10000);
	gci_grid_free(&g);
	/* A small budget is no budget's opposite: none. */
	grid_of(&g, "[cluster a]\nhosts=a\n[cluster b]\nhosts=b\n"
		    "[link a b]\nrate=1Gbit\ndelay=10ms\nbudget=15bit\n");
	gci_grid_dilate(&g, 20);
	assert_true(g.links[0].budget_bps == 1);
	gci_grid_free(&g);
}

static void printed_grids_parse_to_the_same(void **state)
{
	struct gci_buf first = {0}, second = {0};
	struct gci_grid g;

	(void)state;
	grid_of(&g, "[cluster a]\nhosts=a[1-20]\nnic=1.5Gbit\nlan_delay=1500ns\n"
		    "interfaces=eth1 !eth2\nports=1-65535\n"
		    "[cluster b]\nhosts=b\ntini=3us\n[host a7]\ntini=12345ns\ninterfaces=::/0\n"
		    "[host b]\nports=7-8\n"
		    "[link a > b]\nrate=3bit\ndelay=7ns\nqueue=9\nloss=0.0123%\n"
		    "flow_rate=5bit\nstreams=3\nsenders=2\n[link b > a]\ndelay=0ms\n");
	gci_grid_print(&g, &first);
	gci_grid_free(&g);
	grid_of(&g, gci_buf_cstr(&first));
	gci_grid_print(&g, &second);
	assert_string_equal(gci_buf_cstr(&first), gci_buf_cstr(&second));
	assert_int_equal(g.links[0].loss_ppm, 123);
	assert_true(gci_grid_tini_ns(&g, 6) == 12345);
	assert_true(gci_grid_tini_ns(&g, 7) == 0);
	assert_true(gci_grid_tini_ns(&g, 20) == 3000);
	assert_int_equal(g.links[0].streams, 3);
	gci_grid_free(&g);
	gci_buf_free(&first);
	gci_buf_free(&second);
}

static uint64_t digest_of(const char *text)
{
	struct gci_grid g;
	uint64_t digest;

	grid_of(&g, text);
	digest = gci_grid_digest(&g);
	gci_grid_free(&g);
	return digest;
}

static void digests(void **state)
{
	uint64_t one = digest_of(TWO("1Gbit", "x[1-3]", "1.5ms"));

	(void)state;
	assert_true(one == digest_of("; a comment\n" TWO("1000Mbit", "x1,x2, x3", "1500us")));
	assert_true(one != digest_of(TWO("2Gbit", "x[1-3]", "1.5ms")));
	assert_true(one != digest_of(TWO("1Gbit", "x[1-4]", "1.5ms")));
	assert_true(one != digest_of(TWO("1Gbit", "x[2-3],x1", "1.5ms")));
	assert_true(one != digest_of(TWO("1Gbit", "x[1-3]", "1.6ms")));
}

/* The lab's grid is printed, and parsed by the launcher and by all ranks. */
static void digests_of_dilated_grids(void **state)
{
	struct gci_buf text = {0}, again = {0};
	struct gci_grid g, lab;
	uint64_t digest;

	(void)state;
	grid_of(&g, TWO("1001bit", "x[1-3]", "7ns"));
	digest = gci_grid_digest(&g);
	assert_int_equal(g.dilation, 1);
	gci_grid_dilate(&g, 20);
	assert_true(gci_grid_digest(&g) == digest);
	gci_grid_print(&g, &text);
	grid_of(&lab, gci_buf_cstr(&text));
	assert_true(gci_grid_digest(&lab) == digest);
	assert_int_equal(lab.dilation, 20);
	assert_true(lab.clusters[0].nic_bps == 50);
	gci_grid_print(&lab, &again);
	assert_string_equal(gci_buf_cstr(&text), gci_buf_cstr(&again));
	gci_grid_dilate(&lab, 1u << 31);
	assert_true(lab.dilation == UINT32_MAX);
	gci_grid_free(&g);
	gci_grid_free(&lab);
	gci_buf_free(&text);
	gci_buf_free(&again);
}

static void expect_hosts(const char *pattern, const char *want)
{
	struct gci_error e = {0};
	struct gci_buf got = {0};
	char **hosts = NULL;
	int n = 0, i;

	if (gci_hosts_expand(pattern, &hosts, &n, &e))
		fail_msg("%s: %s", pattern, e.text);
	for (i = 0; i < n; i++) {
		gci_buf_printf(&got, "%s%s", i ? " " : "", hosts[i]);
		gci_free(hosts[i]);
	}
	assert_string_equal(gci_buf_cstr(&got), want);
	gci_free(hosts);
	gci_buf_free(&got);
}

static void host_patterns(void **state)
{
	(void)state;
	expect_hosts("a", "a");
	expect_hosts(" a , b\tc ", "a b c");
	expect_hosts("a[1-3,07],b", "a1 a2 a3 a07 b");
	expect_hosts("n[08-11]-ib", "n08-ib n09-ib n10-ib n11-ib");
	expect_hosts("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2");
	expect_hosts("user@10.0.0.[1-2]", "user@10.0.0.1 user@10.0.0.2");
}

/* What was there before stays as it was. */
static void failed_patterns_take_nothing_with_them(void **state)
{
	struct gci_error e = {0};
	char **hosts = NULL;
	int n = 0;

	(void)state;
	assert_int_equal(gci_hosts_expand("x", &hosts, &n, &e), 0);
	assert_int_equal(gci_hosts_expand("a,b,c[", &hosts, &n, &e), GCOLL_ERR_PARSE);
	assert_int_equal(n, 1);
	assert_string_equal(hosts[0], "x");
	gci_free(hosts[0]);
	gci_free(hosts);
}

static void lack_of_memory_anywhere(void **state)
{
	static const char text[] =
		"[cluster a]\nhosts=a[1-3],b\n[cluster b]\nhosts=x\n"
		"[link a b]\ndelay=1ms\n[host x]\ntini=1us\ninterfaces=a\n[host a2]\ntini=2us\n"
		"interfaces=b\nports=1-2\n";
	unsigned long n = 0;
	struct gci_grid g;
	int rc;

	(void)state;
	do {
		struct gci_error e = {0};

		gci_mem_fail_at(++n);
		rc = gci_grid_parse(&g, text, sizeof(text) - 1, "g.grid", &e);
		if (gci_mem_failed()) {
			assert_int_equal(rc, GCOLL_ERR_NOMEM);
			assert_null(g.clusters);
		} else {
			assert_int_equal(rc, 0);
			gci_grid_free(&g);
		}
	} while (rc);
	gci_mem_fail_at(0);
	assert_true(n > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file),
		cmocka_unit_test(each_direction_its_own),
		cmocka_unit_test(a_city_in_the_middle),
		cmocka_unit_test(paths_of_several_links),
		cmocka_unit_test(equal_paths),
		cmocka_unit_test(long_routes),
		cmocka_unit_test(windows_line_ends),
		cmocka_unit_test(cards_of_hosts),
		cmocka_unit_test(message_initiation_costs),
		cmocka_unit_test(how_hosts_are_reached),
		cmocka_unit_test(who_lets_nobody_in),
		cmocka_unit_test(byte_order_mark),
		cmocka_unit_test(dilation),
		cmocka_unit_test(printed_grids_parse_to_the_same),
		cmocka_unit_test(digests),
		cmocka_unit_test(digests_of_dilated_grids),
		cmocka_unit_test(host_patterns),
		cmocka_unit_test(failed_patterns_take_nothing_with_them),
		cmocka_unit_test(lack_of_memory_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
