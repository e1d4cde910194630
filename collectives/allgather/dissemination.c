/* SPDX-License-Identifier: MIT
 * Dissemination, also called Bruck's allgather (Bruck et al. 1997): with 2^k blocks, its own and
 * those of the ranks just before it, rank r sends to rank r + 2^k and receives as many from rank
 * r - 2^k; the last round moves what is left.
 * Cost: ceil(log2 P) L + (P-1)/P M/B for any P, M being all blocks. Min3 (Gupta 2007), 2. */
#include "collectives/allgather/allgather.h"

/* The blocks of the `n` ranks up to and with `last`: one run, or two round the end. */
struct stretch {
	int a, z;       /* up to rank `last` */
	int far, far_z; /* at the end of the ranks */
};

static struct stretch stretch_of(int last, int n, int nranks)
{
	struct stretch s = {last + 1 - n, last + 1, nranks, nranks};

	if (s.a < 0) {
		s.far += s.a;
		s.a = 0;
	}
	return s;
}

void gci_emit_allgather_dissemination(struct gci_builder *b, const struct gci_coll *c)
{
	struct gci_group g = gci_group_all(c, b->rank, 0);
	struct gci_shelf in = gci_shelf_in(), out = gci_shelf_out();
	int have, n;

	gci_copy_blocks(b, c, &g, &out, &in, g.me, g.me + 1);
	for (have = 1; have < g.n; have += n) {
		int to = (int)(((int64_t)g.me + have) % g.n), from = (g.me - have + g.n) % g.n;
		struct stretch give, take;

		n = have < g.n - have ? have : g.n - have;
		give = stretch_of(g.me, n, g.n);
		take = stretch_of(from, n, g.n);
		gci_round(b);
		gci_send_blocks(b, c, &g, to, gci_tag(0, 0), &out, give.a, give.z);
		gci_send_blocks(b, c, &g, to, gci_tag(0, 0), &out, give.far, give.far_z);
		gci_recv_blocks(b, c, &g, from, gci_tag(0, 0), &out, take.a, take.z);
		gci_recv_blocks(b, c, &g, from, gci_tag(0, 0), &out, take.far, take.far_z);
	}
}
