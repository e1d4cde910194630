/* SPDX-License-Identifier: MIT
 * The registry: all tables of algorithms. Nothing else knows an algorithm by its name. */
#include "collectives/blocks/blocks.h"
#include "collectives/schedules.h" /* made by schedules.py */

#include <endian.h>
#include <stdio.h>
#include <string.h>

const struct gci_build gci_build = {
	.release = GCI_RELEASE,
	.schedules = GCI_SCHEDULES,
	.big_endian = __BYTE_ORDER == __BIG_ENDIAN,
};

static const struct {
	const char *name;
	const struct gci_algorithm *table;
} kinds[GCI_NKINDS] = {
	[GCI_BCAST] = {"bcast", gci_bcasts},
	[GCI_REDUCE] = {"reduce", gci_reduces},
	[GCI_ALLREDUCE] = {"allreduce", gci_allreduces},
	[GCI_REDUCE_SCATTER] = {"reduce_scatter", gci_reduce_scatters},
	[GCI_SCATTER] = {"scatter", gci_scatters},
	[GCI_GATHER] = {"gather", gci_gathers},
	[GCI_ALLGATHER] = {"allgather", gci_allgathers},
	[GCI_ALLTOALL] = {"alltoall", gci_alltoalls},
	[GCI_BARRIER] = {"barrier", gci_barriers},
};

const char *gci_kind_name(enum gci_kind kind)
{
	return kind < GCI_NKINDS ? kinds[kind].name : "?";
}

int gci_kind_find(const char *name)
{
	int k;

	for (k = 0; k < GCI_NKINDS; k++)
		if (!strcmp(name, kinds[k].name))
			return k;
	return -1;
}

const struct gci_algorithm *gci_algorithm_next(const struct gci_algorithm *a)
{
	int kind = a ? (int)a->kind : -1;

	if (a && a[1].name)
		return a + 1;
	while (++kind < GCI_NKINDS)
		if (kinds[kind].table->name)
			return kinds[kind].table;
	return NULL;
}

const struct gci_algorithm *gci_algorithm_find(enum gci_kind kind, const char *name)
{
	const struct gci_algorithm *a;

	for (a = kinds[kind].table; a->name; a++)
		if (!name || !strcmp(a->name, name))
			return a;
	return NULL;
}

const char *gci_ineligible(const struct gci_algorithm *a, const struct gci_coll *c)
{
	static _Thread_local char text[64];

	if (a->max_ranks && c->topo->nranks > a->max_ranks) {
		snprintf(text, sizeof(text), "takes at most %d ranks", a->max_ranks);
		return text;
	}
	if (c->order == GCI_RANK_ORDER && gci_order_is_flat(c) &&
		!(a->traits & GCI_KEEPS_RANK_ORDER))
		return "does not keep the order of ranks, whose clusters are mixed";
	if (c->order != GCI_ANY_ORDER &&
		!(a->traits & (GCI_KEEPS_CLUSTER_ORDER | GCI_KEEPS_RANK_ORDER)))
		return "does not keep a fixed order of reduction";
	return NULL;
}

int gci_coll_senders(const struct gci_coll *c, int from, int to)
{
	int a = gci_topo_size(c->topo, from), b = gci_topo_size(c->topo, to);
	int most = a < b ? a : b;

	if (!c->senders)
		return gci_topo_senders(c->topo, from, to);
	return c->senders < (uint32_t)most ? (int)c->senders : most;
}

/* Alltoall in place: a copy of what is sent, so that results can come in at any time. */
static void copy_input(struct gci_builder *b, const struct gci_coll *c)
{
	int i;

	for (i = 0; i < b->nranks; i++) {
		struct gci_slice copy = gci_in_block(c, b->rank, i);

		gci_tmp(b, copy.length);
		gci_copy_some(b, copy, gci_out_block(c, b->rank, i));
	}
}

/* Alltoall in place is one segment: its copy of what is sent would have to be cut alike. */
static uint32_t nsegments(const struct gci_algorithm *a, const struct gci_coll *c)
{
	if (!(a->traits & GCI_BY_SEGMENT) || (c->kind == GCI_ALLTOALL && c->in_place))
		return 1;
	return gci_nsegments_of(c);
}

int gci_emit(const struct gci_algorithm *a, const struct gci_coll *c, int rank, struct gci_sched *s)
{
	uint32_t i, n = nsegments(a, c);
	struct gci_builder b;

	gci_builder_init(&b, rank, c->topo->nranks);
	b.in_len = gci_in_extent(c, rank);
	b.out_len = gci_out_extent(c, rank);
	if (c->kind == GCI_ALLTOALL && c->in_place)
		copy_input(&b, c);
	for (i = 0; i < n; i++) {
		struct gci_coll segment = gci_segment_of(c, i, n);

		a->emit(&b, &segment);
		b.tag_at += gci_tag_span(c);
		gci_no_rounds(&b);
	}
	return gci_builder_end(&b, s);
}
