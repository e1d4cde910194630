/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/stage.h"

struct gci_range gci_range_at(int n, int depth, int i)
{
	struct gci_range r = {0, n};

	if (gci_nranges(n, depth) == n)
		return (struct gci_range){i, i + 1};
	while (depth-- > 0) {
		int mid = gci_middle(r.a, r.z);

		if (i >> depth & 1)
			r.a = mid;
		else
			r.z = mid;
	}
	return r;
}

int gci_range_of(int n, int depth, int member)
{
	struct gci_range r = {0, n};
	int i = 0;

	if (gci_nranges(n, depth) == n)
		return member;
	while (depth-- > 0) {
		int mid = gci_middle(r.a, r.z), high = member >= mid;

		i = 2 * i + high;
		if (high)
			r.a = mid;
		else
			r.z = mid;
	}
	return i;
}

struct gci_slice gci_stage_slice(const struct gci_stage *s, int a, int z)
{
	struct gci_slice x = gci_parts_slice(s->p, s->buffer, a, z);

	if (s->g->me == 0 && s->first != GCI_NBUFFERS)
		x.buffer = s->first;
	else
		x.offset -= s->base;
	return x;
}

void gci_split(struct gci_builder *b, const struct gci_stage *s, uint32_t tag, int from, int to)
{
	const struct gci_group *g = s->g;
	struct gci_halving rounds[32];
	int i, n = g->me < 0 ? 0 : gci_halvings(g->n, g->me, rounds);

	for (i = from; i < n && i < to; i++) {
		struct gci_halving r = rounds[i];

		gci_round(b);
		if (g->me == r.a)
			gci_send_some(
				b, gci_group_rank(g, r.mid), tag, gci_stage_slice(s, r.mid, r.z));
		else if (g->me == r.mid)
			gci_recv_some(
				b, gci_group_rank(g, r.a), tag, gci_stage_slice(s, r.mid, r.z));
	}
}

void gci_collect(struct gci_builder *b, const struct gci_stage *s, uint32_t tag)
{
	const struct gci_group *g = s->g;
	struct gci_halving rounds[32];
	int n = g->me < 0 ? 0 : gci_halvings(g->n, g->me, rounds);

	while (n-- > 0) {
		struct gci_halving r = rounds[n];

		gci_round(b);
		if (g->me == r.a)
			gci_recv_some(
				b, gci_group_rank(g, r.mid), tag, gci_stage_slice(s, r.mid, r.z));
		else if (g->me == r.mid)
			gci_send_some(
				b, gci_group_rank(g, r.a), tag, gci_stage_slice(s, r.mid, r.z));
	}
}

int gci_collect_end(int n, int member)
{
	struct gci_halving rounds[32];
	int i = gci_halvings(n, member, rounds), end = member + 1;

	while (i-- > 0 && rounds[i].a == member)
		end = rounds[i].z;
	return end;
}

static void merge_round(
	struct gci_builder *b, const struct gci_stage *s, const struct gci_halving *r, uint32_t tag)
{
	const struct gci_group *g = s->g;
	int low = g->me < r->mid, first_has_all = s->first != GCI_NBUFFERS;
	struct gci_slice mine =
		low ? gci_stage_slice(s, r->a, r->mid) : gci_stage_slice(s, r->mid, r->z);
	struct gci_slice theirs =
		low ? gci_stage_slice(s, r->mid, r->z) : gci_stage_slice(s, r->a, r->mid);

	gci_round(b);
	if (g->me != r->odd && !(first_has_all && r->other == 0))
		gci_send_some(b, gci_group_rank(g, r->other), tag, mine);
	if (g->me == r->mid && r->odd > r->a)
		gci_send_some(b, gci_group_rank(g, r->odd), tag, mine);
	if (!(first_has_all && g->me == 0))
		gci_recv_some(b, gci_group_rank(g, r->other), tag, theirs);
}

void gci_merge(struct gci_builder *b, const struct gci_stage *s, uint32_t phase, int from, int to)
{
	struct gci_halving rounds[32];
	int i, n = s->g->me < 0 ? 0 : gci_halvings(s->g->n, s->g->me, rounds);

	for (i = n < from ? n : from; i-- > to;)
		merge_round(b, s, &rounds[i], gci_tag(phase, (uint32_t)i));
}
