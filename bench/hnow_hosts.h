/* SPDX-License-Identifier: MIT
 * What the simulations of Banikazemi, Moorthy and Panda 1998 share: hosts of two kinds in random
 * order, with one port each way, and a wire that takes its time for each byte.
 *
 *	rc = hnow_topo(&t, hosts.n);
 *	hnow_draw(&prng, &hosts, t.tini_ns);	// as often as orders are wanted
 *	ns = hnow_simulate(&wire, &op);
 *	...
 *	gci_topo_free(&t); */
#ifndef GCI_BENCH_HNOW_HOSTS_H
#define GCI_BENCH_HNOW_HOSTS_H

#include "base/prng.h"
#include "collectives/sim/sim.h"

enum hnow_source { HNOW_FAST, HNOW_SLOW, HNOW_ANY };

struct hnow_hosts {
	int n, nfast;              /* at least one of each kind, if the source is not any */
	uint64_t fast_ns, slow_ns; /* what a message costs its sender */
	enum hnow_source source;   /* rank 0 */
};

struct hnow_wire {
	uint64_t nic_bps;  /* 0: bytes take no time */
	uint64_t route_ns; /* of the first byte */
};

extern const char *const hnow_sources[];

/* One cluster of `n` hosts. 0 or a negative error. */
int hnow_topo(struct gci_topo *t, int n);

void hnow_draw(struct gci_prng *prng, const struct hnow_hosts *h, uint64_t *tini_ns);

/* What op->algorithm takes; receiving costs a host nothing. 0: out of memory. */
uint64_t hnow_simulate(const struct hnow_wire *w, const struct gci_sim_op *op);

#endif
