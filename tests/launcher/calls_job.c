/* SPDX-License-Identifier: MIT
 * A rank of test_run_calls: joins, does a little of everything, leaves. */
#include "tests/comm/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 40000, SHORT = 5 };

static int in[LONG], out[LONG];

static void fill(int n, int from)
{
	int i;

	for (i = 0; i < n; i++)
		in[i] = from + i;
	memset(out, 0, sizeof(out));
}

static void sums(gcoll_comm *comm, int n)
{
	int i, size = gcoll_size(comm);

	fill(n, 3);
	must(gcoll_allreduce(in, out, (size_t)n, GCOLL_INT32, GCOLL_SUM, comm), "allreduce");
	for (i = 0; i < n; i++)
		expect(out[i] == size * (3 + i), "the sum");
}

int main(void)
{
	gcoll_comm *half;
	int i, rank;

	if (gcoll_init(&world)) {
		fprintf(stderr, "a rank cannot join: %s\n", gcoll_last_error());
		return 3;
	}
	rank = gcoll_rank(world);
	sums(world, SHORT);
	sums(world, LONG);
	fill(LONG, 7);
	must(gcoll_bcast(rank ? out : in, LONG, GCOLL_INT32, 0, world), "bcast");
	for (i = 0; i < LONG && rank; i++)
		expect(out[i] == 7 + i, "what the root had");
	must(gcoll_comm_split(world, rank & 1, rank, &half), "split");
	sums(half, SHORT);
	gcoll_comm_free(&half);
	must(gcoll_barrier(world), "barrier");
	printf("done\n");
	gcoll_finalize(world);
	return 0;
}
