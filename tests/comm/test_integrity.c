/* SPDX-License-Identifier: MIT
 * A bit that changes in the memory of a rank that forwards data, between its arrival and its going
 * on, by every algorithm that moves data without combining it: no other rank may take what it did
 * to the data for a result. And one that changes in the result itself, where results are compared.
 */
#include "tests/test.h"

#include "base/mem.h"
#include "base/prng.h"
#include "comm/compare.h"
#include "comm/run.h"
#include "tests/comm/jobs.h"

#include <stdio.h>
#include <string.h>

#define COUNT  30011 /* elements of a block: more than a granule, and no multiple of one */
#define TRIALS 3     /* of each algorithm on each topology */

struct flipper {
	uint64_t at; /* of the RECVs that something follows, this one's bytes */
	int last;    /* no: of what comes to the result at last, so that nobody else gets it */
	uint64_t seen;
	struct gci_prng prng;
	int flipped;
};

static struct flipper flipper;
static uint64_t nflips, nfound[GCI_NKINDS];

/* Something in a place that other steps read again, or that none does. */
static int is_wanted(const struct flipper *f, const struct gci_run *run, uint32_t step)
{
	const struct gci_sched *sched = run->sched;
	const struct gci_step *s = &sched->steps[step];
	int last = sched->next_at[step] == sched->next_at[step + 1];

	if (!s->dst.length || last != f->last || run->seq >> GCI_WINDOW_BITS) /* one operation */
		return 0;
	return last ? s->kind != GCI_STEP_SEND && s->dst.buffer == GCI_OUT
		    : s->kind == GCI_STEP_RECV;
}

static void on_step(void *ctx, const struct gci_run *run, uint32_t step, int ended)
{
	const struct gci_step *s = &run->sched->steps[step];
	struct flipper *f = ctx;
	uint64_t at;

	if (!ended || run->status || !is_wanted(f, run, step) || f->seen++ != f->at)
		return;
	at = s->dst.offset * run->esize + gci_prng_below(&f->prng, s->dst.length * run->esize);
	run->buf[s->dst.buffer][at] ^= (char)(1 << gci_prng_below(&f->prng, 8));
	f->flipped = 1;
}

static const struct gci_run_trace trace = {.step = on_step, .ctx = &flipper};

static uint32_t value(int from, int to, uint32_t i)
{
	return (uint32_t)gci_digest(gci_digest(1, (uint64_t)(from * 64 + to)), i);
}

static void put(uint32_t *block, int from, int to)
{
	uint32_t i;

	for (i = 0; i < COUNT; i++)
		block[i] = value(from, to, i);
}

/* True if the block is what `from` had for `to`. */
static int is(const uint32_t *block, int from, int to)
{
	uint32_t i;

	for (i = 0; i < COUNT; i++)
		if (block[i] != value(from, to, i))
			return 0;
	return 1;
}

static int begin(
	enum gci_kind kind, gcoll_comm *c, uint32_t *in, uint32_t *out, int root, gcoll_req **req)
{
	switch (kind) {
	case GCI_BCAST:
		return gcoll_ibcast(out, COUNT, GCOLL_UINT32, root, c, req);
	case GCI_SCATTER:
		return gcoll_iscatter(in, out, COUNT, GCOLL_UINT32, root, c, req);
	case GCI_GATHER:
		return gcoll_igather(in, out, COUNT, GCOLL_UINT32, root, c, req);
	case GCI_ALLGATHER:
		return gcoll_iallgather(in, out, COUNT, GCOLL_UINT32, c, req);
	default:
		return gcoll_ialltoall(in, out, COUNT, GCOLL_UINT32, c, req);
	}
}

static int is_right(enum gci_kind kind, const uint32_t *out, int n, int me, int root)
{
	int b, right = 1;

	if (kind == GCI_BCAST)
		return is(out, root, 0);
	if (kind == GCI_SCATTER)
		return is(out, root, me);
	if (kind == GCI_GATHER && me != root)
		return 1;
	for (b = 0; b < n; b++)
		right &= is(out + (size_t)b * COUNT, b, kind == GCI_ALLTOALL ? me : 0);
	return right;
}

static void try_one(const struct gci_algorithm *a, const int *sizes, uint64_t seed)
{
	struct gci_prng prng = {seed};
	int status[MAX_RANKS], root, victim, r, b, failed = 0;
	uint32_t *in[MAX_RANKS], *out[MAX_RANKS];
	struct job j;

	job_open(&j, sizes, (int)gci_prng_below(&prng, 2), seed, NULL);
	job_set(&j, gci_kind_name(a->kind), a->name);
	if (gci_prng_below(&prng, 2))
		job_set(&j, "replay", "always");
	root = (int)gci_prng_below(&prng, (uint64_t)j.n);
	victim = (int)gci_prng_below(&prng, (uint64_t)j.n);
	j.comm[victim]->engine->settings.trace = &trace;
	flipper = (struct flipper){
		.at = gci_prng_below(&prng, 3), .prng.state = gci_prng_next(&prng)};
	for (r = 0; r < j.n; r++) {
		in[r] = gci_calloc((size_t)(j.n * COUNT), 4);
		out[r] = gci_calloc((size_t)(j.n * COUNT), 4);
		for (b = 0; b < j.n; b++)
			put(in[r] + (size_t)b * COUNT, r,
				a->kind == GCI_SCATTER || a->kind == GCI_ALLTOALL ? b : 0);
		if (a->kind == GCI_BCAST && r == root)
			put(out[r], root, 0);
		if (begin(a->kind, j.comm[r], in[r], out[r], root, &j.req[r]))
			fail_msg("%s: %s", a->name, gcoll_last_error());
	}
	/* Without a launcher others than those that find it just wait. */
	b = job_run(&j, status);
	for (r = 0; r < j.n; r++) {
		failed += status[r] == GCOLL_ERR_CORRUPT;
		if (status[r] && status[r] != GCOLL_ERR_CORRUPT)
			fail_msg("%s: rank %d: %s", a->name, r, gcoll_strerror(status[r]));
		if (!status[r] && !j.req[r] && r != victim &&
			!is_right(a->kind, out[r], j.n, r, root))
			fail_msg("%s by %s, seed %llu: rank %d takes what rank %d spoiled",
				gci_kind_name(a->kind), a->name, (unsigned long long)seed, r,
				victim);
	}
	assert_true(failed || !b);
	assert_true(flipper.flipped || !failed);
	nflips += (uint64_t)flipper.flipped;
	nfound[a->kind] += failed > 0;
	job_close(&j);
	for (r = 0; r < j.n; r++) {
		gci_free(in[r]);
		gci_free(out[r]);
	}
}

static void nobody_takes_spoiled_data(void **state)
{
	static const int topologies[][4] = {{3, 2, 0}, {2, 1, 2, 0}, {4, 0}};
	static const enum gci_kind kinds[] = {
		GCI_BCAST, GCI_SCATTER, GCI_GATHER, GCI_ALLGATHER, GCI_ALLTOALL};
	const struct gci_algorithm *a;
	uint64_t seed = 0;
	int k, t, i;

	(void)state;
	for (k = 0; k < 5; k++) {
		gci_each_algorithm (a)
			for (t = 0; t < 3 && a->kind == kinds[k]; t++)
				for (i = 0; i < TRIALS; i++)
					try_one(a, topologies[t], ++seed);
		print_message("%s: found %llu times\n", gci_kind_name(kinds[k]),
			(unsigned long long)nfound[kinds[k]]);
		assert_true(nfound[kinds[k]] > 0);
	}
	print_message("%llu bits flipped in %llu operations\n", (unsigned long long)nflips,
		(unsigned long long)seed);
}

/* Who has found it says where: the rank whose memory it was, or that it came from. */
static void the_error_names_the_rank(void **state)
{
	uint32_t *buf[3];
	int r, status[MAX_RANKS], rank;
	struct job j;

	(void)state;
	job_open(&j, (int[]){3, 0}, 0, 1, NULL);
	job_set(&j, "bcast", "chain:segment=64KiB");
	flipper = (struct flipper){.prng.state = 3};
	j.comm[1]->engine->settings.trace = &trace;
	for (r = 0; r < 3; r++) {
		buf[r] = gci_calloc(COUNT, 4);
		assert_int_equal(
			gcoll_ibcast(buf[r], COUNT, GCOLL_UINT32, 0, j.comm[r], &j.req[r]), 0);
	}
	job_run(&j, status);
	assert_int_equal(status[2], GCOLL_ERR_CORRUPT);
	rank = j.comm[2]->engine->failure.rank;
	assert_int_equal(rank, 1);
	assert_non_null(strstr(j.comm[2]->engine->failure.text, "from rank 1 arrived corrupted"));
	job_close(&j);
	for (r = 0; r < 3; r++)
		gci_free(buf[r]);
}

/* An allreduce in which a bit of one rank's result changes, if it has any that goes no further.
 * True if one did. */
static int spoil_result(const struct gci_algorithm *a, const int *sizes, int victim, int compare)
{
	int status[MAX_RANKS], r, n, found, same = 1;
	uint32_t *in[MAX_RANKS], *out[MAX_RANKS];
	char says[64];
	struct job j;

	job_open(&j, sizes, 0, 1, NULL);
	job_set(&j, "allreduce", a->name);
	job_set(&j, "compare", compare ? "on" : "off");
	snprintf(says, sizeof(says), "rank %d has another result than the others", victim);
	flipper = (struct flipper){.last = 1, .prng.state = (uint64_t)victim};
	j.comm[victim]->engine->settings.trace = &trace;
	for (r = 0; r < j.n; r++) {
		in[r] = gci_calloc(COUNT, 4);
		out[r] = gci_calloc(COUNT, 4);
		put(in[r], r, 0);
		assert_int_equal(gcoll_iallreduce(in[r], out[r], COUNT, GCOLL_UINT32, GCOLL_SUM,
					 j.comm[r], &j.req[r]),
			0);
	}
	assert_int_equal(job_run(&j, status), 0);
	found = compare && flipper.flipped ? GCOLL_ERR_CORRUPT : 0;
	for (r = 0; r < j.n; r++) {
		same &= !memcmp(out[r], out[0], COUNT * sizeof(**out));
		if (status[r] != found)
			fail_msg("%s: rank %d of %d: %s", a->name, r, j.n,
				gcoll_strerror(status[r]));
		if (!found)
			continue;
		assert_int_equal(j.comm[r]->engine->failure.rank, victim);
		assert_non_null(strstr(j.comm[r]->engine->failure.text, says));
	}
	assert_int_equal(same, !flipper.flipped);
	n = j.n;
	job_close(&j);
	for (r = 0; r < n; r++) {
		gci_free(in[r]);
		gci_free(out[r]);
	}
	return flipper.flipped;
}

static void results_are_compared(void **state)
{
	const struct gci_algorithm *a;
	int victim, flips;

	(void)state;
	gci_each_algorithm (a) {
		if (a->kind != GCI_ALLREDUCE)
			continue;
		for (victim = flips = 0; victim < 5; victim++) {
			flips += spoil_result(a, (int[]){3, 2, 0}, victim, 1);
			spoil_result(a, (int[]){3, 2, 0}, victim, 0);
		}
		assert_true(flips > 0);
	}
}

static void who_has_the_odd_one(void **state)
{
	uint32_t most;
	int odd;

	(void)state;
	assert_true(gci_compare_same((uint32_t[]){7}, 1, &odd, &most));
	assert_true(gci_compare_same((uint32_t[]){7, 7, 7}, 3, &odd, &most));
	assert_false(gci_compare_same((uint32_t[]){1, 7, 7}, 3, &odd, &most));
	assert_int_equal(odd, 0);
	assert_int_equal(most, 7);
	assert_false(gci_compare_same((uint32_t[]){7, 1, 2, 7, 7}, 5, &odd, &most));
	assert_int_equal(odd, 1);
	assert_false(
		gci_compare_same((uint32_t[]){7, 7, 1, 2}, 4, &odd, &most)); /* half is not most */
	assert_int_equal(odd, -1);
	assert_false(gci_compare_same((uint32_t[]){1, 2}, 2, &odd, &most));
	assert_int_equal(odd, -1);
}

/* That, too, is said: nobody waits for a comparison that does not come. */
static void all_compare_or_none(void **state)
{
	int status[MAX_RANKS], r, told = 0;
	uint32_t x[2] = {1, 2};
	struct job j;

	(void)state;
	job_open(&j, (int[]){2, 0}, 0, 1, NULL);
	assert_int_equal(gcoll_comm_set(j.comm[1], "compare", "perhaps"), GCOLL_ERR_INVAL);
	assert_int_equal(gcoll_comm_set(j.comm[1], "compare", "on"), 0);
	for (r = 0; r < 2; r++)
		assert_int_equal(gcoll_iallreduce(GCOLL_IN_PLACE, &x[r], 1, GCOLL_UINT32, GCOLL_SUM,
					 j.comm[r], &j.req[r]),
			0);
	job_run(&j, status);
	for (r = 0; r < 2; r++)
		told += j.comm[r]->engine->failure.status == GCOLL_ERR_MISMATCH;
	assert_true(told > 0);
	job_close(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_takes_spoiled_data),
		cmocka_unit_test(the_error_names_the_rank),
		cmocka_unit_test(results_are_compared),
		cmocka_unit_test(who_has_the_odd_one),
		cmocka_unit_test(all_compare_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
