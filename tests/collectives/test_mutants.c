/* SPDX-License-Identifier: MIT
 * Is what the verifier accepts right? Every algorithm's schedules are broken in every single way
 * of some kinds; what is still accepted must also pass an oracle that runs it in many random
 * interleavings. GCI_ALL and GCI_ONLY in the environment are those of prove.h. */
#include "tests/test.h"

#include "base/mem.h"
#include "tests/collectives/mutations.h"
#include "tests/collectives/oracle.h"
#include "tests/collectives/prove.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORACLE_RUNS 60

static struct mutation pairs = {.name = "random pairs"};
static struct mutation orders = {.name = "random further order"};

/* The first thing that goes wrong in `nruns` runs, or NULL. */
static const char *ask_oracle(const struct scheds *x, unsigned nruns, uint64_t seed)
{
	struct oracle *o = oracle_new(x);
	const char *wrong = o ? NULL : "malformed";
	unsigned i;

	for (i = 0; i < nruns && !wrong; i++)
		wrong = oracle_run(o, seed * 1000 + i);
	oracle_free(o);
	return wrong;
}

/* Of mutants whose name is `m`'s; `where` describes this one. */
static void judge(struct scheds *x, struct mutation *m, const char *where)
{
	const char *wrong;

	m->made++;
	if (scheds_verify(x)) {
		m->rejected++;
		assert_int_not_equal(x->report.fault, GCI_FAULT_NONE);
		if (x->report.fault == GCI_FAULT_SENDERS || m->rejected % 16)
			return;
		m->sampled++;
		m->found += ask_oracle(x, ORACLE_RUNS, m->made) != NULL;
		return;
	}
	wrong = ask_oracle(x, ORACLE_RUNS, m->made);
	if (wrong)
		fail_msg("%s, %d ranks: %s is accepted, but: %s", gci_kind_name(x->c.kind), x->n,
			where, wrong);
	m->harmless++;
}

static void copy_all(struct scheds *x, const struct scheds *sound)
{
	int r;

	x->topo = sound->topo;
	x->c = sound->c;
	x->check_senders = sound->check_senders;
	x->n = sound->n;
	for (r = 0; r < x->n; r++)
		sched_copy(&x->s[r], &sound->s[r]);
}

static void free_all(struct scheds *x)
{
	int r;

	for (r = 0; r < x->n; r++)
		gci_sched_free(&x->s[r]);
}

/* All single mutations. */
static void mutate_once(const struct scheds *sound, const struct gci_algorithm *a)
{
	char where[200];
	uint32_t step, k;
	size_t i;
	int r, applied;

	for (r = 0; r < sound->n; r++)
		for (step = 0; step < sound->s[r].nsteps; step++)
			for (i = 0; mutations[i].name; i++)
				for (k = 0, applied = 0; applied >= 0; k++) {
					struct scheds x;

					copy_all(&x, sound);
					applied = mutations[i].apply(&x, r, step, k);
					snprintf(where, sizeof(where),
						"%s, rank %d step %u, %s (%u)", a->name, r, step,
						mutations[i].name, k);
					if (applied > 0)
						judge(&x, &mutations[i], where);
					free_all(&x);
				}
}

static size_t count_mutations(void)
{
	size_t n = 0;

	while (mutations[n].name)
		n++;
	return n;
}

/* Applies a random mutation and says so in `where`; false when none was found that applies. */
static int mutate_somehow(struct scheds *x, struct gci_prng *prng, char *where, size_t size)
{
	int tries;

	for (tries = 0; tries < 20; tries++) {
		struct mutation *m = &mutations[gci_prng_below(prng, count_mutations())];
		int r = (int)gci_prng_below(prng, (uint64_t)x->n);
		uint32_t step, k = (uint32_t)gci_prng_below(prng, 3);

		if (!x->s[r].nsteps)
			continue;
		step = (uint32_t)gci_prng_below(prng, x->s[r].nsteps);
		snprintf(where, size, "%s (%u) at rank %d step %u", m->name, k, r, step);
		if (m->apply(x, r, step, k) > 0)
			return 1;
	}
	return 0;
}

/* Random pairs of mutations, of which the second may mend what the first broke. */
static void mutate_twice(const struct scheds *sound, const struct gci_algorithm *a)
{
	struct gci_prng prng = {gci_digest_bytes(0, a->name, strlen(a->name))};
	char where[400], first[150], second[150];
	int tries;

	for (tries = 0; tries < 400; tries++) {
		struct scheds x;

		copy_all(&x, sound);
		if (mutate_somehow(&x, &prng, first, sizeof(first)) &&
			mutate_somehow(&x, &prng, second, sizeof(second))) {
			snprintf(where, sizeof(where), "%s: %s, %s", a->name, first, second);
			judge(&x, &pairs, where);
		}
		free_all(&x);
	}
}

/* More order can do harm in one way only, and then in every run: verifier and oracle must agree
 * both ways. (Seeds that are multiples of four are rendezvous runs.) */
static void order_somehow(const struct scheds *sound, const struct gci_algorithm *a)
{
	struct gci_prng prng = {gci_digest_bytes(0, a->name, strlen(a->name))};
	uint64_t tries, density;
	uint32_t step;
	int r;

	for (tries = 0; tries < 100; tries++) {
		struct scheds x;
		struct oracle *o;
		const char *wrong;

		copy_all(&x, sound);
		density = 1 + gci_prng_below(&prng, 6);
		for (r = 0; r < x.n; r++)
			for (step = 1; step < x.s[r].nsteps; step++)
				if (!gci_prng_below(&prng, density))
					sched_add_dep(&x.s[r], step,
						(uint32_t)gci_prng_below(&prng, step));
		o = oracle_new(&x);
		wrong = oracle_run(o, 4 * tries);
		orders.made++;
		if (scheds_verify(&x)) {
			orders.rejected++;
			assert_int_equal(x.report.fault, GCI_FAULT_DEADLOCK);
			assert_non_null(wrong);
			assert_string_equal(wrong, "deadlock");
		} else {
			orders.harmless++;
			assert_null(wrong);
		}
		oracle_free(o);
		free_all(&x);
	}
}

/* One operation of an algorithm, to be broken. */
struct subject {
	int sizes[4], mixed;
	struct gci_coll c;
};

static void mutate(const struct gci_algorithm *a, const struct subject *t)
{
	struct scheds x;
	const char *wrong;

	if (t->mixed)
		scheds_emit_mixed(&x, a, &t->c, t->sizes);
	else
		scheds_emit(&x, a, &t->c, t->sizes);
	if (!gci_ineligible(a, &x.c)) {
		if (scheds_verify(&x))
			fail_msg("%s %s: %s", gci_kind_name(a->kind), a->name, x.e.text);
		wrong = ask_oracle(&x, ORACLE_RUNS, 1);
		if (wrong)
			fail_msg(
				"%s %s, %d ranks: %s", gci_kind_name(a->kind), a->name, x.n, wrong);
		mutate_once(&x, a);
		mutate_twice(&x, a);
		order_somehow(&x, a);
	}
	scheds_free(&x);
}

static int has_blocks(enum gci_kind kind)
{
	return kind >= GCI_REDUCE_SCATTER && kind <= GCI_ALLTOALL;
}

static int can_be_in_place(enum gci_kind kind)
{
	return kind != GCI_BCAST && kind != GCI_REDUCE_SCATTER && kind != GCI_BARRIER;
}

/* Blocks of different lengths or with gaps between them. */
static void lay_out_blocks(struct gci_coll *c, size_t i)
{
	static const uint64_t counts[] = {2, 0, 3, 1, 2};
	static const uint64_t both[] = {1, 2, 0, 2, 0, 1, 0, 1, 2, 1, 2, 0, 0, 3, 1, 2};

	c->count = 2;
	if (i == 2)
		c->counts = c->kind == GCI_ALLTOALL ? both : counts;
	if (i != 4)
		return;
	c->stride = 4;
	c->shift = 1;
}

static struct subject subject_of(const struct gci_algorithm *a, size_t i)
{
	static const int sizes[][4] = {{2, 0}, {3, 0}, {4, 0}, {2, 2, 0}, {1, 3, 0}, {2, 1, 2, 0}};
	int reduces =
		a->kind == GCI_REDUCE || a->kind == GCI_ALLREDUCE || a->kind == GCI_REDUCE_SCATTER;
	struct subject t = {.mixed = i == 3 || i == 4,
		.c = {.kind = a->kind,
			.count = 7,
			.esize = 4,
			.root = gci_kind_has_root(a->kind) && i % 2,
			.in_place = can_be_in_place(a->kind) && i % 2,
			.order = reduces ? (enum gci_order)(i % 3) : GCI_ANY_ORDER,
			.segment = a->traits & GCI_USES_SEGMENT ? 3 : 0,
			.senders = a->traits & GCI_USES_SENDERS && i == 4 ? 1 : 0}};

	memcpy(t.sizes, sizes[i], sizeof(t.sizes));
	if (has_blocks(a->kind))
		lay_out_blocks(&t.c, i);
	return t;
}

/* Each algorithm on one of the topologies, or on all of them. */
static void every_algorithm(void **state)
{
	const struct gci_algorithm *a;
	const char *all = getenv("GCI_ALL");
	size_t i, nth = 0;

	(void)state;
	gci_each_algorithm (a) {
		nth++;
		for (i = 0; i < 6; i++) {
			struct subject t = subject_of(a, i);

			if (prove_left_out(a) || (!all && i != nth % 6))
				continue;
			mutate(a, &t);
		}
	}
}

static void print(const struct mutation *m)
{
	print_message("%-22s %6lu made, %6lu rejected, %5lu harmless; oracle found %lu of %lu\n",
		m->name, m->made, m->rejected, m->harmless, m->found, m->sampled);
}

/* What the oracle is worth: it finds most of what the verifier rejects. The verifier also rejects
 * what happens to end well, as a race between equal values. */
static void the_oracle_finds_most_of_it(void **state)
{
	struct mutation all = {.name = "all single ones"};
	size_t i;

	(void)state;
	for (i = 0; mutations[i].name; i++) {
		const struct mutation *m = &mutations[i];

		print(m);
		assert_true(m->made > 0 || getenv("GCI_ONLY"));
		all.made += m->made;
		all.rejected += m->rejected;
		all.harmless += m->harmless;
		all.sampled += m->sampled;
		all.found += m->found;
	}
	print(&all);
	print(&pairs);
	print(&orders);
	assert_true(all.found > all.sampled / 10 * 9);
	assert_true((orders.rejected && orders.harmless) || getenv("GCI_ONLY"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_algorithm),
		cmocka_unit_test(the_oracle_finds_most_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
