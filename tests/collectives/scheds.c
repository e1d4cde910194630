/* SPDX-License-Identifier: MIT */
#include "tests/collectives/scheds.h"

#include "base/mem.h"
#include "collectives/blocks/blocks.h"
#include "tests/collectives/topologies.h"

#include <stdlib.h>
#include <string.h>

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

void scheds_begin_with(struct scheds *x, const struct gci_coll *c, const int *sizes, int mixed)
{
	int r;

	memset(x, 0, sizeof(*x));
	topology_make(&x->topo, sizes, mixed, 3);
	x->c = *c;
	x->c.topo = &x->topo;
	x->n = x->topo.nranks;
	for (r = 0; r < x->n; r++) {
		gci_builder_init(&x->b[r], r, x->n);
		x->b[r].in_len = gci_in_extent(&x->c, r);
		x->b[r].out_len = gci_out_extent(&x->c, r);
	}
}

void scheds_begin(struct scheds *x, enum gci_kind kind, const int *sizes, uint64_t count)
{
	struct gci_coll c = {.kind = kind, .count = count, .esize = 4};

	scheds_begin_with(x, &c, sizes, 0);
}

void scheds_end(struct scheds *x)
{
	int r;

	for (r = 0; r < x->n; r++)
		if (gci_builder_end(&x->b[r], &x->s[r]))
			abort();
}

static void emit_on(struct scheds *x, const struct gci_algorithm *a, const struct gci_coll *c,
	const int *sizes, int mixed)
{
	int r;

	memset(x, 0, sizeof(*x));
	topology_make(&x->topo, sizes, mixed, 3);
	x->c = *c;
	x->c.kind = a->kind;
	x->c.topo = &x->topo;
	x->n = x->topo.nranks;
	x->check_senders = (a->traits & GCI_CAPS_SENDERS) != 0;
	for (r = 0; r < x->n; r++)
		if (gci_emit(a, &x->c, r, &x->s[r]))
			abort();
}

void scheds_emit(
	struct scheds *x, const struct gci_algorithm *a, const struct gci_coll *c, const int *sizes)
{
	emit_on(x, a, c, sizes, 0);
}

void scheds_emit_mixed(
	struct scheds *x, const struct gci_algorithm *a, const struct gci_coll *c, const int *sizes)
{
	emit_on(x, a, c, sizes, 1);
}

void scheds_free(struct scheds *x)
{
	int r;

	for (r = 0; r < x->n; r++)
		gci_sched_free(&x->s[r]);
	gci_topo_free(&x->topo);
}

int scheds_verify(struct scheds *x)
{
	const struct gci_sched *list[SCHEDS_MAX] = {NULL};
	int r;

	for (r = 0; r < x->n; r++)
		list[r] = &x->s[r];
	gci_error_clear(&x->e);
	return gci_verify(list, &x->c, x->check_senders, &x->report, &x->e);
}

static void *copy_of(const void *p, size_t n, size_t size)
{
	void *q = must(gci_calloc(n, size));

	if (n)
		memcpy(q, p, n * size);
	return q;
}

void sched_copy(struct gci_sched *to, const struct gci_sched *from)
{
	size_t n = from->nsteps, ndeps = from->next_at[n];

	*to = *from;
	to->steps = copy_of(from->steps, n, sizeof(*to->steps));
	to->deps = copy_of(from->deps, ndeps, sizeof(*to->deps));
	to->next = copy_of(from->next, ndeps, sizeof(*to->next));
	to->next_at = copy_of(from->next_at, n + 1, sizeof(*to->next_at));
}

static uint32_t count_deps(const struct gci_sched *s)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->nsteps; i++)
		n += s->steps[i].ndeps;
	return n;
}

/* For each step in turn, all the later ones that wait for it. */
void sched_relink(struct gci_sched *s)
{
	uint32_t from, i, k, n = 0;

	gci_free(s->next);
	gci_free(s->next_at);
	s->next = must(gci_calloc(count_deps(s), sizeof(*s->next)));
	s->next_at = must(gci_calloc((size_t)s->nsteps + 1, sizeof(*s->next_at)));
	for (from = 0; from < s->nsteps; from++) {
		s->next_at[from] = n;
		for (i = 0; i < s->nsteps; i++)
			for (k = 0; k < s->steps[i].ndeps; k++)
				if (s->deps[s->steps[i].deps + k] == from)
					s->next[n++] = i;
	}
	s->next_at[s->nsteps] = n;
}

/* Puts steps and deps in place of the old ones; steps[].ndeps are right already. */
static void replace(struct gci_sched *s, struct gci_step *steps, uint32_t nsteps, uint32_t *deps)
{
	uint32_t i, at = 0;

	gci_free(s->steps);
	gci_free(s->deps);
	s->steps = steps;
	s->nsteps = nsteps;
	s->deps = deps;
	for (i = 0; i < nsteps; at += steps[i++].ndeps)
		steps[i].deps = at;
	sched_relink(s);
}

void sched_drop_dep(struct gci_sched *s, uint32_t step, uint32_t i)
{
	uint32_t at = s->steps[step].deps + i, n = count_deps(s), k;

	memmove(s->deps + at, s->deps + at + 1, (n - at - 1) * sizeof(*s->deps));
	s->steps[step].ndeps--;
	for (k = step + 1; k < s->nsteps; k++)
		s->steps[k].deps--;
	sched_relink(s);
}

void sched_add_dep(struct gci_sched *s, uint32_t step, uint32_t earlier)
{
	uint32_t at = s->steps[step].deps, n = count_deps(s), k;

	s->deps = must(gci_reallocarray(s->deps, n + 1, sizeof(*s->deps)));
	memmove(s->deps + at + 1, s->deps + at, (n - at) * sizeof(*s->deps));
	s->deps[at] = earlier;
	s->steps[step].ndeps++;
	for (k = step + 1; k < s->nsteps; k++)
		s->steps[k].deps++;
	sched_relink(s);
}

void sched_drop_step(struct gci_sched *s, uint32_t step)
{
	const struct gci_step *gone = &s->steps[step];
	struct gci_step *steps = must(gci_calloc(s->nsteps, sizeof(*steps)));
	uint32_t *deps = must(gci_calloc((size_t)count_deps(s) * (gone->ndeps + 1), sizeof(*deps)));
	uint32_t i, k, n = 0, at = 0;

	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];
		uint32_t first = at, j;

		if (i == step)
			continue;
		for (k = 0; k < p->ndeps; k++) {
			uint32_t d = s->deps[p->deps + k];

			for (j = 0; d == step && j < gone->ndeps; j++)
				deps[at++] = s->deps[gone->deps + j];
			if (d != step)
				deps[at++] = d - (d > step);
		}
		steps[n] = *p;
		steps[n++].ndeps = at - first;
	}
	replace(s, steps, n, deps);
}

void sched_insert(struct gci_sched *s, uint32_t after, struct gci_step add)
{
	struct gci_step *steps = must(gci_calloc((size_t)s->nsteps + 1, sizeof(*steps)));
	uint32_t *deps = must(gci_calloc(2 * (size_t)count_deps(s) + 1, sizeof(*deps)));
	uint32_t i, k, n = 0, at = 0;

	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];
		uint32_t first = at;

		for (k = 0; k < p->ndeps; k++) {
			uint32_t d = s->deps[p->deps + k];

			deps[at++] = d + (d > after);
			if (d == after)
				deps[at++] = after + 1;
		}
		steps[n] = *p;
		steps[n++].ndeps = at - first;
		if (i != after)
			continue;
		deps[at++] = after;
		steps[n] = add;
		steps[n++].ndeps = 1;
	}
	replace(s, steps, n, deps);
}
