/* SPDX-License-Identifier: MIT
 * For tests: what the schedules of an operation move, counted.
 *
 *	struct traffic t = traffic_between(&x, 0, 1);	// from cluster 0 to cluster 1
 *	t.messages, t.elements, t.senders, ...
 */
#ifndef GCI_TESTS_TRAFFIC_H
#define GCI_TESTS_TRAFFIC_H

#include "tests/collectives/scheds.h"

struct traffic {
	uint64_t messages, elements;
	int senders, receivers; /* distinct ranks */
};

/* Schedules of algorithm `name`, elements of 4 bytes, on clusters of these sizes (`mixed`: ranks
 * dealt round robin over them), proved. Aborts on failure. */
void traffic_emit(struct scheds *x, enum gci_kind kind, const char *name, struct gci_coll c,
	const int *sizes, int mixed);

struct traffic traffic_between(const struct scheds *x, int from_cluster, int to_cluster);

/* All that a rank sends; receivers are those it sends to. */
struct traffic traffic_from(const struct scheds *x, int rank);

#endif
