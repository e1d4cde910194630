/* SPDX-License-Identifier: MIT */
#include "launcher/starters.h"

#include "base/mem.h"
#include "gridcoll/gridcoll.h"

#define NONE UINT32_MAX

/* This machine is 0, host i is 1 + i. */
struct node {
	uint32_t starts; /* so many others */
	uint32_t next;   /* of the same cluster; NONE: the last */
};

struct cluster {
	uint32_t root;  /* by which the others are reached; NONE: not seen yet */
	uint32_t last;  /* of those seen */
	uint32_t giver; /* who starts the next one */
};

struct work {
	struct node *nodes;
	struct cluster *clusters;
};

static void see(struct work *w, uint32_t node, uint32_t cluster)
{
	struct cluster *c = &w->clusters[cluster];

	if (c->root == NONE)
		c->root = c->giver = node;
	else
		w->nodes[c->last].next = node;
	c->last = node;
}

/* The first host of each cluster but ours. Each root keeps one place for its own cluster, and so
 * nobody in a cluster waits for a place that there is not. */
static void start_roots(struct work *w, const uint32_t *clusters, uint32_t nhosts, int own,
	uint32_t fanout, uint32_t *starters)
{
	uint32_t giver = 0, i, k;

	for (i = 0; i < nhosts; i++) {
		if (w->clusters[clusters[i]].root != 1 + i)
			continue;
		while (w->nodes[giver].starts == fanout - (giver || own >= 0)) {
			/* The next root; there is one, since each started one at least. */
			for (k = giver; w->clusters[clusters[k]].root != 1 + k; k++)
				;
			giver = 1 + k;
		}
		w->nodes[giver].starts++;
		starters[i] = giver - 1;
	}
}

static void start_others(struct work *w, const uint32_t *clusters, uint32_t nhosts, uint32_t fanout,
	uint32_t *starters)
{
	uint32_t i;

	for (i = 0; i < nhosts; i++) {
		struct cluster *c = &w->clusters[clusters[i]];

		if (c->root == 1 + i)
			continue;
		while (w->nodes[c->giver].starts == fanout)
			c->giver = w->nodes[c->giver].next;
		w->nodes[c->giver].starts++;
		starters[i] = c->giver - 1;
	}
}

int gci_starters(const uint32_t *clusters, uint32_t nhosts, uint32_t nclusters, int own,
	uint32_t fanout, uint32_t *starters)
{
	struct work w;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < nhosts; i++)
		starters[i] = GCI_STARTER_SELF;
	if (nhosts <= fanout)
		return 0;
	w.nodes = gci_calloc((size_t)nhosts + 1, sizeof(*w.nodes));
	w.clusters = gci_calloc(nclusters, sizeof(*w.clusters));
	if (!w.nodes || !w.clusters) {
		rc = GCOLL_ERR_NOMEM;
		goto out;
	}
	for (i = 0; i < nclusters; i++)
		w.clusters[i].root = NONE;
	for (i = 0; i <= nhosts; i++)
		w.nodes[i].next = NONE;
	if (own >= 0)
		see(&w, 0, (uint32_t)own);
	for (i = 0; i < nhosts; i++)
		see(&w, 1 + i, clusters[i]);
	start_roots(&w, clusters, nhosts, own, fanout, starters);
	start_others(&w, clusters, nhosts, fanout, starters);
out:
	gci_free(w.nodes);
	gci_free(w.clusters);
	return rc;
}
