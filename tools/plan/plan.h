/* SPDX-License-Identifier: MIT
 * `gridcoll plan`: its options, and its reports. */
#ifndef GCT_PLAN_H
#define GCT_PLAN_H

#include "launcher/placement.h"
#include "tools/plan/upgrades.h"
#include "tools/plan/ways.h"

struct gct_plan_options {
	int kind;                           /* enum gci_kind; -1: not said */
	uint64_t nbytes, root, schedule_of; /* schedule_of: UINT64_MAX: of nobody */
	int has_root;
	int has_nbytes, json;
	uint32_t dilation; /* 0: not said */
	uint32_t streams;  /* 0: as the grid says */
	enum gci_host_model ports;
	int cold; /* connections are new */
	const char *algorithm, *params, *table, *gantt, *explain;
	struct gci_options run; /* grid, hosts, ranks: as gridcoll-run takes them */
};

/* What is printed: nothing but this. */
struct gct_plan_report {
	const struct gci_coll *coll; /* without parameters */
	const struct gci_simnet *net;
	const char *const *names;    /* [rank]: hosts */
	const char *const *clusters; /* [cluster] */
	const char *const *wires;    /* [wire]: its ends */
	uint64_t nbytes;             /* as gct_shape() says */
	uint64_t limit_ns;
	uint32_t dilation;
	const struct gct_ways *ways;
	const struct gct_way *choice;        /* one of them */
	const struct gci_candidate *usual;   /* what a job takes by itself; may be the choice */
	const char *chosen_by;               /* as in "asked for" */
	const char *basis;                   /* where the figures are from */
	const struct gci_sim_result *result; /* of the choice */
	struct gct_upgrade upgrades[GCT_UPGRADES];
	int nupgrades;                        /* -1: the choice is no packing */
	uint64_t least_message, most_message; /* bytes, of messages that are not empty */
};

void gct_plan_text(const struct gct_plan_report *p, struct gci_buf *out);

/* The same as JSON; GCOLL_ERR_NOMEM or 0. `schedule`: printed steps, or NULL. */
int gct_plan_json(const struct gct_plan_report *p, const char *schedule, struct gci_buf *out);

#endif
