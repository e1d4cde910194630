/* SPDX-License-Identifier: MIT
 * Proving the registry: the variants of an operation (roots, counts, parameters, layouts, orders)
 * on one topology, and which of them a sample takes.
 *
 * There are too many for every run. An ordinary one takes what covers something that the algorithm
 * was not proved for yet (struct coverage), and of the rest a part by a hash of the case: the same
 * ones on every machine. GCI_ALL=1 in the environment takes all up to 9 ranks and more of them
 * beyond; GCI_ONLY=KIND or GCI_ONLY=KIND:NAME leaves out the other algorithms. */
#ifndef GCI_TESTS_PROVE_H
#define GCI_TESTS_PROVE_H

#include "testing/verify.h"

#define PROVE_MAX_RANKS 80

/* True if GCI_ONLY leaves this algorithm out. */
int prove_left_out(const struct gci_algorithm *a);

/* Proves algorithm `a` on a topology; fails the test where the verifier does not agree.
 * `all_roots`, or else about three of them. */
void prove_topology(const struct gci_algorithm *a, const struct gci_topo *t, int all_roots);

/* Fails unless each algorithm that is not left out was proved for every number of ranks that it
 * takes up to `most_ranks`, for one to five clusters and for all classes of counts. Says how many
 * sets of schedules were proved. */
void prove_coverage(int most_ranks);

#endif
