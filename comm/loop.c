/* SPDX-License-Identifier: MIT */
#include "comm/loop.h"

#include "base/clock.h"
#include "base/mem.h"
#include "comm/done.h"
#include "comm/request.h"
#include "comm/thread.h"
#include "transport/tcp.h"

#include <uv.h>

/* ---- For programs that wait in a loop of their own. */

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

/* ---- The program's own loop, of libuv, in which the engine takes part. */

struct gci_loop {
	struct gci_engine *engine;
	uv_loop_t *uv;
	uv_prepare_t prepare; /* referenced while something is under way, the others never */
	uv_check_t check;
	uv_idle_t idle; /* active: the loop must not wait */
	uv_timer_t timer;
	int nhandles;
	int looks;          /* between prepare and check; atomic */
	uintptr_t runner;   /* the thread that did that last; atomic */
	uint64_t waits_ns;  /* since when the loop waits */
	uint64_t waited_ns; /* how long it has in vain, not counted yet */
	uint64_t activity;  /* the engine's, before it waited */
};

void gci_loop_hold(struct gci_engine *e)
{
	if (e->loop)
		uv_ref((uv_handle_t *)&e->loop->prepare);
}

int gci_loop_looks(const struct gci_engine *e)
{
	return e->loop && __atomic_load_n(&e->loop->looks, __ATOMIC_ACQUIRE);
}

int gci_loop_is_elsewhere(const struct gci_engine *e)
{
	return gci_loop_looks(e) &&
	       __atomic_load_n(&e->loop->runner, __ATOMIC_RELAXED) != (uintptr_t)pthread_self();
}

static void on_idle(uv_idle_t *idle)
{
	(void)idle;
}

static void on_timer(uv_timer_t *timer)
{
	(void)timer;
}

/* How long the loop may wait. In its wait it calls back for other things, too, which may compute
 * for long: what has waited is counted only when the network was looked at once more. */
static uint64_t may_wait(struct gci_loop *l)
{
	struct gci_engine *e = l->engine;
	uint64_t ns = gci_engine_sleep_ns(e);

	if (!e->active || ns == GCI_NEVER)
		return ns;
	return ns > l->waited_ns ? ns - l->waited_ns : 0;
}

/* Another thread is in a call, as it must not be: the loop looks again when it is not, and that thread
 * is refused from now on. */
static void busy(struct gci_loop *l)
{
	if (gci_fork_is_child())
		return;
	__atomic_store_n(&l->looks, 1, __ATOMIC_RELEASE);
	uv_idle_start(&l->idle, on_idle);
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct gci_loop *l = prepare->data;
	struct gci_engine *e = l->engine;
	uint64_t ns;

	__atomic_store_n(&l->runner, (uintptr_t)pthread_self(), __ATOMIC_RELAXED);
	if (gci_begin_call(e)) {
		busy(l);
		return;
	}
	gci_tcp_turn(e->tp);
	gci_engine_after(e, gci_now_ns());
	if (!e->active && gci_list_empty(&e->untold))
		uv_unref((uv_handle_t *)&l->prepare);
	ns = may_wait(l);
	if (!ns)
		uv_idle_start(&l->idle, on_idle);
	else
		uv_idle_stop(&l->idle);
	if (!ns || ns == GCI_NEVER) {
		uv_timer_stop(&l->timer);
	} else {
		uv_update_time(l->uv);
		uv_timer_start(&l->timer, on_timer, (ns + GCI_NS_PER_MS - 1) / GCI_NS_PER_MS, 0);
	}
	__atomic_store_n(&l->looks, 1, __ATOMIC_RELEASE);
	l->activity = e->activity;
	l->waits_ns = gci_now_ns();
	gci_end_call(e);
}

static void on_check(uv_check_t *check)
{
	struct gci_loop *l = check->data;
	struct gci_engine *e = l->engine;
	uint64_t now = gci_now_ns(), before = l->waited_ns;

	__atomic_store_n(&l->looks, 0, __ATOMIC_RELEASE);
	if (gci_begin_call(e))
		return;
	gci_tcp_turn(e->tp);
	l->waited_ns = e->active && e->activity == l->activity ? now - l->waits_ns : 0;
	gci_engine_after(e, now - before);
	gci_end_call(e);
}

static void on_closed(uv_handle_t *h)
{
	((struct gci_loop *)h->data)->nhandles--;
}

int gci_loop_open(struct gci_engine *e, void *uv_loop)
{
	struct gci_loop *l = gci_calloc(1, sizeof(*l));

	if (!l)
		return GCOLL_ERR_NOMEM;
	l->engine = e;
	l->uv = uv_loop;
	uv_prepare_init(l->uv, &l->prepare);
	uv_check_init(l->uv, &l->check);
	uv_idle_init(l->uv, &l->idle);
	uv_timer_init(l->uv, &l->timer);
	l->prepare.data = l->check.data = l->idle.data = l->timer.data = l;
	l->nhandles = 4;
	uv_prepare_start(&l->prepare, on_prepare);
	uv_check_start(&l->check, on_check);
	uv_unref((uv_handle_t *)&l->prepare);
	uv_unref((uv_handle_t *)&l->check);
	uv_unref((uv_handle_t *)&l->idle);
	uv_unref((uv_handle_t *)&l->timer);
	e->loop = l;
	return 0;
}

void gci_loop_close(struct gci_engine *e)
{
	struct gci_loop *l = e->loop;

	if (!l)
		return;
	uv_close((uv_handle_t *)&l->prepare, on_closed);
	uv_close((uv_handle_t *)&l->check, on_closed);
	uv_close((uv_handle_t *)&l->idle, on_closed);
	uv_close((uv_handle_t *)&l->timer, on_closed);
	/* The transport's handles were closed before, and go with these. */
	while (l->nhandles)
		uv_run(l->uv, UV_RUN_NOWAIT);
	e->loop = NULL;
	gci_free(l);
}
