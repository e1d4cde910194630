/* SPDX-License-Identifier: MIT
 * The network that the simulator runs schedules on: hosts with a port each way (or one for both),
 * links between clusters, connections between pairs of ranks, and what messages cost their hosts.
 *
 *	gci_simnet_init(&net, topo, params);	// params may be NULL: from the grid alone
 *	...
 *	gci_simnet_free(&net);
 *
 * Rates are of payload, bits per second; 0: no limit. Times are of the topology's own clock. */
#ifndef GCI_COLLECTIVES_SIM_NET_H
#define GCI_COLLECTIVES_SIM_NET_H

#include "collectives/grid/topo.h"
#include "collectives/models/params.h"

enum gci_host_model {
	GCI_HOST_FAIR,        /* messages share a NIC's two directions, as TCP connections do */
	GCI_HOST_FULL_DUPLEX, /* one message at a time goes out, and one comes in */
	GCI_HOST_HALF_DUPLEX  /* one message at a time, out or in */
};

/* One direction between two clusters; or inside of one. */
struct gci_simnet_link {
	uint64_t latency_ns;   /* one way, of the first byte */
	uint64_t bps;          /* of all that crosses it, if its wires carry nothing else */
	uint64_t pair_bps;     /* of one pair of ranks with all of its streams */
	uint64_t queue_nbytes; /* its buffer; 0: unknown, endless */
	uint64_t eager_nbytes; /* of payload that a peer may send unasked */
	uint32_t streams;
	const struct gci_params_link *params; /* measured; NULL: constants below */
};

struct gci_simnet {
	const struct gci_topo *topo;
	enum gci_host_model host;
	uint64_t *nic_bps;             /* [cluster]: of hosts that have none of their own */
	struct gci_simnet_link *links; /* [from * nclusters + to] */
	uint64_t *send_ns;             /* [rank]: what a message costs its sender; without params */
	uint64_t recv_ns;              /* and its receiver */
	uint64_t local_bps;            /* of copies and reductions */
	uint32_t ack_ppm; /* bytes that a receiver puts out for a million that come in (FAIR) */
	int cold;         /* no connection is open yet: opened when first used, in slow start */
};

/* 0 or GCOLL_ERR_NOMEM. `t` and `p` must outlive it; p's clusters are those of the grid that `t`
 * was made from (t->in_grid). */
int gci_simnet_init(struct gci_simnet *net, const struct gci_topo *t, const struct gci_params *p);
void gci_simnet_free(struct gci_simnet *net);

/* Of one rank's host. */
uint64_t gci_simnet_nic_bps(const struct gci_simnet *net, int rank);

/* Of one of the topology's wires: what is known of a link is known of the wire that is all of it. */
uint64_t gci_simnet_wire_bps(const struct gci_simnet *net, int wire);

/* Pairs of ranks in different clusters have so many connections, not as many as the grid says, and
 * what those carry; 0 changes nothing. */
void gci_simnet_streams(struct gci_simnet *net, uint32_t streams);

#endif
