/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/phases.h"

struct gci_group gci_group_by_clusters(const struct gci_coll *c, int rank)
{
	const struct gci_topo *t = c->topo;

	return (struct gci_group){
		t->member, t->nranks, 0, t->first[t->cluster[rank]] + t->index[rank]};
}

struct gci_units gci_units_clusters(const struct gci_coll *c, const struct gci_group *g, int rank)
{
	const struct gci_topo *t = c->topo;

	return (struct gci_units){
		g, t->first, t->nclusters, t->index[rank] ? -1 : t->cluster[rank]};
}

void gci_bcast(
	struct gci_builder *b, const struct gci_group *g, struct gci_slice data, uint32_t tag)
{
	int k, n, parent, children[32];

	if (g->me < 0)
		return;
	n = gci_binomial(g, &parent, children);
	if (parent >= 0)
		gci_recv_some(b, gci_group_rank(g, parent), tag, data);
	for (k = 0; k < n; k++)
		gci_send_some(b, gci_group_rank(g, children[k]), tag, data);
}

void gci_bcast_all(
	struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g, uint32_t phase)
{
	struct gci_slice s = gci_out_block(c, b->rank, 0);
	int i;

	if (gci_contiguous(c)) {
		s.length = gci_total(c);
		gci_bcast(b, g, s, gci_tag(phase, 0));
		return;
	}
	for (i = 0; i < b->nranks; i++)
		gci_bcast(b, g, gci_out_block(c, b->rank, i), gci_tag(phase, (uint32_t)i));
}

void gci_scatter_blocks(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	const struct gci_shelf *from, const struct gci_shelf *to, uint32_t phase)
{
	struct gci_shelf mine = *from;
	int a = 0, z = g->n;

	if (g->me < 0)
		return;
	while (z - a > 1) {
		int mid = gci_middle(a, z);

		if (g->me == a) {
			gci_send_blocks(b, c, g, mid, gci_tag(phase, 0), &mine, mid, z);
		} else if (g->me == mid) {
			mine = z - mid > 1 ? gci_shelf_tmp(b, c, g, mid, z) : *to;
			gci_recv_blocks(b, c, g, a, gci_tag(phase, 0), &mine, mid, z);
		}
		if (g->me < mid)
			z = mid;
		else
			a = mid;
	}
	if (to)
		gci_copy_blocks(b, c, g, to, &mine, g->me, g->me + 1);
}

void gci_gather_blocks(struct gci_builder *b, const struct gci_coll *c, const struct gci_group *g,
	const struct gci_shelf *from, const struct gci_shelf *to, uint32_t phase)
{
	struct gci_halving rounds[32];
	int n = g->me < 0 ? 0 : gci_halvings(g->n, g->me, rounds), end = n;
	struct gci_shelf mine = *from;

	if (g->me < 0)
		return;
	/* Of the ranges this member is the first of, the largest. */
	while (end > 0 && rounds[end - 1].a == g->me)
		end--;
	if (to)
		mine = *to;
	else if (end < n)
		mine = gci_shelf_tmp(b, c, g, g->me, rounds[end].z);
	gci_copy_blocks(b, c, g, &mine, from, g->me, g->me + 1);
	while (n-- > 0) {
		int a = rounds[n].a, mid = rounds[n].mid, z = rounds[n].z;

		if (g->me == a)
			gci_recv_blocks(b, c, g, mid, gci_tag(phase, 0), &mine, mid, z);
		else if (g->me == mid)
			gci_send_blocks(b, c, g, a, gci_tag(phase, 0), &mine, mid, z);
	}
}

/* Sends units [a, z) to the holder of unit `peer`, or receives them from it. */
static void send_units(struct gci_builder *b, const struct gci_coll *c, const struct gci_units *u,
	int peer, uint32_t phase, const struct gci_shelf *shelf, int a, int z)
{
	gci_send_blocks(b, c, u->g, gci_unit_first(u, peer), gci_tag(phase, 0), shelf,
		gci_unit_first(u, a), gci_unit_first(u, z));
}

static void recv_units(struct gci_builder *b, const struct gci_coll *c, const struct gci_units *u,
	int peer, uint32_t phase, const struct gci_shelf *shelf, int a, int z)
{
	gci_recv_blocks(b, c, u->g, gci_unit_first(u, peer), gci_tag(phase, 0), shelf,
		gci_unit_first(u, a), gci_unit_first(u, z));
}

void gci_allgather_units(struct gci_builder *b, const struct gci_coll *c, const struct gci_units *u,
	const struct gci_shelf *shelf, uint32_t phase)
{
	struct gci_halving rounds[32];
	int n = u->me < 0 ? 0 : gci_halvings(u->n, u->me, rounds);

	while (n-- > 0) {
		const struct gci_halving *h = &rounds[n];
		int low = u->me < h->mid;
		int a = low ? h->a : h->mid, z = low ? h->mid : h->z; /* what is here already */

		gci_round(b);
		if (u->me != h->odd)
			send_units(b, c, u, h->other, phase, shelf, a, z);
		if (u->me == h->mid && h->odd >= 0)
			send_units(b, c, u, h->odd, phase, shelf, a, z);
		recv_units(
			b, c, u, h->other, phase, shelf, low ? h->mid : h->a, low ? h->z : h->mid);
	}
}

/* ---- bundles */

void gci_bundle_start(struct gci_bundle *u, struct gci_builder *b, uint64_t length)
{
	*u = (struct gci_bundle){.b = b, .length = length};
}

void gci_bundle_at(struct gci_bundle *u, struct gci_builder *b, uint64_t base, uint64_t length)
{
	*u = (struct gci_bundle){.b = b, .length = length, .base = base, .in_tmp = 1};
}

static void copy_run(struct gci_bundle *u)
{
	if (!u->in_tmp)
		u->base = gci_tmp(u->b, u->length);
	u->in_tmp = 1;
	gci_copy(u->b, gci_slice(GCI_TMP, u->base + u->copied, u->run.length), u->run);
	u->copied += u->run.length;
}

void gci_bundle_add(struct gci_bundle *u, struct gci_slice s)
{
	if (!s.length)
		return;
	if (u->run.length && u->run.buffer == s.buffer &&
		u->run.offset + u->run.length == s.offset) {
		u->run.length += s.length;
		return;
	}
	if (u->run.length)
		copy_run(u);
	u->run = s;
}

struct gci_slice gci_bundle_end(struct gci_bundle *u)
{
	if (!u->in_tmp)
		return u->run;
	if (u->run.length)
		copy_run(u);
	return gci_slice(GCI_TMP, u->base, u->length);
}
