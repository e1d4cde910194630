/* SPDX-License-Identifier: MIT
 * The transport inside one process: all ranks in one thread, joined by a simulated network that
 * a seed drives. The same seed and the same calls give the same run. For tests and simulation.
 *
 *	gci_mem_net_create(&net, 4, &faults, seed);
 *	for (i = 0; i < 4; i++)
 *		gci_mem_create(&tp[i], net, &config[i]);	// config.rank = i
 *	while (!all_done)
 *		gci_mem_net_step(net);		// or gci_tp_progress() of any rank
 *
 * The network moves random amounts of random streams' bytes, so frames of different streams
 * overtake each other and arrive in pieces of any size.
 *
 * A lost connection ends at some byte in either direction, each side notices at its time, and the
 * lower rank makes it again after a while, which the other may not notice at once either.
 *
 * It has no clock. progress(0) is one step; progress with a longer time-out steps until a callback
 * of this rank was called or nothing is left to do in the whole network. Either calls what is due
 * on any rank. stop flushes what this rank sent and waits for nobody. A rank freed without stop is
 * dead to the others. As with TCP, the lower rank of a pair opens the connections. */
#ifndef GCI_TESTING_NETWORK_H
#define GCI_TESTING_NETWORK_H

#include "transport/transport.h"

struct gci_ep;
struct gci_mem_net;

struct gci_mem_faults {
	uint64_t kill_after; /* steps after which rank `kill_rank` dies; 0: never. Its own requests
			      * end with GCOLL_ERR_ABORTED. */
	int kill_rank;
	uint64_t flip_after; /* bytes delivered (in all) after which one bit is flipped; 0: never */
	uint32_t max_piece;  /* most bytes moved in one step; 0: 1 MiB */
	uint32_t stall_percent; /* of steps in which nothing moves */
	uint64_t freeze_after;  /* steps after which nothing moves from or to `freeze_rank`, which
				 * does not die of it; 0: never */
	int freeze_rank;
	uint32_t lose_every;  /* a connection on a link with replay is lost once in so many steps,
			       * about; 0: never */
	uint32_t most_losses; /* in all */
};

int gci_mem_net_create(
	struct gci_mem_net **net, int size, const struct gci_mem_faults *faults, uint64_t seed);

/* After its last transport was freed. */
void gci_mem_net_free(struct gci_mem_net *net);

int gci_mem_create(struct gci_tp **tp, struct gci_mem_net *net, const struct gci_tp_config *config);

/* Of a transport that gci_mem_create made, for tests that look into it. */
struct gci_ep *gci_mem_endpoint(struct gci_tp *tp);

/* One step. Returns 1 if anything moved or any callback was called, 0 if there is nothing to do
 * in the whole network: whoever still waits then is deadlocked. */
int gci_mem_net_step(struct gci_mem_net *net);

#endif
