/* SPDX-License-Identifier: MIT
 * A job that goes on after the death of ranks: steps of an iteration, each of which all ranks have
 * done, or none.
 *
 *	cc survive.c $(pkg-config --cflags --libs gridcoll) -o survive
 *	gridcoll-run --survive -n 4 ./survive		# and kill some of them
 *	gridcoll-run --survive -n 4 ./survive 2		# rank 2 kills itself */
#include <gridcoll/gridcoll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STEPS 10

/* One step of the work; what it begins with is in `state`, of which a copy remains. */
static int step(int64_t *state, gcoll_comm *world)
{
	int64_t next = *state + 1;
	int rc = gcoll_allreduce(GCOLL_IN_PLACE, &next, 1, GCOLL_INT64, GCOLL_MAX, world);
	uint64_t ok = rc == GCOLL_OK;
	int agreed;

	if (rc)
		fprintf(stderr, "step %d: %s\n", (int)*state, gcoll_last_error());
	/* Some may have the result, and others not: it counts if all have it. */
	agreed = gcoll_comm_agree(world, &ok);
	if (!agreed && ok) {
		*state = next;
		return GCOLL_OK;
	}
	return rc ? rc : GCOLL_ERR_PEER;
}

int main(int argc, char **argv)
{
	gcoll_comm *world;
	int64_t state = 0;
	int rc = gcoll_init(&world), victim = argc > 1 ? atoi(argv[1]) : -1;

	while (!rc && state < STEPS) {
		if (gcoll_rank(world) == victim && state == STEPS / 2)
			raise(SIGKILL);
		if (step(&state, world)) {
			rc = gcoll_comm_shrink(world, &world);
			victim = -1; /* ranks have other numbers now */
		}
		usleep(1000);
	}
	if (rc)
		fprintf(stderr, "survive: %s\n", gcoll_last_error());
	else
		printf("rank %d of %d has done %d steps\n", gcoll_rank(world), gcoll_size(world),
			(int)state);
	gcoll_finalize(world);
	return rc != GCOLL_OK;
}
