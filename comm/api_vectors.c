/* SPDX-License-Identifier: MIT
 * Operations on vectors, and the barrier. */
#include "comm/collective.h"

GCI_CALL(bcast, (buf, count, type, root, c),
	(void *buf, uint64_t count, enum gcoll_type type, int root, gcoll_comm *c),
	.kind = GCI_BCAST, .send = buf, .recv = buf, .count = count, .type = type, .root = root)

GCI_CALL(reduce, (sendbuf, recvbuf, count, type, op, root, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, enum gcoll_op op,
		int root, gcoll_comm *c),
	.kind = GCI_REDUCE, .send = sendbuf, .recv = recvbuf, .count = count, .type = type,
	.op = op, .root = root)

GCI_CALL(allreduce, (sendbuf, recvbuf, count, type, op, c),
	(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type, enum gcoll_op op,
		gcoll_comm *c),
	.kind = GCI_ALLREDUCE, .send = sendbuf, .recv = recvbuf, .count = count, .type = type,
	.op = op)

GCI_CALL(barrier, (c), (gcoll_comm * c), .kind = GCI_BARRIER)
