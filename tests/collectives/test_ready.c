/* SPDX-License-Identifier: MIT */
#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "collectives/schedule/ready.h"

enum { NONE, TAKEN, DONE };

/* n steps of no content, each waiting for each earlier one with probability 1 / sparse. */
static void make_random(struct gci_sched *s, uint32_t n, uint64_t sparse, struct gci_prng *prng)
{
	static const struct gci_slice nothing = {0, 0, GCI_OUT};
	struct gci_builder b;
	uint32_t i, k;

	gci_builder_init(&b, 0, 1);
	for (i = 0; i < n; i++) {
		gci_copy(&b, nothing, nothing);
		for (k = 0; k < i; k++)
			if (!gci_prng_below(prng, sparse))
				gci_after(&b, k);
	}
	assert_int_equal(gci_builder_end(&b, s), 0);
}

static int may_start(const struct gci_sched *s, const char *state, uint32_t step)
{
	uint32_t k;

	if (state[step] != NONE)
		return 0;
	for (k = 0; k < s->steps[step].ndeps; k++)
		if (state[s->deps[s->steps[step].deps + k]] != DONE)
			return 0;
	return 1;
}

/* Takes a step of the core's choice and checks it; false when it offers none. */
static int take(struct gci_ready *r, char *state)
{
	const struct gci_sched *s = r->sched;
	uint32_t step = UINT32_MAX, least = 0;

	while (least < s->nsteps && !may_start(s, state, least))
		least++;
	if (!gci_ready_next(r, &step)) {
		assert_int_equal(least, s->nsteps);
		return 0;
	}
	assert_int_equal(step, least);
	state[step] = TAKEN;
	return 1;
}

/* Any of those taken finishes. */
static int finish(struct gci_ready *r, char *state, struct gci_prng *prng)
{
	uint32_t i, chosen = 0, seen = 0;

	for (i = 0; i < r->sched->nsteps; i++)
		if (state[i] == TAKEN && !gci_prng_below(prng, ++seen))
			chosen = i;
	if (!seen)
		return 0;
	state[chosen] = DONE;
	gci_ready_done(r, chosen);
	return 1;
}

static void like_the_naive_one(void **state_)
{
	struct gci_prng prng = {3};
	int run;

	(void)state_;
	for (run = 0; run < 300; run++) {
		uint32_t n = (uint32_t)gci_prng_below(&prng, 40), ndone = 0;
		char state[40] = {NONE};
		struct gci_sched s;
		struct gci_ready r;

		make_random(&s, n, 1 + gci_prng_below(&prng, 20), &prng);
		assert_int_equal(gci_ready_init(&r, &s), 0);
		while (ndone < n) {
			assert_false(gci_ready_finished(&r));
			while (gci_prng_below(&prng, 3) && take(&r, state))
				;
			if (gci_prng_below(&prng, 2))
				ndone += (uint32_t)finish(&r, state, &prng);
		}
		assert_true(gci_ready_finished(&r));
		assert_false(take(&r, state));
		gci_ready_free(&r);
		gci_sched_free(&s);
	}
}

static void nothing_to_do_is_finished(void **state)
{
	struct gci_prng prng = {0};
	struct gci_sched s;
	struct gci_ready r;
	uint32_t step;

	(void)state;
	make_random(&s, 0, 1, &prng);
	assert_int_equal(gci_ready_init(&r, &s), 0);
	assert_true(gci_ready_finished(&r));
	assert_false(gci_ready_next(&r, &step));
	gci_ready_free(&r);
	gci_sched_free(&s);
}

static void lack_of_memory(void **state)
{
	struct gci_prng prng = {7};
	struct gci_sched s;
	struct gci_ready r;
	unsigned long n;
	int rc = -1;

	(void)state;
	make_random(&s, 10, 2, &prng);
	for (n = 1; rc; n++) {
		gci_mem_fail_at(n);
		rc = gci_ready_init(&r, &s);
		assert_int_equal(rc, gci_mem_failed() ? GCOLL_ERR_NOMEM : 0);
		gci_ready_free(&r);
	}
	gci_mem_fail_at(0);
	assert_int_equal(n - 1, 3); /* two allocations */
	gci_sched_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(like_the_naive_one),
		cmocka_unit_test(nothing_to_do_is_finished),
		cmocka_unit_test(lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
