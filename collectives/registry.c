/* SPDX-License-Identifier: MIT
 * The table of algorithms. Nothing outside of it knows one by its name. */
#include "collectives/coll.h"

#include <string.h>

/* kind, name, summary, uses senders, uses segment, caps senders, emitter. Defaults first. */
const struct gci_algorithm gci_algorithms[] = {
	{GCI_BCAST, "gridcoll", "pipeline or tree, by a cost formula", 1, 1, 1,
		gci_emit_bcast_gridcoll},
	{GCI_BCAST, "pipeline", "segments along a path through all ranks, over the WAN once", 1, 1,
		1, gci_emit_bcast_pipeline},
	{GCI_BCAST, "tree", "binomial in each cluster, far clusters first", 0, 1, 1,
		gci_emit_bcast_tree},
	{GCI_BCAST, "flat", "the root sends to each rank in turn", 0, 1, 0, gci_emit_bcast_flat},
	{GCI_BCAST, "chain", "rank to rank in rank order", 0, 1, 0, gci_emit_bcast_chain},
	{GCI_BCAST, "binomial", "binomial tree over all ranks", 0, 1, 0, gci_emit_bcast_binomial},
	{GCI_BCAST, "vandegeijn", "scatter, allgather over all ranks", 0, 0, 0,
		gci_emit_bcast_vandegeijn},
	{GCI_BCAST, "vandegeijn-mod", "scatter, copy over the WAN by n senders, allgather", 1, 0, 1,
		gci_emit_bcast_vandegeijn_mod},
	{GCI_BCAST, "farfirst", "whole message over the WAN, then van de Geijn in each cluster", 0,
		0, 1, gci_emit_bcast_farfirst},

	{GCI_ALLREDUCE, "rabenseifner-mod",
		"reduce-scatter, exchange over the WAN by n senders, allgather", 1, 0, 1,
		gci_emit_allreduce_rabenseifner_mod},
	{GCI_ALLREDUCE, "rabenseifner", "reduce-scatter, allgather over all ranks", 0, 0, 0,
		gci_emit_allreduce_rabenseifner},
	{GCI_ALLREDUCE, "two-tier", "reduce in each cluster, exchange whole, bcast", 0, 0, 1,
		gci_emit_allreduce_two_tier},

	{GCI_BARRIER, "clusters", "gather in each cluster, exchange, release", 0, 0, 1,
		gci_emit_barrier_clusters},
	{GCI_BARRIER, "dissemination", "dissemination over all ranks", 0, 0, 0,
		gci_emit_barrier_dissemination},

	{GCI_NKINDS, NULL, NULL, 0, 0, 0, NULL},
};

const char *gci_kind_name(enum gci_kind kind)
{
	static const char *const names[] = {"bcast", "allreduce", "barrier"};

	return kind < GCI_NKINDS ? names[kind] : "?";
}

const struct gci_algorithm *gci_algorithm_find(enum gci_kind kind, const char *name)
{
	const struct gci_algorithm *a;

	for (a = gci_algorithms; a->name; a++)
		if (a->kind == kind && (!name || !strcmp(a->name, name)))
			return a;
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

int gci_fewest_senders(const struct gci_coll *c, int from)
{
	int to, least = gci_topo_size(c->topo, from);

	for (to = 0; to < c->topo->nclusters; to++)
		if (to != from && gci_coll_senders(c, from, to) < least)
			least = gci_coll_senders(c, from, to);
	return least;
}

int gci_emit(const struct gci_algorithm *a, const struct gci_coll *c, int rank, struct gci_sched *s)
{
	struct gci_builder b;

	gci_builder_init(&b, rank, c->topo->nranks);
	a->emit(&b, c);
	return gci_builder_end(&b, s);
}
