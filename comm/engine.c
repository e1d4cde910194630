/* SPDX-License-Identifier: MIT */
#include "comm/engine.h"

#include "base/log.h"
#include "base/mem.h"
#include "collectives/blocks/windows.h"
#include "collectives/grid/grid.h"
#include "comm/comm.h"
#include "comm/run.h"
#include "transport/taps.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERDICT_WAIT (3 * GCI_NS_PER_S)
#define VERDICT_LOOK (10 * GCI_NS_PER_MS) /* between two looks, when it is late */
#define DUE_EARLY_NS (GCI_NS_PER_MS / 2)  /* who waits may wait a millisecond too long */
#define DEADLINE_LOOK \
	GCI_NS_PER_S /* how often what waits is looked at, once that may be worth it */

/* ---- errors of calls */

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

/* ---- failures */

uint64_t gci_engine_patience(const struct gci_engine *e, uint64_t ns)
{
	return e->job.grid ? ns + 2 * gci_grid_held_ns(e->job.grid) : ns;
}

void gci_engine_fail(struct gci_engine *e, int status, int rank, const char *fmt, ...)
{
	va_list ap;

	if (e->failure.status)
		return;
	e->failed.at_ns = gci_now_ns();
	e->failure.status = status;
	e->failure.rank = rank;
	va_start(ap, fmt);
	vsnprintf(e->failure.text, sizeof(e->failure.text), fmt, ap);
	va_end(ap);
	gci_log(GCI_LOG_INFO, "rank %d: %s", e->rank, e->failure.text);
	if (e->job.ctl)
		e->job.launcher->fail(e->job.ctl, &e->failure);
	gci_tp_fail(e->tp, status);
}

void gci_engine_ask_call(struct gci_engine *e, int peer, uint32_t comm, uint64_t op)
{
	if (e->job.ctl && !e->failure.status)
		e->job.launcher->ask_call(e->job.ctl,
			&(struct gci_ctl_call){.rank = (uint32_t)peer, .comm = comm, .op = op});
}

int gci_engine_nomem(struct gci_engine *e)
{
	gci_engine_fail(e, GCOLL_ERR_NOMEM, e->rank, "rank %d (%s) is out of memory", e->rank,
		e->hosts[e->rank]);
	return GCOLL_ERR_NOMEM;
}

int gci_engine_hear(struct gci_engine *e)
{
	struct gci_ctl_failure f;

	if (e->job.launcher->verdict(e->job.ctl, &f)) {
		if (!e->failure.status)
			gci_tp_fail(e->tp, f.status);
		e->failure = f;
		e->failed.has_verdict = 1;
	}
	return e->failure.status;
}

static uint64_t verdict_until(const struct gci_engine *e)
{
	return e->failed.at_ns + gci_engine_patience(e, VERDICT_WAIT);
}

/* The launcher's silence counts, and not that of a process which was stopped. */
static int verdict_is_late(const struct gci_engine *e)
{
	struct gci_ctl_failure f;

	return e->job.launcher->looked_ns(e->job.ctl) >= verdict_until(e) &&
	       !e->job.launcher->verdict(e->job.ctl, &f);
}

static void take_budgets(struct gci_engine *e)
{
	struct gci_ctl_budget b;

	while (e->job.ctl && e->job.launcher->budget(e->job.ctl, &b)) {
		e->at_will = 1;
		if (e->flow.budget)
			e->flow.budget(e, b.from, b.to, b.bps);
	}
}

int gci_engine_settled(const struct gci_engine *e)
{
	return !e->failure.status || !e->job.ctl || e->failed.has_verdict || verdict_is_late(e);
}

void gci_engine_await_verdict(struct gci_engine *e, uint64_t timeout_ns)
{
	uint64_t start = gci_now_ns();

	gci_engine_check(e);
	while (!gci_engine_settled(e) && gci_now_ns() - start < timeout_ns) {
		gci_sleep_ns(VERDICT_LOOK);
		gci_engine_check(e);
	}
}

void gci_engine_check_parting(struct gci_engine *e)
{
	const struct gci_tp_failure *f = &e->failed.parting;

	if (f->status && !e->failure.status && verdict_is_late(e) &&
		!e->job.launcher->all_gone(e->job.ctl))
		gci_engine_fail(e, f->status, f->peer < 0 ? e->rank : f->peer, "%s", f->text);
}

void gci_engine_lost(struct gci_engine *e, const struct gci_tp_failure *f)
{
	/* If all have said that they leave, some are just faster. The launcher knows of deaths. */
	if (e->finalizing && f->status == GCOLL_ERR_PEER) {
		e->failed.parting = *f;
		e->failed.at_ns = gci_now_ns();
		return;
	}
	gci_engine_fail(e, f->status, f->peer < 0 ? e->rank : f->peer, "%s", f->text);
}

/* ---- requests: made, ended and freed */

#define MOST_SPARE   16
#define SPARE_NBYTES 512 /* at most: messages, which come and go often */

static gcoll_req *take_spare(struct gci_engine *e, size_t size)
{
	gcoll_req *r = e->reqs.spare;

	if (!r || r->size != size)
		return NULL;
	e->reqs.spare = (gcoll_req *)r->link.next;
	e->reqs.nspare--;
	memset(r, 0, size);
	return r;
}

static void put_away(struct gci_engine *e, gcoll_req *r)
{
	if (r->size > SPARE_NBYTES || e->reqs.nspare == MOST_SPARE) {
		gci_free(r);
		return;
	}
	r->link.next = (struct gci_list *)e->reqs.spare;
	e->reqs.spare = r;
	e->reqs.nspare++;
}

static void free_spare(struct gci_engine *e)
{
	while (e->reqs.spare) {
		gcoll_req *r = e->reqs.spare;

		e->reqs.spare = (gcoll_req *)r->link.next;
		gci_free(r);
	}
}

gcoll_req *gci_req_alloc(struct gci_engine *e, size_t size)
{
	gcoll_req *r = take_spare(e, size);

	if (!r)
		r = gci_calloc(1, size);
	if (!r)
		return NULL;
	r->size = size;
	gci_list_push(&e->reqs.all, &r->link);
	return r;
}

void gci_req_drop(gcoll_req *r)
{
	struct gci_engine *e = r->comm->engine;

	if (r->active && !r->over)
		e->reqs.active--;
	r->ops->drop(r);
	r->comm->nrequests--;
	gci_list_del(&r->untold);
	gci_list_del(&r->link);
	put_away(e, r);
}

int gci_req_error(struct gci_engine *e, int status)
{
	if (!e->failure.status)
		return status;
	gci_engine_await_verdict(e, GCI_NEVER);
	return gci_comm_error(e->failure.status, "%s", e->failure.text);
}

/* ---- callbacks */

void gci_done_add(gcoll_req *r)
{
	if (!r->untold.next)
		gci_list_push(&r->comm->engine->reqs.untold, &r->untold);
}

int gci_done_is_telling(const struct gci_engine *e)
{
	return e->reqs.telling && pthread_equal(e->reqs.teller, pthread_self());
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

	if (e->reqs.telling || gci_list_empty(&e->reqs.untold) || !gci_engine_settled(e))
		return;
	e->reqs.telling = 1;
	e->reqs.teller = pthread_self();
	/* Only what is over now: a callback that begins what is over at once must not keep us. */
	gci_list_init(&batch);
	while (!gci_list_empty(&e->reqs.untold)) {
		struct gci_list *first = e->reqs.untold.next;

		gci_list_del(first);
		gci_list_push(&batch, first);
	}
	while (!gci_list_empty(&batch)) {
		gcoll_req *r = gci_container(batch.next, gcoll_req, untold);

		gci_list_del(&r->untold);
		tell(r);
	}
	e->reqs.telling = 0;
}

/* While the rank leaves, requests may end because others left before: that is no failure. What has
 * become of them is told in the end. */
void gci_done_tell(struct gci_engine *e)
{
	if (!e->finalizing)
		tell_all(e);
}

void gci_req_end(gcoll_req *r, int status)
{
	r->status = status;
	__atomic_store_n(&r->over, 1, __ATOMIC_RELEASE);
	r->comm->engine->reqs.active--;
	r->comm->engine->reqs.nended++;
	if (r->fn)
		gci_done_add(r);
}

/* The transport is gone: tells all that have a callback and are under way that they are not. */
static void cancel(struct gci_engine *e)
{
	struct gci_list *it;

	if (!e->failure.status) {
		e->failure.status = GCOLL_ERR_ABORTED;
		snprintf(e->failure.text, sizeof(e->failure.text),
			"cancelled: rank %d has left the job", e->rank);
	}
	e->failed.has_verdict = 1;
	gci_list_each (it, &e->reqs.all) {
		gcoll_req *r = gci_container(it, gcoll_req, link);

		if (!r->active || r->over || !r->fn)
			continue;
		gci_req_end(r, e->failure.status);
	}
	tell_all(e);
}

/* ---- waiting in vain */

/* The one that has been under way for longest. */
static void name_oldest(const struct gci_engine *e, char out[GCI_SIGNATURE_NBYTES])
{
	struct gci_list *it;

	snprintf(out, GCI_SIGNATURE_NBYTES, "an operation");
	gci_list_each (it, &e->reqs.all) {
		const gcoll_req *r = gci_container(it, gcoll_req, link);

		if (!r->active || r->over)
			continue;
		r->ops->name(r, out);
		return;
	}
}

/* A message waits quietly for a peer that never comes to it. Asked at doubling intervals: a mismatch
 * is found after twice the time at most. */
static int ask_is_due(uint64_t *asked_ns, uint64_t waited_ns)
{
	if (waited_ns < *asked_ns)
		*asked_ns = 0; /* something came since */
	if (waited_ns < (*asked_ns ? 2 * *asked_ns : GCI_NS_PER_S))
		return 0;
	*asked_ns = waited_ns;
	return 1;
}

void gci_req_ask(gcoll_req *r)
{
	const struct gci_engine *e = r->comm->engine;

	if (e->wait.total_ns && r->ops->ask && e->job.ctl &&
		ask_is_due(&r->asked_ns, e->wait.total_ns))
		r->ops->ask(r);
}

/* Calls `ask` of all that nobody asks for in gcoll_wait or gcoll_test: those of callbacks, and those
 * that threads wait for. */
static void ask_all(struct gci_engine *e)
{
	struct gci_list *it;

	if (!e->job.ctl || e->failure.status || !ask_is_due(&e->wait.asked_ns, e->wait.total_ns))
		return;
	gci_list_each (it, &e->reqs.all) {
		gcoll_req *r = gci_container(it, gcoll_req, link);

		if (r->active && !r->over && r->ops->ask &&
			(r->fn || __atomic_load_n(&r->awaited, __ATOMIC_RELAXED)))
			r->ops->ask(r);
	}
}

/* How long from now that may be waited with: never 0. */
static uint64_t ask_in(const struct gci_engine *e)
{
	uint64_t waited = e->wait.total_ns;

	if (!e->job.ctl)
		return GCI_NEVER;
	return waited < GCI_NS_PER_S ? GCI_NS_PER_S - waited : waited;
}

/* The longest that any operation under way may stand still. */
static uint64_t allowed_ns(const struct gci_engine *e)
{
	uint64_t most = e->comms.expected_ns(e);

	if (most > UINT64_MAX / GCI_DEADLINE_SLACK)
		return UINT64_MAX;
	most *= GCI_DEADLINE_SLACK;
	return most > e->settings.floor_ns ? most : e->settings.floor_ns;
}

static void time_out(struct gci_engine *e, int blame, const struct gci_tp_wait *w)
{
	char what[GCI_SIGNATURE_NBYTES], whom[256] = "other ranks";

	name_oldest(e, what);
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
		e->hosts[e->rank], e->wait.total_ns / GCI_NS_PER_S,
		e->wait.total_ns / (GCI_NS_PER_S / 10) % 10, whom);
}

/* As long as nothing moves, nothing that is looked at here changes, but the time. */
static void look_closer(struct gci_engine *e)
{
	struct gci_tp_wait w;

	if (e->wait.looked_ns && e->wait.total_ns - e->wait.looked_ns < DEADLINE_LOOK)
		return;
	e->wait.looked_ns = e->wait.total_ns;
	if (gci_tp_waits(e->tp, &w) && w.taken_up && e->wait.total_ns >= allowed_ns(e))
		time_out(e, w.peer, &w);
}

/* The shortest wait that can be too long. */
static uint64_t least_deadline(const struct gci_engine *e)
{
	return e->settings.floor_ns ? e->settings.floor_ns : e->settings.op_timeout_ns;
}

/* How long from now it may be waited without looking at deadlines: never 0. */
static uint64_t deadline_left(const struct gci_engine *e)
{
	uint64_t least = least_deadline(e);

	if (least == GCI_NEVER)
		return GCI_NEVER;
	/* Past the floor of automatic ones it is looked at them from time to time. */
	return e->wait.total_ns < least ? least - e->wait.total_ns : DEADLINE_LOOK;
}

/* After each progress, which began at `since_ns` (0: it is not counted): counts, and fails the engine
 * in the end. */
static void count_wait(struct gci_engine *e, uint64_t since_ns)
{
	struct gci_tp_wait w;

	if (e->wait.activity != e->wait.seen_activity || !e->reqs.active ||
		!gci_list_empty(&e->held.sends)) {
		e->wait.seen_activity = e->wait.activity;
		e->wait.total_ns = e->wait.looked_ns = 0;
		e->wait.quiet = 0;
		return;
	}
	e->wait.quiet = 1;
	if (since_ns)
		e->wait.total_ns += gci_now_ns() - since_ns;
	if (e->failure.status)
		return;
	/* The peer may just be late: the time-out blames no rank. */
	if (e->wait.total_ns >= e->settings.op_timeout_ns)
		time_out(e, -1, gci_tp_waits(e->tp, &w) ? &w : NULL);
	else if (e->settings.floor_ns && e->wait.total_ns >= e->settings.floor_ns)
		look_closer(e);
}

/* ---- progress */

void gci_engine_release(struct gci_engine *e)
{
	if (!gci_list_empty(&e->held.sends))
		gci_held_release(
			&e->held, gci_now_ns() + DUE_EARLY_NS, e->failure.status || e->at_will);
}

void gci_engine_after(struct gci_engine *e, uint64_t since_ns)
{
	if (gci_engine_check(e))
		e->comms.fail(e);
	take_budgets(e);
	count_wait(e, since_ns);
	gci_engine_release(e);
	if (e->wait.total_ns)
		ask_all(e);
	if (!gci_list_empty(&e->reqs.untold))
		gci_done_tell(e);
}

/* The clock is looked at only where it tells something: as long as bytes come and go, no wait is
 * counted. The first one in which nothing does counts only if some time-out may end it. */
static uint64_t wait_begins(struct gci_engine *e)
{
	uint64_t asleep_ns = e->wait.asleep_ns;

	e->wait.asleep_ns = 0;
	if (asleep_ns)
		return asleep_ns;
	return e->wait.quiet || least_deadline(e) != GCI_NEVER ? gci_now_ns() : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How long until the next SEND is due that waits for its time. */
static uint64_t due_in(const struct gci_engine *e)
{
	uint64_t due = gci_held_due_ns(&e->held), now;

	if (due == GCI_NEVER)
		return due;
	now = gci_now_ns() + DUE_EARLY_NS;
	return due > now ? due - now : 0;
}

/* True if something came while looking again and again. What is waited for may come from a process
 * that waits for this processor. */
static int spin(struct gci_engine *e)
{
	uint64_t activity = e->wait.activity, ended = e->reqs.nended;
	uint64_t end = gci_now_ns() + gci_spin_budget(&e->settings.spin);
	int hit;

	do {
		sched_yield();
		gci_tp_progress(e->tp, 0);
		hit = e->wait.activity != activity || e->reqs.nended != ended || e->failure.status;
	} while (!hit && gci_now_ns() < end);
	gci_spin_learn(&e->settings.spin, hit);
	return hit;
}

int gci_engine_progress(struct gci_engine *e, uint64_t timeout_ns)
{
	uint64_t since = wait_begins(e);

	gci_engine_release(e); /* what is put off now goes with this call */
	if (gci_engine_check(e) || !gci_list_empty(&e->reqs.untold))
		timeout_ns = 0;
	timeout_ns = least(timeout_ns, least(least_deadline(e), due_in(e)));
	if (!timeout_ns || !gci_spin_budget(&e->settings.spin) || !spin(e))
		gci_tp_progress(e->tp, timeout_ns);
	/* A loop of the program's has counted the time, in there. */
	gci_engine_after(e, e->callers.loop ? gci_now_ns() : since);
	return e->failure.status;
}

uint64_t gci_engine_sleep_ns(struct gci_engine *e)
{
	uint64_t ns = gci_tp_timeout_ns(e->tp), now = gci_now_ns();

	if (e->failure.status && !gci_engine_settled(e))
		ns = least(ns, verdict_until(e) > now ? verdict_until(e) - now : VERDICT_LOOK);
	else if (!gci_list_empty(&e->reqs.untold) ||
		 (e->failure.status && !gci_list_empty(&e->held.sends)))
		ns = 0;
	if (e->reqs.active && !e->failure.status)
		ns = least(ns, least(due_in(e), least(deadline_left(e), ask_in(e))));
	e->wait.asleep_ns = ns && e->reqs.active ? now : 0;
	return ns;
}

/* ---- made and freed */

int gci_warm_parse(const char *text)
{
	static const char *const names[] = {"off", "on", "now"};
	int i;

	for (i = 0; i < 3; i++)
		if (!strcmp(text, names[i]))
			return i;
	return -1;
}

static void make_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

struct gci_engine *gci_engine_create(int rank, int size, const char **hosts)
{
	struct gci_engine *e = gci_calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->rank = rank;
	e->size = size;
	e->hosts = hosts;
	e->settings.op_timeout_ns = GCI_NEVER;
	e->settings.warm = GCI_WARM_ON;
	e->settings.window_nbytes = GCI_WINDOW_NBYTES;
	e->taps = gci_taps_create();
	if (!e->taps) {
		gci_free(e);
		return NULL;
	}
	make_lock(&e->callers.lock);
	gci_calls_init(&e->calls);
	gci_list_init(&e->comms.all);
	gci_held_init(&e->held);
	gci_list_init(&e->reqs.all);
	gci_list_init(&e->reqs.untold);
	return e;
}

void gci_engine_free(struct gci_engine *e)
{
	if (!e)
		return;
	gci_tp_free(e->tp);
	e->tp = NULL;
	if (e->callers.close_loop)
		e->callers.close_loop(e);
	cancel(e);
	/* Requests that nobody waited for belong to the caller still; their memory is ours. */
	while (!gci_list_empty(&e->reqs.all))
		gci_req_drop(gci_container(e->reqs.all.next, gcoll_req, link));
	free_spare(e);
	gci_sched_cache_forget(&e->cache, NULL);
	while (!gci_list_empty(&e->comms.all))
		e->comms.drop(gci_container(e->comms.all.next, gcoll_comm, link));
	gci_hash_free(&e->comms.by_id, NULL);
	gci_calls_free(&e->calls);
	gci_scratch_free(&e->scratch);
	gci_recording_set(e, NULL);
	if (e->flow.close)
		e->flow.close(e);
	gci_taps_free(e->taps);
	pthread_mutex_destroy(&e->callers.lock);
	gci_free(e);
}
