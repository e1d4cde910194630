/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/peers.h"

#include "base/mem.h"

uint32_t gci_wan_peers(const struct gci_topo *t, const struct gci_sched *s)
{
	unsigned char *seen = t->nclusters > 1 ? gci_calloc((size_t)t->nranks, 1) : NULL;
	int mine = t->cluster[s->rank];
	uint32_t i, n = 0;

	for (i = 0; seen && i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];

		if (p->kind != GCI_STEP_SEND || !p->src.length || seen[p->peer] ||
			t->cluster[p->peer] == mine ||
			gci_topo_link(t, mine, t->cluster[p->peer])->flow_rate_bps)
			continue;
		seen[p->peer] = 1;
		n++;
	}
	gci_free(seen);
	return n;
}
