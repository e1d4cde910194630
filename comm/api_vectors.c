/* SPDX-License-Identifier: MIT
 * Operations on vectors, and the barrier. */
#include "comm/collective.h"

static int make_bcast(
	void *buf, uint64_t count, enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_BCAST,
		.send = buf,
		.recv = buf,
		.count = count,
		.type = type,
		.root = root};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(bcast, (buf, count, type, root, c), void *buf, uint64_t count, enum gcoll_type type,
	int root, gcoll_comm *c)

static int make_reduce(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type,
	enum gcoll_op op, int root, gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_REDUCE,
		.send = sendbuf,
		.recv = recvbuf,
		.count = count,
		.type = type,
		.op = op,
		.root = root};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(reduce, (sendbuf, recvbuf, count, type, op, root, c), const void *sendbuf, void *recvbuf,
	uint64_t count, enum gcoll_type type, enum gcoll_op op, int root, gcoll_comm *c)

static int make_allreduce(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type,
	enum gcoll_op op, gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_ALLREDUCE,
		.send = sendbuf,
		.recv = recvbuf,
		.count = count,
		.type = type,
		.op = op};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(allreduce, (sendbuf, recvbuf, count, type, op, c), const void *sendbuf, void *recvbuf,
	uint64_t count, enum gcoll_type type, enum gcoll_op op, gcoll_comm *c)

static int make_barrier(gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_BARRIER};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(barrier, (c), gcoll_comm *c)
