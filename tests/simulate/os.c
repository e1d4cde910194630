/* SPDX-License-Identifier: MIT */
#include "tests/simulate/os.h"

#include "tests/simulate/fiber.h"
#include "tests/simulate/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_CALLS_NOW 300000

struct os_thread {
	struct gci_list link; /* of its process */
	struct os_process *process;
	struct fiber *fiber;
	void *(*fn)(void *arg);
	void *arg;
	int ready, over;
	uint64_t waits; /* how often it has waited: names one wait */
};

struct event {
	uint64_t at_ns, order;
	void (*fn)(void *arg, uint64_t n);
	void *arg;
	uint64_t n;
};

uint64_t os_now;
struct gci_prng os_prng;
struct os_process *os_current;
int os_traces;

static struct os_thread *running;
static struct gci_list processes;
static struct os_thread **ready;
static size_t nready, cap_ready, nthreads;
static struct event *events; /* a heap */
static size_t nevents, cap_events;
static uint64_t norder, calls_now; /* events so far; system calls at this instant */

void os_begin(uint64_t seed)
{
	os_now = 1000 * GCI_NS_PER_S;
	os_prng.state = seed;
	gci_list_init(&processes);
	nready = nevents = nthreads = 0;
	norder = calls_now = 0;
	file_begin();
}

int os_chance(uint64_t n)
{
	return !gci_prng_below(&os_prng, n);
}

uint64_t os_between(uint64_t lo, uint64_t hi)
{
	return lo + gci_prng_below(&os_prng, hi - lo + 1);
}

void os_trace(const char *fmt, ...)
{
	va_list ap;

	if (!os_traces)
		return;
	printf("%14.6f ", (double)(os_now - 1000 * GCI_NS_PER_S) / (double)GCI_NS_PER_S);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* ---- events */

static int before(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void os_at(uint64_t ns, void (*fn)(void *arg, uint64_t n), void *arg, uint64_t n)
{
	const struct event e = {ns > os_now ? ns : os_now, norder++, fn, arg, n};
	size_t i = nevents++, up;

	if (nevents > cap_events) {
		cap_events = 2 * nevents;
		events = heap_grow(events, cap_events * sizeof(*events));
	}
	for (; i; i = up) {
		up = (i - 1) / 2;
		if (!before(&e, &events[up]))
			break;
		events[i] = events[up];
	}
	events[i] = e;
}

static struct event next_event(void)
{
	const struct event first = events[0], last = events[--nevents];
	size_t i = 0, down;

	for (; (down = 2 * i + 1) < nevents; i = down) {
		down += down + 1 < nevents && before(&events[down + 1], &events[down]);
		if (!before(&events[down], &last))
			break;
		events[i] = events[down];
	}
	events[i] = last;
	return first;
}

/* ---- threads */

static void make_ready(struct os_thread *t)
{
	if (t->ready || t->over || t->process->dead || t->process->stopped)
		return;
	t->ready = 1;
	if (nready == cap_ready) {
		cap_ready = 2 * cap_ready + 16;
		ready = heap_grow(ready, cap_ready * sizeof(struct os_thread *));
	}
	ready[nready++] = t;
}

static void on_time(void *arg, uint64_t wait)
{
	struct os_thread *t = arg;

	if (t->waits == wait)
		make_ready(t);
}

void os_wait(uint64_t until_ns)
{
	struct os_thread *t = running;

	t->waits++;
	if (until_ns != GCI_NEVER)
		os_at(until_ns, on_time, t, t->waits);
	fiber_leave();
	t->waits++;
}

void os_wake(struct os_process *p)
{
	struct gci_list *it;

	gci_list_each (it, &p->threads)
		make_ready(gci_container(it, struct os_thread, link));
}

static void begin(void *arg)
{
	struct os_thread *t = arg;

	t->fn(t->arg);
	t->over = 1;
	nthreads--;
	os_wake(t->process); /* who has joined it */
}

struct os_thread *os_thread(struct os_process *p, void *(*fn)(void *arg), void *arg)
{
	struct os_thread *t = heap_calloc(1, sizeof(*t));

	t->process = p;
	t->fn = fn;
	t->arg = arg;
	t->fiber = fiber_new(begin, t);
	gci_list_push(&p->threads, &t->link);
	nthreads++;
	make_ready(t);
	return t;
}

int os_thread_over(const struct os_thread *t)
{
	return t->over;
}

static void run_one(void)
{
	size_t i = (size_t)gci_prng_below(&os_prng, nready);
	struct os_thread *t = ready[i];
	struct heap *owner;

	ready[i] = ready[--nready];
	t->ready = 0;
	/* It may have come to its end after it was made ready. */
	if (t->over || t->process->dead || t->process->stopped)
		return;
	running = t;
	os_current = t->process;
	owner = heap_owner(&t->process->heap);
	fiber_enter(t->fiber);
	heap_owner(owner);
	os_current = NULL;
	running = NULL;
}

int os_run(uint64_t most_ns)
{
	uint64_t end = os_now + most_ns;
	struct event e;

	while (nthreads) {
		if (nready) {
			run_one();
			continue;
		}
		if (!nevents)
			return 0;
		e = next_event();
		if (e.at_ns > end)
			return 0;
		calls_now = e.at_ns == os_now ? calls_now : 0;
		os_now = e.at_ns;
		e.fn(e.arg, e.n);
	}
	return 1;
}

/* ---- processes */

struct os_process *os_process(int rank, int host)
{
	struct os_process *p = heap_calloc(1, sizeof(*p));

	p->rank = rank;
	p->host = host;
	gci_list_init(&p->threads);
	gci_list_init(&p->files);
	gci_list_push(&processes, &p->link);
	return p;
}

void os_kill(struct os_process *p)
{
	struct gci_list *it;

	if (p->dead)
		return;
	os_trace("rank %d dies in system call %llu", p->rank, (unsigned long long)p->ncalls);
	p->dead = 1;
	gci_list_each (it, &p->threads)
		nthreads -= !gci_container(it, struct os_thread, link)->over;
	file_close_all(p);
}

static void on_continue(void *arg, uint64_t n)
{
	struct os_process *p = arg;

	(void)n;
	os_trace("rank %d goes on", p->rank);
	p->stopped = 0;
	os_wake(p);
}

void os_stop(struct os_process *p, uint64_t ns)
{
	if (p->dead)
		return;
	os_trace("rank %d stands still for %.3f s", p->rank, (double)ns / (double)GCI_NS_PER_S);
	p->stopped = 1;
	if (ns != GCI_NEVER)
		os_at(os_now + ns, on_continue, p, 0);
}

void os_call(void)
{
	struct os_process *p = os_current;

	if (p && ++calls_now > MOST_CALLS_NOW) { /* it waits for nothing */
		p->spins = 1;
		os_wait(os_now + GCI_NS_PER_MS);
	}
	if (!p || ++p->ncalls != p->fate.at_call)
		return;
	if (p->fate.stop)
		os_stop(p, p->fate.stop_ns);
	else
		os_kill(p);
	if (p->on_fate)
		p->on_fate(p);
	if (p->dead)
		fiber_leave(); /* for ever */
	while (p->stopped)
		os_wait(GCI_NEVER);
}

void os_end(void)
{
	while (!gci_list_empty(&processes)) {
		struct os_process *p = gci_container(processes.next, struct os_process, link);

		p->dead = 1;
		while (!gci_list_empty(&p->threads)) {
			struct os_thread *t =
				gci_container(p->threads.next, struct os_thread, link);

			gci_list_del(&t->link);
			fiber_free(t->fiber);
			heap_free(t);
		}
		heap_drop(&p->heap);
		gci_list_del(&p->link);
		heap_free(p);
	}
	file_end();
}
