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

void gcoll_comm_abort(gcoll_comm *c, const char *reason)
{
	if (!c)
		return;
	gci_enter(c->engine);
	gci_engine_fail(c->engine, GCOLL_ERR_ABORTED, c->engine->rank, "%s",
		reason && *reason ? reason : "no reason was given");
	gci_thread_nudge(c->engine);
	gci_leave(c->engine);
}
