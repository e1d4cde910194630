/* SPDX-License-Identifier: MIT */
#include "comm/done.h"

#include "comm/request.h"

#include <stdio.h>

void gci_done_add(gcoll_req *r)
{
	if (!r->untold.next)
		gci_list_push(&r->comm->engine->untold, &r->untold);
}

int gci_done_telling(const struct gci_engine *e)
{
	return e->telling && pthread_equal(e->teller, pthread_self());
}

/* The callback may free the request, or begin it again. */
static void tell(gcoll_req *r)
{
	struct gci_engine *e = r->comm->engine;
	gcoll_done_fn *fn = r->fn;
	void *ctx = r->ctx;
	int status = r->status;

	r->active = 0;
	if (!r->persistent)
		gci_req_drop(r);
	if (status) {
		gci_comm_error(status, "%s", gcoll_strerror(status));
		status = gci_req_error(e, status);
	}
	gci_unlock(e);
	fn(status, ctx);
	gci_lock(e);
}

static void tell_all(struct gci_engine *e)
{
	struct gci_list batch;

	if (e->telling || gci_list_empty(&e->untold) || !gci_engine_settled(e))
		return;
	e->telling = 1;
	e->teller = pthread_self();
	/* Only what is over now: a callback that begins what is over at once must not keep us. */
	gci_list_init(&batch);
	while (!gci_list_empty(&e->untold)) {
		struct gci_list *first = e->untold.next;

		gci_list_del(first);
		gci_list_push(&batch, first);
	}
	while (!gci_list_empty(&batch)) {
		gcoll_req *r = gci_container(batch.next, gcoll_req, untold);

		gci_list_del(&r->untold);
		tell(r);
	}
	e->telling = 0;
}

/* While the rank leaves, requests may end because others left before: that is no failure. What has
 * become of them is told in the end. */
void gci_done_tell(struct gci_engine *e)
{
	if (!e->finalizing)
		tell_all(e);
}

void gci_done_cancel(struct gci_engine *e)
{
	struct gci_list *it;

	if (!e->failure.status) {
		e->failure.status = GCOLL_ERR_ABORTED;
		snprintf(e->failure.text, sizeof(e->failure.text),
			"cancelled: rank %d has left the job", e->rank);
	}
	e->has_verdict = 1;
	gci_list_each (it, &e->requests) {
		gcoll_req *r = gci_container(it, gcoll_req, link);

		if (!r->active || r->over || !r->fn)
			continue;
		gci_req_end(r, e->failure.status);
	}
	tell_all(e);
}

int gcoll_on_done(gcoll_req **req, gcoll_done_fn *fn, void *ctx)
{
	struct gci_engine *e;
	gcoll_req *r;
	int rc;

	if (!req || !*req || !fn)
		return gci_comm_error(GCOLL_ERR_INVAL, "%s is NULL", fn ? "req" : "fn");
	r = *req;
	e = r->comm->engine;
	rc = gci_enter(e);
	if (rc)
		return rc;
	if (r->fn && r->active) {
		rc = gci_comm_error(
			GCOLL_ERR_INVAL, "the request is under way and has a callback already");
	} else {
		r->fn = fn;
		r->ctx = ctx;
		if (!r->persistent)
			*req = NULL;
		if (r->active && r->over)
			gci_done_add(r);
		gci_thread_nudge(e);
	}
	gci_leave(e);
	return rc;
}
