/* SPDX-License-Identifier: MIT
 * A rank that anybody may start: joins its job by the library, says where it is, and does as told.
 *
 *	guest sum		adds up all ranks
 *	guest die RANK		... then this rank ends without a word, the others wait for it
 *	guest wait		... then waits for rank 0, which never comes
 *	guest rounds N		... then adds up all ranks so often, with a pause before each
 *	guest without		meets the others, and goes on without those that are not there
 *	guest shrink RANK	... then this rank is killed, and the others go on without it
 *
 * 1 and the reason on standard error when a call fails. */
#include <gridcoll/gridcoll.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *call)
{
	fprintf(stderr, "%s: %s\n", call, gcoll_last_error());
	return 1;
}

static int go_on(gcoll_comm *c, int victim)
{
	uint64_t one = 1, n = 0;

	if (gcoll_rank(c) == victim)
		raise(SIGKILL);
	if (!gcoll_barrier(c))
		return 2;
	fprintf(stderr, "barrier: %s\n", gcoll_last_error());
	if (gcoll_comm_shrink(c, &c))
		return fail("shrink");
	if (gcoll_allreduce(&one, &n, 1, GCOLL_UINT64, GCOLL_SUM, c))
		return fail("allreduce");
	printf("rank %d goes on with %llu\n", gcoll_rank(c), (unsigned long long)n);
	gcoll_finalize(c);
	return 0;
}

static int go_round(gcoll_comm *c, int n)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	uint64_t mine, sum;

	while (n--) {
		nanosleep(&pause, NULL);
		mine = (uint64_t)n;
		if (gcoll_allreduce(&mine, &sum, 1, GCOLL_UINT64, GCOLL_SUM, c))
			return fail("round");
		if (sum != (uint64_t)n * (uint64_t)gcoll_size(c))
			return 3;
	}
	gcoll_finalize(c);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	uint64_t mine, sum = 0;
	gcoll_comm *c;

	if (gcoll_init(&c))
		return fail("init");
	if (!strcmp(mode, "without"))
		return go_on(c, -1);
	mine = (uint64_t)gcoll_rank(c) + 1;
	if (gcoll_allreduce(&mine, &sum, 1, GCOLL_UINT64, GCOLL_SUM, c))
		return fail("allreduce");
	printf("rank %d of %d in cluster %d of %d: sum %llu\n", gcoll_rank(c), gcoll_size(c),
		gcoll_cluster(c, gcoll_rank(c)), gcoll_clusters(c), (unsigned long long)sum);
	fflush(stdout);
	if (!strcmp(mode, "die") && argc > 2 && atoi(argv[2]) == gcoll_rank(c))
		_exit(0);
	if (!strcmp(mode, "rounds") && argc > 2)
		return go_round(c, atoi(argv[2]));
	if (!strcmp(mode, "shrink"))
		return go_on(c, argc > 2 ? atoi(argv[2]) : -1);
	if (!strcmp(mode, "wait") && !gcoll_rank(c))
		pause();
	if (strcmp(mode, "sum") && gcoll_barrier(c))
		return fail("barrier");
	gcoll_finalize(c);
	return 0;
}
