/* SPDX-License-Identifier: MIT
 * The modified van de Geijn bcast: scatter in the root's cluster, a copy of the parts to the other
 * clusters by n senders to each (one to all, Matsuda 2006, 2.5), allgather in each cluster.
 *
 * Cost, M/B and L as in Matsuda 2006, table 1: L + M/nB + 2 M/B. How the n senders come about:
 *	-mod		any n; the other nodes forward their parts to them, (h-n)/hn M/B, which
 *			overlaps with what they send (2.2)
 *	-mod-early	n = 2^i: the copy comes after split i, when so many nodes hold the vector;
 *			the other splits follow, on both sides (2.4)
 *	-mod-merge	n = 2^i: the copy comes when merging has left as many different parts; in
 *			the other clusters, splits undo it (2.4)
 * With more clusters M/nB counts once for each of those that a node sends to: their senders are
 * different nodes as far as the cluster has enough. */
#include "collectives/bcast/bcast.h"
#include "collectives/blocks/bridge.h"

enum { SCATTER, ALLGATHER, FORWARD, COUNTER };

/* Which of the above. */
struct style {
	enum gci_bridge_how how;
	int merged;
};

/* The bridge to the cluster that is `turn` numbers on; false if it does not begin at `depth`. */
static int bridge(struct gci_bridge *x, const struct gci_builder *b, const struct gci_coll *c,
	const struct style *style, int turn, int depth)
{
	int home = c->topo->cluster[c->root], to = (home + turn) % c->topo->nclusters;

	gci_bridge_make(x, c, b->rank, home, to, style->how, style->merged);
	return x->from.depth == depth;
}

/* Copies to all clusters that get the vector at this depth. Only what was forwarded must have come,
 * and the splits or merges up to here be over; what still comes in meanwhile does no harm. */
static void cross(struct gci_builder *b, const struct gci_coll *c, const struct gci_stage *s,
	const struct style *style, int depth)
{
	uint64_t forwarded[GCI_GRID_MAX_CLUSTERS];
	int i, n = c->topo->nclusters, some = 0;
	uint32_t before = (uint32_t)b->nsteps;
	struct gci_bridge x;

	for (i = 1; i < n; i++)
		if (bridge(&x, b, c, style, i, depth)) {
			forwarded[i] = gci_bridge_forward(b, &x, s, FORWARD);
			some = 1;
		}
	if (!some)
		return;
	gci_no_rounds(b);
	if (before)
		gci_fence(b, before - 1);
	for (i = 1; i < n; i++)
		if (bridge(&x, b, c, style, i, depth)) {
			gci_bridge_send_own(b, &x, s, COUNTER);
			gci_bridge_send_forwarded(b, &x, s, forwarded[i], COUNTER);
		}
}

static void emit_home(struct gci_builder *b, const struct gci_coll *c, const struct style *style)
{
	struct gci_bank home = gci_bank_of(c, c->topo->cluster[c->root], b->rank);
	struct gci_stage s = {&home.g, &home.p, GCI_OUT, 0, GCI_IN};
	int depth, n = home.g.n;

	for (depth = 0; gci_nranges(n, depth) < n; depth++) {
		if (!style->merged)
			cross(b, c, &s, style, depth);
		gci_split(b, &s, gci_tag(SCATTER, 0), depth, depth + 1);
	}
	cross(b, c, &s, style, GCI_WHOLE_DEPTH);
	while (depth-- > 0) {
		gci_merge(b, &s, ALLGATHER, depth + 1, depth);
		if (style->merged)
			cross(b, c, &s, style, depth);
	}
}

static void emit(struct gci_builder *b, const struct gci_coll *c, const struct style *style)
{
	int home = c->topo->cluster[c->root], mine = c->topo->cluster[b->rank];
	struct gci_bridge x;
	struct gci_stage s = {&x.to.g, &x.to.p, GCI_OUT, 0, GCI_NBUFFERS};

	if (mine == home) {
		emit_home(b, c, style);
		return;
	}
	gci_bridge_make(&x, c, b->rank, home, mine, style->how, style->merged);
	gci_bridge_recv(b, &x, &s, COUNTER);
	gci_split(b, &s, gci_tag(SCATTER, 0), x.to.depth, GCI_WHOLE_DEPTH);
	gci_merge(b, &s, ALLGATHER, GCI_WHOLE_DEPTH, 0);
}

void gci_emit_bcast_vandegeijn_mod(struct gci_builder *b, const struct gci_coll *c)
{
	static const struct style style = {GCI_BRIDGE_FORWARD, 0};

	emit(b, c, &style);
}

void gci_emit_bcast_vandegeijn_early(struct gci_builder *b, const struct gci_coll *c)
{
	static const struct style style = {GCI_BRIDGE_HALVES, 0};

	emit(b, c, &style);
}

void gci_emit_bcast_vandegeijn_merge(struct gci_builder *b, const struct gci_coll *c)
{
	static const struct style style = {GCI_BRIDGE_HALVES, 1};

	emit(b, c, &style);
}
