/* SPDX-License-Identifier: MIT
 * Trees for hosts that differ in what a message costs them, and the model they are made for
 * (Banikazemi, Moorthy, Panda: "Efficient Collective Communication on Heterogeneous Networks of
 * Workstations", ICPP 1998): a host sends to one child after the other, each taking its message
 * initiation cost; a message arrives when it has been sent.
 *
 *	struct gci_hnow t;
 *
 *	rc = gci_hnow_init(&t, topo->tini_ns, topo->nranks, root);
 *	if (!rc)
 *		rc = gci_hnow_fnf(&t);
 *	...					// t.rank[], t.parent[]
 *	gci_hnow_free(&t);
 *
 * Integers only, and ties are broken by the rank's distance from the root: all ranks find the same
 * tree. Other roots find other trees, so that of several multicasts at a time not all put the same
 * one of equal hosts first (4, 6.2). */
#ifndef GCI_COLLECTIVES_MODELS_HNOW_H
#define GCI_COLLECTIVES_MODELS_HNOW_H

#include <stdint.h>

/* Each host more makes the optimal tree take three times as long: 10 ms, at worst, for so many. */
#define GCI_HNOW_MOST_OPTIMAL 12

struct gci_hnow {
	int n;
	int *rank;   /* [place]; the root is at place 0 */
	int *parent; /* [place]: a lower place. A parent sends to its children in rising order */
	uint64_t *tini_ns; /* [place] */
	uint64_t *free_ns; /* [place]: when it has sent all so far; of the tree being made */
};

/* Places ranks 0 .. n-1 by rising cost after the root. What is unknown (0) is taken for the most
 * that is known of any. 0 or GCOLL_ERR_NOMEM; then, as before any call but this, nothing is to be
 * freed. */
int gci_hnow_init(struct gci_hnow *t, const uint64_t *tini_ns, int n, int root);
void gci_hnow_free(struct gci_hnow *t);

/* Speed-partitioned ordered chain: a binomial tree in which faster hosts have more descendants.
 * Paper, 4. */
void gci_hnow_spoc(struct gci_hnow *t);

/* Fastest node first: always the fastest host left, from whoever can reach it first. O(n log n).
 * Paper, 6. 0 or GCOLL_ERR_NOMEM. */
int gci_hnow_fnf(struct gci_hnow *t);

/* A tree that nothing can beat, by dynamic programming over how many hosts of each cost are left;
 * n is at most GCI_HNOW_MOST_OPTIMAL. Paper, 5. 0, GCOLL_ERR_INVAL (too many) or GCOLL_ERR_NOMEM.
 */
int gci_hnow_optimal(struct gci_hnow *t);

/* When the last host has the message. */
uint64_t gci_hnow_completion(struct gci_hnow *t);

#endif
