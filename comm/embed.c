/* SPDX-License-Identifier: MIT
 * For programs that wait in a loop of their own. */
#include "comm/done.h"
#include "comm/request.h"

/* Begins the call. */
static int enter(gcoll_comm *c, const char *what)
{
	int rc = c ? gci_enter(c->engine)
		   : gci_comm_error(GCOLL_ERR_INVAL, "the communicator is NULL");

	if (rc)
		return rc;
	if (c->engine->thread || c->engine->loop)
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"%s is not for a world with a %s, which makes progress by itself", what,
			c->engine->loop ? "loop of the program's" : "progress thread");
	if (rc)
		gci_leave(c->engine);
	return rc;
}

int gcoll_comm_fd(gcoll_comm *c)
{
	int rc = enter(c, "gcoll_comm_fd"), fd;

	if (rc)
		return rc;
	fd = gci_tp_fd(c->engine->tp);
	if (fd < 0)
		fd = gci_req_error(c->engine, fd);
	gci_leave(c->engine);
	return fd;
}

uint64_t gcoll_comm_timeout_ns(gcoll_comm *c)
{
	uint64_t ns;

	if (enter(c, "gcoll_comm_timeout_ns"))
		return GCOLL_NEVER;
	ns = gci_engine_sleep_ns(c->engine);
	gci_leave(c->engine);
	return ns;
}

/* After a failure: all that can be known about it, within the time there is. */
static int failed(struct gci_engine *e, uint64_t timeout_ns)
{
	gci_engine_await_verdict(e, timeout_ns);
	if (!gci_engine_settled(e))
		return 0;
	gci_done_tell(e);
	return gci_req_error(e, e->failure.status);
}

int gcoll_progress(gcoll_comm *c, uint64_t timeout_ns)
{
	struct gci_engine *e;
	int rc;

	if (!c)
		return gci_comm_error(GCOLL_ERR_INVAL, "the communicator is NULL");
	e = c->engine;
	rc = gci_enter(e);
	if (rc)
		return rc;
	rc = gci_req_may_wait(e);
	if (!rc && (e->thread ? gci_engine_check(e) : gci_engine_progress(e, timeout_ns)))
		rc = failed(e, e->thread ? 0 : timeout_ns);
	gci_leave(e);
	return rc;
}
