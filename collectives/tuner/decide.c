/* SPDX-License-Identifier: MIT */
#include "collectives/tuner/decide.h"

const char *gci_decided_by_name(enum gci_decided_by by)
{
	static const char *const names[] = {"default", "set", "table"};

	return names[by];
}

const struct gci_algorithm *gci_decide_first(const struct gci_coll *c)
{
	const struct gci_algorithm *a;

	for (a = gci_algorithm_find(c->kind, NULL); a->name; a++)
		if (!gci_ineligible(a, c))
			return a;
	return NULL;
}

int gci_decide_by_table(const struct gci_table *t, const struct gci_coll *c, struct gci_decision *d)
{
	uint64_t nbytes = gci_table_nbytes(c);

	/* Blocks of different lengths, and one cluster's ranks where all of them were measured, are
	 * something else. */
	if (c->counts || c->topo->nclusters != t->nclusters)
		return 0;
	if (!gci_table_find(t, c->kind, c->topo->nranks, nbytes, &d->how))
		return 0;
	if (gci_ineligible(d->how.algorithm, c))
		return 0;
	d->by = GCI_BY_TABLE;
	d->ns = gci_table_ns(t, c->kind, c->topo->nranks, nbytes);
	return 1;
}
