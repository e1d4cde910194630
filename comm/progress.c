/* SPDX-License-Identifier: MIT */
#include "comm/progress.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/threads.h"
#include "comm/comm.h"
#include "transport/tcp.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <uv.h>

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

/* ---- public calls */

/* True while the loop is in the part of its turn in which it looks at sockets, and calls back for
 * them: it must not be run from there once more. */
static int loop_looks(const struct gci_engine *e)
{
	return e->callers.loop && __atomic_load_n(&e->callers.loop->looks, __ATOMIC_ACQUIRE);
}

/* True while it is, and in another thread than this one. */
static int loop_is_elsewhere(const struct gci_engine *e)
{
	return loop_looks(e) && __atomic_load_n(&e->callers.loop->runner, __ATOMIC_RELAXED) !=
					(uintptr_t)pthread_self();
}

int gci_forked(void)
{
	return gci_comm_error(GCOLL_ERR_FORKED, "this process is a child by fork of a rank, and no "
						"rank itself: the connections are "
						"its parent's, which alone may call gridcoll");
}

static int other_thread(const char *where)
{
	return gci_comm_error(GCOLL_ERR_INVAL,
		"another thread %s, expected calls of one thread at a time, or a world with a "
		"progress "
		"thread (gcoll_options)",
		where);
}

int gci_begin_call(struct gci_engine *e)
{
	static _Thread_local char self;
	const void *none = NULL;

	if (gci_fork_is_child())
		return gci_forked();
	if (e->callers.any_thread)
		return 0;
	if (__atomic_load_n(&e->callers.caller, __ATOMIC_RELAXED) != &self) {
		if (loop_is_elsewhere(e))
			return other_thread("runs the program's loop");
		if (!__atomic_compare_exchange_n(&e->callers.caller, &none, &self, 0,
			    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return other_thread("is in a call of this world");
	}
	e->callers.ncalls++;
	return 0;
}

void gci_end_call(struct gci_engine *e)
{
	if (!e->callers.any_thread && !--e->callers.ncalls)
		__atomic_store_n(&e->callers.caller, NULL, __ATOMIC_RELEASE);
}

int gci_may_wait(const struct gci_engine *e)
{
	if (loop_looks(e))
		return gci_comm_error(GCOLL_ERR_INVAL,
			"called from a callback of the program's loop, which is not to be run from "
			"there, expected the nonblocking form");
	if (!gci_done_is_telling(e))
		return 0;
	return gci_comm_error(GCOLL_ERR_INVAL,
		"called from a callback of gcoll_on_done, which must not wait, expected the "
		"nonblocking form");
}

/* ---- For programs that wait in a loop of their own. */

/* Begins the call. */
static int enter(gcoll_comm *c, const char *what)
{
	int rc = c ? gci_enter(c->engine)
		   : gci_comm_error(GCOLL_ERR_INVAL, "the communicator is NULL");

	if (rc)
		return rc;
	if (c->engine->callers.thread || c->engine->callers.loop)
		rc = gci_comm_error(GCOLL_ERR_INVAL,
			"%s is not for a world with a %s, which makes progress by itself", what,
			c->engine->callers.loop ? "loop of the program's" : "progress thread");
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
	rc = gci_may_wait(e);
	if (!rc && (e->callers.thread ? gci_engine_check(e) : gci_engine_progress(e, timeout_ns)))
		rc = failed(e, e->callers.thread ? 0 : timeout_ns);
	gci_leave(e);
	return rc;
}

/* ---- The progress thread. */

/* Whole milliseconds, no less than `ns`. */
static int poll_ms(uint64_t ns)
{
	if (ns == GCI_NEVER)
		return -1;
	if (ns > INT32_MAX * GCI_NS_PER_MS)
		return INT32_MAX;
	return (int)((ns + GCI_NS_PER_MS - 1) / GCI_NS_PER_MS);
}

/* Tells those who wait for a request, if there is something to tell. */
static void tell(struct gci_thread *t, uint64_t *seen)
{
	struct gci_engine *e = t->engine;

	if (e->reqs.nended == *seen && !e->failure.status)
		return;
	*seen = e->reqs.nended;
	gci_gate_tell(&e->callers.gate);
}

/* Outside of the gate, from in there and back. */
static void wait_outside(struct gci_thread *t, uint64_t timeout_ns)
{
	struct gci_engine *e = t->engine;
	struct pollfd p = {.fd = gci_tp_fd(e->tp), .events = POLLIN};
	uint64_t budget = timeout_ns ? gci_spin_budget(&e->settings.spin) : 0;
	uint64_t end = budget ? gci_now_ns() + budget : 0;
	int hit = 0;

	gci_gate_leave(&e->callers.gate);
	while (!hit && end && gci_now_ns() < end) {
		sched_yield();
		hit = poll(&p, 1, 0);
	}
	if (!hit)
		poll(&p, 1, poll_ms(timeout_ns));
	gci_gate_enter(&e->callers.gate);
	if (budget)
		gci_spin_learn(&e->settings.spin, hit);
}

static void *move(void *arg)
{
	struct gci_thread *t = arg;
	struct gci_engine *e = t->engine;
	uint64_t seen = 0;

	gci_gate_enter(&e->callers.gate);
	while (!t->quit) {
		t->rounds++;
		gci_engine_progress(e, 0);
		tell(t, &seen);
		wait_outside(t, gci_engine_sleep_ns(e));
	}
	if (t->last)
		t->last(e);
	gci_gate_leave(&e->callers.gate);
	return NULL;
}

int gci_thread_start(struct gci_engine *e, struct gci_error *err)
{
	struct gci_thread *t = gci_calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return gci_error_set(err, GCOLL_ERR_NOMEM, "out of memory");
	t->engine = e;
	gci_gate_init(&e->callers.gate);
	e->callers.thread = t;
	e->callers.any_thread = 1;
	rc = gci_thread_create(&t->id, move, t);
	if (!rc)
		return 0;
	e->callers.thread = NULL;
	gci_gate_deinit(&e->callers.gate);
	gci_free(t);
	return gci_error_set(err, GCOLL_ERR_SYS, "no progress thread: %s", strerror(rc));
}

int gci_thread_stop(struct gci_engine *e, void (*last)(struct gci_engine *e))
{
	struct gci_thread *t = e->callers.thread;

	if (!t)
		return 0;
	gci_gate_enter(&e->callers.gate);
	t->quit = 1;
	t->last = last;
	gci_gate_leave(&e->callers.gate);
	gci_tp_wake(e->tp);
	pthread_join(t->id, NULL);
	e->callers.thread = NULL;
	gci_gate_deinit(&e->callers.gate);
	gci_free(t);
	return 1;
}

/* ---- The program's own loop, of libuv, in which the engine takes part. */

void gci_loop_hold(struct gci_engine *e)
{
	if (e->callers.loop)
		uv_ref((uv_handle_t *)&e->callers.loop->prepare);
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

	if (!e->reqs.active || ns == GCI_NEVER)
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
	if (!e->reqs.active && gci_list_empty(&e->reqs.untold))
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
	l->activity = e->wait.activity;
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
	l->waited_ns = e->reqs.active && e->wait.activity == l->activity ? now - l->waits_ns : 0;
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
	e->callers.loop = l;
	e->callers.close_loop = gci_loop_close;
	return 0;
}

void gci_loop_close(struct gci_engine *e)
{
	struct gci_loop *l = e->callers.loop;

	if (!l)
		return;
	uv_close((uv_handle_t *)&l->prepare, on_closed);
	uv_close((uv_handle_t *)&l->check, on_closed);
	uv_close((uv_handle_t *)&l->idle, on_closed);
	uv_close((uv_handle_t *)&l->timer, on_closed);
	/* The transport's handles were closed before, and go with these. */
	while (l->nhandles)
		uv_run(l->uv, UV_RUN_NOWAIT);
	e->callers.loop = NULL;
	e->callers.close_loop = NULL;
	gci_free(l);
}
