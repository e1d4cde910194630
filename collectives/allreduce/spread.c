/* SPDX-License-Identifier: MIT
 * The product's allreduce of many clusters whose links are slower than NICs: different segments
 * meet in different clusters, which tell all others (collectives/blocks/spread.h).
 *
 * Cost, R being a link: 2 M / (C R) + 2 L + 2 m/R + (h-1 + ceil(log2 h)) m/B for segments of m.
 * Bound (DESIGN.md): 2 (C-1)/C M / ((C-1) R), the same; L can hide behind it. */
#include "collectives/blocks/spread.h"
#include "collectives/allreduce/allreduce.h"

void gci_emit_allreduce_spread(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_spread_segment s;
	struct gci_spread x;

	gci_spread_start(&x, b, c);
	while (gci_spread_next(&x, &s)) {
		struct gci_slice result;

		gci_spread_to_all(&x, &s,
			gci_spread_combine(&x, &s, gci_input(c, b->rank), GCI_OUT, &result));
	}
	gci_spread_end(&x);
}
