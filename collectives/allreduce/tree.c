/* SPDX-License-Identifier: MIT
 * Allreduce for short messages: along the canonical tree (collectives/blocks/order.h) in each
 * cluster, whole vectors between the clusters' first ranks, who combine them in canonical order,
 * and a binomial tree back.
 *
 * Cost: L + 2 ceil(log2 h) l + o for each message, and M/B for each. Bound (DESIGN.md): L for a
 * message of no length; what keeps us from it is the depth of the cluster's tree. */
#include "collectives/allreduce/allreduce.h"
#include "collectives/blocks/phases.h"

enum { UP, EXCHANGE, DOWN };

/* Reduces this rank's cluster to its first member; returns where this rank's result stands. */
static struct gci_slice reduce_cluster(
	struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g)
{
	struct gci_slice in = gci_vector(c, gci_input(c, b->rank)), acc = gci_vector(c, GCI_OUT);
	struct gci_join joins[GCI_MAX_JOINS];
	int i, n = gci_joins(c->topo, 0, b->rank, gci_group_rank(g, 0), joins);

	for (i = 0; i < n; i++) {
		const struct gci_join *j = &joins[i];

		if (c->topo->cluster[j->lead] != c->topo->cluster[j->other])
			continue;
		if (j->other == b->rank) {
			gci_send_some(b, j->lead, gci_tag(UP, 0), in);
		} else if (c->count) {
			gci_recv_reduce(b, j->other, gci_tag(UP, 0), acc, in, j->other_first);
			in = acc;
		}
	}
	return in;
}

/* Combines the clusters' vectors [a, z), which stand one after the other in TMP from `at` on, in
 * that of a. */
static void combine(struct gci_builder *b, const struct gci_coll *c, uint64_t at, int a, int z)
{
	int mid = gci_middle(a, z);

	if (z - a < 2)
		return;
	combine(b, c, at, a, mid);
	combine(b, c, at, mid, z);
	gci_reduce(b, gci_slice(GCI_TMP, at + c->count * (unsigned)a, c->count),
		gci_slice(GCI_TMP, at + c->count * (unsigned)mid, c->count), 0);
}

static void exchange(struct gci_builder *b, const struct gci_coll *c, struct gci_slice own)
{
	const struct gci_topo *t = c->topo;
	int k, mine = t->cluster[b->rank];
	uint64_t at = gci_tmp(b, c->count * (unsigned)t->nclusters);

	for (k = 0; k < t->nclusters; k++)
		if (k != mine)
			gci_send(b, *gci_topo_members(t, k), gci_tag(EXCHANGE, 0), own);
	for (k = 0; k < t->nclusters; k++) {
		struct gci_slice slot = gci_slice(GCI_TMP, at + c->count * (unsigned)k, c->count);

		if (k == mine)
			gci_copy(b, slot, own);
		else
			gci_recv(b, *gci_topo_members(t, k), gci_tag(EXCHANGE, 0), slot);
	}
	combine(b, c, at, 0, t->nclusters);
	gci_copy(b, gci_vector(c, GCI_OUT), gci_slice(GCI_TMP, at, c->count));
}

void gci_emit_allreduce_tree(struct gci_builder *b, const struct gci_coll *c)
{
	int mine = c->topo->cluster[b->rank];
	struct gci_group g = gci_group_cluster(c, mine, b->rank, 0);
	struct gci_slice sum;

	if (!c->count)
		return;
	sum = reduce_cluster(b, c, &g);
	if (g.me == 0 && c->topo->nclusters > 1)
		exchange(b, c, sum);
	else if (g.me == 0)
		gci_copy_some(b, gci_vector(c, GCI_OUT), sum);
	gci_bcast(b, &g, gci_vector(c, GCI_OUT), gci_tag(DOWN, 0));
}
