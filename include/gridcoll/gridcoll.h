/* SPDX-License-Identifier: MIT
 *
 * gridcoll: collective data movement between many hosts in several clusters, over TCP.
 * This file has the world, communicators and failures; it includes collectives.h, the
 * operations, and requests.h, how those that do not wait end.
 *
 * A whole program, started by `gridcoll-run -n 4 ./program`:
 *
 *	gcoll_comm *world;
 *	int rc = gcoll_init(&world);
 *	if (rc != GCOLL_OK)
 *		return fprintf(stderr, "%s\n", gcoll_last_error()), 1;
 *	rc = gcoll_bcast(buf, nbytes, GCOLL_BYTE, 0, world);
 *	if (rc != GCOLL_OK)
 *		fprintf(stderr, "%s\n", gcoll_last_error());
 *	gcoll_finalize(world);
 *
 * Threads: one thread at a time uses the world and the communicators made from it, unless a
 * progress thread was asked for (gcoll_options); it may be another one each time. A call beside
 * another thread's is refused: GCOLL_ERR_INVAL. Only gcoll_comm_abort may be called beside others.
 * Heartbeats run on a thread of the library's own, so a program may compute for as long as it likes
 * between calls.
 *
 * fork: a child is no rank. All calls that can fail return GCOLL_ERR_FORKED there, gcoll_finalize
 * does nothing, keys are wiped, and the parent is not disturbed; gcoll_rank and the like still tell.
 * What the child executes inherits no descriptor. A process may fork, and both may, before
 * gcoll_init.
 *
 * Errors: every function that can fail returns GCOLL_OK (0) or a negative GCOLL_ERR_*;
 * gcoll_last_error() has the sentence with the rank, the host and the cause. After a peer or
 * network failure all communicators are dead: every later operation returns the same error, and
 * only gcoll_finalize() is of use; in a job that was started to survive that, gcoll_comm_shrink(),
 * too. The contents of output buffers are then undefined.
 */
#ifndef GRIDCOLL_H
#define GRIDCOLL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GCOLL_API __attribute__((visibility("default")))
#else
#define GCOLL_API
#endif

/* The one table of errors: name, value, text. */
#define GCOLL_ERRORS(X)                                      \
	X(INVAL, -1, "invalid argument")                     \
	X(NOMEM, -2, "out of memory")                        \
	X(SYS, -3, "a system call failed")                   \
	X(PARSE, -4, "malformed input")                      \
	X(PROTO, -5, "a peer broke the protocol")            \
	X(PEER, -6, "a peer failed")                         \
	X(TIMEOUT, -7, "no progress in the time allowed")    \
	X(MISMATCH, -8, "ranks called different operations") \
	X(CORRUPT, -9, "data arrived corrupted")             \
	X(ABORTED, -10, "the job was aborted")               \
	X(UNSUPPORTED, -11, "not supported here")            \
	X(NOLAUNCHER, -12, "not started by gridcoll-run")    \
	X(IO, -13, "a file could not be read or written")    \
	X(VERIFY, -14, "a schedule is wrong")                \
	X(FORKED, -15, "the world is another process's")

enum gcoll_status {
	GCOLL_OK = 0,
#define X(name, value, text) GCOLL_ERR_##name = value,
	GCOLL_ERRORS(X)
#undef X
};

/* Element types. Integers wrap around. Operations on 16-bit floats are rounded to nearest, ties to
 * even, after each step. MIN and MAX of floats give one of the operands: of an unordered pair (one
 * is NaN), and of +0 and -0, either. Which NaN a sum or a product is, is not defined. */
enum gcoll_type {
	GCOLL_BYTE, /* opaque; bitwise operations only */
	GCOLL_INT8,
	GCOLL_UINT8,
	GCOLL_INT16,
	GCOLL_UINT16,
	GCOLL_INT32,
	GCOLL_UINT32,
	GCOLL_INT64,
	GCOLL_UINT64,
	GCOLL_FLOAT32,
	GCOLL_FLOAT64,
	GCOLL_FLOAT16,  /* IEEE 754 binary16 */
	GCOLL_BFLOAT16, /* the upper half of a float32 */
	GCOLL_NTYPES,
	GCOLL_ELEMENT_BASE = 0x40000000,
	GCOLL_TYPE_MAX = 0x7fffffff
};

/* Opaque elements of nbytes bytes each, 1 to 2^30 - 1: moved by every operation, reduced by
 * operations of the user's own only (then of at most 256 KiB). A constant where nbytes is one, else
 * nbytes is looked at twice. Any other size gives a type that every call refuses. */
#define GCOLL_ELEMENT(nbytes)                   \
	((enum gcoll_type)(GCOLL_ELEMENT_BASE + \
			   ((uint64_t)(nbytes) <= GCOLL_ELEMENT_MAX_NBYTES ? (int)(nbytes) : 0)))
#define GCOLL_ELEMENT_MAX_NBYTES 0x3fffffff

enum gcoll_op {
	GCOLL_SUM,
	GCOLL_PROD,
	GCOLL_MIN,
	GCOLL_MAX,
	GCOLL_BAND,
	GCOLL_BOR,
	GCOLL_BXOR,
	GCOLL_AVG, /* sum divided by the number of ranks; integers are truncated towards zero */
	GCOLL_NOPS,
	GCOLL_OP_USER = 0x40000000, /* from here on: gcoll_op_create */
	GCOLL_OP_MAX = 0x7fffffff
};

typedef struct gcoll_comm gcoll_comm; /* a group of ranks */
typedef struct gcoll_req gcoll_req;   /* an operation; freed by wait, or by a true test */

/* In place of a buffer: input and output are in the other one. Each operation tells where. */
#define GCOLL_IN_PLACE ((void *)-1)

/* Joins the job that gridcoll-run started and waits until all its ranks have joined.
 * GCOLL_ERR_NOLAUNCHER outside of one; GCOLL_ERR_PEER if another rank dies before it has joined, as
 * of any later call. One world per process. */
GCOLL_API int gcoll_init(gcoll_comm **world);

/* Who makes progress. Zero what is not set. */
struct gcoll_options {
	/* True: a thread of the library's own does, whatever the program computes, and every call
	 * may be made by any thread, at any time but that of gcoll_finalize. Two threads must not
	 * use one request at the same time, nor make communicators; and as ranks begin operations
	 * of a communicator in the same order, threads use communicators of their own (dup). */
	int progress_thread;
	/* A uv_loop_t of the program's, of the same libuv: operations make progress and callbacks
	 * are called while it runs (uv_run). It is kept alive as long as operations are under way,
	 * and must stay until gcoll_finalize returns. All calls are made by the loop's thread;
	 * those that wait, gcoll_progress and gcoll_finalize run the loop, so they must not be
	 * called from one of its callbacks (GCOLL_ERR_INVAL where that can be seen). gcoll_test
	 * does not run it, and only looks. */
	void *uv_loop;
};

/* As gcoll_init. `options` may be NULL: progress is made in calls of the program's. */
GCOLL_API int gcoll_init_options(gcoll_comm **world, const struct gcoll_options *options);

/* Waits until all ranks have come here, then leaves the job. After a failure it waits for nobody.
 * Frees all communicators and requests that are left; those under way are cancelled, which their
 * callbacks are told. For the world only; NULL is legal. While another thread is in a call, and in a
 * child by fork, it does nothing. */
GCOLL_API void gcoll_finalize(gcoll_comm *world);

GCOLL_API int gcoll_rank(const gcoll_comm *c);
GCOLL_API int gcoll_size(const gcoll_comm *c);

/* Name of a rank's host as the grid file has it; owned by the communicator. */
GCOLL_API const char *gcoll_host(const gcoll_comm *c, int rank);

/* Index of the cluster a rank lives in, 0 <= index < gcoll_clusters(). */
GCOLL_API int gcoll_cluster(const gcoll_comm *c, int rank);
GCOLL_API int gcoll_clusters(const gcoll_comm *c);

GCOLL_API size_t gcoll_type_size(enum gcoll_type type);
GCOLL_API const char *gcoll_strerror(int status);

/* The last failure of the calling thread in full words, or "". Valid until its next failure. */
GCOLL_API const char *gcoll_last_error(void);

/* Chooses how later operations of this communicator run; every rank must say the same.
 *	"bcast", "reduce", "allreduce", "reduce_scatter", "scatter", "gather", "allgather",
 *	"alltoall", "barrier"
 *		"NAME[:senders=N][:segment=BYTES][:degree=D]", or "auto": the names, and which
 *		parameters they use, are those of `gridcoll bench --list`. An operation that the
 *		algorithm cannot run fails with the reason; "auto" takes one that can. Multicasts
 *		run as "bcast" says
 *	"tuning"	what "auto" looks at. "off": rough estimates only, by what the grid file says.
 *		"table": before them the table of decisions that gridcoll-run was given, where it
 *		knows the operation. "simulate" (default): that, else a simulation of a few ways
 *		to run it on what the grid file says; the first call of each size pays for it, at
 *		most about 50 ms of computing
 *	"order"	"any" (default), or "fixed": reductions combine operands in one order that depends
 *		on the ranks and their clusters only, so that the bits of a result depend neither
 *		on the algorithm nor on the message's size nor on timing
 *	"compare"	"on": after each allreduce its ranks compare the CRC32Cs of what they have,
 *		and it fails on all of them with GCOLL_ERR_CORRUPT, naming a rank that has another
 *		result than most: for machines that may compute wrongly, or programs that may not
 *		be the same. Costs a pass over the result and a short allgather. "off" (default):
 *		checksums guard what moves between memories, not what ranks make of it
 * For the whole job, whatever the communicator:
 *	"timeout"	a time such as "30s" that a call may wait while no byte comes or goes; it
 *		ends the job also when a rank is only late, or its bytes come at the end of a long
 *		operation. "auto", or "auto:TIME": never because a rank is late, but when a message
 *		that its other rank has taken up does not move for 8 times as long as its operation
 *		should take, at least TIME (default 10s). For programs whose ranks wait, or call
 *		gcoll_test, more often than that while operations are under way, or have another
 *		way to make progress. "never" (default): dead ranks and hosts are noticed without it
 *	"streams"	connections per rank of another cluster, 1 to 64 (default by the grid file,
 *		else 4, or as many as its flow_rate makes necessary, up to 16); before the first
 *		operation only
 *	"socket_buffer"	a size such as "3MB", or "auto" (default: the kernel's autotuning, unless
 *		the link needs more than that may reach); before the first operation only
 *	"congestion"	the congestion control of connections between clusters, such as "bbr", or
 *		"default" (the kernel's); before the first operation only
 *	"checksum"	"on": payload has CRC32Cs, made by who sends and checked by who receives;
 *		"off": TCP's own sums have to do; "auto" (default): on, unless all ranks are at
 *		one machine's loopback addresses. Before the first operation only
 *	"data_path"	how bytes get to and from sockets: "poll" (readiness), "uring" (io_uring;
 *		where it is not to be had a warning in the log says why, and "poll" takes its
 *		place), or "auto" (default, unless the environment has GRIDCOLL_DATA_PATH). Before
 *		the first operation only; each rank may say something else
 *	"spin"	a time of at most "100us" for which a rank that waits looks again and again before
 *		it sleeps, less where that is in vain; or "off" (default). Each rank as it likes:
 *		for small messages on a fast network, and processors that have nothing else to do
 *	"warm"	"on" (default, unless the environment has GRIDCOLL_WARM): with the first operation
 *		the connections that long bcasts, allreduces and allgathers would use between
 *		clusters are opened too, where those are 8 ms there and back or more. While no
 *		operation is under way padding is sent on them, about half of what they can have
 *		in flight, so that the first long operation, which ends it, need not begin slowly.
 *		"now": at once. "off": not. Before the first operation only; not in a world with a
 *		uv_loop or a progress thread
 *	"record"	a file that rank 0 writes in gcoll_finalize: which operations it called, of
 *		which sizes and how often, for `gridcoll tune --recorded`; or "off" (default, unless
 *		the environment has GRIDCOLL_RECORD=FILE)
 * What split and dup make begins with the settings of the communicator it is made from. */
GCOLL_API int gcoll_comm_set(gcoll_comm *c, const char *key, const char *value);

/* ---- communicators: each is made by all ranks of another, as one of that one's operations */

/* The ranks that give the same color become one communicator, in the order of `key` and, where
 * that is equal, of their ranks. color < 0: none, and *out is NULL. Blocking. */
GCOLL_API int gcoll_comm_split(gcoll_comm *c, int color, int key, gcoll_comm **out);

/* The same ranks in the same order. Blocking. */
GCOLL_API int gcoll_comm_dup(gcoll_comm *c, gcoll_comm **out);

/* Sets *c to NULL. Waits for nobody. GCOLL_ERR_INVAL while it has requests, and for the world,
 * which gcoll_finalize frees with all that are left. NULL and *c == NULL are legal. */
GCOLL_API int gcoll_comm_free(gcoll_comm **c);

/* ---- operations of one's own for reductions */

/* out[i] = left[i] OP right[i] for n elements, aligned or not; `out` may be `left` or `right`. OP
 * must be associative. Called while operations make progress; it must not call gridcoll. */
typedef void gcoll_op_fn(void *out, const void *left, const void *right, uint64_t n,
	enum gcoll_type type, void *ctx);

/* *op serves with any type. Without `commutative`, operands are combined in the order of ranks.
 * Requests keep what they need of it: it may be freed while they run. Any thread. */
GCOLL_API int gcoll_op_create(gcoll_op_fn *fn, int commutative, void *ctx, enum gcoll_op *op);
GCOLL_API int gcoll_op_free(enum gcoll_op op);

/* ---- failures
 * As a rule the first failure ends the job. In one that was started by `gridcoll-run --survive`
 * it ends an epoch only: all calls of all ranks return the one error, and then those that live
 * may go on without the dead.
 *
 *	int rc = gcoll_allreduce(...);
 *	uint64_t ok = rc == GCOLL_OK;
 *	gcoll_comm_agree(world, &ok);	// where some may have succeeded, others not
 *	if (!ok) {
 *		gcoll_comm *before = world;
 *		rc = gcoll_comm_shrink(world, &world);
 *		... go back to what all of them have, on with gcoll_size(world) ranks: the one that
 *		was rank r is gcoll_comm_translate(before, r, world) now, or is gone (-1) ...
 *	}
 *
 * Those that do not want to go on call gcoll_finalize, or end. The launcher is where ranks
 * agree: its own death ends the job. */

/* Ends the operations of all ranks on all communicators: they return GCOLL_ERR_ABORTED with this
 * reason, as after any failure. Does not wait. Any thread, also while another one is in a call, but
 * for gcoll_finalize and gcoll_comm_shrink. */
GCOLL_API void gcoll_comm_abort(gcoll_comm *c, const char *reason);

/* *flags = the bits that all ranks have set in theirs, the same on all ranks, even if some fail
 * meanwhile or have failed before: it works after a failure, too. GCOLL_OK if all ranks took
 * part, else the failure because of which some did not; that, too, is the same on all. On any
 * other error *flags is as it was: GCOLL_ERR_ABORTED (the job has ended, or goes on without this
 * rank), GCOLL_ERR_MISMATCH (others are in gcoll_comm_shrink or gcoll_finalize).
 *
 * For the world only; blocking. All ranks that live call it, in one order with other calls of it
 * and of gcoll_comm_shrink. Takes a round trip to the launcher. */
GCOLL_API int gcoll_comm_agree(gcoll_comm *c, uint64_t *flags);

/* After a failure: waits until all ranks that live have come here, and makes a world of them,
 * *out, with numbers from 0 in the same order as before and with the settings of `c`. `out` may
 * be `&c`. Who dies meanwhile is not in it; nor is a rank that lives but was blamed by another (as
 * not to be reached, late or wrong), or does not come within gridcoll-run's --shrink-timeout: it
 * gets GCOLL_ERR_ABORTED.
 *
 * `c` is the world. It, what was made from it, and their requests remain until gcoll_finalize of
 * the new world, and return the old error; nothing that was sent on them arrives any more.
 * Callbacks of what was under way are called before this returns. The old world's gcoll_comm_fd is
 * closed: the program takes it out of what it waits for, and asks for the new one. No other thread
 * is in a call; a loop of the program's is not run meanwhile.
 *
 * Errors, with *out as it was: GCOLL_ERR_INVAL (nothing has failed), GCOLL_ERR_UNSUPPORTED
 * (without --survive), GCOLL_ERR_ABORTED (the job has ended, or goes on without this rank);
 * others: the new world could not be made, a failure for all, after which all may try again. */
GCOLL_API int gcoll_comm_shrink(gcoll_comm *c, gcoll_comm **out);

/* After a call has returned a failure: the rank, as `c` numbers it, to which that is laid; the same on
 * all ranks. It need not be dead, and more may be: gcoll_comm_shrink finds out. Negative: none of the
 * ranks of `c` is named, or nothing has failed. May be asked of a world that was shrunk. */
GCOLL_API int gcoll_failed_rank(gcoll_comm *c);

/* The number in `to` of rank `rank` of `from`; -1: it is not in there. Any two communicators that this
 * process has had, also of the worlds before and after gcoll_comm_shrink. */
GCOLL_API int gcoll_comm_translate(const gcoll_comm *from, int rank, const gcoll_comm *to);

#ifdef __cplusplus
}
#endif

#include "gridcoll/collectives.h"
#include "gridcoll/requests.h"

#endif
