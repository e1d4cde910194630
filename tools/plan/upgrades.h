/* SPDX-License-Identifier: MIT
 * What a faster link or faster NICs would save of a packing. */
#ifndef GCT_PLAN_UPGRADES_H
#define GCT_PLAN_UPGRADES_H

#include "collectives/sim/sim.h"

#define GCT_UPGRADES        5
#define GCT_UPGRADE_PERCENT 10 /* more of its rate */

enum gct_upgraded { GCT_WIRE, GCT_NICS, GCT_ALL_WIRES, GCT_ALL_NICS };

struct gct_upgrade {
	enum gct_upgraded what;
	int number;   /* of the wire, or of the cluster whose hosts' NICs have so much more */
	double saves; /* of the time, percent */
};

/* Those that save most of what `c` takes by a packing, were there no messages, at least a percent, the first the most;
 * returns how many. Of wires those are looked at that have most to do in `r`, its simulation. All of a kind are there
 * only where they save clearly more than one. For want of memory fewer. Takes as long as a dozen packings. */
int gct_upgrades(const struct gci_coll *c, const struct gci_sim_result *r,
	struct gct_upgrade out[GCT_UPGRADES]);

#endif
