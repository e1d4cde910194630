/* SPDX-License-Identifier: MIT
 * A game of two: one side gives each group's columns shares, which sum to 1, so that the fullest resource has as little
 * as can be; the other one gives resources prices, which sum to 1, so that the cheapest columns cost as much as can be.
 * Both play by multiplicative weights, in which what the last look says counts twice (optimistic: Rakhlin and Sridharan
 * 2013); averages over rounds are near to what a linear program would find.
 *
 *	rc = gci_game_init(&g, ncolumns, nentries, nresources, ngroups);
 *	... g.first, g.group, g.barred, g.resource, g.amount ...
 *	gci_game_play(&g, 100, share, price);
 *	gci_game_free(&g);
 */
#ifndef GCI_COLLECTIVES_PLANNER_GAME_H
#define GCI_COLLECTIVES_PLANNER_GAME_H

#include <stddef.h>

struct gci_game {
	size_t ncolumns;
	int nresources, ngroups;
	/* The caller fills these in; each group has a column. */
	size_t *first;  /* [column], and one more: where its entries begin */
	int *group;     /* [column] */
	int *barred;    /* [column]: it gets no share, unless all of its group are barred */
	int *resource;  /* [entry] */
	double *amount; /* [entry]: what a column with all of its group's share puts there */
	double *scratch;
};

/* 0 or GCOLL_ERR_NOMEM; it is to be freed either way. */
int gci_game_init(
	struct gci_game *g, size_t ncolumns, size_t nentries, int nresources, int ngroups);
void gci_game_free(struct gci_game *g);

/* Plays so many rounds, of which later ones count for more: share[column], price[resource]. Changes amounts. */
void gci_game_play(struct gci_game *g, int nrounds, double *share, double *price);

/* out[i] is proportional to e^log[i], and all sum to 1. The same on every machine. */
void gci_game_weights(const double *log, int n, double *out);

#endif
