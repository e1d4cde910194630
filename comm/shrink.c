/* SPDX-License-Identifier: MIT
 * After a failure: what the ranks that live agree upon, and how they go on. The launcher is where
 * they meet (launcher/members.h); the control connection does not depend on any other rank. */
#include "base/mem.h"
#include "comm/request.h"
#include "comm/thread.h"
#include "comm/world_impl.h"

#include <stdio.h>

#define LOOK_EVERY GCI_NS_PER_S

/* The world of the present epoch, and nobody else at this. Takes hold of it. */
static int enter(gcoll_comm *c, const char *what, struct gci_world **out)
{
	struct gci_engine *e = c->engine;
	int rc = gci_enter(e);

	if (rc)
		return rc;
	if (c != e->world || !e->job)
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"%s of a communicator that was made from the world, expected the world",
			what);
	if (!rc)
		rc = gci_req_may_wait(e);
	if (!rc && c != e->job->epoch->comm)
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"%s of a world that was shrunk, expected the new one", what);
	if (!rc && __atomic_exchange_n(&e->job->joining, 1, __ATOMIC_ACQ_REL))
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"another thread is in gcoll_comm_agree or gcoll_comm_shrink, "
			"expected one at a time");
	gci_unlock(e);
	if (rc)
		gci_end_call(e);
	*out = e->job;
	return rc;
}

static void leave(gcoll_comm *c)
{
	__atomic_store_n(&c->engine->job->joining, 0, __ATOMIC_RELEASE);
	gci_end_call(c->engine);
}

/* ---- agree */

/* Others may need this rank's progress for what is under way. */
static int await_answer(struct gci_world *w, struct gci_ctl_agree *m, struct gci_ctl_failure *why)
{
	struct gci_engine *e = w->epoch->comm->engine;
	uint64_t wait_ns;
	int rc;

	for (;;) {
		gci_lock(e);
		/* A thread of ours makes progress by itself; after a failure there is none. */
		wait_ns = e->thread || gci_engine_check(e) ? LOOK_EVERY : 0;
		if (!wait_ns && !(rc = gci_control_agreed(w->ctl, 0, m, why)))
			gci_engine_progress(e, LOOK_EVERY);
		gci_unlock(e);
		if (wait_ns)
			rc = gci_control_agreed(w->ctl, wait_ns, m, why);
		if (rc)
			return rc;
	}
}

static int agree(struct gci_world *w, uint64_t *flags)
{
	struct gci_ctl_failure why;
	struct gci_ctl_agree m;

	gci_control_agree(w->ctl, w->number, *flags);
	if (await_answer(w, &m, &why) < 0)
		return gci_comm_error(why.status, "%s", why.text);
	if (m.status != GCOLL_ERR_MISMATCH)
		*flags = m.flags;
	return m.status ? gci_comm_error(m.status, "%s", m.text) : 0;
}

int gcoll_comm_agree(gcoll_comm *c, uint64_t *flags)
{
	struct gci_world *w = NULL;
	int rc;

	if (!c || !flags)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s is NULL", c ? "flags" : "the communicator");
	rc = enter(c, "gcoll_comm_agree", &w);
	if (rc)
		return rc;
	rc = agree(w, flags);
	leave(c);
	return rc;
}

/* ---- shrink */

/* What there must be before others are told. */
static int may_shrink(const struct gci_world *w)
{
	struct gci_engine *e = w->epoch->comm->engine;
	int rc = 0;

	gci_lock(e);
	if (!w->start.start.survives)
		rc = gci_comm_error(GCOLL_ERR_UNSUPPORTED,
			"gcoll_comm_shrink: this job ends with its first failure, expected "
			"gridcoll-run --survive");
	else if (!gci_engine_check(e))
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"gcoll_comm_shrink: nothing has failed, expected an error of a call "
			"before, or gcoll_comm_abort");
	else
		gci_engine_await_verdict(e, GCI_NEVER);
	gci_unlock(e);
	return rc;
}

/* The others, too, have to begin again. */
static int tell_failure(struct gci_world *w, const struct gci_ctl_survivors *s, struct gci_error *e)
{
	struct gci_ctl_failure f = {.status = e->status, .rank = -1};
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->ranks[i] == (uint32_t)w->env.rank)
			f.rank = (int32_t)i;
	snprintf(f.text, sizeof(f.text), "%.*s", (int)sizeof(f.text) - 1, e->text);
	gci_control_fail(w->ctl, &f);
	return gci_comm_error(e->status, "%s", e->text);
}

/* The old connections are closed before the launcher is told, and so before there are new ones. */
static int shrink(struct gci_world *w, gcoll_comm **out)
{
	struct gci_ctl_survivors s;
	struct gci_ctl_failure f;
	struct gci_error e = {0};
	int rc = may_shrink(w);

	if (rc)
		return rc;
	if (w->epoch->comm->engine->ctl) /* not closed before, in vain */
		gci_epoch_close(w);
	gci_control_shrink(w->ctl, w->number);
	if (gci_control_survivors(w->ctl, GCI_NEVER, &s, &f) < 0)
		return gci_comm_error(f.status, "%s", f.text);
	w->number = s.epoch;
	if (gci_epoch_open(w, s.epoch, s.ranks, s.n, &e))
		rc = tell_failure(w, &s, &e);
	else
		*out = w->epoch->comm;
	gci_free(s.ranks);
	return rc;
}

int gcoll_comm_shrink(gcoll_comm *c, gcoll_comm **out)
{
	struct gci_world *w = NULL;
	int rc;

	if (!c || !out)
		return gci_comm_error(
			GCOLL_ERR_INVAL, "%s is NULL", c ? "out" : "the communicator");
	rc = enter(c, "gcoll_comm_shrink", &w);
	if (rc)
		return rc;
	rc = shrink(w, out);
	leave(c);
	return rc;
}

/* ---- who is who */

/* The world in which `c` was made. */
static const struct gci_epoch *epoch_of(const gcoll_comm *c)
{
	const struct gci_epoch *p = c->engine->job ? c->engine->job->epoch : NULL;

	while (p && p->comm->engine != c->engine)
		p = p->before;
	return p;
}

/* What a rank keeps through all worlds of a job. */
static uint32_t first_number(const gcoll_comm *c, const struct gci_epoch *p, int rank)
{
	uint32_t in_world = (uint32_t)gci_comm_world_rank(c, rank);

	return p ? p->first[in_world] : in_world;
}

int gcoll_comm_translate(const gcoll_comm *from, int rank, const gcoll_comm *to)
{
	const struct gci_epoch *p, *q;
	uint32_t first;
	int r;

	if (!from || !to || rank < 0 || rank >= from->size)
		return -1;
	p = epoch_of(from);
	q = epoch_of(to);
	first = first_number(from, p, rank);
	for (r = 0; r < to->size; r++)
		if (first_number(to, q, r) == first)
			return r;
	return -1;
}

int gcoll_failed_rank(gcoll_comm *c)
{
	int rc = c ? gci_enter(c->engine)
		   : gci_comm_error(GCOLL_ERR_INVAL, "the communicator is NULL"),
	    rank;

	if (rc)
		return rc;
	gci_engine_check(c->engine);
	if (c->engine->failure.status && c->engine->ctl)
		gci_engine_await_verdict(c->engine, GCI_NEVER);
	rank = c->engine->failure.status ? c->engine->failure.rank : -1;
	gci_leave(c->engine);
	return rank < 0 ? -1 : gcoll_comm_translate(c->engine->world, rank, c);
}
