/* SPDX-License-Identifier: MIT
 * Clusters found by measurement: where no grid file says which hosts belong together, or to see
 * whether it is right.
 *
 *	struct gci_measured m = {.n = n, .hosts = names, .bps = bps, .latency_ns = latency_ns};
 *
 *	rc = gci_clusters_find(&c, &m, &e);
 *	if (!rc && gci_clusters_compare(&c, &m, grid, &text))
 *		puts(gci_buf_cstr(&text));	// k3: in kyoto by the grid file, ...
 *	rc = rc ? rc : gci_clusters_grid(&c, &m, "found.grid", &found, &e);
 *	gci_clusters_free(&c);
 *
 * Hosts fall apart at the first split of their pool tree (Gupta 2007, 5.1), and what is left again,
 * until what is together is alike: the fastest two have at most twice the bandwidth of the slowest,
 * or, where latencies are known, the farthest two four times that of the nearest. The latter sees
 * what the paper's bandwidths cannot: a WAN that is as fast as the hosts' own NICs; there the tree
 * is made of 1 / latency. Of two hosts alone nothing can be said: they are one cluster.
 *
 * Pure and in integers. */
#ifndef GCT_PROBE_CLUSTERS_H
#define GCT_PROBE_CLUSTERS_H

#include "collectives/grid/grid.h"
#include "collectives/models/pools.h"

#define GCI_CLUSTERS_MAX_HOSTS 1024

struct gci_measured {
	int n;
	const char *const *hosts; /* names, all different */
	/* [from * n + to], payload bits per second of one pair while the others are idle; 0: not
	 * measured, the other direction counts. */
	const uint64_t *bps;
	const uint64_t *latency_ns; /* [from * n + to], one way; 0: as above; NULL: not known */
};

struct gci_clusters {
	int n;
	int *cluster_of; /* [host], from 0, in the order of their first hosts */
};

/* 0; GCOLL_ERR_INVAL where neither direction of a pair was measured, or there are more hosts than
 * GCI_CLUSTERS_MAX_HOSTS or none; GCOLL_ERR_NOMEM. Then `c` is empty. */
int gci_clusters_find(struct gci_clusters *c, const struct gci_measured *m, struct gci_error *e);
void gci_clusters_free(struct gci_clusters *c);

/* The pool tree of the bandwidths, for whoever wants to see all levels. Errors as above. */
int gci_clusters_tree(struct gci_pools *p, const struct gci_measured *m, struct gci_error *e);

struct gci_buf;

/* The tree as text, a line to a pool. */
void gci_clusters_print_tree(
	const struct gci_pools *p, const struct gci_measured *m, struct gci_buf *out);

/* How many hosts are elsewhere than the grid file says, with a line of text for those of one
 * cluster that are elsewhere together. Each cluster found counts as the one of the grid with which
 * it has most hosts in common. Without latencies, two clusters of the grid that look like one are
 * no disagreement: bandwidth cannot tell. Hosts that the grid file does not name count, too.
 * GCOLL_ERR_NOMEM is the only error. */
int gci_clusters_compare(const struct gci_clusters *c, const struct gci_measured *m,
	const struct gci_grid *g, struct gci_buf *out);

/* The grid as measured; gci_grid_print() makes a file of it. Clusters have what their hosts' names
 * begin with for a name, where they have that in common, and are called c1, c2, ... else. A NIC has
 * the best rate of its host's pairs, in the median over the cluster; a link that of its pairs, and
 * may be faster; delays are medians. `name` stands in errors: GCOLL_ERR_PARSE where a host's name
 * or what else was measured is not fit for a grid file, GCOLL_ERR_NOMEM. */
int gci_clusters_grid(const struct gci_clusters *c, const struct gci_measured *m, const char *name,
	struct gci_grid *g, struct gci_error *e);

#endif
