/* SPDX-License-Identifier: MIT
 * The simulator: runs the schedules of all ranks on a model of the network, with the executor's
 * readiness core and the transport's rules (credit, eager allowance, frames). Deterministic, in
 * integers: all who simulate the same find the same.
 *
 *	struct gci_sim_op op = {.algorithm = a, .coll = &coll};
 *	struct gci_sim_result r;
 *
 *	rc = gci_simulate(&net, &op, &r);
 *	if (!rc)
 *		printf("%" PRIu64 " ns\n", r.ns);
 *	gci_sim_result_free(&r); */
#ifndef GCI_COLLECTIVES_SIM_SIM_H
#define GCI_COLLECTIVES_SIM_SIM_H

#include "collectives/coll.h"
#include "collectives/planner/packed.h"
#include "collectives/sim/net.h"

/* One step of one rank: a SEND lasts from its start until its last byte has left the NIC; a RECV
 * from the first byte that comes to the last; COPY and REDUCE while they compute. */
struct gci_sim_event {
	int rank;
	uint32_t step, window;
	const struct gci_step *s;
	uint64_t ready_ns; /* when it could have started */
	uint64_t from_ns, to_ns;
	/* Of a RECV: when its sender was allowed to send, and when the last byte came, which may be before
	 * it was asked for. */
	uint64_t queued_ns, came_ns;
};

struct gci_sim_op {
	const struct gci_algorithm *algorithm;
	const struct gci_coll *coll; /* the whole message, with parameters */
	uint64_t window_nbytes;      /* 0: as communicators have it */
	/* Of all ranks and windows; more is GCOLL_ERR_INVAL, but where one window has no more only
	 * that is simulated. 0: no limit. */
	uint64_t most_steps;
	uint64_t until_ns; /* what takes longer is given up, and takes GCI_NEVER; 0: nothing is */
	const uint64_t *start_ns; /* [rank]: when each calls it; NULL: all at 0 */
	/* [from * nranks + to]: payload that each sends to each, at most; 0: at will. Near senders leave far ones
	 * room at ports then. NULL: so do all, but a packing at even rates goes at those. */
	const uint64_t *pace_bps;
	void (*trace)(void *ctx, const struct gci_sim_event *e); /* may be NULL */
	void *ctx;
};

#define GCI_PORT_NBYTES   (512ull << 10) /* that a switch keeps for a host, at least */
#define GCI_SIM_NEAR_PART 4 /* near senders keep to a 4th of what a port holds, in all */

#define GCI_SIM_MOST (UINT64_MAX / 2) /* no figure below is more: what would be, is that */

struct gci_sim_result {
	uint64_t ns; /* from 0 to the last rank's end; GCI_NEVER: given up, only nevents counts */
	uint64_t *end_ns;     /* [rank] */
	uint64_t *wan_nbytes; /* [from * nclusters + to]: of payload; the diagonal: inside */
	uint32_t *senders;    /* [the same]: distinct ranks that send */
	uint64_t busiest_ns;  /* that any NIC's direction, connection or link was at work */
	uint64_t nsteps;      /* simulated: of all ranks, in windows that were */
	uint64_t nevents;     /* that took: a step some three, more where messages go in pieces */
	uint64_t nmessages, most_tmp_nbytes; /* of all; of one rank */
	uint32_t nwindows;
	int extrapolated; /* windows in the middle were not simulated one by one */
};

/* 0, GCOLL_ERR_NOMEM, GCOLL_ERR_INVAL (too many steps, or the algorithm cannot run it). On failure
 * `r` is empty. */
int gci_simulate(
	const struct gci_simnet *net, const struct gci_sim_op *op, struct gci_sim_result *r);
void gci_sim_result_free(struct gci_sim_result *r);

/* As gci_packed_make, with `timed` unless simulations say that SENDs at will take a 32nd less: all
 * at once they meet at their receivers' ports and overrun the queues there, but some senders that wait could go on.
 * An alltoall's even rates need not be faster, with much they may even be a 16th slower.
 * `a` has GCI_PACKS. Each simulation takes most_steps at most (0: no limit); what takes more stays as it was made.
 * Not timed: what stays in a cluster, and with counts. gci_simulate does it itself where there is none. */
int gci_timed_make(struct gci_packed **out, const struct gci_simnet *net,
	const struct gci_algorithm *a, const struct gci_coll *c, uint64_t nbytes,
	uint64_t most_steps);

#endif
