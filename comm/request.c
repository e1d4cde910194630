/* SPDX-License-Identifier: MIT */
#include "comm/request.h"

#include <stddef.h>
#include <stdint.h>

int gci_req_create(gcoll_comm *c, const struct gci_req_ops *ops, size_t size, gcoll_req **req)
{
	gcoll_req *r = gci_req_alloc(c->engine, size);

	*req = r;
	if (!r)
		return gci_req_error(c->engine, gci_engine_nomem(c->engine));
	r->ops = ops;
	r->comm = c;
	c->nrequests++;
	return 0;
}

/* Other ranks wait for this operation: they must learn that it will not come. */
int gci_req_give_up(gcoll_req **req)
{
	struct gci_engine *e = (*req)->comm->engine;

	gci_req_drop(*req);
	*req = NULL;
	return gci_req_error(e, gci_engine_nomem(e));
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
	if (e->flow.begins)
		e->flow.begins(e);
	r->active = 1;
	r->over = r->status = r->awaited = 0;
	r->asked_ns = 0;
	e->reqs.active++;
	gci_loop_hold(e);
	gci_list_del(&r->link);
	gci_list_push(&e->reqs.all, &r->link);
	rc = r->ops->start(r);
	gci_thread_nudge(e);
	if (!rc)
		return 0;
	r->active = 0;
	e->reqs.active--;
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

int gci_req_keep(gcoll_req **req)
{
	(*req)->persistent = 1;
	return 0;
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

/* True if its result is final. */
static int is_over(const gcoll_req *r)
{
	return r->over && (!r->status || gci_engine_settled(r->comm->engine));
}

static int wait_for(gcoll_req **req)
{
	gcoll_req *r = *req;
	struct gci_engine *e = r->comm->engine;

	__atomic_store_n(&r->awaited, 1, __ATOMIC_RELAXED);
	while (e->callers.thread && !is_over(r))
		gci_gate_wait(&e->callers.gate);
	while (!r->over) {
		gci_engine_progress(e, e->wait.quiet ? GCI_NS_PER_S : GCI_NS_PER_S / 4);
		gci_req_ask(r);
	}
	return take_result(req);
}

int gci_req_wait(gcoll_req **req)
{
	int rc = (*req)->over ? 0 : gci_may_wait((*req)->comm->engine);

	return rc ? rc : wait_for(req);
}

int gci_req_run(gcoll_req **req)
{
	int rc = gci_may_wait((*req)->comm->engine);

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

	if (r->over || e->callers.loop || gci_done_is_telling(e)) {
		r->awaited = 1;
		gci_engine_check(e);
		return;
	}
	gci_engine_progress(e, 0);
	if (!r->over)
		gci_req_ask(r);
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
	/* gcoll_test in a loop must not keep the progress thread out of the gate. */
	if (e->callers.thread && !(*req)->fn && !__atomic_load_n(&(*req)->over, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&(*req)->awaited, 1, __ATOMIC_RELAXED);
		*done = !(*req)->active;
		gci_end_call(e);
		return 0;
	}
	gci_lock(e);
	if ((*req)->active && (*req)->fn) {
		rc = told_elsewhere();
	} else if ((*req)->active) {
		if (!e->callers.thread)
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

/* ---- arguments of calls */

int gci_check_type(enum gcoll_type type, uint64_t count)
{
	size_t size = gcoll_type_size(type);

	if (type == GCOLL_ELEMENT_BASE)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"GCOLL_ELEMENT of 0 or too many bytes, expected an element type of 1 to %d",
			GCOLL_ELEMENT_MAX_NBYTES);
	if (!size)
		return gci_comm_error(GCOLL_ERR_INVAL, "no such element type: %d", (int)type);
	if (count > PTRDIFF_MAX / size)
		return gci_comm_error(GCOLL_ERR_INVAL, "more elements than memory can hold");
	return 0;
}

int gci_check_root(const char *what, int root, const gcoll_comm *c)
{
	if (root >= 0 && root < c->size)
		return 0;
	return gci_comm_error(GCOLL_ERR_INVAL, "%s %d, expected 0 to %d", what, root, c->size - 1);
}
