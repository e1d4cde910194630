/* SPDX-License-Identifier: MIT
 * Networks for the simulator's tests, with figures that can be told by hand.
 *
 *	simple_open(&net, &topo, (int[]){2, 2, 0}, 1);
 *	c = bytes(&topo, GCI_BCAST, MIB);
 *	assert_int_equal(simulate(&net, &c, "sequential"), 8 * MIB);
 *	net_close(&net, &topo); */
#ifndef GCI_TESTS_COLLECTIVES_SIMPLE_NET_H
#define GCI_TESTS_COLLECTIVES_SIMPLE_NET_H

#include "base/clock.h"
#include "collectives/sim/sim.h"

#define KIB 1024u
#define MIB (1024u * 1024u)

/* One way, between clusters of a simple network. */
#define SIMPLE_WAN_NS (10 * GCI_NS_PER_MS)

/* A topology as of topology_make(), and its network. */
void net_open(struct gci_simnet *net, struct gci_topo *t, const int *sizes, int wan_gbit);
void net_close(struct gci_simnet *net, struct gci_topo *t);

/* The same, but a byte takes 8 ns on a NIC, and nothing else takes time but the way of a WAN. */
void simple_open(struct gci_simnet *net, struct gci_topo *t, const int *sizes, int wan_gbit);

/* An operation on so many bytes. */
struct gci_coll bytes(const struct gci_topo *t, enum gci_kind kind, uint64_t count);

/* What it takes by the algorithm of that name, in ns. */
uint64_t simulate(const struct gci_simnet *net, const struct gci_coll *c, const char *name);

#endif
