/* SPDX-License-Identifier: MIT
 * What `gridcoll plan` and its --explain both begin with: the grid, who runs where, the network.
 *
 *	struct gct_site s = {.has_params = 0};
 *
 *	rc = gct_site_make(&s, &wish);	// an exit status
 *	...
 *	gct_site_free(&s);	// also after a failure */
#ifndef GCT_PLAN_IMPL_H
#define GCT_PLAN_IMPL_H

#include "collectives/sim/net.h"
#include "tools/plan/plan.h"

struct gct_site_wish {
	const struct gci_options *run; /* grid, and which hosts have ranks */
	const char *const *hosts;      /* [rank], instead of those; NULL: not said */
	int nhosts;
	uint32_t dilation, streams; /* 0: as the grid has them */
	const char *params;         /* a file, or NULL */
	uint64_t topo_digest;       /* of a recorded run; 0: none */
	enum gci_host_model ports;
	int cold; /* connections are new */
};

struct gct_site {
	struct gci_placement place;
	int nranks;
	int *hosts;         /* [rank]: number in the grid */
	const char **names; /* [rank] */
	struct gci_topo topo;
	uint64_t topo_digest; /* before streams were set */
	struct gci_params params;
	struct gci_simnet net;
	const char **clusters; /* [cluster of topo]: names */
	char **wires;          /* [wire of topo]: "a > b" */
	int has_params;
	char basis[400]; /* where the figures are from, for people */
};

/* Say what is wrong; an exit status. */
int gct_plan_complain(const struct gci_error *e);
/* Of a grid or trace file: also one that cannot be read is wrong. */
int gct_plan_wrong_file(const struct gci_error *e);
int gct_plan_nomem(void);
/* The same of files of measurements and decisions: those of another grid do not end the plan, which goes
 * on `instead`. */
int gct_plan_go_without(const struct gci_error *e, const char *instead);

/* An exit status after saying what is wrong. A file of parameters of another grid is told of,
 * and left out. */
int gct_site_make(struct gct_site *s, const struct gct_site_wish *wish);
void gct_site_free(struct gct_site *s);

int gct_explain(const struct gct_plan_options *o);

#endif
