/* SPDX-License-Identifier: MIT
 * Trees over ranks, walked once: O(P). A node hands a segment to one child after the other. */
#include "base/clock.h"
#include "collectives/blocks/path.h"
#include "collectives/tuner/estimate_impl.h"

#include <string.h>

/* The ranks by place: the root first; cluster by cluster where the tree knows them. */
static void place_ranks(const struct gci_estimator *e, enum gci_estimate_tree tree)
{
	const struct gci_topo *t = e->c->topo;
	int order[GCI_GRID_MAX_CLUSTERS], i, k, n = 0;

	for (i = 0; tree < GCI_ESTIMATE_PATH && i < t->nranks; i++)
		e->places[i] = (struct gci_estimate_place){.rank = (e->c->root + i) % t->nranks};
	if (tree < GCI_ESTIMATE_PATH)
		return;
	gci_topo_chain(t, t->cluster[e->c->root], order);
	for (k = 0; k < t->nclusters; k++) {
		int size = gci_topo_size(t, order[k]), first = k ? 0 : t->index[e->c->root];

		for (i = 0; i < size; i++)
			e->places[n + i] = (struct gci_estimate_place){
				.rank = gci_topo_members(t, order[k])[(first + i) % size],
				.first = n};
		n += size;
	}
}

/* Without the lowest bit that is set: binomial trees, as collectives/blocks has them. */
static int without_last_bit(int i)
{
	return i & (i - 1);
}

static int parent_of(const struct gci_estimator *e, enum gci_estimate_tree tree, int i)
{
	int first = e->places[i].first;

	switch (tree) {
	case GCI_ESTIMATE_FLAT:
		return 0;
	case GCI_ESTIMATE_BINARY:
		return (i - 1) / 2;
	case GCI_ESTIMATE_BINOMIAL:
		return without_last_bit(i);
	case GCI_ESTIMATE_CLUSTERS:
		return i == first ? 0 : first + without_last_bit(i - first);
	default:
		return i - 1;
	}
}

static int cluster_at(const struct gci_estimator *e, int place)
{
	return e->c->topo->cluster[e->places[place].rank];
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The child at place i is next: when its parent has sent to it, after what it has the segment. */
static void serve(const struct gci_estimator *e, int i, uint64_t segment, unsigned lanes)
{
	struct gci_estimate_place *child = &e->places[i], *parent = &e->places[child->parent];
	int a = cluster_at(e, child->parent), b = cluster_at(e, i);
	int link = a * e->c->topo->nclusters + b;
	const struct gci_simnet_link *l = &e->net->links[link];
	uint64_t nic_ns = gci_estimate_transfer_ns(segment, e->net->nic_bps[a]);

	child->pair_ns = a == b ? 0 : gci_estimate_transfer_ns(segment, l->pair_bps);
	parent->busy_ns += e->message_ns;
	parent->nic_ns += nic_ns;
	parent->sent_ns = larger(parent->sent_ns, parent->busy_ns) + nic_ns;
	child->after_ns = parent->sent_ns + l->latency_ns;
	if (child->pair_ns > nic_ns)
		child->after_ns += child->pair_ns - nic_ns;
	if (a != b && segment >= l->eager_nbytes)
		child->least_ns = 2 * l->latency_ns + larger(nic_ns, child->pair_ns);
	child->pair_ns /= lanes;
	if (a != b)
		e->crossing[link] += segment;
}

/* What each further segment takes. */
static uint64_t gap_ns(const struct gci_estimator *e)
{
	unsigned i, n = e->nclusters;
	uint64_t most = 0;

	for (i = 0; i < e->nranks; i++) {
		const struct gci_estimate_place *p = &e->places[i];

		most = larger(most, larger(larger(p->busy_ns, p->nic_ns), p->pair_ns));
	}
	for (i = 0; i < n * n; i++)
		most = larger(most, gci_estimate_transfer_ns(e->crossing[i], e->net->links[i].bps));
	return most;
}

static void forget(const struct gci_estimator *e)
{
	memset(e->crossing, 0, sizeof(*e->crossing) * e->nclusters * e->nclusters);
}

uint64_t gci_estimate_tree_ns(const struct gci_estimator *e, const struct gci_estimate_walk *w)
{
	uint64_t each = (w->blocks ? w->nbytes / e->nranks : w->nbytes) / w->segments, farthest = 0;
	int largest_first = w->tree == GCI_ESTIMATE_BINOMIAL || w->tree == GCI_ESTIMATE_CLUSTERS;
	unsigned lanes = w->lanes ? w->lanes : 1;
	int i, n = (int)e->nranks;

	place_ranks(e, w->tree);
	forget(e);
	for (i = n - 1; i > 0; i--) {
		struct gci_estimate_place *p = &e->places[i];

		p->weight = w->blocks ? p->weight + 1 : 1;
		p->parent = parent_of(e, w->tree, i);
		e->places[p->parent].weight += p->weight;
		if (largest_first)
			serve(e, i, each * p->weight, lanes);
	}
	for (i = 1; i < n; i++) {
		struct gci_estimate_place *p = &e->places[i];

		if (!largest_first)
			serve(e, i, each * p->weight, lanes);
		p->at_ns = larger(e->places[p->parent].at_ns + p->after_ns, p->least_ns);
		farthest = larger(farthest, p->at_ns);
	}
	return farthest + (w->segments - 1) * gap_ns(e);
}
