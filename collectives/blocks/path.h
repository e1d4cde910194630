/* SPDX-License-Identifier: MIT
 * A path from the root through all ranks, cluster by cluster, along which segments of a message are
 * passed on: every NIC takes in and puts out each byte once, and every WAN link on the path carries
 * it once. Walked backwards it is a path to the root.
 *
 * One WAN sender is enough where its NIC and its connections carry the root's rate; where they do
 * not (flow_rate), or when asked for, the segments are dealt to n lanes, one per sender. In the
 * root's cluster all lanes run round the same ring of its other members, but enter and leave it at
 * different places; the member where lane j leaves sends its segments over the WAN, where lane j
 * enters the next cluster's ring at its own place, and so on:
 *
 *	root -> k3 -> k4 -> k2 => t1 -> t2 -> t3 -> t4		lane 0
 *	root -> k4 -> k2 -> k3 => t3 -> t4 -> t1 -> t2		lane 1
 */
#ifndef GCI_COLLECTIVES_BLOCKS_PATH_H
#define GCI_COLLECTIVES_BLOCKS_PATH_H

#include "collectives/coll.h"

/* One cluster's ring, and where lanes enter and leave it. */
struct gci_path_ring {
	const int *ranks;
	int n, skip; /* members; index of the root, which stands outside, or -1 */
	int me;      /* place of this rank in the ring, or -1 */
};

struct gci_path {
	int rank, root, lanes;
	struct gci_path_ring before, mine,
		after; /* of the previous, this rank's, the next cluster */
	int has_before, has_after;
};

/* `wan_out`: data flows away from the root; else to it. */
void gci_path_find(struct gci_path *p, const struct gci_coll *c, int rank, int wan_out);

/* The rank before this one on lane `lane`, nearer to the root; -1 at the root. */
int gci_path_before(const struct gci_path *p, int lane);

/* The rank after it; -1 at the end of the path. */
int gci_path_after(const struct gci_path *p, int lane);

/* ---- what formulas of the product's own algorithms share */

/* Rate of a cluster's NICs; 1 Gbit/s where the grid file does not tell. */
uint64_t gci_nic_bps(const struct gci_topo *t, int cluster);

/* What one rank's connections to one rank of another cluster carry at most: the least of NICs,
 * link, and flow_rate times streams. */
uint64_t gci_pair_bps(const struct gci_topo *t, int from, int to);

uint64_t gci_transfer_ns(uint64_t nbytes, uint64_t bps);

/* Elements of a segment such that filling a path through all ranks costs about 1/32 of the time
 * that `count` of them take themselves. */
uint64_t gci_pipeline_segment(const struct gci_coll *c, uint64_t count);

#endif
