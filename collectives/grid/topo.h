/* SPDX-License-Identifier: MIT
 * The topology a communicator's schedules are made for: which rank lives in which cluster, and
 * what lies between them. Clusters without ranks are left out. Immutable once made. */
#ifndef GCI_COLLECTIVES_GRID_TOPO_H
#define GCI_COLLECTIVES_GRID_TOPO_H

#include "collectives/grid/flight.h"

/* Bytes that a peer may be sent unasked. */
#define GCI_LAN_EAGER     (64u << 10)
#define GCI_WAN_EAGER     (1u << 20)
#define GCI_EAGER_MESSAGE 64 /* that a message counts besides its bytes */

/* What TCP over Ethernet leaves for payload: 1448 of 1514 bytes. A rate is at least 1: 0 would be none. */
static inline uint64_t gci_payload_bps(uint64_t bps)
{
	return bps / 1514 * 1448 + bps % 1514 * 1448 / 1514 + (bps == 1);
}

struct gci_topo {
	int nranks, nclusters;
	int per_host; /* ranks of the job on one host, at most */
	int one_host; /* all of them, by its loopback: their network is its memory */
	int *cluster; /* [rank] */
	int *index;   /* [rank]: its place in its cluster */
	int *first;   /* [cluster], nclusters + 1 of them: where its members start in `member` */
	int *member;  /* ranks, cluster by cluster, rising within each */
	int *in_grid; /* [cluster]: its number in the grid */
	uint64_t *nic_bps;      /* [cluster]; 0: unknown */
	uint64_t *rank_nic_bps; /* [rank]: where its host has another than its cluster, that */
	uint64_t *tini_ns;      /* [rank]: what a message costs who sends it; 0: unknown */
	/* [from * nclusters + to]; the diagonal is the cluster's inside. All have their number of
	 * streams, the same both ways. */
	struct gci_link *links;
	uint32_t *share; /* [the same]: senders that a path which others share has; 0: not shared */
	uint32_t *cap;   /* [the same]: senders that the grid file allows; 0: any number */
	/* What the links of these clusters pass, of all wires of the grid; what a budget leaves of a path is a
	 * wire, too. */
	struct gci_link *wires;
	int nwires;
	int *routes; /* wires' numbers: see gci_topo_route */
};

/* host[rank] is the rank's host number in the grid; NULL: its own number. 0 or GCOLL_ERR_NOMEM. */
int gci_topo_create(struct gci_topo *t, const struct gci_grid *g, const int *host, int nranks);

/* A rank on each host of the grid that a grid file's text describes. As gci_grid_parse. */
int gci_topo_parse(
	struct gci_topo *t, const char *text, size_t len, const char *name, struct gci_error *e);
void gci_topo_free(struct gci_topo *t);

/* The same for n ranks of `t`: rank i of it is ranks[i]. 0 or GCOLL_ERR_NOMEM. */
int gci_topo_sub(struct gci_topo *sub, const struct gci_topo *t, const int *ranks, int n);

static inline int gci_topo_size(const struct gci_topo *t, int cluster)
{
	return t->first[cluster + 1] - t->first[cluster];
}

static inline const int *gci_topo_members(const struct gci_topo *t, int cluster)
{
	return t->member + t->first[cluster];
}

static inline const struct gci_link *gci_topo_link(const struct gci_topo *t, int from, int to)
{
	return &t->links[from * t->nclusters + to];
}

/* The wires that bytes pass between these clusters, none within one; returns how many. */
static inline int gci_topo_route(const struct gci_topo *t, int from, int to, const int **wires)
{
	const struct gci_link *l = gci_topo_link(t, from, to);

	*wires = l->nroute ? t->routes + l->route : NULL;
	return l->nroute;
}

/* What one pair of ranks of these clusters has in flight. `streams`: instead of the link's own
 * number; 0: that one. */
void gci_topo_flight(
	const struct gci_topo *t, int from, int to, uint32_t streams, struct gci_flight *f);

/* Rate of a cluster's NICs; where the grid file does not tell, 1 Gbit/s, or what loopback carries. */
uint64_t gci_nic_bps(const struct gci_topo *t, int cluster);

/* What one rank's connections to one rank of another cluster carry at most: the least of NICs,
 * link, and flow_rate times streams. */
uint64_t gci_pair_bps(const struct gci_topo *t, int from, int to);

uint64_t gci_transfer_ns(uint64_t nbytes, uint64_t bps);

/* How many ranks of `from` may send to `to` at once: the grid file's figure, else the link's rate
 * over the NIC's, or over what connections to one rank carry (flow_rate) if that is less; no more
 * than a budget has room for, at least 1 and at most the smaller cluster's size. Where pairs of
 * clusters share links, those of a city in the middle, each has an equal share of them (Matsuda
 * 2006, 2.5). */
int gci_topo_senders(const struct gci_topo *t, int from, int to);

/* All that the choice of algorithms depends on. Equal on ranks that agree. */
uint64_t gci_topo_digest(const struct gci_topo *t);

#endif
