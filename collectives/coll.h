/* SPDX-License-Identifier: MIT
 * A collective operation as emitters see it, and the table of algorithms.
 *
 *	struct gci_coll c = {.kind = GCI_BCAST, .topo = &topo, .count = n, .esize = 4, .root = 0};
 *	const struct gci_algorithm *a = gci_algorithm_find(GCI_BCAST, "chain");
 *	rc = gci_emit(a, &c, rank, &sched, &e);
 */
#ifndef GCI_COLLECTIVES_COLL_H
#define GCI_COLLECTIVES_COLL_H

#include "collectives/schedule.h"
#include "collectives/topo.h"

enum gci_kind { GCI_BCAST, GCI_ALLREDUCE, GCI_BARRIER, GCI_NKINDS };

/* Buffers, in elements:
 *	bcast		root: IN = count, OUT = 0. Others: IN = 0, OUT = count.
 *	allreduce	IN = count, or 0 in place, when OUT holds the input; OUT = count.
 *	barrier		none. */
struct gci_coll {
	enum gci_kind kind;
	const struct gci_topo *topo;
	uint64_t count;   /* elements */
	uint32_t esize;   /* bytes of an element */
	int root;         /* bcast */
	int in_place;     /* allreduce */
	uint32_t senders; /* WAN senders per ordered cluster pair; 0: gci_topo_senders() */
	uint64_t segment; /* elements; 0: the algorithm's own choice */
};

struct gci_algorithm {
	enum gci_kind kind;
	const char *name;
	const char *summary;
	int uses_senders, uses_segment; /* parameters that make a difference */
	int caps_senders;               /* keeps to `senders` for every cluster pair */
	void (*emit)(struct gci_builder *b, const struct gci_coll *c);
};

/* All algorithms, ended by one without a name. The first of each kind is the default. */
extern const struct gci_algorithm gci_algorithms[];

const char *gci_kind_name(enum gci_kind kind);

/* NULL when there is none of this name; name NULL gives the default. */
const struct gci_algorithm *gci_algorithm_find(enum gci_kind kind, const char *name);

/* Writes the schedule of one rank. Cost: O(that rank's own steps). 0 or GCOLL_ERR_NOMEM. */
int gci_emit(
	const struct gci_algorithm *a, const struct gci_coll *c, int rank, struct gci_sched *s);

/* WAN senders from cluster `from` to `to` as `c` asks for or the topology gives. */
int gci_coll_senders(const struct gci_coll *c, int from, int to);

/* The same for all links out of `from`: what the narrowest of them takes. */
int gci_fewest_senders(const struct gci_coll *c, int from);

/* Emitters. One file each; the cost formula and source stand on top of it. */
void gci_emit_bcast_gridcoll(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_pipeline(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_tree(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_flat(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_chain(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_binomial(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_vandegeijn(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_vandegeijn_mod(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_bcast_farfirst(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_rabenseifner(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_rabenseifner_mod(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_allreduce_two_tier(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_barrier_clusters(struct gci_builder *b, const struct gci_coll *c);
void gci_emit_barrier_dissemination(struct gci_builder *b, const struct gci_coll *c);

#endif
