/* SPDX-License-Identifier: MIT
 * `gridcoll tune`: which way to run operations, by simulation, by measuring, or both. */
#ifndef GCT_TUNE_H
#define GCT_TUNE_H

#include "collectives/tuner/candidates.h"
#include "collectives/tuner/decide.h"
#include "collectives/tuner/record.h"
#include "tools/bench/bench.h"
#include "tools/tune/methods.h"

#define GCT_MOST_STEPS (4u << 20) /* of all ranks: what one simulation may cost */

/* Pairs of ranks send each other so much at least: shorter messages saturate nothing. */
#define GCT_PAIR_NBYTES (64u << 10)

enum gct_search {
	GCT_SIMULATE, /* candidates by formula, ranked by simulation, the best of them measured */
	GCT_EXHAUSTIVE,
	GCT_HALVING,
	GCT_MGD,
	GCT_SMGD,
	GCT_PIPELINE,
	GCT_NSEARCHES
};

struct gct_tune_options {
	enum gci_kind kinds[GCI_NKINDS];
	int nkinds;
	uint64_t sizes[GCT_MAX_CASES];
	int nsizes;
	const char *algorithms[GCT_MAX_CASES];
	int nalgorithms; /* 0: all that are there */
	enum gct_search searches[GCT_NSEARCHES];
	int nsearches;
	uint64_t iterations, measure, root;
	uint64_t least_segment;
	uint64_t streams; /* 0: as the grid says */
	const char *params, *output, *recorded, *grid;
	int simulated, compare;
};

/* An operation on so many bytes. */
struct gct_tune_case {
	enum gci_kind kind;
	uint64_t asked_nbytes, nbytes;
	uint64_t calls; /* of a recorded run; 0: not of one */
	struct gci_coll coll;
};

/* What was found out about one candidate: nothing is measured twice. */
struct gct_known {
	struct gci_candidate how;
	struct gci_trial trial;
	uint64_t first_ns; /* of that, by its first run */
};

/* One search's answer. */
struct gct_tune_answer {
	enum gct_search search;
	struct gci_search_result r;
	int predicted;       /* nothing was measured for it */
	const char *why_not; /* it does not apply; NULL: it does */
};

/* Cases where a job without a table was measured beside the best. */
struct gct_tune_untuned {
	unsigned n, near; /* near: it is at most a twentieth slower */
	double worst;     /* slower by, as a fraction */
	char what[64];    /* that case */
};

struct gct_tune {
	struct gct_tune_options o;
	struct gct_bench bench; /* of the job; without one comm is NULL */
	struct gci_grid own_grid;
	struct gci_topo own_topo;
	const struct gci_grid *grid;
	const struct gci_topo *topo;
	struct gci_params params; /* of rank 0, if it has some */
	int has_params;
	struct gci_simnet net;
	struct gci_decider decider;
	uint32_t dilation;
	struct gct_tune_case *cases;
	size_t ncases;
	struct gct_known *known; /* of the case at hand */
	size_t nknown, known_cap;
	struct gci_table table; /* rank 0's */
	struct gct_tune_untuned untuned;
};

static inline int gct_tune_is_first(const struct gct_tune *t)
{
	return !t->bench.comm || !t->bench.comm->rank;
}

/* A GCOLL_ERR_*, with the text as gci_comm_error() has it. All of these run on all ranks. */

/* Connections per pair of ranks in different clusters; 0: as the grid says. */
uint32_t gct_tune_streams(const struct gct_tune *t);

/* The network of these ranks, as measured, with the streams that were asked for. To be freed. */
int gct_tune_net(const struct gct_tune *t, const struct gci_topo *topo, struct gci_simnet *net);

/* One candidate's cost, by simulation (on the ranks that ask) or, for the case, by measuring. */
int gct_tune_simulate(const struct gct_tune *t, const struct gci_simnet *net,
	const struct gci_coll *c, const struct gci_candidate *how, struct gci_trial *trial);
/* By simulation, on rank 0; then the best o.measure of that, and `usual`, by measuring, on all.
 * Both results are to be freed; `measured` is empty without a job. */
int gct_tune_best(struct gct_tune *t, const struct gct_tune_case *c,
	const struct gci_candidate *usual, struct gci_search_result *ranked,
	struct gci_search_result *measured);

/* Of what is ranked number i, the variant with the largest segment that is predicted to be as fast.
 */
const struct gci_tried *gct_tune_prefer(const struct gci_search_result *ranked, size_t i);

/* What a job without a table does. */
int gct_tune_usual(struct gct_tune *t, const struct gct_tune_case *c, struct gci_candidate *usual);

/* Runs one search; measures, or simulates where there is no job. To be freed either way. */
int gct_tune_search(struct gct_tune *t, const struct gct_tune_case *c, struct gct_tune_answer *a);

/* ATCC's table 3 for one case. */
int gct_tune_compare(struct gct_tune *t, const struct gct_tune_case *c);

/* A case, tuned by simulation: `usual` is what a job without a table does. */
struct gct_tune_line {
	const struct gct_tune_case *c;
	struct gci_candidate best, usual;
	uint64_t predicted_ns, best_ns, usual_ns; /* 0: not known, not measured */
	uint64_t simulated, measured;             /* how many */
};

#endif
