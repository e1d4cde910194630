/* SPDX-License-Identifier: MIT
 * Schedules of all ranks, and which SEND goes with which RECV. */
#include "collectives/sim/sim_impl.h"

#include "base/mem.h"
#include "base/prng.h"

#include <string.h>

struct sends {
	struct cell {
		int rank; /* 1 + the sender; 0: empty */
		uint32_t step;
	} * cells;
	uint64_t mask;
};

static int is_recv(const struct gci_step *s)
{
	return s->kind == GCI_STEP_RECV || s->kind == GCI_STEP_RECV_REDUCE;
}

static uint64_t hash(int src, int dst, uint32_t tag)
{
	return gci_digest(gci_digest(0, (uint64_t)src << 32 | (uint32_t)dst), tag);
}

static int allocate_sends(struct sends *t, const struct gci_shape *s, int nranks)
{
	uint64_t n = 0, cap = 16;
	uint32_t i;
	int r;

	for (r = 0; r < nranks; r++)
		for (i = 0; i < s->sched[r].nsteps; i++)
			n += s->sched[r].steps[i].kind == GCI_STEP_SEND;
	while (cap < 2 * n)
		cap *= 2;
	t->mask = cap - 1;
	t->cells = gci_calloc(cap, sizeof(*t->cells));
	return t->cells ? 0 : GCOLL_ERR_NOMEM;
}

static void insert_sends(struct sends *t, const struct gci_sched *s)
{
	uint32_t i;

	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];
		uint64_t at;

		if (p->kind != GCI_STEP_SEND)
			continue;
		for (at = hash(s->rank, p->peer, p->tag) & t->mask; t->cells[at].rank;
			at = (at + 1) & t->mask)
			;
		t->cells[at] = (struct cell){s->rank + 1, i};
	}
}

static const struct cell *find_send(
	const struct sends *t, const struct gci_shape *s, int dst, const struct gci_step *recv)
{
	uint64_t at = hash(recv->peer, dst, recv->tag) & t->mask;

	for (; t->cells[at].rank; at = (at + 1) & t->mask) {
		const struct cell *c = &t->cells[at];
		const struct gci_step *p = &s->sched[c->rank - 1].steps[c->step];

		if (c->rank - 1 == recv->peer && p->peer == dst && p->tag == recv->tag)
			return c;
	}
	return NULL;
}

/* GCOLL_ERR_INVAL where a RECV has no SEND of its length: no schedule that the verifier passes. */
static int match_recvs(const struct sends *t, struct gci_shape *s, int dst)
{
	const struct gci_sched *sched = &s->sched[dst];
	uint32_t i;

	for (i = 0; i < sched->nsteps; i++) {
		const struct gci_step *p = &sched->steps[i];
		const struct cell *c;

		if (!is_recv(p))
			continue;
		c = find_send(t, s, dst, p);
		if (!c || s->sched[p->peer].steps[c->step].src.length != p->dst.length)
			return GCOLL_ERR_INVAL;
		s->match[dst][i] = c->step;
		s->match[p->peer][c->step] = i;
		s->number[dst][i] = s->number[p->peer][c->step] = s->nmessages[dst]++;
	}
	return 0;
}

static int match_all(struct gci_shape *s, int nranks)
{
	struct sends t = {0};
	int r, rc = allocate_sends(&t, s, nranks);

	for (r = 0; r < nranks && !rc; r++)
		insert_sends(&t, &s->sched[r]);
	for (r = 0; r < nranks && !rc; r++)
		rc = match_recvs(&t, s, r);
	gci_free(t.cells);
	return rc;
}

int gci_shape_make(struct gci_shape *s, const struct gci_algorithm *a, const struct gci_coll *c,
	uint64_t most_steps)
{
	int r, rc = 0, n = c->topo->nranks;

	memset(s, 0, sizeof(*s));
	s->sched = gci_calloc((size_t)n, sizeof(*s->sched));
	s->match = gci_calloc((size_t)n, sizeof(*s->match));
	s->number = gci_calloc((size_t)n, sizeof(*s->number));
	s->nmessages = gci_calloc((size_t)n, sizeof(*s->nmessages));
	if (!s->sched || !s->match || !s->number || !s->nmessages)
		rc = GCOLL_ERR_NOMEM;
	for (r = 0; r < n && !rc; r++) {
		rc = gci_emit(a, c, r, &s->sched[r]);
		s->nsteps += s->sched[r].nsteps;
		if (!rc && most_steps && s->nsteps > most_steps)
			rc = GCOLL_ERR_INVAL;
		s->match[r] = rc ? NULL : gci_calloc(s->sched[r].nsteps, sizeof(**s->match));
		s->number[r] = rc ? NULL : gci_calloc(s->sched[r].nsteps, sizeof(**s->number));
		if (!rc && (!s->match[r] || !s->number[r]))
			rc = GCOLL_ERR_NOMEM;
	}
	if (!rc)
		rc = match_all(s, n);
	if (rc)
		gci_shape_free(s, n);
	return rc;
}

void gci_shape_free(struct gci_shape *s, int nranks)
{
	int r;

	for (r = 0; r < nranks; r++) {
		if (s->sched)
			gci_sched_free(&s->sched[r]);
		if (s->match)
			gci_free(s->match[r]);
		if (s->number)
			gci_free(s->number[r]);
	}
	gci_free(s->sched);
	gci_free(s->match);
	gci_free(s->number);
	gci_free(s->nmessages);
	memset(s, 0, sizeof(*s));
}
