/* SPDX-License-Identifier: MIT
 * MagPIe's segmented gather: every rank sends to the root itself, in segments, and the root takes
 * them in from all clusters at a time. With k segments of m of each block, P_w clusters and P_l
 * ranks in the largest,
 *
 *	T = (k-1) g + max(L_w + P_l g_w(m), max(L_l, o) + P_w P_l r)
 *	g = max(P_l g_w(m), P_w P_l r + o)
 *
 * where receiving takes the root r = s(m); and k, if the caller leaves it open, is the best by this
 * formula (collectives/models/magpie.h). MagPIe (Kielmann 2001), 3.3; s, g and L as in
 * collectives/models/plogp.h.
 *
 * The paper's contention inside the receiving node is kept out: the root takes in from no more
 * clusters at a time than fill its NIC, and from one rank of each, the next being asked for a round
 * trip ahead. */
#include "collectives/blocks/path.h"
#include "collectives/blocks/route.h"
#include "collectives/gather/gather.h"
#include "collectives/models/magpie.h"

static struct gci_route_segments segments_of(const struct gci_coll *c, const struct gci_plogp *p)
{
	struct gci_magpie m;

	gci_magpie_init(&m, p);
	return gci_route_segments_of(c, gci_magpie_segment(&m, c));
}

static void receive_cluster(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, struct gci_turns *turns, int cluster)
{
	int i;
	uint64_t q;

	for (i = 0; i < gci_topo_size(c->topo, cluster); i++) {
		int from = gci_topo_members(c->topo, cluster)[i];
		struct gci_slice s = gci_out_block(c, b->rank, from);

		if (from == c->root)
			continue;
		gci_turn(turns, s.length);
		for (q = 0; q < gci_route_count(cut, s.length); q++) {
			struct gci_slice part = gci_route_slice(cut, s, q);
			uint32_t step = gci_recv(b, from, gci_tag(0, (uint32_t)q), part);

			gci_turn_step(turns, step, part.length, 1);
		}
	}
}

/* Clusters are dealt to lanes; in a lane they take turns, the root's own last. */
static void receive_all(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, const struct gci_plogp *p)
{
	int n = c->topo->nclusters, home = c->topo->cluster[c->root], lane, k;
	uint64_t fill = gci_nic_bps(c->topo, home) / p->wan_bps, ahead = 2 * cut->segment;
	int lanes = !fill ? 1 : fill < (unsigned)n ? (int)fill : n;

	for (k = 0; k < n; k++)
		if (k != home && gci_wan_in_flight(c, k, home) > ahead)
			ahead = gci_wan_in_flight(c, k, home);
	for (lane = 1; lane <= lanes; lane++) {
		struct gci_turns turns = {.b = b, .ahead = ahead};

		for (k = lane; k <= n; k += lanes)
			receive_cluster(b, c, cut, &turns, (home + k) % n);
	}
	gci_copy_some(b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
}

void gci_emit_gather_magpie_segmented(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_plogp p = gci_plogp(c->topo);
	struct gci_route_segments cut = segments_of(c, &p);
	struct gci_slice mine;
	uint64_t q, n;

	if (b->rank == c->root) {
		receive_all(b, c, &cut, &p);
		return;
	}
	mine = gci_in_block(c, b->rank, b->rank);
	n = gci_route_count(&cut, mine.length);
	for (q = 0; q < n; q++)
		gci_send(b, c->root, gci_tag(0, (uint32_t)q), gci_route_slice(&cut, mine, q));
}
