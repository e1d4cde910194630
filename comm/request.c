/* SPDX-License-Identifier: MIT */
#include "comm/request.h"

#include "base/mem.h"

#include <stdio.h>

int gci_req_create(gcoll_comm *c, const struct gci_req_ops *ops, size_t size, gcoll_req **req)
{
	gcoll_req *r = gci_calloc(1, size);

	*req = r;
	if (!r)
		return gci_req_error(c->engine, gci_engine_nomem(c->engine));
	r->ops = ops;
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
	gci_list_del(&r->link);
	gci_free(r);
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
	gci_engine_await_verdict(e);
	return gci_comm_error(e->failure.status, "%s", e->failure.text);
}

static int begin(gcoll_req *r)
{
	struct gci_engine *e = r->comm->engine;
	int rc = gci_engine_check(e);

	if (rc)
		return gci_req_error(e, rc);
	e->started = 1;
	r->active = 1;
	r->over = r->status = 0;
	r->asked_ns = 0;
	e->active++;
	gci_list_del(&r->link);
	gci_list_push(&e->requests, &r->link);
	rc = r->ops->start(r);
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

int gci_req_run(gcoll_req **req)
{
	int rc;

	(*req)->blocking = 1;
	rc = gci_req_launch(req);
	return rc ? rc : gcoll_wait(req);
}

int gci_req_keep(gcoll_req **req)
{
	(*req)->persistent = 1;
	return 0;
}

void gci_req_end(gcoll_req *r, int status)
{
	r->over = 1;
	r->status = status;
	r->comm->engine->active--;
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
static void ask(gcoll_req *r)
{
	const struct gci_engine *e = r->comm->engine;

	if (e->waited_ns < r->asked_ns)
		r->asked_ns = 0; /* something came since */
	if (!r->ops->ask || !e->ctl ||
		e->waited_ns < (r->asked_ns ? 2 * r->asked_ns : GCI_NS_PER_S))
		return;
	r->asked_ns = e->waited_ns;
	r->ops->ask(r);
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
	if (!r)
		return gci_comm_error(GCOLL_ERR_INVAL, "the request is NULL");
	if (!r->persistent || r->active)
		return gci_comm_error(GCOLL_ERR_INVAL, "the request is under way already");
	return begin(r);
}

int gcoll_wait(gcoll_req **req)
{
	if (!req || !*req || !(*req)->active)
		return 0;
	while (!(*req)->over) {
		gci_engine_progress((*req)->comm->engine, GCI_NS_PER_S);
		ask(*req);
	}
	return take_result(req);
}

int gcoll_test(gcoll_req **req, int *done)
{
	int over = 1;

	if (!done)
		return gci_comm_error(GCOLL_ERR_INVAL, "done is NULL");
	*done = 1;
	if (!req || !*req || !(*req)->active)
		return 0;
	if (!(*req)->over)
		gci_engine_progress((*req)->comm->engine, 0);
	over = (*req)->over;
	if (!over)
		ask(*req);
	*done = over;
	return over ? take_result(req) : 0;
}

int gcoll_req_free(gcoll_req **req)
{
	if (!req || !*req)
		return 0;
	if ((*req)->active)
		return gci_comm_error(GCOLL_ERR_INVAL,
			"the request is under way, expected gcoll_wait or gcoll_test before");
	gci_req_drop(*req);
	*req = NULL;
	return 0;
}
