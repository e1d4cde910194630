/* SPDX-License-Identifier: MIT */
#include "comm/thread.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/threads.h"
#include "comm/gate.h"
#include "comm/loop.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>

/* ---- The one lock of a world with a progress thread. */

void gci_gate_init(struct gci_gate *g)
{
	*g = (struct gci_gate){.next = 0};
	pthread_mutex_init(&g->mutex, NULL);
	pthread_cond_init(&g->turn, NULL);
	pthread_cond_init(&g->news, NULL);
}

void gci_gate_deinit(struct gci_gate *g)
{
	pthread_cond_destroy(&g->news);
	pthread_cond_destroy(&g->turn);
	pthread_mutex_destroy(&g->mutex);
}

static void enter(struct gci_gate *g)
{
	uint64_t mine = g->next++;

	while (g->serving != mine)
		pthread_cond_wait(&g->turn, &g->mutex);
}

static void leave(struct gci_gate *g)
{
	if (++g->serving != g->next)
		pthread_cond_broadcast(&g->turn);
}

void gci_gate_enter(struct gci_gate *g)
{
	pthread_mutex_lock(&g->mutex);
	enter(g);
	pthread_mutex_unlock(&g->mutex);
}

void gci_gate_leave(struct gci_gate *g)
{
	pthread_mutex_lock(&g->mutex);
	leave(g);
	pthread_mutex_unlock(&g->mutex);
}

void gci_gate_wait(struct gci_gate *g)
{
	uint64_t told;

	pthread_mutex_lock(&g->mutex);
	told = g->told;
	leave(g);
	while (g->told == told)
		pthread_cond_wait(&g->news, &g->mutex);
	enter(g);
	pthread_mutex_unlock(&g->mutex);
}

void gci_gate_tell(struct gci_gate *g)
{
	pthread_mutex_lock(&g->mutex);
	g->told++;
	pthread_cond_broadcast(&g->news);
	pthread_mutex_unlock(&g->mutex);
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

	if (e->nended == *seen && !e->failure.status)
		return;
	*seen = e->nended;
	gci_gate_tell(&t->gate);
}

/* Outside of the gate, from in there and back. */
static void wait_outside(struct gci_thread *t, uint64_t timeout_ns)
{
	struct gci_engine *e = t->engine;
	struct pollfd p = {.fd = gci_tp_fd(e->tp), .events = POLLIN};
	uint64_t budget = timeout_ns ? gci_spin_budget(&e->settings.spin) : 0;
	uint64_t end = budget ? gci_now_ns() + budget : 0;
	int hit = 0;

	gci_gate_leave(&t->gate);
	while (!hit && end && gci_now_ns() < end) {
		sched_yield();
		hit = poll(&p, 1, 0);
	}
	if (!hit)
		poll(&p, 1, poll_ms(timeout_ns));
	gci_gate_enter(&t->gate);
	if (budget)
		gci_spin_learn(&e->settings.spin, hit);
}

static void *move(void *arg)
{
	struct gci_thread *t = arg;
	struct gci_engine *e = t->engine;
	uint64_t seen = 0;

	gci_gate_enter(&t->gate);
	while (!t->quit) {
		t->rounds++;
		gci_engine_progress(e, 0);
		tell(t, &seen);
		wait_outside(t, gci_engine_sleep_ns(e));
	}
	if (t->last)
		t->last(e);
	gci_gate_leave(&t->gate);
	return NULL;
}

int gci_thread_start(struct gci_engine *e, struct gci_error *err)
{
	struct gci_thread *t = gci_calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return gci_error_set(err, GCOLL_ERR_NOMEM, "out of memory");
	t->engine = e;
	gci_gate_init(&t->gate);
	e->thread = t;
	e->any_thread = 1;
	rc = gci_thread_create(&t->id, move, t);
	if (!rc)
		return 0;
	e->thread = NULL;
	gci_gate_deinit(&t->gate);
	gci_free(t);
	return gci_error_set(err, GCOLL_ERR_SYS, "no progress thread: %s", strerror(rc));
}

int gci_thread_stop(struct gci_engine *e, void (*last)(struct gci_engine *e))
{
	struct gci_thread *t = e->thread;

	if (!t)
		return 0;
	gci_gate_enter(&t->gate);
	t->quit = 1;
	t->last = last;
	gci_gate_leave(&t->gate);
	gci_tp_wake(e->tp);
	pthread_join(t->id, NULL);
	e->thread = NULL;
	gci_gate_deinit(&t->gate);
	gci_free(t);
	return 1;
}

/* ---- public calls */

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
	if (e->any_thread)
		return 0;
	if (__atomic_load_n(&e->caller, __ATOMIC_RELAXED) != &self) {
		if (gci_loop_is_elsewhere(e))
			return other_thread("runs the program's loop");
		if (!__atomic_compare_exchange_n(
			    &e->caller, &none, &self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return other_thread("is in a call of this world");
	}
	e->ncalls++;
	return 0;
}

void gci_end_call(struct gci_engine *e)
{
	if (!e->any_thread && !--e->ncalls)
		__atomic_store_n(&e->caller, NULL, __ATOMIC_RELEASE);
}
