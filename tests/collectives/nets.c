/* SPDX-License-Identifier: MIT */
#include "tests/collectives/nets.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tests/collectives/topologies.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nets_of_text(struct gci_net *net, struct gci_topo *t, const char *text)
{
	topology_parse(t, text);
	assert_int_equal(gci_net_of(net, t), 0);
}

void nets_paper(struct gci_net *net, struct gci_topo *t)
{
	topology_read(t, getenv("GRIDCOLL_TEST_MIN3_GRID"), 0);
	assert_int_equal(gci_net_of(net, t), 0);
}

/* Up to 4 clusters of up to 5 hosts, everything at random, rates often alike. */
static void random_net(struct gci_net *net, struct gci_topo *t, struct gci_prng *p)
{
	static const char *const rates[] = {"1Mbit", "1.05Mbit", "2Mbit", "10Mbit", "100Mbit"};
	struct gci_buf text = {0};
	int c, d, n = 1 + (int)gci_prng_below(p, 4);

	for (c = 0; c < n; c++)
		gci_buf_printf(&text, "[cluster c%d]\nhosts = c%dh[1-%d]\nnic = %s\n", c, c,
			1 + (int)gci_prng_below(p, 5), rates[2 + gci_prng_below(p, 3)]);
	for (c = 0; c < n; c++)
		for (d = 0; d < n; d++)
			if (c != d)
				gci_buf_printf(&text,
					"[link c%d > c%d]\nrate = 20Mbit\nflow_rate = %s\n"
					"streams = 1\ndelay = %dms\n",
					c, d, rates[gci_prng_below(p, 5)],
					(int)gci_prng_below(p, 30));
	nets_of_text(net, t, gci_buf_cstr(&text));
	gci_buf_free(&text);
}

static void random_blocks(uint64_t *nbytes, int n, struct gci_prng *p)
{
	int i, alike = (int)gci_prng_below(p, 2);

	for (i = 0; i < n; i++)
		nbytes[i] = alike ? 100000 : gci_prng_below(p, 4) * gci_prng_below(p, 70000);
}

void nets_free(struct gci_net *net, struct gci_topo *t)
{
	gci_net_free(net);
	gci_topo_free(t);
}

void nets_each_random(int n, uint64_t seed,
	void (*check)(const struct gci_net *net, const uint64_t *nbytes, int half_duplex))
{
	struct gci_prng p = {seed};
	struct gci_net net;
	struct gci_topo t;
	uint64_t nbytes[20];
	int i;

	for (i = 0; i < n; i++) {
		random_net(&net, &t, &p);
		random_blocks(nbytes, net.nhosts, &p);
		check(&net, nbytes, i & 1);
		nets_free(&net, &t);
	}
}
