/* SPDX-License-Identifier: MIT
 * How a call is run. All ranks find the same: what was set, the table that the launcher handed to
 * all, and the topology are the same everywhere, and the rest is the call. What differs between
 * ranks (whether the call is in place) has no part in it. */
#include "comm/warm.h"

/* May someone else than the user choose? Not for what the library calls for itself, nor when he has
 * set parameters for whatever runs. */
static int is_open(const struct gci_choice *choice, int internal)
{
	return !internal && choice->automatic && !choice->how.senders && !choice->how.degree &&
	       !choice->how.segment_nbytes;
}

/* Blocks of different lengths and the topologies of multicasts are not simulated. */
static int simulate(gcoll_comm *c, const struct gci_coll *coll, struct gci_decision *d)
{
	int rc;

	if (c->tuning != GCI_TUNING_SIMULATE || coll->counts || coll->topo != &c->topo)
		return GCOLL_ERR_INVAL;
	if (!c->decider.topo) {
		rc = gci_decider_init(&c->decider, &c->topo, c->engine->settings.streams);
		if (rc)
			return rc;
	}
	if (c == c->engine->world)
		gci_warm_learn(c->engine, &c->decider);
	return gci_decide(&c->decider, coll, d);
}

int gci_comm_choose(gcoll_comm *c, const struct gci_coll *coll, int internal,
	struct gci_decision *d, const char **why)
{
	const struct gci_choice *choice = &c->choice[coll->kind];
	const struct gci_table *table = c->engine->table;
	int rc = GCOLL_ERR_INVAL;

	*why = NULL;
	*d = (struct gci_decision){.by = GCI_BY_DEFAULT};
	if (!internal)
		d->how = choice->how;
	if (!internal && !choice->automatic) {
		d->by = GCI_BY_USER;
		*why = gci_ineligible(d->how.algorithm, coll);
		return *why ? GCOLL_ERR_INVAL : 0;
	}
	if (is_open(choice, internal) && c->tuning != GCI_TUNING_OFF) {
		if (table && gci_decide_by_table(table, coll, d))
			return 0;
		rc = simulate(c, coll, d);
	}
	if (rc == GCOLL_ERR_NOMEM)
		*why = "out of memory";
	if (rc != GCOLL_ERR_INVAL)
		return rc;
	d->how.algorithm = gci_decide_first(coll);
	if (!d->how.algorithm)
		*why = "no algorithm can run it";
	return *why ? GCOLL_ERR_INVAL : 0;
}
