/* SPDX-License-Identifier: MIT
 * Grid files that are refused: each with its line, what is wrong, and what was expected. */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "tests/collectives/grids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void bad_routes(void **state)
{
	(void)state;
	grid_refused(ABC "[link a c]\nvia = d\n",
		"g.grid:10: via = d, expected other clusters or switches that stand above");
	grid_refused(ABC "[link a c]\nvia = c\n",
		"g.grid:10: via = c, expected other clusters or switches that stand above");
	grid_refused(ABC "[link a c]\nvia = b,\n",
		"g.grid:10: via = b,, expected other clusters or switches that stand above");
	grid_refused(ABC "[link a c]\nvia = b\nrate = 1Gbit\n",
		"g.grid:10: a > c goes over other links and has rate, delay, queue, loss or "
		"flow_rate, expected those of the links it passes only");
	grid_refused(ABC "[route a c]\ndelay = 1ms\n",
		"g.grid:9: a > c goes over other links and has rate, delay, queue, loss or "
		"flow_rate, expected those of the links it passes only");
	grid_refused(AB "[cluster c]\nhosts = c1\n[link a b]\nvia = c\n[link a c]\nvia = b\n"
			"[link b c]\n",
		"g.grid:8: via: there is no [link a > c], expected links from each to the next");
	grid_refused(ABC "[switch s]\n[link a s]\n[link s b]\n[route a > c]\nvia = s,b,s\n",
		"g.grid:13: via: s twice, expected a way without circles");
	grid_refused(ABC "[link a c]\n[route a > c]\n",
		"g.grid:10: a > c has a link and a route, expected one of the two");
	grid_refused(ABC "[route a c]\n[route a > c]\n", "g.grid:10: route a > c is there twice");
	grid_refused(ABC "[switch s]\n[route a s]\n",
		"g.grid:10: a route of the switch s, expected one between clusters");
	grid_refused(ABC "[switch s]\n[link a s]\nvia = b\n",
		"g.grid:11: via of a > s, expected a route between clusters only");
	grid_refused(ABC "[route a]\n", "g.grid:9: bad route \"a\", expected [route A B] or "
					"[route A > B]");
}

static void bad_switches(void **state)
{
	(void)state;
	grid_refused("[switch s]\nhosts = a\n",
		"g.grid:2: unknown key \"hosts\" in [switch s], expected none");
	grid_refused("[switch s/t]\n", "g.grid:1: bad switch name \"s/t\", expected [switch NAME]");
	grid_refused("[switch s]\n[cluster s]\n",
		"g.grid:2: cluster s, expected another name than that of a switch above");
	grid_refused("[switch s]\n[switch s]\n",
		"g.grid:2: switch s, expected another name than that of a switch above");
	grid_refused("[cluster s]\n[switch s]\n",
		"g.grid:2: switch s, expected another name than that of a cluster above");
	grid_refused(AB "[switch s]\n[link a s]\n",
		"g.grid:3: cluster b cannot be reached from a, expected a section [link a b]");
	grid_refused(AB "[switch s]\n[link a s]\n[link s > b]\n",
		"g.grid:1: cluster a cannot be reached from b, expected a section [link b a]");
	grid_refused(AB "[switch s]\n[link a s]\nstreams = 2\n[link s b]\n",
		"g.grid:6: link a > s has streams or budget, expected them in a [route A B] of two "
		"clusters");
	grid_refused("[cluster a]\nuplink = 0bit\n",
		"g.grid:2: uplink = 0bit, expected a rate such as 100Mbit, 1Gbit or 1.5Gbit");
}

static void bad_costs(void **state)
{
	(void)state;
	grid_refused("[cluster a]\ntini = 100\n",
		"g.grid:2: tini = 100, expected a time such as 50us, 10ms or 1.5s");
	grid_refused("[cluster a]\ntini = 0us\n",
		"g.grid:2: tini = 0us, expected a time such as 50us, 10ms or 1.5s");
	grid_refused("[cluster a]\nhosts = x\n[host x]\ntini = fast\n",
		"g.grid:4: tini = fast, expected a time such as 50us, 10ms or 1.5s");
	grid_refused("[cluster a]\nhosts = x\n[host x]\nnick = 1\n",
		"g.grid:4: unknown key \"nick\" in [host x], expected nic, tini, interfaces or "
		"ports");
	grid_refused("[cluster a]\nhosts = x\n[host x]\nnic = 0bit\n",
		"g.grid:4: nic = 0bit, expected a rate such as 100Mbit, 1Gbit or 1.5Gbit");
	grid_refused("[cluster a]\nhosts = x\n[host y]\ntini = 1us\n",
		"g.grid:3: unknown host y, expected one of a cluster's hosts");
	grid_refused("[cluster a]\nhosts = x\n[host x]\n\n[host x]\ntini = 1us\n",
		"g.grid:5: [host x] is there twice (first in line 3)");
	grid_refused("[host x]\n", "g.grid:1: no cluster, expected at least one [cluster NAME]");
}

static void bad_sections(void **state)
{
	(void)state;
	grid_refused("[clutser a]\n",
		"g.grid:1: unknown section [clutser a], "
		"expected [cluster NAME], [switch NAME], [link A B], [route A B] or "
		"[host NAME]");
	grid_refused("[clu\033[31mster \177a]\n",
		"g.grid:1: unknown section [clu?[31mster ?a], "
		"expected [cluster NAME], [switch NAME], [link A B], [route A B] or "
		"[host NAME]");
	grid_refused(
		"[cluster ..]\n", "g.grid:1: bad cluster name \"..\", expected [cluster NAME]");
	grid_refused("[cluster ]\n", "g.grid:1: bad cluster name \"\", expected [cluster NAME]");
	grid_refused(
		"[cluster a b]\n", "g.grid:1: bad cluster name \"a b\", expected [cluster NAME]");
	grid_refused("\n[cluster 0123456789012345678901234567890123456789012]\n",
		"g.grid:2: section name longer than 49 characters");
	grid_refused("[cluster a]\nhosts=x\n\n[cluster a]\n",
		"g.grid:4: cluster a is there twice (first in line 1)");
	grid_refused(
		AB "[link a]\n", "g.grid:5: bad link \"a\", expected [link A B] or [link A > B]");
	grid_refused(AB "[link a < b]\n",
		"g.grid:5: bad link \"a < b\", expected [link A B] or [link A > B]");
	grid_refused(AB "[link a > b c]\n",
		"g.grid:5: bad link \"a > b c\", expected [link A B] or [link A > B]");
	grid_refused(AB "[link a c]\n",
		"g.grid:5: unknown cluster or switch c, expected one that stands above");
	grid_refused(AB "[link c > a]\n",
		"g.grid:5: unknown cluster or switch c, expected one that stands above");
	grid_refused(AB "[link a a]\n", "g.grid:5: a link from a to itself");
	grid_refused(AB "[link a b]\n[link b > a]\n", "g.grid:6: link b > a is there twice");
	grid_refused("hosts = a\n",
		"g.grid:1: \"hosts\" before the first section, expected [cluster NAME]");
	grid_refused("; nothing\n", "g.grid:1: no cluster, expected at least one [cluster NAME]");
}

/* Of two values, nobody knows which one is meant. */
static void repeated_keys(void **state)
{
	struct gci_grid g;

	(void)state;
	grid_refused("[cluster a]\nhosts=x\nnic=1Gbit\n\nnic=1Gbit\n",
		"g.grid:5: nic is there twice in [cluster a] (first in line 3)");
	grid_refused("[cluster a]\nhosts=x\ntini=1us\ntini=2us\n",
		"g.grid:4: tini is there twice in [cluster a] (first in line 3)");
	grid_refused("[cluster a]\nhosts=x\n[host x]\ntini=1us\ntini=2us\n",
		"g.grid:5: tini is there twice in [host x] (first in line 4)");
	grid_refused(AB "[link a b]\nrate=1Gbit\nflow_rate=1Mbit\ndelay=1ms\nrate=2Gbit\n",
		"g.grid:9: rate is there twice in [link a b] (first in line 6)");
	grid_refused(AB "[link a b]\nrate=1Gbit\ndelay=1ms\nqueue=1MB\nloss=0%\nflow_rate=1Mbit\n"
			"streams=2\nsenders=2\nsenders=2\n",
		"g.grid:13: senders is there twice in [link a b] (first in line 12)");
	/* Only within a section, and hosts may be as many as they like. */
	grid_of(&g, "[cluster a]\nhosts=x\nhosts=y\nnic=1Gbit\n[cluster b]\nhosts=z\nnic=2Gbit\n"
		    "[link a > b]\ndelay=1ms\n[link b > a]\ndelay=2ms\n"
		    "[host x]\ntini=1us\n[host y]\ntini=2us\n");
	assert_int_equal(g.nhosts, 3);
	assert_true(g.clusters[1].nic_bps == 2000000000);
	assert_true(gci_grid_link(&g, 1, 0)->delay_ns == 2000000);
	gci_grid_free(&g);
}

static void bad_cluster_keys(void **state)
{
	(void)state;
	grid_refused("[cluster a]\nhosts = a1\nspeed = 1\n",
		"g.grid:3: unknown key \"speed\" in [cluster a], expected hosts, nic, uplink, "
		"lan_delay, "
		"tini, inbound, interfaces or ports");
	grid_refused("[cluster a]\nhosts = a1\ninbound = out\n",
		"g.grid:3: inbound = out, expected yes or no");
	grid_refused("[cluster a]\nhosts = a\ninbound = no\n[cluster b]\nhosts = b\n"
		     "[cluster c]\nhosts = c\ninbound = no\n[link a b]\n[link a c]\n[link b c]\n",
		"g.grid:6: neither a nor c takes connections (inbound = no), expected one such "
		"cluster at most");
	grid_refused("[cluster a]\nhosts = a1\ninterfaces = eth0,1.2.3\n",
		"g.grid:3: interfaces: \"1.2.3\", expected interfaces or networks such as eth1, "
		"ib*, 10.1.0.0/16, fd00::/8, !docker0");
	grid_refused("[cluster a]\nhosts = a1\ninterfaces = ,\n",
		"g.grid:3: interfaces =, expected interfaces or networks such as eth1, ib*, "
		"10.1.0.0/16, fd00::/8, !docker0");
	grid_refused("[cluster a]\nhosts = a1\ninterfaces = a\ninterfaces = b\n",
		"g.grid:4: interfaces is there twice in [cluster a] (first in line 3)");
	grid_refused("[cluster a]\nhosts = a1\nports = 5000\n",
		"g.grid:3: ports = 5000, expected two ports such as 5000-5099");
	grid_refused("[cluster a]\nnic = 1GB\n",
		"g.grid:2: nic = 1GB, expected a rate such as 100Mbit, 1Gbit or 1.5Gbit");
	grid_refused("[cluster a]\nnic = 0Gbit\n",
		"g.grid:2: nic = 0Gbit, expected a rate such as 100Mbit, 1Gbit or 1.5Gbit");
	grid_refused("[cluster a]\nlan_delay = 5\n",
		"g.grid:2: lan_delay = 5, expected a time such as 50us, 10ms or 1.5s");
	grid_refused("[cluster a]\nnic = 1Gbit\n",
		"g.grid:1: cluster a has no hosts, expected hosts = NAMES");
	grid_refused("[cluster a]\nnonsense\n",
		"g.grid:2: not understood, expected [section], key = value or ; comment");
	grid_refused("[cluster a\nhosts = a\n",
		"g.grid:1: a section without its ']', expected e.g. [cluster NAME]");
}

static void bad_link_keys(void **state)
{
	(void)state;
	grid_refused(AB "[link a b]\nspeed = 1\n",
		"g.grid:6: unknown key \"speed\" in [link a b], expected rate, delay, queue, loss, "
		"flow_rate, streams, senders, budget or via");
	grid_refused(AB "[link a b]\nrate = 10\n",
		"g.grid:6: rate = 10, expected a rate such as 100Mbit, 1Gbit or 1.5Gbit");
	grid_refused(AB "[link a b]\nflow_rate = 0bit\n",
		"g.grid:6: flow_rate = 0bit, expected a rate such as 100Mbit, 1Gbit or 1.5Gbit");
	grid_refused(AB "[link a b]\ndelay = -1ms\n",
		"g.grid:6: delay = -1ms, expected a time such as 50us, 10ms or 1.5s");
	grid_refused(AB "[link a b]\nqueue = 0\n",
		"g.grid:6: queue = 0, expected a size such as 512, 64KiB, 25MB or 1GiB");
	grid_refused(AB "[link a b]\nloss = 101%\n",
		"g.grid:6: loss = 101%, expected a percentage such as 0%, 0.01% or 5%");
	grid_refused(AB "[link a b]\nloss = 100%\n",
		"g.grid:6: loss = 100%, expected a percentage such as 0%, 0.01% or 5%");
	grid_refused(AB "[link a b]\nstreams = 65\n",
		"g.grid:6: streams = 65, expected a number from 1 to 64");
	grid_refused(AB "[link a b]\nstreams = 0\n",
		"g.grid:6: streams = 0, expected a number from 1 to 64");
	grid_refused(AB "[link a b]\nsenders = many\n",
		"g.grid:6: senders = many, expected a number from 1 to 4096");
}

static void bad_hosts(void **state)
{
	(void)state;
	grid_refused("[cluster a]\nhosts = k[1-\n",
		"g.grid:2: hosts: missing ']' in \"k[1-\", expected e.g. k[1-8]");
	grid_refused("[cluster a]\nhosts = k[8-1]\n",
		"g.grid:2: hosts: bad range in \"k[8-1]\", expected e.g. k[1-8] or k[01-04,9]");
	grid_refused("[cluster a]\nhosts = k[]\n",
		"g.grid:2: hosts: bad range in \"k[]\", expected e.g. k[1-8] or k[01-04,9]");
	grid_refused("[cluster a]\nhosts = k[1-99999999]\n",
		"g.grid:2: hosts: more than 65536 hosts in \"k[1-99999999]\"");
	grid_refused("[cluster a]\nhosts = k[0-65536]\n",
		"g.grid:2: hosts: more than 65536 hosts in \"k[0-65536]\"");
	grid_refused("[cluster a]\nhosts = k[12345678901]\n",
		"g.grid:2: hosts: bad range in \"k[12345678901]\", "
		"expected e.g. k[1-8] or k[01-04,9]");
	grid_refused("[cluster a]\nhosts = a/b\n",
		"g.grid:2: hosts: bad character '/' in host name \"a/b\", expected letters, digits "
		"and ._:@%-, no - in front, and neither . nor ..");
	grid_refused("[cluster a]\nhosts = -oProxyCommand\n",
		"g.grid:2: hosts: bad host name \"-oProxyCommand\", expected letters, digits and "
		"._:@%-, no - in front, and neither . nor ..");
	grid_refused("[cluster a]\nhosts =\n",
		"g.grid:2: hosts: bad host name \"\", expected letters, digits and ._:@%-, no - in "
		"front, and neither . nor ..");
	grid_refused("[cluster a]\nhosts = a,,b\n",
		"g.grid:2: hosts: bad host name \"\", expected letters, digits and ._:@%-, no - in "
		"front, and neither . nor ..");
	grid_refused("[cluster a]\nhosts = a,..\n", "g.grid:2: hosts: bad host name \"..\", "
						    "expected letters, digits and ._:@%-, no - in "
						    "front, and neither . nor ..");
	grid_refused("[cluster a]\nhosts = x\n[cluster b]\nhosts = x\n[link a b]\ndelay=1ms\n",
		"g.grid:4: host x is there twice (first in line 2), expected each host once");
	grid_refused("[cluster a]\nhosts = k[1-65536]\nhosts = one\n",
		"g.grid:3: hosts: more than 65536 hosts");
	grid_refused(
		"[cluster a]\nhosts = k[1-65536]\n[cluster b]\nhosts = b\n[link a b]\ndelay=1ms\n",
		"g.grid:6: more than 65536 hosts");
}

static void unreachable_clusters(void **state)
{
	(void)state;
	grid_refused(
		AB, "g.grid:3: cluster b cannot be reached from a, expected a section [link a b]");
	grid_refused(AB "[link a > b]\ndelay=1ms\n",
		"g.grid:1: cluster a cannot be reached from b, expected a section [link b a]");
	grid_refused(AB "[cluster c]\nhosts=c1\n[link a b]\n[link c b]\nvia = a\n",
		"g.grid:5: cluster c cannot be reached from a, expected a section [link a c]");
}

static void hostile_bytes(void **state)
{
	static const char zero[] = "[cluster a]\nhosts = \0x\n";
	char *big = malloc(GCI_GRID_MAX_TEXT + 1);
	char *text = big;

	(void)state;
	assert_non_null(big);
	grid_refused_bytes(zero, sizeof(zero) - 1, "g.grid:2: a zero byte, expected text");
	memset(big, 'x', GCI_GRID_MAX_TEXT + 1);
	grid_refused_bytes(big, GCI_GRID_MAX_TEXT + 1, "g.grid:1: larger than 8388608 bytes");
	text += sprintf(text, "[cluster a]\nhosts = ");
	memset(text, 'x', 300);
	grid_refused_bytes(big, (size_t)(text - big) + 300,
		"g.grid:2: line longer than 198 characters (a key may be repeated for more hosts)");
	free(big);
}

static void too_many_clusters(void **state)
{
	struct gci_buf b = {0};
	int i;

	(void)state;
	for (i = 0; i <= GCI_GRID_MAX_CLUSTERS; i++)
		gci_buf_printf(&b, "[cluster c%d]\nhosts = h%d\n", i, i);
	grid_refused(gci_buf_cstr(&b), "g.grid:513: more than 256 clusters");
	gci_buf_free(&b);
}

static void bad_dilations(void **state)
{
	(void)state;
	grid_refused("[dilated]\ntimes = 0\n", "g.grid:2: times = 0, expected a number from 1");
	grid_refused("[dilated]\ntimes = 4294967296\n",
		"g.grid:2: times = 4294967296, expected a number from 1");
	grid_refused("[dilated]\ndigest = 0123456789abcdeF\n",
		"g.grid:2: digest = 0123456789abcdeF, expected 16 digits from 0 to f");
	grid_refused("[dilated]\ndigest = 123\n",
		"g.grid:2: digest = 123, expected 16 digits from 0 to f");
	grid_refused("[dilated]\nby = 3\n",
		"g.grid:2: unknown key \"by\" in [dilated], expected times or digest");
	grid_refused("[dilated]\n[cluster a]\nhosts = x\n[dilated]\n",
		"g.grid:4: [dilated] is there twice (first in line 1)");
	grid_refused("[cluster a]\nhosts = x\n[dilated]\ntimes = 20\n",
		"g.grid:3: [dilated], expected times and digest in it");
	grid_refused("[cluster a]\nhosts = x\n[dilated]\ndigest = 0123456789abcdef\n",
		"g.grid:3: [dilated], expected times and digest in it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_routes),
		cmocka_unit_test(bad_switches),
		cmocka_unit_test(bad_costs),
		cmocka_unit_test(bad_sections),
		cmocka_unit_test(repeated_keys),
		cmocka_unit_test(bad_cluster_keys),
		cmocka_unit_test(bad_link_keys),
		cmocka_unit_test(bad_hosts),
		cmocka_unit_test(unreachable_clusters),
		cmocka_unit_test(hostile_bytes),
		cmocka_unit_test(too_many_clusters),
		cmocka_unit_test(bad_dilations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
