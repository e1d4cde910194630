/* SPDX-License-Identifier: MIT
 * MagPIe's segmented scatter: the root sends to every rank itself, in rounds; in each it sends one
 * segment to the first rank of each cluster, then to the second, and so on, so that all WAN links
 * work at a time. With k segments of m of each block, P_w clusters and P_l ranks in the largest,
 *
 *	T = (k-1) g + (P_l - 1) a + (P_w - 1) s(m) + L_w + g_w(m)
 *	g = P_l a + o,  a = max(g_w(m), (P_w - 1) s(m) + s(m))
 *
 * and k, if the caller leaves it open, is the best by this formula (collectives/models/magpie.h).
 * MagPIe (Kielmann 2001), 3.2; s, g and L as in collectives/models/plogp.h. */
#include "base/mem.h"
#include "collectives/blocks/path.h"
#include "collectives/blocks/route.h"
#include "collectives/models/magpie.h"
#include "collectives/scatter/scatter.h"

static struct gci_route_segments segments_of(const struct gci_coll *c, const struct gci_plogp *p)
{
	struct gci_magpie m;

	gci_magpie_init(&m, p);
	return gci_route_segments_of(c, gci_magpie_segment(&m, c));
}

/* Segment q of all blocks, cluster after cluster in turns, the root's own last in each turn. */
static void send_round(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, const struct gci_slice *blocks, uint32_t q, int most)
{
	const struct gci_topo *t = c->topo;
	int i, k, home = t->cluster[c->root];

	for (i = 0; i < most; i++)
		for (k = 1; k <= t->nclusters; k++) {
			int cluster = (home + k) % t->nclusters, to;

			if (i >= gci_topo_size(t, cluster))
				continue;
			to = gci_topo_members(t, cluster)[i];
			if (to != c->root && q < gci_route_count(cut, blocks[to].length))
				gci_send(b, to, gci_tag(0, q), gci_route_slice(cut, blocks[to], q));
		}
}

static void send_all(
	struct gci_builder *b, const struct gci_coll *c, const struct gci_route_segments *cut)
{
	struct gci_slice *blocks = gci_calloc((size_t)b->nranks, sizeof(*blocks));
	int i, most = 0;
	uint32_t q;

	if (!blocks) {
		b->failed = 1;
		return;
	}
	for (i = 0; i < b->nranks; i++)
		blocks[i] = gci_in_block(c, b->rank, i);
	for (i = 0; i < c->topo->nclusters; i++)
		if (gci_topo_size(c->topo, i) > most)
			most = gci_topo_size(c->topo, i);
	for (q = 0; q < cut->most && !b->failed; q++)
		send_round(b, c, cut, blocks, q, most);
	if (gci_has_out(c, b->rank))
		gci_copy_some(b, gci_out_block(c, b->rank, b->rank), blocks[b->rank]);
	gci_free(blocks);
}

void gci_emit_scatter_magpie_segmented(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_plogp p = gci_plogp(c->topo);
	struct gci_route_segments cut = segments_of(c, &p);
	struct gci_slice mine;
	uint64_t q, n;

	if (b->rank == c->root) {
		send_all(b, c, &cut);
		return;
	}
	mine = gci_out_block(c, b->rank, b->rank);
	n = gci_route_count(&cut, mine.length);
	for (q = 0; q < n; q++)
		gci_recv(b, c->root, gci_tag(0, (uint32_t)q), gci_route_slice(&cut, mine, q));
}
