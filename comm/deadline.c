/* SPDX-License-Identifier: MIT */
#include "comm/deadline.h"

#include "collectives/models/limit.h"
#include "comm/comm.h"
#include "comm/op.h"
#include "comm/request.h"

#include <inttypes.h>
#include <stdio.h>

/* How often the requests are looked through, once that may be worth it. */
#define LOOK_NS GCI_NS_PER_S

/* What is under way of an operation at once should take. */
static uint64_t expected_ns(const struct gci_op *op)
{
	uint64_t ns = op->expected_ns, n = op->windows.n;

	if (!ns)
		ns = gci_limit_ns(&op->coll, op->comm->engine->settings.streams);
	return n > GCI_MAX_INSTANCES ? ns / n * GCI_MAX_INSTANCES : ns;
}

/* The longest that any operation under way may stand still. */
static uint64_t allowed_ns(const struct gci_engine *e)
{
	uint64_t most = 0, ns;
	struct gci_list *it, *op;

	gci_list_each (it, &e->comms) {
		const gcoll_comm *c = gci_container(it, gcoll_comm, link);

		gci_list_each (op, &c->ops) {
			ns = expected_ns(gci_container(op, struct gci_op, link));
			most = ns > most ? ns : most;
		}
	}
	if (most > UINT64_MAX / GCI_DEADLINE_SLACK)
		return UINT64_MAX;
	most *= GCI_DEADLINE_SLACK;
	return most > e->settings.floor_ns ? most : e->settings.floor_ns;
}

static void fail(struct gci_engine *e, int blame, const struct gci_tp_wait *w)
{
	char what[GCI_SIGNATURE_NBYTES], whom[256] = "other ranks";

	gci_req_name_oldest(e, what);
	if (w && w->nbytes)
		snprintf(whom, sizeof(whom),
			"rank %d (%s) to %s a message of %" PRIu64 " bytes (tag 0x%" PRIx32
			", %" PRIu64 " moved so far)",
			w->peer, e->hosts[w->peer], w->sends ? "take" : "send", w->nbytes,
			w->key.tag, w->moved);
	else if (w)
		snprintf(whom, sizeof(whom), "rank %d (%s)", w->peer, e->hosts[w->peer]);
	gci_engine_fail(e, GCOLL_ERR_TIMEOUT, blame,
		"%s: rank %d (%s) has waited %" PRIu64 ".%" PRIu64 " s for %s", what, e->rank,
		e->hosts[e->rank], e->waited_ns / GCI_NS_PER_S,
		e->waited_ns / (GCI_NS_PER_S / 10) % 10, whom);
}

/* As long as nothing moves, nothing that is looked at here changes, but the time. */
static void look(struct gci_engine *e)
{
	struct gci_tp_wait w;

	if (e->looked_ns && e->waited_ns - e->looked_ns < LOOK_NS)
		return;
	e->looked_ns = e->waited_ns;
	if (gci_tp_waits(e->tp, &w) && w.taken_up && e->waited_ns >= allowed_ns(e))
		fail(e, w.peer, &w);
}

uint64_t gci_deadline_left(const struct gci_engine *e)
{
	uint64_t least = gci_deadline_least(e);

	if (least == GCI_NEVER)
		return GCI_NEVER;
	/* Past the floor of automatic ones it is looked at them from time to time. */
	return e->waited_ns < least ? least - e->waited_ns : LOOK_NS;
}

void gci_deadline_count(struct gci_engine *e, uint64_t since_ns)
{
	struct gci_tp_wait w;

	if (e->activity != e->seen_activity || !e->active) {
		e->seen_activity = e->activity;
		e->waited_ns = e->looked_ns = 0;
		e->quiet = 0;
		return;
	}
	e->quiet = 1;
	if (since_ns)
		e->waited_ns += gci_now_ns() - since_ns;
	if (e->failure.status)
		return;
	/* Who waits too long for one who may just be late does not blame him. */
	if (e->waited_ns >= e->settings.op_timeout_ns)
		fail(e, -1, gci_tp_waits(e->tp, &w) ? &w : NULL);
	else if (e->settings.floor_ns && e->waited_ns >= e->settings.floor_ns)
		look(e);
}
