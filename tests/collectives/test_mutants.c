/* SPDX-License-Identifier: MIT
 * Is what the verifier accepts right? Every algorithm's schedules are broken in every single way
 * of some kinds; what is still accepted must also pass an oracle that runs it in many random
 * interleavings. */
#include "tests/test.h"

#include "base/mem.h"
#include "tests/collectives/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_STEP UINT32_MAX

/* A kind of mutation: applies its k-th variant at a step of a rank. Returns 1 when done, 0 when
 * it does not apply there, -1 when there are no more variants. */
struct mutation {
	const char *name;
	int (*apply)(struct scheds *x, int rank, uint32_t step, uint32_t k);
	unsigned long made, rejected, harmless;
	/* Of a sample of the rejected ones: what the oracle found wrong, too. */
	unsigned long sampled, found;
};

static int is_message(const struct gci_step *p)
{
	return p->kind <= GCI_RECV_REDUCE;
}

static int reduces(const struct gci_step *p)
{
	return p->kind == GCI_RECV_REDUCE || p->kind == GCI_REDUCE;
}

/* The step at the other end of a message, or NO_STEP when an earlier mutation took it away. */
static uint32_t counterpart(const struct scheds *x, int rank, uint32_t step)
{
	const struct gci_step *p = &x->s[rank].steps[step];
	uint32_t i = 0;

	for (; p->peer >= 0 && i < x->s[p->peer].nsteps; i++) {
		const struct gci_step *q = &x->s[p->peer].steps[i];

		if (is_message(q) && q->peer == rank && q->tag == p->tag &&
			(q->kind == GCI_SEND) != (p->kind == GCI_SEND))
			return i;
	}
	return NO_STEP;
}

static int drop_dependency(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	if (k >= x->s[rank].steps[step].ndeps)
		return -1;
	sched_drop_dep(&x->s[rank], step, k);
	return 1;
}

/* The step waits for the one before instead. */
static int redirect_dependency(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	uint32_t *d;

	if (k >= x->s[rank].steps[step].ndeps)
		return -1;
	d = &x->s[rank].deps[x->s[rank].steps[step].deps + k];
	if (!*d)
		return 0;
	--*d;
	sched_relink(&x->s[rank]);
	return 1;
}

static int add_dependency(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	if (k >= step)
		return -1;
	sched_add_dep(&x->s[rank], step, step - 1 - k);
	return 1;
}

static int change_tag(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step];

	if (!is_message(p) || k >= 3)
		return -1;
	if (k == 2 && p->tag == x->s[rank].steps[0].tag)
		return 0;
	p->tag = k < 2 ? p->tag ^ (k + 1) : x->s[rank].steps[0].tag;
	return 1;
}

static int swap_peers(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_sched *s = &x->s[rank];
	struct gci_step *p = &s->steps[step], *q;
	int peer = p->peer;

	if (!is_message(p) || step + 1 + k >= s->nsteps || k >= 8)
		return -1;
	q = p + 1 + k;
	if (!is_message(q) || q->peer == p->peer)
		return 0;
	p->peer = q->peer;
	q->peer = peer;
	return 1;
}

/* Two steps of one kind change what they read and write. */
static int swap_contents(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_sched *s = &x->s[rank];
	struct gci_step *p = &s->steps[step], *q;
	struct gci_slice src = p->src, dst = p->dst;

	if (step + 1 + k >= s->nsteps || k >= 8)
		return -1;
	q = p + 1 + k;
	if (q->kind != p->kind || q->src.length != src.length || q->dst.length != dst.length)
		return 0;
	p->src = q->src;
	p->dst = q->dst;
	q->src = src;
	q->dst = dst;
	return 1;
}

static int shift_by(struct gci_slice *s, int by)
{
	if (!s->length || (by < 0 && !s->offset))
		return 0;
	s->offset += (uint64_t)(int64_t)by;
	return 1;
}

static int shift_slice(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step];
	int by = k & 1 ? 1 : -1;

	if (k >= 6)
		return -1;
	if (k < 2)
		return p->kind != GCI_RECV && shift_by(&p->src, by);
	if (k < 4)
		return p->kind != GCI_SEND && shift_by(&p->dst, by);
	return (reduces(p) || p->kind == GCI_COPY) && shift_by(&p->src, by) &&
	       shift_by(&p->dst, by);
}

/* On both sides of a message. */
static int shift_message(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step], *q;

	if (p->kind != GCI_SEND || k >= 2 || counterpart(x, rank, step) == NO_STEP)
		return -1;
	q = &x->s[p->peer].steps[counterpart(x, rank, step)];
	if (q->kind == GCI_RECV_REDUCE)
		shift_by(&q->src, k ? 1 : -1);
	return shift_by(&p->src, k ? 1 : -1) && shift_by(&q->dst, k ? 1 : -1);
}

static int shorten_message(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step], *q;

	if (p->kind != GCI_SEND || k >= 2 || counterpart(x, rank, step) == NO_STEP)
		return -1;
	if (!p->src.length)
		return 0;
	q = &x->s[p->peer].steps[counterpart(x, rank, step)];
	p->src.length--;
	q->dst.length--;
	q->src.length -= q->kind == GCI_RECV_REDUCE;
	p->src.offset += k;
	q->dst.offset += k;
	q->src.offset += k;
	return 1;
}

static int change_buffer(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step];
	struct gci_slice *s = k < 2 ? &p->src : &p->dst;

	if (k >= 4)
		return -1;
	if ((k < 2 && p->kind == GCI_RECV) || (k >= 2 && p->kind == GCI_SEND) || !s->length)
		return 0;
	s->buffer = (enum gci_buffer)((s->buffer + 1 + k % 2) % GCI_NBUFFERS);
	return 1;
}

static int drop_message(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	const struct gci_step *p = &x->s[rank].steps[step];
	int peer = p->peer;
	uint32_t other;

	if (p->kind != GCI_SEND || k)
		return -1;
	other = counterpart(x, rank, step);
	if (other == NO_STEP)
		return 0;
	sched_drop_step(&x->s[rank], step);
	sched_drop_step(&x->s[peer], other);
	return 1;
}

static int drop_local(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	if (is_message(&x->s[rank].steps[step]) || k)
		return -1;
	sched_drop_step(&x->s[rank], step);
	return 1;
}

static int receive_only(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step];

	if (!reduces(p) || k)
		return -1;
	p->kind = p->kind == GCI_REDUCE ? GCI_COPY : GCI_RECV;
	return 1;
}

static int flip_swapped(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	if (!reduces(&x->s[rank].steps[step]) || k)
		return -1;
	x->s[rank].steps[step].swapped ^= 1;
	return 1;
}

static int reduce_twice(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step again = x->s[rank].steps[step], send;
	uint32_t other;

	if (!reduces(&again) || k)
		return -1;
	if (again.kind == GCI_RECV_REDUCE) {
		other = counterpart(x, rank, step);
		if (other == NO_STEP)
			return 0;
		send = x->s[again.peer].steps[other];
		again.src = again.dst;
		again.tag = send.tag = UINT32_MAX;
		sched_insert(&x->s[again.peer], other, send);
	}
	sched_insert(&x->s[rank], step, again);
	return 1;
}

static struct mutation mutations[] = {
	{.name = "drop a dependency", .apply = drop_dependency},
	{.name = "redirect a dependency", .apply = redirect_dependency},
	{.name = "add a dependency", .apply = add_dependency},
	{.name = "change a tag", .apply = change_tag},
	{.name = "swap two peers", .apply = swap_peers},
	{.name = "swap two contents", .apply = swap_contents},
	{.name = "shift a slice", .apply = shift_slice},
	{.name = "shift a message", .apply = shift_message},
	{.name = "shorten a message", .apply = shorten_message},
	{.name = "change a buffer", .apply = change_buffer},
	{.name = "drop a message", .apply = drop_message},
	{.name = "drop a local step", .apply = drop_local},
	{.name = "receive, not reduce", .apply = receive_only},
	{.name = "flip swapped", .apply = flip_swapped},
	{.name = "reduce twice", .apply = reduce_twice},
};

#define NMUTATIONS  (sizeof(mutations) / sizeof(*mutations))
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
			for (i = 0; i < NMUTATIONS; i++)
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

/* Applies a random mutation and says so in `where`; false when none was found that applies. */
static int mutate_somehow(struct scheds *x, struct gci_prng *prng, char *where, size_t size)
{
	int tries;

	for (tries = 0; tries < 20; tries++) {
		struct mutation *m = &mutations[gci_prng_below(prng, NMUTATIONS)];
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
	struct gci_prng prng = {(uint64_t)(a - gci_algorithms)};
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
	struct gci_prng prng = {(uint64_t)(a - gci_algorithms)};
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

static void mutate(const struct gci_algorithm *a, const struct gci_coll *c, const int *sizes)
{
	struct scheds x;
	const char *wrong;

	scheds_emit(&x, a, c, sizes);
	if (scheds_verify(&x))
		fail_msg("%s: %s", a->name, x.e.text);
	wrong = ask_oracle(&x, 4 * ORACLE_RUNS, 1);
	if (wrong)
		fail_msg("%s %s, %d ranks: %s", gci_kind_name(a->kind), a->name, x.n, wrong);
	mutate_once(&x, a);
	mutate_twice(&x, a);
	order_somehow(&x, a);
	scheds_free(&x);
}

static void every_algorithm(void **state)
{
	static const int sizes[][4] = {{2, 0}, {3, 0}, {5, 0}, {2, 2, 0}, {1, 3, 0}, {2, 1, 2, 0}};
	const struct gci_algorithm *a;
	size_t i;

	(void)state;
	for (a = gci_algorithms; a->name; a++)
		for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct gci_coll c = {.count = 7,
				.esize = 4,
				.root = a->kind == GCI_BCAST && i % 2,
				.in_place = a->kind == GCI_ALLREDUCE && i % 2,
				.segment = a->uses_segment ? 3 : 0,
				.senders = a->uses_senders && i == 4 ? 1 : 0};

			mutate(a, &c, sizes[i]);
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
	for (i = 0; i < NMUTATIONS; i++) {
		const struct mutation *m = &mutations[i];

		print(m);
		assert_true(m->made > 0);
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
	assert_true(orders.rejected && orders.harmless);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_algorithm),
		cmocka_unit_test(the_oracle_finds_most_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
