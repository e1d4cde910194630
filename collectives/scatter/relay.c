/* SPDX-License-Identifier: MIT
 * The product's scatter: far clusters first. The root sends a cluster's blocks, in segments, to one
 * member of it, who passes them on to the others as they come; then to its own cluster's ranks. So
 * the root's NIC is never idle, and one well warmed connection crosses the WAN instead of one per
 * rank. Where one connection carries less than a NIC (flow_rate), or when asked for, members of the
 * root's cluster take over shares of the blocks and send them straight to where they belong.
 *
 * Cost, M being all blocks: (P-1)/P M/B + h m/B for segments of m, L hidden by the root's own
 * cluster. Bound (DESIGN.md): (P-1)/P M/B. */
#include "collectives/blocks/path.h"
#include "collectives/blocks/route.h"
#include "collectives/scatter/scatter.h"

/* A block's way: the root, who sends it over the WAN, who takes it in, its owner. */
#define WAY 4

static void find_way(const struct gci_coll *c, const struct gci_route *r, int index, int way[WAY])
{
	const struct gci_topo *t = c->topo;
	int n = gci_topo_size(t, r->from), at = t->index[c->root] + index % r->gateways;

	way[0] = c->root;
	way[1] = gci_topo_members(t, r->from)[at % n];
	way[3] = gci_topo_members(t, r->to)[index];
	way[2] = r->entries > 1 ? way[3] : *gci_topo_members(t, r->to);
}

/* This rank's legs of the way, if it is on it. The root's steps come one after the other. */
static void walk_way(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, const int way[WAY])
{
	int owner = way[WAY - 1], leg, mine = -1;
	struct gci_slice s = {.length = gci_block_len(c, c->root, owner), .buffer = GCI_TMP};
	uint64_t q, n = gci_route_count(cut, s.length);

	for (leg = 0; leg < WAY; leg++)
		if (way[leg] == b->rank)
			mine = leg;
	if (mine < 0)
		return;
	if (b->rank == c->root)
		s = gci_in_block(c, b->rank, owner);
	else if (b->rank == owner)
		s = gci_out_block(c, b->rank, b->rank);
	else
		s.offset = gci_tmp(b, s.length);
	for (q = 0; q < n; q++)
		for (leg = 0; leg + 1 < WAY; leg++) {
			uint32_t tag = gci_tag((uint32_t)leg, gci_route_number(cut, owner, q));
			struct gci_slice part = gci_route_slice(cut, s, q);

			if (way[leg] == way[leg + 1])
				continue;
			if (way[leg + 1] == b->rank)
				gci_recv(b, way[leg], tag, part);
			if (way[leg] == b->rank)
				gci_send(b, way[leg + 1], tag, part);
		}
}

static void far_cluster(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, int to)
{
	struct gci_route r = gci_route(c, c->topo->cluster[c->root], to);
	int i, way[WAY];

	/* The one who takes the blocks in has no need to pass on its own: that comes last. */
	for (i = gci_topo_size(c->topo, to) - 1; i >= 0; i--) {
		find_way(c, &r, i, way);
		walk_way(b, c, cut, way);
	}
}

/* The root's own cluster waits for the WAN, where that takes all the root can send. */
static void near_cluster(struct gci_builder *b, const struct gci_coll *c,
	const struct gci_route_segments *cut, int far_fills)
{
	const struct gci_topo *t = c->topo;
	int home = t->cluster[c->root], i;
	size_t far = b->nsteps;

	if (t->cluster[b->rank] != home)
		return;
	for (i = 0; i < gci_topo_size(t, home); i++) {
		int rank = gci_topo_members(t, home)[i];
		int way[WAY] = {c->root, c->root, c->root, rank};

		if (rank == c->root)
			continue;
		if (b->rank == c->root && far && far_fills)
			gci_fence(b, (uint32_t)far - 1);
		walk_way(b, c, cut, way);
	}
}

void gci_emit_scatter_relay(struct gci_builder *b, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;
	struct gci_route_segments cut = gci_route_segments(c);
	int home = t->cluster[c->root], k, far_fills = 1;

	for (k = 1; k < t->nclusters; k++) {
		int to = (home + k) % t->nclusters;

		far_fills &= gci_pair_bps(t, home, to) >= gci_nic_bps(t, home) / 2;
		if (t->cluster[b->rank] == home || t->cluster[b->rank] == to)
			far_cluster(b, c, &cut, to);
	}
	near_cluster(b, c, &cut, far_fills);
	if (b->rank == c->root && gci_has_out(c, b->rank))
		gci_copy_some(
			b, gci_out_block(c, b->rank, b->rank), gci_in_block(c, b->rank, b->rank));
}
