/* SPDX-License-Identifier: MIT
 * What a simulated operation's time goes into: the busiest port, the busiest wire between clusters,
 * and the longest chain of messages each of which waited for the one before; and in words, why it
 * takes longer than another.
 *
 *	struct gct_bottleneck f;
 *
 *	rc = gct_bottleneck_find(&f, &net, &timeline, &result);	// a sorted timeline
 *	if (!rc)
 *		gct_bottleneck_why(&f, &best, &words, &text);
 *
 * Pure. */
#ifndef GCT_BOTTLENECK_H
#define GCT_BOTTLENECK_H

#include "base/buf.h"
#include "tools/lib/timeline.h"

/* Times are of the simulation's clock; 0 where rates are unknown. */
struct gct_bottleneck {
	uint64_t ns; /* of the operation */

	int port_rank, port_out; /* whose NIC has most to do, and in which direction; -1: none */
	uint64_t port_nbytes, port_ns;

	int wire; /* the same of the topology's wires; -1: none is used */
	uint64_t wire_nbytes, wire_ns;

	int pair_from, pair_to; /* and of connections: the pair of ranks; -1: none has a limit */
	uint64_t pair_nbytes, pair_ns;

	/* The chain: from the last message to end, back to what it waited for, and so on. A message
	 * waits for its sender to have what it sends, for its port, or to be asked for. */
	uint64_t chain_nmessages, chain_nwan;
	uint64_t chain_nbytes;
	uint64_t chain_delay_ns;    /* of messages on their way, and of asking for them */
	uint64_t chain_transfer_ns; /* while they moved, and how long that takes without others */
	uint64_t chain_alone_ns;
	uint64_t chain_compute_ns;
};

/* `t` is sorted and of the simulation that gave `r`. 0 or GCOLL_ERR_NOMEM. */
int gct_bottleneck_find(struct gct_bottleneck *f, const struct gci_simnet *net,
	const struct gct_timeline *t, const struct gci_sim_result *r);

/* What crossed one of the topology's wires. */
uint64_t gct_wire_nbytes(const struct gci_topo *t, const struct gci_sim_result *r, int wire);

/* How to say it. */
struct gct_words {
	uint64_t nbytes;          /* of the message; 0: of none */
	const char *const *names; /* [rank]: its host */
	const char *const *wires; /* [wire]: its ends, as "a > b" */
	uint32_t dilation;        /* times are divided by it */
};

/* So near to each other that the prediction does not tell them apart: 2 %. */
static inline int gct_bottleneck_tie(uint64_t ns, uint64_t best_ns)
{
	return ns - best_ns <= best_ns / 50;
}

/* One sentence without a full stop: why `f` takes longer than `best`, or what bounds it where
 * `best` is NULL. */
void gct_bottleneck_why(const struct gct_bottleneck *f, const struct gct_bottleneck *best,
	const struct gct_words *w, struct gci_buf *out);

#endif
