/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/estimate.h"

#include "base/clock.h"
#include "base/mem.h"
#include "collectives/blocks/layout.h"
#include "collectives/models/plogp.h"
#include "collectives/tuner/estimate_impl.h"

#include <string.h>

/* ---- Trees over ranks, walked once: O(P). A node hands a segment to one child after the other. */

/* The ranks by place: the root first; cluster by cluster where the tree knows them. */
static void place_ranks(const struct gci_estimator *e, enum gci_estimate_tree tree)
{
	const struct gci_topo *t = e->c->topo;
	int home = t->cluster[e->c->root], i, k, n = 0;

	for (i = 0; tree < GCI_ESTIMATE_CLUSTERS && i < t->nranks; i++)
		e->places[i] = (struct gci_estimate_place){.rank = (e->c->root + i) % t->nranks};
	if (tree < GCI_ESTIMATE_CLUSTERS)
		return;
	for (k = 0; k < t->nclusters; k++) {
		int cluster = (home + k) % t->nclusters, size = gci_topo_size(t, cluster);
		int first = k ? 0 : t->index[e->c->root];

		for (i = 0; i < size; i++)
			e->places[n + i] = (struct gci_estimate_place){
				.rank = gci_topo_members(t, cluster)[(first + i) % size],
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
static void serve(const struct gci_estimator *e, int i, uint64_t segment)
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
	int i, n = (int)e->nranks;

	place_ranks(e, w->tree);
	forget(e);
	for (i = n - 1; i > 0; i--) {
		struct gci_estimate_place *p = &e->places[i];

		p->weight = w->blocks ? p->weight + 1 : 1;
		p->parent = parent_of(e, w->tree, i);
		e->places[p->parent].weight += p->weight;
		if (largest_first)
			serve(e, i, each * p->weight);
	}
	for (i = 1; i < n; i++) {
		struct gci_estimate_place *p = &e->places[i];

		if (!largest_first)
			serve(e, i, each * p->weight);
		p->at_ns = larger(e->places[p->parent].at_ns + p->after_ns, p->least_ns);
		farthest = larger(farthest, p->at_ns);
	}
	return farthest + (w->segments - 1) * gap_ns(e);
}

/* ---- an algorithm's time, and what formulas need of the network */

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t gci_estimate(const struct gci_estimator *e, const struct gci_candidate *how)
{
	if (!how->algorithm->estimate)
		return gci_estimate_transfer_ns(e->nbytes, e->nic_bps);
	return how->algorithm->estimate(e, how);
}

/* ---- the network */

static unsigned log2_up(unsigned n)
{
	unsigned d = 0;

	while (1u << d < n)
		d++;
	return d;
}

/* Do ranks of one cluster follow one another? Else halving over all crosses clusters at any depth.
 */
static int is_in_order(const struct gci_topo *t)
{
	int r, changes = 0;

	for (r = 1; r < t->nranks; r++)
		changes += t->cluster[r] != t->cluster[r - 1];
	return changes < t->nclusters;
}

static void look_at_link(struct gci_estimator *e, int a, int b)
{
	const struct gci_topo *t = e->c->topo;
	const struct gci_simnet_link *l = &e->net->links[a * t->nclusters + b];
	int home = t->cluster[e->c->root];
	unsigned n;

	if (a == b) {
		e->lan_ns = larger(e->lan_ns, l->latency_ns);
		return;
	}
	if (gci_kind_has_root(e->c->kind) && home != a && home != b)
		return;
	n = (unsigned)gci_topo_senders(t, a, b);
	e->wan_ns = larger(e->wan_ns, l->latency_ns);
	e->wan_bps = smaller(e->wan_bps, l->bps ? l->bps : GCI_NEVER);
	e->pair_bps = smaller(e->pair_bps, l->pair_bps ? l->pair_bps : GCI_NEVER);
	e->senders = n < e->senders ? n : e->senders;
}

static void look_at_net(struct gci_estimator *e)
{
	const struct gci_topo *t = e->c->topo;
	int a, b;

	e->nic_bps = e->wan_bps = e->pair_bps = GCI_NEVER;
	e->senders = GCI_GRID_MAX_HOSTS;
	for (a = 0; a < t->nclusters; a++) {
		e->most = (unsigned)larger(e->most, (unsigned)gci_topo_size(t, a));
		if (e->net->nic_bps[a])
			e->nic_bps = smaller(e->nic_bps, e->net->nic_bps[a]);
		for (b = 0; b < t->nclusters; b++)
			look_at_link(e, a, b);
	}
	/* One pair fills its NICs at most. */
	e->pair_bps = smaller(e->pair_bps, e->nic_bps);
	e->message_ns = GCI_MESSAGE_COST_NS / 2;
	for (a = 0; a < t->nranks; a++)
		e->message_ns = larger(e->message_ns, e->net->send_ns[a]);
	e->lan_ns += e->message_ns + e->net->recv_ns;
	e->wan_ns += e->message_ns + e->net->recv_ns;
}

int gci_estimator_init(
	struct gci_estimator *e, const struct gci_simnet *net, const struct gci_coll *c)
{
	const struct gci_topo *t = c->topo;

	memset(e, 0, sizeof(*e));
	e->net = net;
	e->c = c;
	e->nranks = (unsigned)t->nranks;
	e->nclusters = (unsigned)t->nclusters;
	e->nbytes = gci_total(c) * c->esize;
	look_at_net(e);
	e->deep = log2_up(e->nranks);
	e->deep_in = log2_up(e->most);
	e->across = is_in_order(t) ? log2_up(e->nclusters) : e->deep;
	e->places = gci_calloc(e->nranks, sizeof(*e->places));
	e->crossing = gci_calloc((size_t)e->nclusters * e->nclusters, sizeof(*e->crossing));
	if (e->places && e->crossing)
		return 0;
	gci_estimator_free(e);
	return GCOLL_ERR_NOMEM;
}

void gci_estimator_free(struct gci_estimator *e)
{
	gci_free(e->places);
	gci_free(e->crossing);
	memset(e, 0, sizeof(*e));
}
