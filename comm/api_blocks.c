/* SPDX-License-Identifier: MIT
 * Operations on blocks, one per rank. (alltoallv: comm/alltoallv.c) */
#include "comm/collective.h"

static int make_reduce_scatter(const void *sendbuf, void *recvbuf, uint64_t count,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_REDUCE_SCATTER,
		.send = sendbuf,
		.recv = recvbuf,
		.count = count,
		.type = type,
		.op = op};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(reduce_scatter, (sendbuf, recvbuf, count, type, op, c), const void *sendbuf,
	void *recvbuf, uint64_t count, enum gcoll_type type, enum gcoll_op op, gcoll_comm *c)

static int make_reduce_scatterv(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	enum gcoll_type type, enum gcoll_op op, gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_REDUCE_SCATTER,
		.name = "reduce_scatterv",
		.send = sendbuf,
		.recv = recvbuf,
		.has_counts = 1,
		.counts = counts,
		.type = type,
		.op = op};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(reduce_scatterv, (sendbuf, recvbuf, counts, type, op, c), const void *sendbuf,
	void *recvbuf, const uint64_t *counts, enum gcoll_type type, enum gcoll_op op,
	gcoll_comm *c)

static int make_scatter(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type,
	int root, gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_SCATTER,
		.send = sendbuf,
		.recv = recvbuf,
		.count = count,
		.type = type,
		.root = root};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(scatter, (sendbuf, recvbuf, count, type, root, c), const void *sendbuf, void *recvbuf,
	uint64_t count, enum gcoll_type type, int root, gcoll_comm *c)

static int make_scatterv(const void *sendbuf, const uint64_t *counts, const uint64_t *displs,
	void *recvbuf, enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_SCATTER,
		.name = "scatterv",
		.send = sendbuf,
		.recv = recvbuf,
		.has_counts = 1,
		.counts = counts,
		.displs = displs,
		.type = type,
		.root = root};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(scatterv, (sendbuf, counts, displs, recvbuf, type, root, c), const void *sendbuf,
	const uint64_t *counts, const uint64_t *displs, void *recvbuf, enum gcoll_type type,
	int root, gcoll_comm *c)

static int make_gather(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type,
	int root, gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_GATHER,
		.send = sendbuf,
		.recv = recvbuf,
		.count = count,
		.type = type,
		.root = root};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(gather, (sendbuf, recvbuf, count, type, root, c), const void *sendbuf, void *recvbuf,
	uint64_t count, enum gcoll_type type, int root, gcoll_comm *c)

static int make_gatherv(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	const uint64_t *displs, enum gcoll_type type, int root, gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_GATHER,
		.name = "gatherv",
		.send = sendbuf,
		.recv = recvbuf,
		.has_counts = 1,
		.counts = counts,
		.displs = displs,
		.type = type,
		.root = root};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(gatherv, (sendbuf, recvbuf, counts, displs, type, root, c), const void *sendbuf,
	void *recvbuf, const uint64_t *counts, const uint64_t *displs, enum gcoll_type type,
	int root, gcoll_comm *c)

static int make_allgather(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type,
	gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_ALLGATHER,
		.send = sendbuf,
		.recv = recvbuf,
		.count = count,
		.type = type};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(allgather, (sendbuf, recvbuf, count, type, c), const void *sendbuf, void *recvbuf,
	uint64_t count, enum gcoll_type type, gcoll_comm *c)

static int make_allgatherv(const void *sendbuf, void *recvbuf, const uint64_t *counts,
	const uint64_t *displs, enum gcoll_type type, gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_ALLGATHER,
		.name = "allgatherv",
		.send = sendbuf,
		.recv = recvbuf,
		.has_counts = 1,
		.counts = counts,
		.displs = displs,
		.type = type};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(allgatherv, (sendbuf, recvbuf, counts, displs, type, c), const void *sendbuf,
	void *recvbuf, const uint64_t *counts, const uint64_t *displs, enum gcoll_type type,
	gcoll_comm *c)

static int make_alltoall(const void *sendbuf, void *recvbuf, uint64_t count, enum gcoll_type type,
	gcoll_comm *c, gcoll_req **req)
{
	const struct gci_call call = {.kind = GCI_ALLTOALL,
		.send = sendbuf,
		.recv = recvbuf,
		.count = count,
		.type = type};

	return gci_collective_make(&call, c, req);
}

GCI_FORMS(alltoall, (sendbuf, recvbuf, count, type, c), const void *sendbuf, void *recvbuf,
	uint64_t count, enum gcoll_type type, gcoll_comm *c)
