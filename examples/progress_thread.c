/* SPDX-License-Identifier: MIT
 * A program that computes while its data moves: the sum of one part of a vector is on its way while
 * the next part is computed. With a progress thread this needs no call in between, and any thread
 * may call.
 *
 *	cc progress_thread.c $(pkg-config --cflags --libs gridcoll) -o progress_thread
 *	gridcoll-run -n 4 ./progress_thread */
#include <gridcoll/gridcoll.h>
#include <stdio.h>
#include <stdlib.h>

#define PART   (256 << 10)
#define NPARTS 8

/* Stands for whatever takes the program's time. */
static void compute(float *part, int number, int rank)
{
	int i;

	for (i = 0; i < PART; i++)
		part[i] = (float)(number + rank);
}

static int sum_parts(float *vector, gcoll_comm *world)
{
	gcoll_req *req[NPARTS] = {NULL};
	int p, rc = GCOLL_OK, one;

	for (p = 0; p < NPARTS && rc == GCOLL_OK; p++) {
		float *part = vector + (size_t)p * PART;

		compute(part, p, gcoll_rank(world));
		rc = gcoll_iallreduce(
			GCOLL_IN_PLACE, part, PART, GCOLL_FLOAT32, GCOLL_SUM, world, &req[p]);
	}
	for (p = 0; p < NPARTS; p++) {
		one = gcoll_wait(&req[p]);
		rc = rc == GCOLL_OK ? one : rc;
	}
	return rc;
}

int main(void)
{
	struct gcoll_options options = {.progress_thread = 1};
	float *vector = calloc(NPARTS, PART * sizeof(*vector));
	gcoll_comm *world;
	int rc;

	if (!vector || gcoll_init_options(&world, &options) != GCOLL_OK) {
		fprintf(stderr, "progress_thread: cannot begin: %s\n", gcoll_last_error());
		return 1;
	}
	rc = sum_parts(vector, world);
	if (rc == GCOLL_OK)
		printf("rank %d: %g ... %g\n", gcoll_rank(world), vector[0],
			vector[(size_t)NPARTS * PART - 1]);
	else
		fprintf(stderr, "progress_thread: %s\n", gcoll_last_error());
	gcoll_finalize(world);
	free(vector);
	return rc != GCOLL_OK;
}
