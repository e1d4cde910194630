/* SPDX-License-Identifier: MIT
 * The product's bcast to many clusters whose links are slower than NICs: the root's cluster sends
 * different segments to different clusters, and they to each other (collectives/blocks/spread.h).
 *
 * Cost, R being a link: M / ((C-1) R) + 2 L + 2 m/R + (h-1) m/B for segments of m. Bound
 * (DESIGN.md): L + M / ((C-1) R); the way over an owner takes the other L. */
#include "collectives/blocks/spread.h"
#include "collectives/bcast/bcast.h"

void gci_emit_bcast_spread(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_spread_segment s;
	struct gci_spread x;

	gci_spread_start(&x, b, c);
	while (gci_spread_next(&x, &s))
		gci_spread_from_root(&x, &s, gci_bcast_buffer(b, c));
	gci_spread_end(&x);
}
