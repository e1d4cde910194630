/* SPDX-License-Identifier: MIT
 * The product's reduce of many clusters whose links are slower than NICs: different segments meet
 * in different clusters, and go from there to the root (collectives/blocks/spread.h).
 *
 * Cost, R being a link: M / ((C-1) R) + 2 L + 2 m/R + ceil(log2 h) m/B for segments of m. Bound
 * (DESIGN.md): L + M / ((C-1) R); the way over an owner takes the other L. */
#include "collectives/blocks/spread.h"
#include "collectives/reduce/reduce.h"

void gci_emit_reduce_spread(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_spread_segment s;
	struct gci_spread x;

	gci_spread_start(&x, b, c);
	while (gci_spread_next(&x, &s)) {
		enum gci_buffer out = b->rank == c->root ? GCI_OUT : GCI_NBUFFERS;
		struct gci_slice result = {.buffer = GCI_NBUFFERS};
		int rank = gci_spread_combine(&x, &s, gci_input(c, b->rank), out, &result);

		gci_spread_to_root(&x, &s, rank, result);
	}
	gci_spread_end(&x);
}
