/* SPDX-License-Identifier: MIT
 * Operations on blocks, one per rank. (alltoallv: comm/alltoallv.c) */
#include "comm/collective.h"

GCI_CALL(reduce_scatter, (sendbuf, recvbuf, count, type, op, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, enum gcoll_op op,
		gcoll_comm *c),
	.kind = GCI_REDUCE_SCATTER, .send = sendbuf, .recv = recvbuf, .count = count, .type = type,
	.op = op)

GCI_CALL(reduce_scatterv, (sendbuf, recvbuf, counts, type, op, c),
	(const void *sendbuf, void *recvbuf, const uint64_t *counts, enum gcoll_type type,
		enum gcoll_op op, gcoll_comm *c),
	.kind = GCI_REDUCE_SCATTER, .name = "reduce_scatterv", .send = sendbuf, .recv = recvbuf,
	.has_counts = 1, .counts = counts, .type = type, .op = op)

GCI_CALL(scatter, (sendbuf, recvbuf, count, type, root, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, int root,
		gcoll_comm *c),
	.kind = GCI_SCATTER, .send = sendbuf, .recv = recvbuf, .count = count, .type = type,
	.root = root)

GCI_CALL(scatterv, (sendbuf, counts, displs, recvbuf, type, root, c),
	(const void *sendbuf, const uint64_t *counts, const uint64_t *displs, void *recvbuf,
		enum gcoll_type type, int root, gcoll_comm *c),
	.kind = GCI_SCATTER, .name = "scatterv", .send = sendbuf, .recv = recvbuf, .has_counts = 1,
	.counts = counts, .displs = displs, .type = type, .root = root)

GCI_CALL(gather, (sendbuf, recvbuf, count, type, root, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, int root,
		gcoll_comm *c),
	.kind = GCI_GATHER, .send = sendbuf, .recv = recvbuf, .count = count, .type = type,
	.root = root)

GCI_CALL(gatherv, (sendbuf, recvbuf, counts, displs, type, root, c),
	(const void *sendbuf, void *recvbuf, const uint64_t *counts, const uint64_t *displs,
		enum gcoll_type type, int root, gcoll_comm *c),
	.kind = GCI_GATHER, .name = "gatherv", .send = sendbuf, .recv = recvbuf, .has_counts = 1,
	.counts = counts, .displs = displs, .type = type, .root = root)

GCI_CALL(allgather, (sendbuf, recvbuf, count, type, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, gcoll_comm *c),
	.kind = GCI_ALLGATHER, .send = sendbuf, .recv = recvbuf, .count = count, .type = type)

GCI_CALL(allgatherv, (sendbuf, recvbuf, counts, displs, type, c),
	(const void *sendbuf, void *recvbuf, const uint64_t *counts, const uint64_t *displs,
		enum gcoll_type type, gcoll_comm *c),
	.kind = GCI_ALLGATHER, .name = "allgatherv", .send = sendbuf, .recv = recvbuf,
	.has_counts = 1, .counts = counts, .displs = displs, .type = type)

GCI_CALL(alltoall, (sendbuf, recvbuf, count, type, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, gcoll_comm *c),
	.kind = GCI_ALLTOALL, .send = sendbuf, .recv = recvbuf, .count = count, .type = type)
