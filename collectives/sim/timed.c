/* SPDX-License-Identifier: MIT */
#include "collectives/sim/timed.h"

#include "base/clock.h"

/* A part of the time that waiting may cost: those that go at will are paced, which costs as much, and still they come
 * in bursts. In the lab, waiting is the faster one already where simulations find both the same (a bcast, 8 MiB: 1.00
 * and 1.10 times the predicted time), and where pairs at their rates lose 2 % of their segments it loses none. */
#define LEEWAY 32

/* GCI_NEVER: more than until_ns, or not to be simulated. */
static int simulated(
	uint64_t *ns, const struct gci_simnet *net, struct gci_sim_op *op, uint64_t until_ns)
{
	struct gci_sim_result r;
	int rc;

	op->until_ns = until_ns;
	rc = gci_simulate(net, op, &r);
	*ns = rc ? GCI_NEVER : r.ns;
	gci_sim_result_free(&r);
	return rc == GCOLL_ERR_NOMEM ? rc : 0;
}

static int choose(struct gci_packed *p, const struct gci_simnet *net, struct gci_sim_op *op)
{
	uint64_t at_will, timed, enough;
	int rc = simulated(&at_will, net, op, 0);

	if (rc || at_will == GCI_NEVER)
		return rc;
	enough = at_will + at_will / LEEWAY;
	p->timed = 1;
	rc = simulated(&timed, net, op, enough);
	p->timed = timed <= enough;
	return rc;
}

int gci_timed_make(struct gci_packed **out, const struct gci_simnet *net,
	const struct gci_algorithm *a, const struct gci_coll *c, uint64_t nbytes,
	uint64_t most_steps)
{
	struct gci_coll coll = *c;
	struct gci_sim_op op = {.algorithm = a, .coll = &coll, .most_steps = most_steps};
	int rc = gci_packed_make(out, c, nbytes);

	if (rc || c->counts || c->topo->nclusters < 2)
		return rc;
	coll.packed = *out;
	rc = choose(*out, net, &op);
	if (rc) {
		gci_packed_free(*out);
		*out = NULL;
	}
	return rc;
}
