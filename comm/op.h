/* SPDX-License-Identifier: MIT
 * One collective operation under way: windows of a schedule, a few at once, over however long a
 * message.
 *
 *	op = (struct gci_op){.comm = c, .coll = {...}, .in = in, .out = out, .done = on_done, ...};
 *	rc = gci_op_prepare(&op);
 *	if (!rc)
 *		rc = gci_op_start(&op);		// op.done is called from progress, or from here
 *
 * One thread. */
#ifndef GCI_COMM_OP_H
#define GCI_COMM_OP_H

#include "collectives/blocks/windows.h"
#include "comm/comm.h"
#include "comm/run.h"

struct gci_op {
	/* Set by the caller, constant until done. */
	gcoll_comm *comm;
	struct gci_coll
		coll;     /* of the whole message, with topology and order, without parameters */
	int rank;         /* in coll.topo */
	const int *ranks; /* of the world, by rank in coll.topo; NULL: the same */
	uint64_t digest_more; /* of what else all ranks must agree on */
	const char *name;     /* for users, when not the kind's */
	int shares; /* the counts of an alltoallv, whose elements are of the type `shared` */
	enum gcoll_type shared;
	int internal; /* runs whatever algorithm was set */
	enum gcoll_type type;
	enum gcoll_op op;
	struct gci_reducer reducer;
	int average; /* the result is to be divided by the number of ranks */
	char *in, *out;
	uint64_t number; /* of the communicator's operations: before gci_op_prepare */
	void (*done)(struct gci_op *op, int status);
	void *user;

	/* The operation's. */
	struct gci_list link; /* comm->ops */
	const struct gci_algorithm *algorithm;
	uint64_t expected_ns; /* predicted when the algorithm was chosen; 0: not known */
	uint64_t digest;
	struct gci_windows windows;
	uint64_t started, ended;
	uint64_t due_ns, window_ns; /* when the next window is due, and from one to the next */
	int status, over, filling;
	struct gci_op_slot {
		struct gci_run run;
		struct gci_cached_sched *sched; /* NULL: it is idle */
	} few[GCI_WINDOWS], *more;
	int nslots; /* windows at once: those of `few`, then those of `more` */
};

/* How to run `coll`, the whole message without parameters; `internal`: whatever was set. The first such operation
 * may run otherwise (comm/planning.h). 0, or with the reason in *why GCOLL_ERR_INVAL (what was chosen cannot run it)
 * or GCOLL_ERR_NOMEM. */
int gci_op_choose(gcoll_comm *c, const struct gci_coll *coll, int internal, struct gci_decision *d,
	const char **why);

/* Chooses algorithm and windows. 0, or GCOLL_ERR_INVAL with gcoll_last_error() set. */
int gci_op_prepare(struct gci_op *op);

/* 0 or the status of the failure that this call met (done is not called then). */
int gci_op_start(struct gci_op *op);

/* After the transport was freed, or when it is not under way. */
void gci_op_drop(struct gci_op *op);

/* Whether it moves so much that it matters who sends, and how fast: a shorter one is over before. */
int gci_op_is_long(const struct gci_op *op);

/* Compares an operation that begins here with those that peers began first, and keeps it for peers
 * that begin later. 0 or GCOLL_ERR_MISMATCH. */
int gci_op_see(gcoll_comm *c, uint64_t op, uint64_t digest);

/* Has this peer (a rank of the world) called what was called here? False after a failure. */
int gci_op_check(gcoll_comm *c, int peer, uint64_t op, uint64_t digest);

/* Keeps its signature, for the error of a rank that calls something else: before gci_op_see. */
void gci_op_note(const struct gci_op *op);

/* Of all under way, the longest that what is under way of one at once should take; 0: none is. */
uint64_t gci_ops_expected_ns(const struct gci_engine *e);

/* As in "reduce of 64 int32 to rank 0 with sum by binomial". */
void gci_op_signature(const struct gci_op *op, char *out, size_t size);

#endif
