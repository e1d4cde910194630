/* SPDX-License-Identifier: MIT
 * The algorithms that pack trees or paths into the network (collectives/planner/pack.h), one for each kind but
 * the barrier. What all ranks' schedules follow from is a gci_packed:
 *
 *	struct gci_packed *p;
 *
 *	rc = gci_packed_make(&p, &coll, 0);
 *	coll.packed = p;
 *	... gci_emit, gci_simulate ...
 *	gci_packed_free(p);
 *
 * Where coll.packed is NULL each emission makes one of its own, which takes far longer than the rest. One
 * serves all windows of an operation, and all roots of a cluster with the same NIC, unless sums keep an order. */
#ifndef GCI_COLLECTIVES_PLANNER_PACKED_H
#define GCI_COLLECTIVES_PLANNER_PACKED_H

#include "collectives/coll.h"
#include "collectives/planner/pack.h"

struct gci_packed {
	struct gci_packing packing;
	uint64_t nbytes; /* that packing.ns is of, as gci_table_nbytes counts */
	uint64_t segment_nbytes;
	struct gci_commodity *commodities;
	int ncommodities;
	/* SENDs go when they are due, not as soon as they can; at first: if there is a timetable, and with more than a
	 * window all but an alltoall's. */
	int timed;
	/* What it takes: simulated, where gci_timed_make() could; else by the timetable, or packing.ns and an eighth. */
	uint64_t ns;
	struct gci_packed_times {
		double *start_ns; /* [message]: when each goes, of all hosts; NULL: not known */
		uint32_t *first;  /* [parcel]: of paths: its first message */
		double ns;        /* until the last of them has come */
		uint64_t unit_nbytes,
			segment_nbytes; /* of the vector or of each block; of its segments */
		const uint64_t *counts; /* those that it is of; NULL: blocks are equal */
	} times;
	int is_ordered; /* sums keep the order of clusters and their members */
	int root;       /* then: -1: there is none */
	int nclasses;   /* of the network that it was made for */
	uint64_t sizes; /* of its classes: a digest */
};

/* How long after a window of an operation the next one is due, where SENDs are: c is the first. NULL is legal: 0. */
uint64_t gci_packed_window_ns(const struct gci_packed *p, const struct gci_coll *c);

/* Whether its pairs of ranks send at even rates: an alltoall's between clusters that is not timed, of equal blocks. */
int gci_packed_is_even(const struct gci_coll *c);

/* What each sends each then, of payload, by `c` or its first window: *bps, [from * nranks + to], to be freed. Those of
 * ways with long delays are faster, as they have less time. Of no port and no link more is asked than it takes. 0 or
 * GCOLL_ERR_NOMEM. */
int gci_packed_even_bps(const struct gci_coll *c, uint64_t **bps);

/* For `c` as a whole (c->like elements, if that is set), whose size is taken as `nbytes`; 0: its own, rounded to a
 * power of two, so that sizes that are decided alike are packed alike. Of c->segment, or of segments of its own choice.
 * 0 or GCOLL_ERR_NOMEM. */
int gci_packed_make(struct gci_packed **p, const struct gci_coll *c, uint64_t nbytes);
void gci_packed_free(struct gci_packed *p);

/* Elements of the vector, or of all blocks; alltoall: what a rank has on average. */
uint64_t gci_packed_total(const struct gci_coll *c);

/* *t, of zeros, for as many bytes as the packing is of, or for the counts of `c`: a packing of equal blocks serves
 * those as well. None where that is too much, or more than a window, or in one cluster; and for counts where finding
 * them would take more than a fourth of the operation's time. 0 or GCOLL_ERR_NOMEM. */
int gci_packed_find_times(
	struct gci_packed_times *t, const struct gci_packed *p, const struct gci_coll *c);
void gci_packed_times_free(struct gci_packed_times *t);

/* T of a packing alone, for short segments and `c`'s own size: to compare networks by. 0: for want of memory not known. */
double gci_packed_shares_ns(const struct gci_coll *c);

/* *ns: what `c`, of its own size, takes at least: the larger of gci_packing.bound_ns and gci_cuts_bound(). 0 where
 * there is nothing to send, with counts, and where too many NICs differ to tell them apart. Takes as long as making
 * one. 0 or GCOLL_ERR_NOMEM. */
int gci_packed_bound(const struct gci_coll *c, uint64_t *ns);

/* What nothing beats: the larger of that and gci_limit_ns(). It is the latter alone in one cluster, where the other
 * finds no more; with more than 8, where it takes too long; with other `streams` than the grid's, of which it does not
 * know, if connections are limited; and for want of memory. 0: not known. */
uint64_t gci_bound_ns(const struct gci_coll *c, uint32_t streams);

/* Rows' emitter, of all kinds. */
void gci_emit_packed(struct gci_builder *b, const struct gci_coll *c);

#endif
