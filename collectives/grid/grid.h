/* SPDX-License-Identifier: MIT
 * The grid: clusters of hosts and the links between them, as the grid file describes them.
 *
 *	struct gci_grid g;
 *	struct gci_error e = {0};
 *	if (gci_grid_parse(&g, text, strlen(text), "my.grid", &e))
 *		puts(e.text);			// my.grid:7: ...
 *	gci_grid_dilate(&g, 20);
 *	...
 *	gci_grid_free(&g);
 *
 * Pure: text in, model out. */
#ifndef GCI_COLLECTIVES_GRID_GRID_H
#define GCI_COLLECTIVES_GRID_GRID_H

#include "base/error.h"
#include "base/units.h"

#include <stddef.h>
#include <stdint.h>

#define GCI_GRID_MAX_HOSTS    65536
#define GCI_GRID_MAX_CLUSTERS 256
#define GCI_GRID_MAX_SWITCHES 256
#define GCI_GRID_MAX_ROUTE    32 /* wires one behind the other */
#define GCI_GRID_MAX_TEXT     (8u << 20)
#define GCI_GRID_MAX_STREAMS  64

/* How a host's ranks are reached. It is no property of the model: not in the digest. */
struct gci_access {
	char *interfaces;       /* rules, see base/nics.h; NULL: not said */
	struct gci_ports ports; /* to listen at; 0, 0: not said */
};

/* What one host has that others of its cluster have not; 0 or NULL: what the cluster says. */
struct gci_grid_own {
	uint64_t nic_bps, tini_ns;
	struct gci_access access;
};

struct gci_cluster {
	char *name;
	char **hosts; /* in rank order */
	int nhosts;
	uint64_t nic_bps;      /* of each host; 0: unknown */
	uint64_t uplink_bps;   /* all that leaves it, and all that comes in; 0: no such limit */
	uint64_t lan_delay_ns; /* one way, between two hosts */
	uint64_t tini_ns;      /* what a message costs each host that sends it; 0: unknown */
	int outward; /* a firewall lets nobody in: connections with other clusters come from here */
	struct gci_access access;
	struct gci_grid_own *own; /* [host of the cluster]; NULL: none has anything of its own */
};

/* Ends of a wire: a cluster's number, or GCI_GRID_MAX_CLUSTERS and a switch's, or this, beyond the uplink of the
 * cluster at the other end. */
#define GCI_GRID_UPLINK (-1)

/* A wire: one direction of a cable between clusters or switches, or of an uplink, which all paths that pass it
 * share. Or a link: one direction between two clusters, with what the wires of its path leave of each figure. */
struct gci_link {
	int from, to;           /* clusters; of a wire, its ends */
	uint64_t rate_bps;      /* 0: unknown */
	uint64_t delay_ns;      /* one way */
	uint64_t queue_nbytes;  /* bottleneck buffer; 0: unknown */
	uint64_t flow_rate_bps; /* most that one connection gets; 0: no such limit */
	uint64_t budget_bps;    /* most that a job may send here; not in the digest; 0: all */
	uint32_t loss_ppm;
	uint32_t streams; /* connections per pair of ranks; 0: gridcoll decides */
	uint32_t senders; /* ranks that may send at once; 0: gridcoll decides */
	/* Not of a wire: */
	int route, nroute; /* where the wires that it passes begin among the routes, and how many */
	int own;           /* 1 + the wire between just these two clusters; 0: there is none */
	int said;          /* its route is the file's choice, and not the quickest */
};

struct gci_grid {
	struct gci_cluster *clusters;
	int nclusters;
	int nhosts;      /* of all clusters */
	char **switches; /* cities, exchanges, spines: without hosts */
	int nswitches;
	struct gci_link *wires; /* of the file, in its order, then of uplinks */
	int nwires;
	struct gci_link *links; /* each cluster's to all others, cluster by cluster */
	int nlinks;
	int *routes;       /* wires' numbers, link by link */
	uint64_t digest;   /* see gci_grid_digest() */
	uint32_t dilation; /* how many times slower than its file said at first; 1 or more */
	int amended;       /* measured figures were put in where the file has none */
};

/* Reads a grid file's text (of `len` bytes, no more than GCI_GRID_MAX_TEXT). `name` stands before
 * the line number in errors. On failure returns GCOLL_ERR_PARSE or _NOMEM with `g` empty. */
int gci_grid_parse(
	struct gci_grid *g, const char *text, size_t len, const char *name, struct gci_error *e);

void gci_grid_free(struct gci_grid *g);

/* Slows the grid down k times: rates divided, delays multiplied; what is in flight stays. The
 * digest stays, too. */
void gci_grid_dilate(struct gci_grid *g, uint32_t k);

/* The longest that a link holds up a packet and its answer, with its buffers full both ways. */
uint64_t gci_grid_held_ns(const struct gci_grid *g);

/* A digest of the grid as its file says, by which files that were made for it (parameters,
 * tables) know it again: of its clusters, hosts and links in the order of the file, whatever its
 * layout, comments and units, and however they are reached. The same before and after
 * gci_grid_dilate(). As rates that were divided cannot be told from the quotients,
 * gci_grid_print() of a dilated grid adds a section, which the parser takes (with "times = 1" of
 * one that was only amended):
 *
 *	[dilated]
 *	times = 20
 *	digest = 0123456789abcdef
 *
 * So whoever gets a lab's grid as text (lab.json, gridcoll-run, each rank) knows the digest and the
 * dilation without asking the lab. */
uint64_t gci_grid_digest(const struct gci_grid *g);

/* The link from one cluster to another; NULL within a cluster. */
static inline const struct gci_link *gci_grid_link(const struct gci_grid *g, int from, int to)
{
	return from == to || !g->links ? NULL
				       : &g->links[from * (g->nclusters - 1) + to - (to > from)];
}

/* Each link has a wire of its own, which no other uses. */
int gci_grid_is_simple(const struct gci_grid *g);

/* The name of a wire's end. */
const char *gci_grid_end(const struct gci_grid *g, int end);

/* The wire's end of this name, a cluster or a switch; GCI_GRID_UPLINK: none. */
int gci_grid_find_end(const struct gci_grid *g, const char *name);

/* The cluster of host number `host` (0 .. nhosts-1, cluster by cluster). */
int gci_grid_cluster_of(const struct gci_grid *g, int host);
const char *gci_grid_host(const struct gci_grid *g, int host);

/* Of this host's network card; 0: unknown. */
uint64_t gci_grid_nic_bps(const struct gci_grid *g, int host);

/* What a message costs this host when it sends it (its message initiation cost); 0: unknown. */
uint64_t gci_grid_tini_ns(const struct gci_grid *g, int host);

/* How this host is reached: by its own keys, else by its cluster's. Owned by the grid. */
struct gci_access gci_grid_access(const struct gci_grid *g, int host);

/* May a cluster go by this name, as far as its characters go? */
#define GCI_GRID_CLUSTER_CHARACTERS "letters, digits and -_."
int gci_grid_is_cluster_name(const char *name);

/* Copies the name that the variable GRIDCOLL_CLUSTER says; NULL says "". GCOLL_ERR_INVAL where it is
 * none, or has no room in `out`. */
int gci_grid_take_cluster(const char *said, char *out, size_t size, struct gci_error *e);

/* The number of the host of this name, or -1. */
int gci_grid_find_host(const struct gci_grid *g, const char *name);

struct gci_buf;
/* The grid as a grid file that parses to the same model. */
void gci_grid_print(const struct gci_grid *g, struct gci_buf *out);

/* Expands "a[1-3,07],b" to a1 a2 a3 a07 b, appended to *hosts. GCOLL_ERR_* with the reason in
 * `e`, then *hosts has only what was complete before. */
int gci_hosts_expand(const char *pattern, char ***hosts, int *nhosts, struct gci_error *e);

/* May one host go by this name, as it stands? 0, or GCOLL_ERR_* with the reason in `e`. */
int gci_hosts_check(const char *name, struct gci_error *e);

#endif
