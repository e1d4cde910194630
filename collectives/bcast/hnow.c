/* SPDX-License-Identifier: MIT
 * Bcast for hosts that differ in what a message costs them (tini in the grid file): `spoc`, `fnf`
 * and `optimal` differ in how they find the tree. For short messages in one cluster; the trees do
 * not know of clusters, nor of the time that bytes take. Multicast is the same among the ranks that
 * take part, and multiple multicasts each have a tree of their own, by their roots.
 *
 * Cost, t_i being the costs of the others in rising order and t_0 the root's: spoc at most the sum
 * over i < log2 P of max(t_0, t_(2^i - 1)); fnf within 1 % of optimal on average; optimal the least
 * there is, at 3^P to find it. HNOW (Banikazemi 1998), 4 to 6. */
#include "collectives/models/hnow.h"
#include "base/mem.h"
#include "collectives/bcast/bcast.h"

/* Who sends to this rank, and to whom it sends. */
static void emit_place(struct gci_builder *b, const struct gci_coll *c, const struct gci_hnow *t,
	int place, const int *children, int nchildren)
{
	uint64_t i, n = gci_nsegments(c->count, c->segment);
	int k;

	for (i = 0; i < n; i++) {
		struct gci_slice s = gci_segment(gci_bcast_buffer(b, c), c->count, c->segment, i);

		s.offset += c->shift;
		if (place)
			gci_recv_some(b, t->rank[t->parent[place]], gci_tag(0, (uint32_t)i), s);
		for (k = 0; k < nchildren; k++)
			gci_send_some(b, t->rank[children[k]], gci_tag(0, (uint32_t)i), s);
	}
}

static void emit_tree(struct gci_builder *b, const struct gci_coll *c, const struct gci_hnow *t)
{
	int *children = gci_calloc((size_t)t->n, sizeof(*children));
	int i, nchildren = 0, place = 0;

	if (!children) {
		b->failed = 1;
		return;
	}
	while (t->rank[place] != b->rank)
		place++;
	for (i = place + 1; i < t->n; i++)
		if (t->parent[i] == place)
			children[nchildren++] = i;
	emit_place(b, c, t, place, children, nchildren);
	gci_free(children);
}

static int spoc(struct gci_hnow *t)
{
	gci_hnow_spoc(t);
	return 0;
}

static void emit(
	struct gci_builder *b, const struct gci_coll *c, int (*find_tree)(struct gci_hnow *t))
{
	struct gci_hnow t;

	if (gci_hnow_init(&t, c->topo->tini_ns, c->topo->nranks, c->root)) {
		b->failed = 1;
		return;
	}
	if (find_tree(&t))
		b->failed = 1;
	else
		emit_tree(b, c, &t);
	gci_hnow_free(&t);
}

void gci_emit_bcast_spoc(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, spoc);
}

void gci_emit_bcast_fnf(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, gci_hnow_fnf);
}

void gci_emit_bcast_optimal(struct gci_builder *b, const struct gci_coll *c)
{
	emit(b, c, gci_hnow_optimal);
}
