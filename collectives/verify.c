/* SPDX-License-Identifier: MIT
 * The verifier: set-up, the order of its passes, and how it words a fault. */
#include "collectives/verify_impl.h"

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

static int init_rank(struct gci_verifier *v, int r)
{
	const struct gci_sched *s = v->scheds[r];
	struct gci_verify_rank *st = &v->ranks[r];
	const struct gci_coll *c = v->c;
	enum gci_buffer holds = c->kind == GCI_ALLREDUCE && c->in_place ? GCI_OUT : GCI_IN;
	int i;

	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_init(&st->held[i]);
	st->match = gci_calloc(s->nsteps, sizeof(*st->match));
	st->started = gci_calloc(s->nsteps, 1);
	if (c->kind == GCI_BARRIER)
		st->known = gci_calloc(s->nsteps, v->exprs.nwords * sizeof(*st->known));
	if (!st->match || !st->started || (c->kind == GCI_BARRIER && !st->known))
		return gci_verify_nomem(v);
	if (c->kind == GCI_ALLREDUCE || (c->kind == GCI_BCAST && r == c->root))
		gci_imap_set(&st->held[holds], 0, c->count, (struct gci_ival){(uint64_t)r, 0});
	return st->held[holds].failed ? gci_verify_nomem(v) : 0;
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
