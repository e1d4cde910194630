/* SPDX-License-Identifier: MIT
 * A collective operation as emitters see it, and the tables of algorithms.
 *
 *	struct gci_coll c = {.kind = GCI_BCAST, .topo = &topo, .count = n, .esize = 4, .root = 0};
 *	const struct gci_algorithm *a = gci_algorithm_find(GCI_BCAST, "chain");
 *	rc = gci_emit(a, &c, rank, &sched);
 */
#ifndef GCI_COLLECTIVES_COLL_H
#define GCI_COLLECTIVES_COLL_H

#include "collectives/grid/topo.h"
#include "collectives/schedule/schedule.h"

/* What this was built of. Ranks of one job make the same schedules only if these are the same; the
 * release is for people. */
struct gci_build {
	const char *release;
	uint64_t schedules; /* digest of their sources, by schedules.py */
	uint8_t big_endian; /* operands travel as they are in memory */
};

extern const struct gci_build gci_build;

enum gci_kind {
	GCI_BCAST,
	GCI_REDUCE,
	GCI_ALLREDUCE,
	GCI_REDUCE_SCATTER,
	GCI_SCATTER,
	GCI_GATHER,
	GCI_ALLGATHER,
	GCI_ALLTOALL,
	GCI_BARRIER,
	GCI_NKINDS
};

struct gci_packed;

/* In which order operands are combined (collectives/blocks/order.h). */
enum gci_order {
	GCI_ANY_ORDER,     /* OP is commutative, and bits may depend on the algorithm */
	GCI_CLUSTER_ORDER, /* one tree, by (cluster, place in it), whatever algorithm and size */
	GCI_RANK_ORDER     /* one tree, leaves in the order of ranks: OP is not commutative */
};

/* Buffers, in elements. "Blocks" are one part per rank, each of `count` elements or counts[]:
 *			IN			OUT			in place
 *	bcast		root: the vector	others: the vector
 *	reduce		the vector		root: the vector	root: input in OUT
 *	allreduce	the vector		the vector		input in OUT
 *	reduce_scatter	all blocks		own block		(never)
 *	scatter		root: all blocks	own block		root: has no OUT
 *	gather		own block		root: all blocks	root: own block in OUT
 *	allgather	own block		all blocks		own block in OUT
 *	alltoall	a block per rank	a block per rank	input in OUT
 *	barrier		none
 * collectives/blocks/layout.h tells where a block stands. */
struct gci_coll {
	enum gci_kind kind;
	const struct gci_topo *topo;
	uint64_t count; /* elements of the vector, or of each block */
	uint32_t esize; /* bytes of an element */
	int root;       /* bcast, reduce, scatter, gather */
	int in_place;
	enum gci_order order; /* reduce, allreduce, reduce_scatter */

	/* Parameters of algorithms; 0: their own choice. */
	uint32_t senders; /* WAN senders per ordered cluster pair; 0: gci_topo_senders() */
	uint32_t degree;  /* children in a tree */
	uint64_t segment; /* elements of the vector, or of each block */
	uint64_t like;    /* 0, or what depends on the length is as for a vector of so many */
	/* Of rows with GCI_PACKS, what follows from the rest (and `like`); NULL: each emission makes one. */
	const struct gci_packed *packed;

	/* Where a part of a longer operation lies: a window or a segment of every block. */
	uint64_t stride; /* elements from the start of a block to that of the next; 0: count */
	uint64_t shift;  /* of each block, or the vector, come before this part */

	/* Blocks of different lengths. */
	const uint64_t *counts; /* [block]; alltoall: [from * nranks + to]; NULL: `count` each */
	/* [block]: where this rank's blocks stand in IN and in OUT; NULL: one after the other. */
	const uint64_t *in_at, *out_at;
	uint32_t part, nparts; /* with counts: part number `part` of each block; nparts 0: all */
};

/* Everything an emitter reads but the counts. Ranks need not be compared: a topology belongs to one. */
static inline int gci_coll_same(const struct gci_coll *a, const struct gci_coll *b)
{
	return a->kind == b->kind && a->topo == b->topo && a->count == b->count &&
	       a->esize == b->esize && a->root == b->root && a->in_place == b->in_place &&
	       a->order == b->order && a->senders == b->senders && a->degree == b->degree &&
	       a->segment == b->segment && a->like == b->like && a->stride == b->stride &&
	       a->shift == b->shift && a->part == b->part && a->nparts == b->nparts;
}

enum gci_trait {
	GCI_USES_SENDERS = 1 << 0, /* parameters that make a difference */
	GCI_USES_SEGMENT = 1 << 1,
	GCI_USES_DEGREE = 1 << 2,
	GCI_BY_SEGMENT = 1 << 3,   /* gci_emit runs the emitter once per segment */
	GCI_CAPS_SENDERS = 1 << 4, /* keeps to `senders` for every cluster pair */
	GCI_KEEPS_CLUSTER_ORDER = 1 << 5,
	GCI_KEEPS_RANK_ORDER = 1 << 6, /* even where clusters' ranks are mixed; and the other */
	GCI_PLANS = 1 << 7,            /* searches over the whole grid to make one schedule */
	GCI_PACKS = 1 << 8,            /* all ranks' schedules share a gci_packed */
};

struct gci_estimator;
struct gci_candidate;

/* A rough time in ns, far cheaper than a simulation (collectives/tuner/estimate.h). */
typedef uint64_t gci_estimate_formula(
	const struct gci_estimator *e, const struct gci_candidate *how);

struct gci_algorithm {
	enum gci_kind kind;
	const char *name;
	const char *summary;
	unsigned traits;
	int max_ranks; /* 0: any number */
	void (*emit)(struct gci_builder *b, const struct gci_coll *c);
	gci_estimate_formula *estimate; /* NULL: none, as of tests' own algorithms */
};

/* Walks all algorithms, kind by kind, in the order of their rows: NULL gives the first one, the last
 * one gives NULL. */
const struct gci_algorithm *gci_algorithm_next(const struct gci_algorithm *a);

#define gci_each_algorithm(a) for ((a) = gci_algorithm_next(NULL); (a); (a) = gci_algorithm_next(a))

const char *gci_kind_name(enum gci_kind kind);

static inline int gci_kind_has_root(enum gci_kind kind)
{
	return kind == GCI_BCAST || kind == GCI_REDUCE || kind == GCI_SCATTER || kind == GCI_GATHER;
}

static inline int gci_kind_reduces(enum gci_kind kind)
{
	return kind == GCI_REDUCE || kind == GCI_ALLREDUCE || kind == GCI_REDUCE_SCATTER;
}

/* Of one vector, not of a block per rank. */
static inline int gci_kind_has_vector(enum gci_kind kind)
{
	return kind == GCI_BCAST || kind == GCI_REDUCE || kind == GCI_ALLREDUCE;
}

/* The kind of this name, or -1. */
int gci_kind_find(const char *name);

/* NULL when there is none of this name; name NULL gives the kind's first row. */
const struct gci_algorithm *gci_algorithm_find(enum gci_kind kind, const char *name);

/* Why `a` cannot run `c`, as in "takes at most 9 ranks"; NULL when it can. */
const char *gci_ineligible(const struct gci_algorithm *a, const struct gci_coll *c);

/* Writes the schedule of one rank; `a` must be eligible. Cost: O(that rank's own steps). 0 or
 * GCOLL_ERR_NOMEM. */
int gci_emit(
	const struct gci_algorithm *a, const struct gci_coll *c, int rank, struct gci_sched *s);

/* WAN senders from cluster `from` to `to` as `c` asks for or the topology gives. */
int gci_coll_senders(const struct gci_coll *c, int from, int to);

/* Tables, one per kind, each in a folder of its own with its emitters; ended by a row without a
 * name. Where no name is given the first row is meant. */
extern const struct gci_algorithm gci_bcasts[], gci_reduces[], gci_allreduces[],
	gci_reduce_scatters[], gci_scatters[], gci_gathers[], gci_allgathers[], gci_alltoalls[],
	gci_barriers[];

#endif
