/* SPDX-License-Identifier: MIT */
#include "bench/hnow_hosts.h"

#include "base/buf.h"

const char *const hnow_sources[] = {"fast", "slow", "any"};

int hnow_topo(struct gci_topo *t, int n)
{
	struct gci_buf text = {0};
	struct gci_error e = {0};
	int rc;

	gci_buf_printf(&text, "[cluster c]\nhosts = h[1-%d]\n", n);
	rc = gci_topo_parse(t, gci_buf_cstr(&text), text.len, "hnow", &e);
	gci_buf_free(&text);
	return rc;
}

static void shuffle(struct gci_prng *prng, uint64_t *tini_ns, int n)
{
	int i;

	for (i = n - 1; i > 0; i--) {
		int k = (int)gci_prng_below(prng, (uint64_t)i + 1);
		uint64_t swap = tini_ns[i];

		tini_ns[i] = tini_ns[k];
		tini_ns[k] = swap;
	}
}

void hnow_draw(struct gci_prng *prng, const struct hnow_hosts *h, uint64_t *tini_ns)
{
	int i;

	for (i = 0; i < h->n; i++)
		tini_ns[i] = i < h->nfast ? h->fast_ns : h->slow_ns;
	if (h->source == HNOW_SLOW) {
		tini_ns[0] = h->slow_ns;
		tini_ns[h->n - 1] = h->fast_ns;
	}
	if (h->source == HNOW_ANY)
		shuffle(prng, tini_ns, h->n);
	else
		shuffle(prng, tini_ns + 1, h->n - 1);
}

uint64_t hnow_simulate(const struct hnow_wire *w, const struct gci_sim_op *op)
{
	struct gci_sim_result r = {0};
	struct gci_simnet net;
	uint64_t ns = 0;

	if (gci_simnet_init(&net, op->coll->topo, NULL))
		return 0;
	net.host = GCI_HOST_FULL_DUPLEX;
	net.nic_bps[0] = w->nic_bps;
	net.links[0].latency_ns = w->route_ns;
	net.recv_ns = 0;
	if (!gci_simulate(&net, op, &r))
		ns = r.ns;
	gci_sim_result_free(&r);
	gci_simnet_free(&net);
	return ns;
}
