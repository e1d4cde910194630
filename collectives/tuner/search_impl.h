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

#endif
