/* SPDX-License-Identifier: MIT
 * The verifier: set-up, the order of its passes, and how it words a fault. */
#include "collectives/verify/verify_impl.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int gci_verify_fault(struct gci_verifier *v, enum gci_fault kind, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (v->report->fault == GCI_FAULT_NONE)
		v->report->fault = kind;
	return gci_error_set(v->e, GCOLL_ERR_VERIFY, "%s", text);
}

int gci_verify_fault_at(const struct gci_at *at, enum gci_fault kind, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return gci_verify_fault(at->v, kind, "rank %d step %u %s: %s", at->rank, at->step,
		gci_step_name(gci_at_step(at)->kind), text);
}

int gci_verify_nomem(struct gci_verifier *v)
{
	v->report->fault = GCI_FAULT_LIMIT;
	return gci_error_set(v->e, GCOLL_ERR_NOMEM, "out of memory");
}

static void hold(struct gci_verify_rank *st, int rank, struct gci_slice s, uint64_t shift)
{
	gci_imap_set(&st->held[s.buffer], s.offset, s.offset + s.length,
		(struct gci_ival){(uint64_t)rank, shift});
}

/* The rank's input stands where the operation has it. Its elements are counted as they stand in the
 * input, but a block of its own in OUT, in place, as it would stand in IN. */
static void hold_input(struct gci_verifier *v, struct gci_verify_rank *st, int r)
{
	const struct gci_coll *c = v->c;
	int in_place = !gci_has_in(c, r), i;
	struct gci_slice s;

	switch (c->kind) {
	case GCI_BCAST:
	case GCI_SCATTER:
		if (r != c->root)
			return;
		if (c->kind == GCI_BCAST)
			hold(st, r, gci_vector(c, GCI_IN), 0);
		for (i = 0; c->kind == GCI_SCATTER && i < v->nranks; i++)
			hold(st, r, gci_in_block(c, r, i), 0);
		return;
	case GCI_REDUCE:
	case GCI_ALLREDUCE:
		hold(st, r, gci_vector(c, gci_input(c, r)), 0);
		return;
	case GCI_GATHER:
	case GCI_ALLGATHER:
		s = gci_in_block(c, r, r);
		hold(st, r, s, in_place ? gci_own_at(c, r) - s.offset : 0);
		return;
	case GCI_REDUCE_SCATTER:
	case GCI_ALLTOALL:
		for (i = 0; i < v->nranks; i++)
			hold(st, r, in_place ? gci_out_block(c, r, i) : gci_in_block(c, r, i), 0);
		return;
	default:
		return;
	}
}

static int init_rank(struct gci_verifier *v, int r)
{
	const struct gci_sched *s = v->scheds[r];
	struct gci_verify_rank *st = &v->ranks[r];
	const struct gci_coll *c = v->c;
	int i;

	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_init(&st->held[i]);
	st->match = gci_calloc(s->nsteps, sizeof(*st->match));
	st->started = gci_calloc(s->nsteps, 1);
	if (c->kind == GCI_BARRIER)
		st->known = gci_calloc(s->nsteps, v->exprs.nwords * sizeof(*st->known));
	if (!st->match || !st->started || (c->kind == GCI_BARRIER && !st->known))
		return gci_verify_nomem(v);
	hold_input(v, st, r);
	return st->held[GCI_IN].failed || st->held[GCI_OUT].failed ? gci_verify_nomem(v) : 0;
}

static void free_rank(struct gci_verify_rank *st)
{
	int i;

	gci_ready_free(&st->ready);
	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_free(&st->held[i]);
	gci_free(st->match);
	gci_free(st->started);
	gci_free(st->known);
}

static int run_passes(struct gci_verifier *v, int check_senders)
{
	int r, rc = gci_verify_shape(v);

	for (r = 0; !rc && r < v->nranks; r++)
		rc = init_rank(v, r);
	if (!rc)
		rc = gci_verify_matching(v);
	for (r = 0; !rc && r < v->nranks; r++)
		rc = gci_verify_order(v, r);
	for (r = 0; !rc && r < v->nranks; r++)
		rc = gci_ready_init(&v->ranks[r].ready, v->scheds[r]);
	if (!rc)
		rc = gci_verify_execute(v);
	if (!rc)
		rc = gci_verify_canonical(v);
	for (r = 0; !rc && r < v->nranks; r++)
		rc = gci_verify_result(v, r);
	if (!rc)
		rc = gci_verify_traffic(v, check_senders);
	/* Maps and the readiness core do not know of reports. */
	return rc == GCOLL_ERR_NOMEM ? gci_verify_nomem(v) : rc;
}

int gci_verify(const struct gci_sched *const *scheds, const struct gci_coll *c, int check_senders,
	struct gci_verify_report *report, struct gci_error *e)
{
	struct gci_verify_report unused;
	size_t n = (size_t)c->topo->nranks;
	struct gci_verifier v = {.scheds = scheds, .c = c, .nranks = c->topo->nranks, .e = e};
	int rc;

	gci_imap_init(&v.reference);
	v.report = report ? report : &unused;
	memset(v.report, 0, sizeof(*v.report));
	v.ranks = gci_calloc(n, sizeof(*v.ranks));
	v.queue = gci_calloc(n, sizeof(*v.queue));
	v.queued = gci_calloc(n, 1);
	if (!v.ranks || !v.queue || !v.queued || gci_exprs_init(&v.exprs, v.nranks))
		rc = gci_verify_nomem(&v);
	else
		rc = run_passes(&v, check_senders);
	for (size_t r = 0; v.ranks && r < n; r++)
		free_rank(&v.ranks[r]);
	gci_exprs_free(&v.exprs);
	gci_imap_free(&v.reference);
	gci_free(v.ranks);
	gci_free(v.queue);
	gci_free(v.queued);
	return rc;
}
