/* SPDX-License-Identifier: MIT
 * Alltoall with all pairs of ranks at once, each at its part of the time that the whole takes: then no
 * NIC and no link is offered more than it carries, no queue builds up, and no receiver has to ask for
 * one block after the other. Needs connections that are paced (comm/pacing.h).
 *
 * Cost, M being one rank's blocks: (P-1)/P M/B + 2 L, for blocks wait for their receiver's word. On any
 * network whose pairs have one way each, the busiest NIC or link is busy throughout. */
#include "collectives/alltoall/alltoall.h"
#include "collectives/blocks/layout.h"

#include <string.h>

/* Acknowledgements of what comes the other way: one of 66 bytes for two packets of 1514, at most. */
#define SPARE_PERCENT 3

void gci_emit_alltoall_even(struct gci_builder *b, const struct gci_coll *c)
{
	int i, n = b->nranks;

	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
	for (i = 1; i < n; i++) {
		int to = (b->rank + i) % n, from = (b->rank - i + n) % n;

		gci_recv_some(b, from, gci_tag(0, 0), gci_out_block(c, b->rank, from));
		gci_send_some(b, to, gci_tag(0, 0), gci_in_block(c, b->rank, to));
	}
}

/* Blocks that leave a rank, or come to it, in bytes. */
static uint64_t load_of_rank(const struct gci_coll *c, int rank, int out)
{
	int i, n = c->topo->nranks;
	uint64_t sum = 0;

	if (!c->counts)
		return (uint64_t)(n - 1) * c->count * c->esize;
	for (i = 0; i < n; i++)
		if (i != rank)
			sum += gci_block_len(c, out ? rank : i, out ? i : rank);
	return sum * c->esize;
}

static uint64_t load_of_link(const struct gci_coll *c, int from, int to)
{
	const struct gci_topo *t = c->topo;
	const int *f = gci_topo_members(t, from), *g = gci_topo_members(t, to);
	int i, k, nf = gci_topo_size(t, from), ng = gci_topo_size(t, to);
	uint64_t sum = 0;

	if (!c->counts)
		return (uint64_t)nf * (uint64_t)ng * c->count * c->esize;
	for (i = 0; i < nf; i++)
		for (k = 0; k < ng; k++)
			sum += gci_block_len(c, f[i], g[k]);
	return sum * c->esize;
}

static double max(double a, double b)
{
	return a > b ? a : b;
}

/* How long the busiest NIC or link takes, in seconds; 0: the NICs' rates are not known. */
static double whole_s(const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	double longest = 0;
	int r, a, b;

	for (r = 0; r < t->nranks; r++) {
		uint64_t bps = t->nic_bps[t->cluster[r]];

		if (!bps)
			return 0;
		longest = max(longest, (double)load_of_rank(c, r, 0) * 8 / (double)bps);
		longest = max(longest, (double)load_of_rank(c, r, 1) * 8 / (double)bps);
	}
	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < t->nclusters; b++) {
			uint64_t bps = a == b ? 0 : gci_topo_link(t, a, b)->rate_bps;

			if (bps)
				longest = max(
					longest, (double)load_of_link(c, a, b) * 8 / (double)bps);
		}
	return longest;
}

int gci_alltoall_even_bps(const struct gci_coll *c, int rank, uint64_t *bps)
{
	double s = whole_s(c);
	int i, n = c->topo->nranks;

	memset(bps, 0, (size_t)n * sizeof(*bps));
	if (s <= 0)
		return 0;
	for (i = 0; i < n; i++) {
		uint64_t nbytes = i == rank ? 0 : gci_block_len(c, rank, i) * c->esize;

		if (nbytes)
			bps[i] = (uint64_t)((double)nbytes * 8 / s / 100 * (100 - SPARE_PERCENT)) +
				 1;
	}
	return 1;
}
