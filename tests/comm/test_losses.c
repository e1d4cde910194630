/* SPDX-License-Identifier: MIT
 * Collective operations while connections are lost. */
#include "tests/test.h"

#include "base/prng.h"
#include "tests/comm/trial.h"

#include <string.h>

#define NSEEDS 60

static uint64_t nlost, nagain;

static void count(struct job *j)
{
	struct gci_tp_stats s;
	int a, b;

	for (a = 0; a < j->n; a++)
		for (b = 0; b < j->n; b++) {
			gci_tp_stats(j->comm[a]->engine->tp, b, &s);
			nlost += s.lost;
			nagain += s.again_frames;
		}
}

static void do_some(struct job *j, struct gci_prng *prng)
{
	static const enum gci_kind kinds[] = {
		GCI_BCAST, GCI_ALLREDUCE, GCI_REDUCE, GCI_ALLGATHER, GCI_ALLTOALL, GCI_BARRIER};
	int i;

	for (i = 0; i < j->n; i++) /* several windows */
		j->comm[i]->engine->settings.window_nbytes = 64 << 10;
	for (i = 0; i < 3; i++) {
		struct trial t = {.kind = kinds[gci_prng_below(prng, 6)],
			.count = gci_prng_below(prng, 100000),
			.type = GCOLL_UINT32,
			.op = GCOLL_SUM,
			.seed = gci_prng_next(prng)};

		t.root = (int)gci_prng_below(prng, (uint64_t)j->n);
		trial_run(j, &t);
	}
	count(j);
}

static void try_seed(uint64_t seed)
{
	static const int sizes[][4] = {{2, 2, 0}, {1, 3, 0}, {2, 1, 2, 0}, {1, 1, 0}};
	struct gci_prng prng = {seed};
	struct gci_mem_faults faults = {.max_piece = 30000,
		.lose_every = 10 + (uint32_t)gci_prng_below(&prng, 60),
		.most_losses = 40};
	struct job j;

	job_open(&j, sizes[gci_prng_below(&prng, 4)], (int)gci_prng_below(&prng, 2), seed, &faults);
	if (gci_prng_below(&prng, 2))
		job_set(&j, "replay", "always");
	do_some(&j, &prng);
	job_close(&j);
}

static void operations_survive_losses(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= NSEEDS; seed++)
		try_seed(seed);
	print_message("%llu ends of streams lost, %llu frames sent again\n",
		(unsigned long long)nlost, (unsigned long long)nagain);
	assert_true(nlost > 10 * NSEEDS && nagain > 2 * NSEEDS);
}

/* Also within a cluster, and whatever is said of it: what comes damaged could not be asked for. */
static void encrypted_links_have_it_always(void **state)
{
	static const struct gci_mem_faults faults = {
		.max_piece = 30000, .lose_every = 20, .most_losses = 40};
	static const char *const security[] = {"auth", "encrypt"};
	uint64_t before, lost[2];
	struct gci_prng prng;
	struct job j;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		before = nlost;
		prng.state = 5;
		job_open(&j, (int[]){2, 2, 0}, 0, 1, &faults);
		job_set(&j, "replay", "off");
		job_set(&j, "security", security[i]);
		do_some(&j, &prng);
		job_close(&j);
		lost[i] = nlost - before;
	}
	assert_int_equal(lost[0], 0);
	assert_true(lost[1] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_survive_losses),
		cmocka_unit_test(encrypted_links_have_it_always),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
