/* SPDX-License-Identifier: MIT
 * Any MPI; GCB_MPI_NAME says which this was compiled for. */
#include "bench/peers/rank.h"

#include <mpi.h>
#include <stdio.h>

#define MAX_COUNT (1u << 30)

static int told(int rc)
{
	if (rc != MPI_SUCCESS)
		fprintf(stderr, GCB_MPI_NAME ": error %d\n", rc);
	return rc == MPI_SUCCESS ? 0 : -1;
}

static int open_mpi(struct gcb_place *p)
{
	if (told(MPI_Init(&p->argc, &p->argv)))
		return -1;
	MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &p->size);
	return 0;
}

static int fits(uint64_t n)
{
	if (n > MAX_COUNT)
		fprintf(stderr, GCB_MPI_NAME ": counts are ints\n");
	return n <= MAX_COUNT;
}

static int bcast(void *buf, uint64_t nbytes)
{
	if (!fits(nbytes))
		return -1;
	return told(MPI_Bcast(buf, (int)nbytes, MPI_BYTE, 0, MPI_COMM_WORLD));
}

static int allreduce(const float *in, float *out, uint64_t n)
{
	if (!fits(n))
		return -1;
	return told(MPI_Allreduce(in, out, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}

static int allgather(const void *in, void *out, uint64_t nbytes)
{
	if (!fits(nbytes))
		return -1;
	return told(MPI_Allgather(
		in, (int)nbytes, MPI_BYTE, out, (int)nbytes, MPI_BYTE, MPI_COMM_WORLD));
}

static int barrier(void)
{
	return told(MPI_Barrier(MPI_COMM_WORLD));
}

static void close_mpi(void)
{
	MPI_Finalize();
}

const struct gcb_lib gcb_lib_mpi = {
	GCB_MPI_NAME, open_mpi, bcast, allreduce, allgather, barrier, close_mpi};
const struct gcb_lib *const gcb_libs[] = {&gcb_lib_mpi, NULL};
