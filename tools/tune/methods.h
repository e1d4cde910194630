/* SPDX-License-Identifier: MIT
 * Searches for the best method and segment of an operation. What each costs a callback tells, which
 * may simulate it or measure it; the less is asked, the sooner it is found.
 *
 *	struct gci_search s = {.methods = m, .nmethods = n, .segments = g, .nsegments = 12,
 *		.count = coll.count, .esize = coll.esize, .cost = measure, .ctx = &bench};
 *	struct gci_search_result r;
 *
 *	rc = gci_search_smgd(&s, &r);
 *	if (!rc && r.best_ns != GCI_NEVER)
 *		gci_candidate_print(&r.best, text);
 *	gci_search_result_free(&r);
 *
 * Pure, and in integers: where costs are the same, so is the result. */
#ifndef GCT_TUNE_METHODS_H
#define GCT_TUNE_METHODS_H

#include "collectives/tuner/candidate.h"

/* What one candidate was found to cost. */
struct gci_trial {
	uint64_t ns;       /* of one operation; GCI_NEVER: it cannot run */
	uint64_t spent_ns; /* what finding that out took */
	uint64_t runs;     /* and how often it ran for that */
	/* Asked for: if one run takes longer than this, no more need be made of it; 0: all are. */
	uint64_t enough_ns;
};

/* 0, or a GCOLL_ERR_* that ends the search. */
typedef int gci_search_cost(void *ctx, const struct gci_candidate *how, struct gci_trial *t);

struct gci_method {
	struct gci_candidate how;
	int fixed; /* its segment stays as it is; else it is searched for */
};

struct gci_search {
	const struct gci_method *methods;
	size_t nmethods;
	const uint64_t *segments; /* bytes, rising; the last is the whole message */
	size_t nsegments;
	uint64_t count; /* elements that are cut into segments: of the vector, or of each block */
	uint32_t esize;
	gci_search_cost *cost;
	void *ctx;
	/* How it goes on after a minimum; 0: as said below. */
	uint32_t beyond;            /* segments to look at behind it: 3 */
	uint32_t threshold_percent; /* of another time, the most that is clearly less: 98 */
};

struct gci_tried {
	struct gci_candidate how;
	uint64_t ns;
};

struct gci_search_result {
	struct gci_candidate best;
	uint64_t best_ns;        /* GCI_NEVER: none can run */
	struct gci_tried *tried; /* in the order of asking, none twice */
	size_t ntried, tried_cap;
	uint64_t evaluations, runs, spent_ns; /* `evaluations`: with those of parts of a tree */
};

/* Each returns 0, GCOLL_ERR_NOMEM or what the callback returned; `r` is to be freed either way. */

/* All methods with all segments, as ATCC's linear search (Vadhiyar 2004, 4.2). */
int gci_search_exhaustive(const struct gci_search *s, struct gci_search_result *r);

/* MagPIe's: by halving, then up and down by 1 and 5 in the number of segments (Kielmann 2001,
 * 3.1.1). Segments need not be among s->segments, but the first bounds them from below. */
int gci_search_halving(const struct gci_search *s, struct gci_search_result *r);

/* ATCC's modified gradient descent (4.2): each method from its largest segment on to smaller ones,
 * until so many (`beyond`) have brought nothing clearly better. The paper does not say how many; three
 * makes its number of iterations for 1 KB (table 2: 160, of four methods with ten each). */
int gci_search_mgd(const struct gci_search *s, struct gci_search_result *r);

/* ATCC's scanning variant: all methods' largest segments first; then always on with the method that
 * promises most, by its latest value and how fast it fell. The one that leads is left when so many
 * (`beyond`) have brought nothing better, others when they do not promise to beat it. A
 * segment half as long can at best halve the time, which bounds what a method promises. What takes
 * half as long again as the best need not be measured as well as that. */
int gci_search_smgd(const struct gci_search *s, struct gci_search_result *r);

/* What ATCC's pipeline method asks for besides. Each fills in *t as gci_search_cost does. */
struct gci_pipeline {
	const struct gci_coll *coll; /* without parameters */
	/* The same operation by a chain through these ranks only, the root first. */
	int (*path)(
		void *ctx, const int *ranks, int n, uint64_t segment_nbytes, struct gci_trial *t);
	/* from[i] sends to to[i] as much as the operation has for one rank, all n pairs at once; no
	 * rank is twice in either. */
	int (*pairs)(void *ctx, const int *from, const int *to, int n, struct gci_trial *t);
	void *ctx;
	uint32_t saturated_percent; /* of a pair's time alone: that all pairs may take; 0: 120 */
};

/* ATCC's third: where the network bears all pairs of ranks at once, a tree's best segment is that
 * of a pipeline along its longest path, which few nodes can tell; the whole tree runs once per
 * method. Methods that are no trees are asked for once, as they are. *applies tells if the network
 * does bear it, by a test that comes first; if not, nothing else is asked. */
int gci_search_pipeline(const struct gci_search *s, const struct gci_pipeline *p,
	struct gci_search_result *r, int *applies);

/* The longest path from the root of the tree that `a` makes of `c` (to it, for reduce and gather):
 * ranks[] has room for all ranks; *n is 0 where it is no tree, in which each rank has one parent.
 * Of equally long ones the one to the least rank. 0 or GCOLL_ERR_NOMEM. */
int gci_tree_path(const struct gci_algorithm *a, const struct gci_coll *c, int *ranks, int *n);

void gci_search_result_free(struct gci_search_result *r);

#endif
