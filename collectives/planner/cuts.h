/* SPDX-License-Identifier: MIT
 * What an operation takes at least, by cuts: where all ways from one set of classes to the others are taken out, what
 * the others need of it has to cross them. What crosses before anything can have come there knows nothing of it, and
 * what crosses later than its way to the end is too late. */
#ifndef GCI_COLLECTIVES_PLANNER_CUTS_H
#define GCI_COLLECTIVES_PLANNER_CUTS_H

#include "collectives/planner/pack.h"

/* Carries so much in each ns from then on, and nothing before. */
struct gci_edge {
	double rate, delay_ns;
};

/* When all of them together, at least one, have carried so many bytes. Sorts them. */
double gci_edges_carry_ns(struct gci_edge *edges, int nedges, double nbytes);

/* *ns: the largest of all cuts that are looked at, of which there are 2^classes up to GCI_CUTS_CLASSES of them, else two
 * for each class. Of the wish, segments and costs of messages do not matter. 0 or GCOLL_ERR_NOMEM. */
#define GCI_CUTS_CLASSES 10
int gci_cuts_bound(const struct gci_packing_wish *w, double *ns);

#endif
