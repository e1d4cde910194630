/* SPDX-License-Identifier: MIT
 * Part of gridcoll.h: the operations, collective ones and messages from one rank to another.
 *
 * Each has three forms:
 *	gcoll_NAME(...)			waits for its end
 *	gcoll_iNAME(..., &req)		does not: gcoll_wait and gcoll_test end it
 *	gcoll_NAME_init(..., &req)	only prepares it: gcoll_start(req) begins it, any number
 *					of times, each ended by wait or test
 * Every rank begins the operations of a communicator in the same order, with arguments that fit;
 * else they end in GCOLL_ERR_MISMATCH. Several may be under way, on one or several communicators.
 * Work is done in calls of wait, test, gcoll_progress and the blocking forms only, unless
 * gcoll_options say otherwise.
 *
 * Counts are elements, as many as memory holds. A "block" is the part that belongs to one rank.
 * Operations whose names end in v take blocks of different lengths: counts[rank], and displs[rank]
 * where each block begins (in elements) in the buffer that holds all of them; displs NULL: one
 * after the other. counts[] is the same on all ranks, even where a rank has no use for it: ranks
 * forward the blocks of others. (alltoallv is told each rank's own counts, and shares them by
 * itself.) displs[] matters only on ranks with such a buffer; blocks that are received must not
 * overlap.
 *
 * Buffers belong to the library until the operation has ended; the two of one call must not
 * overlap. A buffer without elements, or without a use on this rank, may be NULL. Arrays of counts
 * and displacements are copied by the call. */
#ifndef GRIDCOLL_COLLECTIVES_H
#define GRIDCOLL_COLLECTIVES_H

#include "gridcoll/gridcoll.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `count` elements in `buf` of rank `root` go to `buf` of every other rank. */
GCOLL_API int gcoll_bcast(void *buf, uint64_t count, enum gcoll_type type, int root, gcoll_comm *c);
GCOLL_API int gcoll_ibcast(
	void *buf, uint64_t count, enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_bcast_init(
	void *buf, uint64_t count, enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req);

/* recvbuf of the root = op over all ranks' sendbuf, element by element. In place: as sendbuf of
 * the root. */
GCOLL_API int gcoll_reduce(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type,
	enum gcoll_op op, int root, gcoll_comm *c);
GCOLL_API int gcoll_ireduce(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, int root, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_reduce_init(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, int root, gcoll_comm *c, gcoll_req **req);

/* recvbuf = op over all ranks' sendbuf, element by element; the bits are the same on every rank.
 * In place: as sendbuf. */
GCOLL_API int gcoll_allreduce(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c);
GCOLL_API int gcoll_iallreduce(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_allreduce_init(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c, gcoll_req **req);

/* sendbuf has a block of `count` elements for each rank; recvbuf = op over all ranks' blocks for
 * this one. In place: as sendbuf; all blocks are in recvbuf then, and the result at its start. */
GCOLL_API int gcoll_reduce_scatter(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c);
GCOLL_API int gcoll_ireduce_scatter(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_reduce_scatter_init(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c, gcoll_req **req);

GCOLL_API int gcoll_reduce_scatterv(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c);
GCOLL_API int gcoll_ireduce_scatterv(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_reduce_scatterv_init(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c, gcoll_req **req);

/* Each rank's block in sendbuf of the root goes to its recvbuf. In place: as recvbuf of the root,
 * whose own block stays where it is. */
GCOLL_API int gcoll_scatter(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, int root, gcoll_comm *c);
GCOLL_API int gcoll_iscatter(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_scatter_init(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req);

GCOLL_API int gcoll_scatterv(const void *sendbuf, const uint64_t *counts, const uint64_t *displs,
	void *recvbuf, enum gcoll_type type, int root, gcoll_comm *c);
GCOLL_API int gcoll_iscatterv(const void *sendbuf, const uint64_t *counts, const uint64_t *displs,
	void *recvbuf, enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_scatterv_init(const void *sendbuf, const uint64_t *counts,
	const uint64_t *displs, void *recvbuf, enum gcoll_type type, int root, gcoll_comm *c,
	gcoll_req **req);

/* Each rank's block in sendbuf goes to its place in recvbuf of the root. In place: as sendbuf of
 * the root, whose own block is there already. */
GCOLL_API int gcoll_gather(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type,
	int root, gcoll_comm *c);
GCOLL_API int gcoll_igather(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_gather_init(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req);

GCOLL_API int gcoll_gatherv(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	const uint64_t *displs, enum gcoll_type type, int root, gcoll_comm *c);
GCOLL_API int gcoll_igatherv(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	const uint64_t *displs, enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_gatherv_init(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	const uint64_t *displs, enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req);

/* Each rank's block in sendbuf goes to its place in recvbuf of every rank. In place: as sendbuf of
 * all ranks; each one's own block is in its place already. */
GCOLL_API int gcoll_allgather(
	const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, gcoll_comm *c);
GCOLL_API int gcoll_iallgather(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_allgather_init(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, gcoll_comm *c, gcoll_req **req);

GCOLL_API int gcoll_allgatherv(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	const uint64_t *displs, enum gcoll_type type, gcoll_comm *c);
GCOLL_API int gcoll_iallgatherv(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	const uint64_t *displs, enum gcoll_type type, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_allgatherv_init(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	const uint64_t *displs, enum gcoll_type type, gcoll_comm *c, gcoll_req **req);

/* Block number i of sendbuf goes to rank i, which has it as block number `this rank` of recvbuf.
 * In place: as sendbuf of all ranks; what is sent is taken from recvbuf. */
GCOLL_API int gcoll_alltoall(
	const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, gcoll_comm *c);
GCOLL_API int gcoll_ialltoall(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_alltoall_init(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, gcoll_comm *c, gcoll_req **req);

/* sendcounts[i] of this rank must be recvcounts[this rank] of rank i, else GCOLL_ERR_MISMATCH. In
 * place: sendcounts and sdispls are not looked at. */
GCOLL_API int gcoll_alltoallv(const void *sendbuf, const uint64_t *sendcounts,
	const uint64_t *sdispls, void *recvbuf, const uint64_t *recvcounts, const uint64_t *rdispls,
	enum gcoll_type type, gcoll_comm *c);
GCOLL_API int gcoll_ialltoallv(const void *sendbuf, const uint64_t *sendcounts,
	const uint64_t *sdispls, void *recvbuf, const uint64_t *recvcounts, const uint64_t *rdispls,
	enum gcoll_type type, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_alltoallv_init(const void *sendbuf, const uint64_t *sendcounts,
	const uint64_t *sdispls, void *recvbuf, const uint64_t *recvcounts, const uint64_t *rdispls,
	enum gcoll_type type, gcoll_comm *c, gcoll_req **req);

/* Ends on no rank before every rank has begun it. */
GCOLL_API int gcoll_barrier(gcoll_comm *c);
GCOLL_API int gcoll_ibarrier(gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_barrier_init(gcoll_comm *c, gcoll_req **req);

/* A bcast from `root` to the ranks dests[] only. Called by all ranks with the same arguments (but
 * buf); those that are neither are done at once. */
GCOLL_API int gcoll_multicast(void *buf, uint64_t count, enum gcoll_type type, int root,
	const int *dests, int ndests, gcoll_comm *c);
GCOLL_API int gcoll_imulticast(void *buf, uint64_t count, enum gcoll_type type, int root,
	const int *dests, int ndests, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_multicast_init(void *buf, uint64_t count, enum gcoll_type type, int root,
	const int *dests, int ndests, gcoll_comm *c, gcoll_req **req);

/* Several at once: none waits for another. */
struct gcoll_multicast {
	void *buf;
	uint64_t count;
	enum gcoll_type type;
	int root;
	const int *dests;
	int ndests;
};
GCOLL_API int gcoll_multicasts(const struct gcoll_multicast *list, int n, gcoll_comm *c);
GCOLL_API int gcoll_imulticasts(
	const struct gcoll_multicast *list, int n, gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_multicasts_init(
	const struct gcoll_multicast *list, int n, gcoll_comm *c, gcoll_req **req);

/* From one rank to another. The n-th send to a rank with a tag (>= 0) belongs to its n-th receive
 * from this rank with this tag; both must be of one size, else GCOLL_ERR_MISMATCH. A send may wait
 * for its receive. Who waits for a rank that has left the job without its side of the message gets
 * GCOLL_ERR_MISMATCH, after a second or more. These do not count as operations that all ranks begin
 * in the same order. */
GCOLL_API int gcoll_send(
	const void *buf, uint64_t count, enum gcoll_type type, int dest, int tag, gcoll_comm *c);
GCOLL_API int gcoll_isend(const void *buf, uint64_t count, enum gcoll_type type, int dest, int tag,
	gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_send_init(const void *buf, uint64_t count, enum gcoll_type type, int dest,
	int tag, gcoll_comm *c, gcoll_req **req);

GCOLL_API int gcoll_recv(
	void *buf, uint64_t count, enum gcoll_type type, int source, int tag, gcoll_comm *c);
GCOLL_API int gcoll_irecv(void *buf, uint64_t count, enum gcoll_type type, int source, int tag,
	gcoll_comm *c, gcoll_req **req);
GCOLL_API int gcoll_recv_init(void *buf, uint64_t count, enum gcoll_type type, int source, int tag,
	gcoll_comm *c, gcoll_req **req);

#ifdef __cplusplus
}
#endif

#endif
