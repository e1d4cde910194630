/* SPDX-License-Identifier: MIT
 *
 * gridcoll: collective data movement between many hosts in several clusters, over TCP.
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
 * Threads: one communicator is used by one thread at a time. Heartbeats run on a thread of the
 * library's own, so a program may compute for as long as it likes between calls.
 *
 * Errors: every function that can fail returns GCOLL_OK (0) or a negative GCOLL_ERR_*;
 * gcoll_last_error() has the sentence with the rank, the host and the cause. After a peer or
 * network failure the communicator is dead: every later operation returns the same error, and
 * only gcoll_finalize() is of use. The contents of output buffers are then undefined.
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
	X(VERIFY, -14, "a schedule is wrong")

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
	GCOLL_NTYPES
};

enum gcoll_op {
	GCOLL_SUM,
	GCOLL_PROD,
	GCOLL_MIN,
	GCOLL_MAX,
	GCOLL_BAND,
	GCOLL_BOR,
	GCOLL_BXOR,
	GCOLL_AVG, /* sum divided by the number of ranks; integers are truncated towards zero */
	GCOLL_NOPS
};

typedef struct gcoll_comm gcoll_comm; /* a group of ranks; owned by the caller of gcoll_init */
typedef struct gcoll_req gcoll_req;   /* an operation under way; freed by wait, or by a true test */

/* As `sendbuf` of gcoll_allreduce: take the input from `recvbuf`. */
#define GCOLL_IN_PLACE ((const void *)-1)

/* Joins the job that gridcoll-run started and waits until all its ranks have joined.
 * GCOLL_ERR_NOLAUNCHER outside of one. One world per process. */
GCOLL_API int gcoll_init(gcoll_comm **world);

/* Waits until all ranks have come here, then leaves the job. NULL is legal. After a failure it
 * waits for nobody. Requests still under way are cancelled. */
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
 *	"bcast", "allreduce", "barrier"	"NAME[:senders=N][:segment=BYTES]", or "auto"
 *		the names, and which parameters they use, are those of `gridcoll bench --list`
 *	"timeout"	a time such as "30s" that an operation may wait without any message, or
 *		"never" (default): dead ranks and hosts are noticed without it
 *	"streams"	connections per rank of another cluster, 1 to 64 (default by the grid file,
 *		else 4); before the first operation only
 *	"socket_buffer"	a size such as "3MB", or "auto" (default: the kernel's autotuning); before
 *		the first operation only */
GCOLL_API int gcoll_comm_set(gcoll_comm *c, const char *key, const char *value);

/* Sends `count` elements in `buf` of rank `root` to `buf` of every other rank. Counts are
 * elements, of any size up to what memory holds. */
GCOLL_API int gcoll_bcast(void *buf, uint64_t count, enum gcoll_type type, int root, gcoll_comm *c);

/* recvbuf = op over all ranks' sendbuf, element by element; the bits are the same on every rank.
 * The buffers must not overlap (but see GCOLL_IN_PLACE). */
GCOLL_API int gcoll_allreduce(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c);

/* Returns on no rank before every rank has called it. */
GCOLL_API int gcoll_barrier(gcoll_comm *c);

/* The same, not waiting. Every rank starts its operations in the same order; several may be under
 * way. Buffers belong to the library until the request has ended. Work is done in calls of
 * wait, test and the blocking operations only. */
GCOLL_API int gcoll_ibcast(
	void *buf, uint64_t count, enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_iallreduce(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_ibarrier(gcoll_comm *c, gcoll_req **req);

/* Waits for the end of *req, frees it, sets *req to NULL and returns the operation's status.
 * *req == NULL is legal and done. */
GCOLL_API int gcoll_wait(gcoll_req **req);

/* Makes what progress is possible without waiting. *done tells whether *req has ended; if so it
 * is freed as by gcoll_wait, and the status is the operation's. */
GCOLL_API int gcoll_test(gcoll_req **req, int *done);

/* Ends the job on every rank with this reason; later calls return GCOLL_ERR_ABORTED. */
GCOLL_API void gcoll_abort(gcoll_comm *c, const char *reason);

#ifdef __cplusplus
}
#endif

#endif
