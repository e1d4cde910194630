/* SPDX-License-Identifier: MIT
 * How a call is run. All ranks find the same: what was set, the table that the launcher handed to
 * all, and the topology are the same everywhere, and the rest is the call. What differs between
 * ranks (whether the call is in place) has no part in it. */
#include "comm/comm.h"

int gci_comm_choose(gcoll_comm *c, const struct gci_coll *coll, int internal,
	struct gci_decision *d, const char **why)
{
	const struct gci_choice *choice = &c->choice[coll->kind];
	const struct gci_table *table = c->engine->table;

	*why = NULL;
	*d = (struct gci_decision){.by = GCI_BY_DEFAULT};
	if (!internal)
		d->how = choice->how;
	if (!internal && !choice->automatic) {
		d->by = GCI_BY_USER;
		*why = gci_ineligible(d->how.algorithm, coll);
		return !*why;
	}
	if (!internal && c->tuning != GCI_TUNING_OFF && !choice->how.senders &&
		!choice->how.degree && !choice->how.segment_nbytes && table &&
		gci_decide_by_table(table, coll, d))
		return 1;
	d->how.algorithm = gci_decide_first(coll);
	if (!d->how.algorithm)
		*why = "no algorithm can run it";
	return !*why;
}
