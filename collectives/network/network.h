/* SPDX-License-Identifier: MIT
 * The network as a plan sees it: classes of hosts that are alike, what they share, and the ways between
 * them. Nothing but the list of resources on each way knows the network's shape.
 *
 *	struct gci_network n;
 *
 *	rc = gci_network_of(&n, topo, root);
 *	...
 *	gci_network_free(&n);
 *
 * A resource is a class's NICs outwards or inwards, or a link in one direction. Rates are of payload, in
 * bytes per ns. All arithmetic on them is IEEE double precision by + - * / alone, which is the same on
 * every machine (the build turns contraction off): who plans the same finds the same. */
#ifndef GCI_COLLECTIVES_NETWORK_NETWORK_H
#define GCI_COLLECTIVES_NETWORK_NETWORK_H

#include "collectives/grid/topo.h"

/* Of each cluster those that may send and those that may not, and the root. */
#define GCI_NETWORK_MOST_CLASSES (2 * GCI_GRID_MAX_CLUSTERS + 1)

struct gci_network {
	int nranks, nclasses, nlinks;
	int is_coarse;       /* hosts of a class may differ, all are taken for the slowest */
	int *class_of;       /* [rank] */
	int *first, *member; /* [class], and one more: where its ranks start in `member` */
	double *out, *in;    /* [class]: of one host's NIC */
	double *link_rate; /* [link]: wires, then what limited connections of two clusters carry */
	int *route_at,
		*route; /* [from * nclasses + to], and one more: where its links start in `route` */
	double *before_ns; /* [as `route`]: of the way's delay, what comes before that link */
	double *delay_ns;  /* [from * nclasses + to]: of the whole way */
	double *rate;      /* [the same]: that one host gets to another, alone */
	/* [the same]: the grid file caps who sends there, and these are too many */
	unsigned char *is_barred;
	double *capacity; /* [resource] */
};

/* Of all ranks; `root` is a class of its own, and the last one; -1: none is. If `capped`: where the grid file caps a
 * cluster's senders, to any other one, those with the fastest NICs send there, the root first of all, no more than are
 * allowed where the fewest are. 0 or GCOLL_ERR_NOMEM. */
int gci_network_of(struct gci_network *n, const struct gci_topo *t, int root, int capped);

/* All arrows turned. 0 or GCOLL_ERR_NOMEM. */
int gci_network_reverse(struct gci_network *back, const struct gci_network *n);

void gci_network_free(struct gci_network *n);

/* d[from * nclasses + to]: ns of the shortest way by delays alone, 0 to itself. */
void gci_network_distances(const struct gci_network *n, double *d);

static inline int gci_network_size(const struct gci_network *n, int class)
{
	return n->first[class + 1] - n->first[class];
}

static inline const int *gci_network_members(const struct gci_network *n, int class)
{
	return n->member + n->first[class];
}

/* Resources by number. */
static inline int gci_nic_out(const struct gci_network *n, int class)
{
	(void)n;
	return class;
}

static inline int gci_nic_in(const struct gci_network *n, int class)
{
	return n->nclasses + class;
}

static inline int gci_network_nresources(const struct gci_network *n)
{
	return 2 * n->nclasses + n->nlinks;
}

/* The resources that bytes from a host of `from` to one of `to` pass; returns how many. */
#define GCI_MOST_ON_A_WAY (GCI_GRID_MAX_ROUTE + 6) /* NICs, uplinks, budget, connections */
int gci_network_way(const struct gci_network *n, int from, int to, int out[GCI_MOST_ON_A_WAY]);

/* Of the way's delay, what comes before its i-th resource. */
double gci_network_before(const struct gci_network *n, int from, int to, int i);

#endif
