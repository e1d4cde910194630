/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "comm/op.h"

static void count_steps(const gcoll_comm *c, const struct gci_sched *s, uint32_t esize,
	uint64_t *moved, uint64_t *wan_nbytes)
{
	const int *cluster = c->topo.cluster;
	uint32_t i;

	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];

		if (p->kind == GCI_STEP_SEND) {
			moved[0] += p->src.length * esize;
			if (cluster[s->rank] != cluster[p->peer])
				*wan_nbytes += p->src.length * esize;
		} else if (p->kind <= GCI_STEP_RECV_REDUCE) {
			moved[1] += p->dst.length * esize;
		}
	}
}

int gci_comm_traffic(
	gcoll_comm *c, const struct gci_coll *coll, uint64_t *wan_nbytes, uint64_t *nic_nbytes)
{
	struct gci_op op = {.comm = c, .coll = *coll};
	uint64_t *moved = gci_calloc((size_t)c->size, 2 * sizeof(*moved)), w;
	int r, rc = moved ? 0 : GCOLL_ERR_NOMEM;

	*wan_nbytes = *nic_nbytes = 0;
	op.coll.topo = &c->topo;
	if (!rc)
		rc = gci_op_prepare(&op);
	for (w = 0; !rc && w < op.windows.n; w++) {
		struct gci_coll window = gci_window_of(&op.windows, &op.coll, w);

		for (r = 0; r < c->size && !rc; r++) {
			struct gci_sched s;

			rc = gci_emit(op.algorithm, &window, r, &s);
			if (!rc)
				count_steps(c, &s, coll->esize, &moved[2 * r], wan_nbytes);
			gci_sched_free(&s);
		}
	}
	for (r = 0; !rc && r < 2 * c->size; r++)
		if (moved[r] > *nic_nbytes)
			*nic_nbytes = moved[r];
	gci_free(moved);
	return rc;
}
