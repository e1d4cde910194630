/* SPDX-License-Identifier: MIT
 * Which rank runs where: made of the command line, a grid file or a lab's description.
 *
 *	struct gci_placement p;
 *	rc = gci_placement_make(&p, &options, &e);
 *	for (i = 0; i < p.nplaces; i++)
 *		start ranks p.places[i].first ... at p.places[i].host
 *	gci_placement_free(&p);
 */
#ifndef GCI_LAUNCHER_PLACEMENT_H
#define GCI_LAUNCHER_PLACEMENT_H

#include "collectives/grid/grid.h"
#include "launcher/options.h"
#include "transport/control.h"

/* Grids of fewer bytes are handed to the ranks: no variable may be longer than 128 KiB (execve(2)). */
#define GCI_GRID_HANDED (96u << 10)

enum gci_place_how { GCI_PLACE_LOCAL, GCI_PLACE_NETNS, GCI_PLACE_SSH };

#define GCI_STARTERS_FANOUT 32 /* hosts that one starts by ssh, by default */
#define GCI_STARTER_SELF    UINT32_MAX

/* Neighbouring ranks that one agent starts. */
struct gci_place {
	enum gci_place_how how;
	const char *host; /* of its first rank */
	char *netns;      /* NETNS */
	uint32_t first, nranks;
	uint32_t starter; /* the place whose agent starts it; GCI_STARTER_SELF: gridcoll-run */
	struct gci_access access; /* of its ranks: what the options say, else the grid; not owned */
};

struct gci_placement {
	struct gci_grid grid;
	char *grid_text;  /* what the ranks are told */
	char *table_text; /* of decisions; NULL: none */
	uint64_t table_digest;
	int unpaced; /* --pace off: budgets would bind nobody */
	char *lab;   /* absolute path of the lab's file, or NULL */
	uint32_t size;
	uint32_t *hosts;    /* [size]: number in the grid */
	const char **names; /* [size]: the grid's */
	struct gci_place *places;
	uint32_t nplaces;
	/* Where the control server listens: in the first host's namespace of a lab, on loopback
	 * for a job of this machine alone, else on all addresses (NULL). */
	char *listen_ip, *listen_netns;
	struct gci_ports listen_ports;
	/* Others start the last so many ranks, which are in no place; names[] of these is NULL until
	 * they have come. */
	uint32_t nguests;
	int hosts_are_said; /* the grid is made of what they say */
	const char *
		address; /* by which others reach this machine, as the options say; NULL: not said */
	const char *rendezvous; /* where they find us, as the options say; NULL: not said */
	char **said;            /* [size]: what names[] points to; NULL without guests */
	/* [size]: which their hosts are said to be in; "": none */
	char (*clusters)[GCI_CTL_CLUSTER];
};

/* GCOLL_ERR_*: bad input is GCOLL_ERR_INVAL or _PARSE. */
int gci_placement_make(struct gci_placement *p, const struct gci_options *o, struct gci_error *e);
void gci_placement_free(struct gci_placement *p);

/* What `arrive` and `settle` of struct gci_rdv_config are to do; `placement` is the plan. */
int gci_placement_arrive(void *placement, uint32_t rank, const char *host, const char *cluster,
	char *why, size_t size);
const char *gci_placement_settle(void *placement, char *why, size_t size);

/* Whether what `o` says of connections can be on this machine, if ranks of the plan are here. */
int gci_placement_check(
	const struct gci_placement *p, const struct gci_options *o, struct gci_error *e);

/* Reads the table of decisions that `o` names, if any, and checks it against the plan's grid. On
 * failure the plan has none, and `e` tells why: the job may run without. */
int gci_placement_table(struct gci_placement *p, const struct gci_options *o, struct gci_error *e);

/* Reads the parameters that `o` names, if any: links for which the grid file says no number of
 * streams get the one that they are worth. On failure nothing changes, and `e` tells why. */
int gci_placement_params(struct gci_placement *p, const struct gci_options *o, struct gci_error *e);

/* Puts the budgets that `o` gives into the grid, for each rank to find there. In a dilated lab they
 * are the real grid's, as all rates that people give. GCOLL_ERR_INVAL: there is no such link. */
int gci_placement_budgets(
	struct gci_placement *p, const struct gci_options *o, struct gci_error *e);

/* While a job runs: the link that a budget is for, and what the budget is in a dilated lab. NULL: there
 * is no such link, or nobody keeps budgets. */
struct gci_budget_order;
struct gci_link *gci_placement_budget(struct gci_placement *p, const struct gci_budget_order *o,
	uint64_t *bps, struct gci_error *e);

/* Who starts whom by ssh, so that no machine starts many: GCI_STARTER_SELF is this machine.
 *
 * Host i is in cluster clusters[i] < nclusters; this machine is in cluster `own`, or in none (-1).
 * Up to `fanout` (at least 2) hosts this machine starts all by itself. Of more it starts as many at
 * most, and so does each of them, in levels that are as few as can be in a cluster; starters come
 * before whom they start. Only the first host of a cluster is started from another cluster, so one
 * connection crosses over to each.
 * 0, or GCOLL_ERR_NOMEM. */
int gci_starters(const uint32_t *clusters, uint32_t nhosts, uint32_t nclusters, int own,
	uint32_t fanout, uint32_t *starters);

#endif
