/* SPDX-License-Identifier: MIT */
#include "comm/request.h"

#include "base/mem.h"
#include "comm/done.h"
#include "comm/loop.h"

#include <stdio.h>
#include <string.h>

/* ---- Callbacks: called outside of the transport, one after the other. */

/* This one is over and has a callback. */
static void gci_done_add(gcoll_req *r)
{
	if (!r->untold.next)
		gci_list_push(&r->comm->engine->untold, &r->untold);
}

/* True in a callback. */
static int gci_done_telling(const struct gci_engine *e)
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

/* ---- Requests: made, begun, waited for and freed. */

#define MOST_SPARE   16
#define SPARE_NBYTES 512 /* at most: messages, which come and go often */

static gcoll_req *take_spare(struct gci_engine *e, size_t size)
{
	gcoll_req *r = e->spare;

	if (!r || r->size != size)
		return NULL;
	e->spare = (gcoll_req *)r->link.next;
	e->nspare--;
	memset(r, 0, size);
	return r;
}

static void put_away(struct gci_engine *e, gcoll_req *r)
{
	if (r->size > SPARE_NBYTES || e->nspare == MOST_SPARE) {
		gci_free(r);
		return;
	}
	r->link.next = (struct gci_list *)e->spare;
	e->spare = r;
	e->nspare++;
}

void gci_reqs_free(struct gci_engine *e)
{
	while (e->spare) {
		gcoll_req *r = e->spare;

		e->spare = (gcoll_req *)r->link.next;
		gci_free(r);
	}
}

int gci_req_create(gcoll_comm *c, const struct gci_req_ops *ops, size_t size, gcoll_req **req)
{
	gcoll_req *r = take_spare(c->engine, size);

	if (!r)
		r = gci_calloc(1, size);
	*req = r;
	if (!r)
		return gci_req_error(c->engine, gci_engine_nomem(c->engine));
	r->ops = ops;
	r->size = size;
	r->comm = c;
	c->nrequests++;
	gci_list_push(&c->engine->requests, &r->link);
	return 0;
}

void gci_req_drop(gcoll_req *r)
{
	gcoll_comm *c = r->comm;

	if (r->active && !r->over)
		c->engine->active--;
	r->ops->drop(r);
	c->nrequests--;
	gci_list_del(&r->untold);
	gci_list_del(&r->link);
	put_away(c->engine, r);
}

/* Other ranks wait for this operation: they must learn that it will not come. */
int gci_req_give_up(gcoll_req **req)
{
	struct gci_engine *e = (*req)->comm->engine;

	gci_req_drop(*req);
	*req = NULL;
	return gci_req_error(e, gci_engine_nomem(e));
}

int gci_req_error(struct gci_engine *e, int status)
{
	if (!e->failure.status)
		return status;
	gci_engine_await_verdict(e, GCI_NEVER);
	return gci_comm_error(e->failure.status, "%s", e->failure.text);
}

static int begin(gcoll_req *r)
{
	struct gci_engine *e = r->comm->engine;
	int rc = gci_engine_check(e);

	if (rc)
		return gci_req_error(e, rc);
	if (e->finalizing)
		return gci_comm_error(GCOLL_ERR_ABORTED, "the rank has left the job");
	e->started = 1;
	gci_warm_begin(e);
	r->active = 1;
	r->over = r->status = r->awaited = 0;
	r->asked_ns = 0;
	e->active++;
	gci_loop_hold(e);
	gci_list_del(&r->link);
	gci_list_push(&e->requests, &r->link);
	rc = r->ops->start(r);
	gci_thread_nudge(e);
	if (!rc)
		return 0;
	r->active = 0;
	e->active--;
	return gci_req_error(e, rc);
}

int gci_req_launch(gcoll_req **req)
{
	int rc = begin(*req);

	if (rc) {
		gci_req_drop(*req);
		*req = NULL;
	}
	return rc;
}

int gci_req_may_wait(const struct gci_engine *e)
{
	if (gci_loop_looks(e))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"called from a callback of the program's loop, which is not to be run from "
			"there, expected the nonblocking form");
	if (!gci_done_telling(e))
		return 0;
	return gci_comm_error(GCOLL_ERR_INVAL,
		"called from a callback of gcoll_on_done, which must not wait, expected the "
		"nonblocking form");
}

int gci_req_keep(gcoll_req **req)
{
	(*req)->persistent = 1;
	return 0;
}

void gci_req_end(gcoll_req *r, int status)
{
	r->status = status;
	__atomic_store_n(&r->over, 1, __ATOMIC_RELEASE);
	r->comm->engine->active--;
	r->comm->engine->nended++;
	if (r->fn)
		gci_done_add(r);
}

void gci_req_name_oldest(const struct gci_engine *e, char out[GCI_SIGNATURE_NBYTES])
{
	struct gci_list *it;

	snprintf(out, GCI_SIGNATURE_NBYTES, "an operation");
	gci_list_each (it, &e->requests) {
		const gcoll_req *r = gci_container(it, gcoll_req, link);

		if (!r->active || r->over)
			continue;
		r->ops->name(r, out);
		return;
	}
}

/* A message waits quietly for a peer that never comes to it. Asked rarer and rarer: what is known
 * late has cost no more than as long again. */
static int ask_is_due(uint64_t *asked_ns, uint64_t waited_ns)
{
	if (waited_ns < *asked_ns)
		*asked_ns = 0; /* something came since */
	if (waited_ns < (*asked_ns ? 2 * *asked_ns : GCI_NS_PER_S))
		return 0;
	*asked_ns = waited_ns;
	return 1;
}

static void ask(gcoll_req *r)
{
	const struct gci_engine *e = r->comm->engine;

	if (e->waited_ns && r->ops->ask && e->ctl && ask_is_due(&r->asked_ns, e->waited_ns))
		r->ops->ask(r);
}

void gci_reqs_ask(struct gci_engine *e)
{
	struct gci_list *it;

	if (!e->ctl || e->failure.status || !ask_is_due(&e->asked_ns, e->waited_ns))
		return;
	gci_list_each (it, &e->requests) {
		gcoll_req *r = gci_container(it, gcoll_req, link);

		if (r->active && !r->over && r->ops->ask &&
			(r->fn || __atomic_load_n(&r->awaited, __ATOMIC_RELAXED)))
			r->ops->ask(r);
	}
}

uint64_t gci_reqs_ask_in(const struct gci_engine *e)
{
	uint64_t waited = e->waited_ns;

	if (!e->ctl)
		return GCI_NEVER;
	return waited < GCI_NS_PER_S ? GCI_NS_PER_S - waited : waited;
}

static int take_result(gcoll_req **req)
{
	gcoll_req *r = *req;
	struct gci_engine *e = r->comm->engine;
	int status = r->status;

	r->active = 0;
	if (!r->persistent) {
		gci_req_drop(r);
		*req = NULL;
	}
	if (!status)
		return 0;
	gci_comm_error(status, "%s", gcoll_strerror(status));
	return gci_req_error(e, status);
}

int gcoll_start(gcoll_req *r)
{
	int rc;

	if (!r)
		return gci_comm_error(GCOLL_ERR_INVAL, "the request is NULL");
	rc = gci_enter(r->comm->engine);
	if (rc)
		return rc;
	if (!r->persistent || r->active)
		rc = gci_comm_error(GCOLL_ERR_INVAL, "the request is under way already");
	else
		rc = begin(r);
	gci_leave(r->comm->engine);
	return rc;
}

static int told_elsewhere(void)
{
	return gci_comm_error(GCOLL_ERR_INVAL,
		"the request has a callback, which is called instead of being waited for");
}

/* True if its result can be told without waiting for more. */
static int is_over(const gcoll_req *r)
{
	return r->over && (!r->status || gci_engine_settled(r->comm->engine));
}

static int wait_for(gcoll_req **req)
{
	gcoll_req *r = *req;
	struct gci_engine *e = r->comm->engine;

	__atomic_store_n(&r->awaited, 1, __ATOMIC_RELAXED);
	while (e->thread && !is_over(r))
		gci_gate_wait(&e->thread->gate);
	while (!r->over) {
		gci_engine_progress(e, e->quiet ? GCI_NS_PER_S : GCI_NS_PER_S / 4);
		ask(r);
	}
	return take_result(req);
}

int gci_req_wait(gcoll_req **req)
{
	int rc = (*req)->over ? 0 : gci_req_may_wait((*req)->comm->engine);

	return rc ? rc : wait_for(req);
}

int gci_req_run(gcoll_req **req)
{
	int rc = gci_req_may_wait((*req)->comm->engine);

	if (rc) {
		gci_req_drop(*req);
		return rc;
	}
	(*req)->blocking = 1;
	rc = gci_req_launch(req);
	return rc ? rc : wait_for(req);
}

int gcoll_wait(gcoll_req **req)
{
	struct gci_engine *e;
	int rc;

	if (!req || !*req)
		return 0;
	e = (*req)->comm->engine;
	rc = gci_enter(e);
	if (rc)
		return rc;
	if ((*req)->active)
		rc = (*req)->fn ? told_elsewhere() : gci_req_wait(req);
	gci_leave(e);
	return rc;
}

/* What can be done now, without a thread of ours. A loop of the program's is not run from here: the
 * test may be in one of its callbacks. */
static void move(gcoll_req *r)
{
	struct gci_engine *e = r->comm->engine;

	if (r->over || e->loop || gci_done_telling(e)) {
		r->awaited = 1;
		gci_engine_check(e);
		return;
	}
	gci_engine_progress(e, 0);
	if (!r->over)
		ask(r);
}

int gcoll_test(gcoll_req **req, int *done)
{
	struct gci_engine *e;
	int rc = 0;

	if (!done)
		return gci_comm_error(GCOLL_ERR_INVAL, "done is NULL");
	*done = 1;
	if (!req || !*req)
		return 0;
	e = (*req)->comm->engine;
	rc = gci_begin_call(e);
	if (rc)
		return rc;
	/* Whoever tests again and again does not hold up the thread that it waits for. */
	if (e->thread && !(*req)->fn && !__atomic_load_n(&(*req)->over, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&(*req)->awaited, 1, __ATOMIC_RELAXED);
		*done = !(*req)->active;
		gci_end_call(e);
		return 0;
	}
	gci_lock(e);
	if ((*req)->active && (*req)->fn) {
		rc = told_elsewhere();
	} else if ((*req)->active) {
		if (!e->thread)
			move(*req);
		*done = is_over(*req);
		rc = *done ? take_result(req) : 0;
	}
	gci_leave(e);
	return rc;
}

int gcoll_req_free(gcoll_req **req)
{
	struct gci_engine *e;
	int rc;

	if (!req || !*req)
		return 0;
	e = (*req)->comm->engine;
	rc = gci_enter(e);
	if (rc)
		return rc;
	if ((*req)->active) {
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"the request is under way, expected gcoll_wait or gcoll_test before");
	} else {
		gci_req_drop(*req);
		*req = NULL;
	}
	gci_leave(e);
	return rc;
}
