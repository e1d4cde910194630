/* SPDX-License-Identifier: MIT
 * The public calls that start nothing, and errors. */
#include "comm/comm.h"
#include "comm/thread.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[GCI_CTL_TEXT + 64];

const char *gcoll_last_error(void)
{
	return last_error;
}

int gci_comm_error(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	return status;
}

int gcoll_rank(const gcoll_comm *c)
{
	return c ? c->rank : -1;
}

int gcoll_size(const gcoll_comm *c)
{
	return c ? c->size : 0;
}

const char *gcoll_host(const gcoll_comm *c, int rank)
{
	return c && rank >= 0 && rank < c->size ? gci_comm_host(c, rank) : "";
}

int gcoll_cluster(const gcoll_comm *c, int rank)
{
	return c && rank >= 0 && rank < c->size ? c->topo.cluster[rank] : -1;
}

int gcoll_clusters(const gcoll_comm *c)
{
	return c ? c->topo.nclusters : 0;
}

/* Another thread is in a call, which the launcher's word will end. */
static void tell_launcher(struct gci_engine *e, const char *reason)
{
	struct gci_ctl_failure f = {.status = GCOLL_ERR_ABORTED, .rank = e->rank};

	snprintf(f.text, sizeof(f.text), "%s", reason);
	if (e->ctl)
		gci_control_fail(e->ctl, &f);
}

void gcoll_comm_abort(gcoll_comm *c, const char *reason)
{
	struct gci_engine *e = c ? c->engine : NULL;
	int rc = c ? gci_enter(e) : 0;

	if (!reason || !*reason)
		reason = "no reason was given";
	if (rc && rc != GCOLL_ERR_FORKED)
		tell_launcher(e, reason);
	if (!c || rc)
		return;
	/* Where a failure has ended an epoch, this may be why the rank does not go on to the next one.
	 */
	if (e->failure.status && e->ctl && gci_control_survives(e->ctl))
		tell_launcher(e, reason);
	gci_engine_fail(e, GCOLL_ERR_ABORTED, e->rank, "%s", reason);
	gci_thread_nudge(e);
	gci_leave(e);
}
