/* SPDX-License-Identifier: MIT
 * What searches share: asking, and never the same twice. */
#ifndef GCI_COLLECTIVES_TUNER_SEARCH_IMPL_H
#define GCI_COLLECTIVES_TUNER_SEARCH_IMPL_H

#include "collectives/tuner/search.h"

struct gci_asking {
	const struct gci_search *s;
	struct gci_search_result *r;
	int rc;    /* what has ended the search */
	int hasty; /* half as long again as the best is told enough by one run */
};

/* An empty result, and nothing asked yet. */
struct gci_asking gci_asking_begin(const struct gci_search *s, struct gci_search_result *r);

/* What method number `m` costs with this segment; GCI_NEVER also when the search has ended. */
uint64_t gci_ask(struct gci_asking *a, size_t m, uint64_t segment_nbytes);

/* A trial of something else than a candidate, which counts too. */
void gci_ask_count(struct gci_asking *a, const struct gci_trial *t);

/* How many segments method number `m` has, and the i-th, the largest first. */
size_t gci_asking_nsegments(const struct gci_asking *a, size_t m);
uint64_t gci_asking_segment(const struct gci_asking *a, size_t m, size_t i);

#endif
