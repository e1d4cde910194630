/* SPDX-License-Identifier: MIT
 * Which way to run an operation when nobody has said: what stands behind "auto".
 *
 *	struct gci_decider d;
 *	struct gci_decision how;
 *
 *	rc = gci_decider_init(&d, &topo, streams);
 *	...
 *	rc = gci_decide(&d, &coll, &how);	// simulates, or remembers
 *	gci_decider_free(&d);
 *
 * Every rank decides for itself and finds the same: all of this is a function of the topology and
 * the call, in integers, bounded by counts of steps and not by time. */
#ifndef GCI_COLLECTIVES_TUNER_DECIDE_H
#define GCI_COLLECTIVES_TUNER_DECIDE_H

#include "collectives/planner/packed.h"
#include "collectives/tuner/table.h"

enum gci_decided_by {
	GCI_BY_DEFAULT, /* rough estimates */
	GCI_BY_USER,    /* gcoll_comm_set() */
	GCI_BY_TABLE,
	GCI_BY_SIMULATION
};

struct gci_decision {
	struct gci_candidate how;
	enum gci_decided_by by;
	uint64_t ns; /* that it is expected to take; 0: not known */
};

/* "default", "set", "table", "simulated" */
const char *gci_decided_by_name(enum gci_decided_by by);

/* What runs `c` where nobody decides: the way with the least rough estimate, made of `c`'s topology and given up again:
 * tens of microseconds. 0, GCOLL_ERR_NOMEM, or GCOLL_ERR_INVAL when nothing can run it. */
int gci_decide_roughly(const struct gci_coll *c, struct gci_candidate *how);

/* As the table says. False when it does not know, or names what cannot run `c`. */
int gci_decide_by_table(
	const struct gci_table *t, const struct gci_coll *c, struct gci_decision *d);

/* ---- by simulation */

#define GCI_DECIDE_CANDIDATES 6   /* one of them a packing */
#define GCI_DECIDE_RANKS      256 /* with more nothing is simulated */
#define GCI_DECIDE_STEPS \
	56000 /* simulated for one decision: some 30 ms; to time a packing up to 4 times as many */
#define GCI_DECIDE_PER_HOST 4 /* ranks that find a processor each; more share */

struct gci_decided; /* one that is remembered */
struct gci_decided_rates;
struct gci_decided_packing;
struct gci_decided_first;
struct gci_decided_times;

struct gci_decider {
	const struct gci_topo *topo;
	struct gci_simnet net;
	int blind;           /* the topology does not tell the rates: nothing to simulate */
	uint64_t most_steps; /* for one decision */
	int at_will; /* set by the caller: no SEND waits for its time, pairs have rates instead */
	struct gci_decided *known;
	size_t nknown, cap;
	struct gci_decided_rates *rates; /* the latest ones */
	unsigned nrates;
	struct gci_decided_packing *packings; /* the latest ones that no decision has */
	unsigned npackings;
	struct gci_packed counted; /* as the latest call for blocks of different lengths has it */
	struct gci_decided_times *times; /* of those, the latest ones */
	unsigned ntimes;
	struct gci_decided_first *firsts; /* of keys that were asked for lately */
	unsigned nfirsts;
};

/* `t` must outlive it. `streams`: connections per pair of ranks in different clusters, 0: as the
 * grid says. 0 or GCOLL_ERR_NOMEM. */
int gci_decider_init(struct gci_decider *d, const struct gci_topo *t, uint32_t streams);

/* The same, once: of one that is all zeros at first. */
int gci_decider_open(struct gci_decider *d, const struct gci_topo *t, uint32_t streams);
void gci_decider_free(struct gci_decider *d);

/* Takes over what another one of the same topology and streams knows, and decides no more; for want of memory
 * nothing. */
void gci_decider_learn(struct gci_decider *d, struct gci_decider *from);

/* How to run `c`, whose topology is the decider's; with counts: as equal blocks of about as many bytes together.
 * Between clusters by a packing, where gci_candidate_packs() has one, else by the way of the least estimate, unless
 * another is predicted to be at least a twentieth faster (predictions err). One decision serves sizes that round to the
 * same power of two and, unless an order of reduction is kept, roots in the same cluster. 0, GCOLL_ERR_NOMEM, or
 * GCOLL_ERR_INVAL when nothing can run it. */
int gci_decide(struct gci_decider *d, const struct gci_coll *c, struct gci_decision *how);

/* A packing of many clusters takes longer to make than a short operation takes: up to so many, an operation waits for
 * it. Of more, each is reckoned as so long. */
#define GCI_DECIDE_CLUSTERS   8
#define GCI_DECIDE_CLUSTER_NS (40 * GCI_NS_PER_MS)

/* Whether operation `number`, which the caller counts as all ranks do, is better off without a packing, since it is the
 * first for which it would be made, and that would take longer than the operation. *how is how it runs then; what
 * comes later waits for gci_decide, which may be asked meanwhile, by another decider in a thread of its own. False:
 * it is gci_decide's, and *how is untouched. Negative: errors of gci_decide. */
int gci_decide_without(
	struct gci_decider *d, const struct gci_coll *c, uint64_t number, struct gci_decision *how);

/* Whether gci_decide remembers `c`. */
int gci_decide_knows(const struct gci_decider *d, const struct gci_coll *c);

/* Whether what is decided for one is decided for the other. */
int gci_decide_alike(
	const struct gci_decider *d, const struct gci_coll *a, const struct gci_coll *b);

/* An operation that is decided as `c` is, without anything of the caller's. */
struct gci_coll gci_decide_model(const struct gci_decider *d, const struct gci_coll *c);

/* What coll.packed takes for `c`, which runs that way, whoever decided that; the decider's, until its next decision
 * or the next call. NULL: out of memory, or not of the decider's topology. Emitters that make their own then find the
 * same, but for counts. */
const struct gci_packed *gci_decide_packed(
	struct gci_decider *d, const struct gci_algorithm *a, const struct gci_coll *c);

/* How `rank` may send to each rank while it runs `c` that way, as gci_rates has it, or an `even` alltoall
 * itself; where each SEND has its time, gci_rates_near. Valid until the next call. NULL: at will. */
const struct gci_rates *gci_decide_rates(
	struct gci_decider *d, const struct gci_algorithm *a, const struct gci_coll *c, int rank);

#endif
