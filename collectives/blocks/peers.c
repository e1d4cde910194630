/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/peers.h"

#include "base/mem.h"

int gci_wan_peers(const struct gci_topo *t, const struct gci_sched *s, uint32_t *n)
{
	int mine = t->cluster[s->rank];
	unsigned char *seen;
	uint32_t i;

	*n = 0;
	if (t->nclusters == 1)
		return 0;
	seen = gci_calloc((size_t)t->nranks, 1);
	if (!seen)
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];

		if (p->kind != GCI_STEP_SEND || !p->src.length || seen[p->peer] ||
			t->cluster[p->peer] == mine ||
			gci_topo_link(t, mine, t->cluster[p->peer])->flow_rate_bps)
			continue;
		seen[p->peer] = 1;
		++*n;
	}
	gci_free(seen);
	return 0;
}
