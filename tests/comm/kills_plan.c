/* SPDX-License-Identifier: MIT */
#include "tests/comm/kills.h"

#include "base/clock.h"
#include "base/prng.h"
#include "tests/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Between nothing and `most`, small ones as often as large ones. */
static uint64_t delay(struct gci_prng *p, uint64_t most_ns)
{
	return gci_prng_below(p, most_ns >> gci_prng_below(p, 8));
}

static int chance(struct gci_prng *p, int percent)
{
	return gci_prng_below(p, 100) < (uint64_t)percent;
}

static void make_point(struct gci_prng *p, const struct kills_plan *plan, struct kills_event *e)
{
	uint64_t where = gci_prng_below(p, 100);

	if (where < 15) {
		snprintf(e->point, sizeof(e->point), "start");
		e->after_ns = delay(p, 30 * GCI_NS_PER_MS);
	} else if (where < 30) {
		snprintf(e->point, sizeof(e->point), "leave");
		e->after_ns = delay(p, 2 * GCI_NS_PER_MS);
	} else {
		snprintf(e->point, sizeof(e->point), "%d",
			(int)gci_prng_below(p, (uint64_t)plan->steps));
		e->after_ns = delay(p, 5 * GCI_NS_PER_MS);
	}
}

static void make_event(struct gci_prng *p, const struct kills_plan *plan, struct kills_event *e)
{
	uint64_t what = gci_prng_below(p, 100);

	e->what = what < 76   ? KILLS_RANK
		  : what < 88 ? KILLS_EARLY
		  : what < 94 ? KILLS_AGENT
		  : what < 98 ? KILLS_LAUNCHER
			      : KILLS_STOP;
	e->rank = (int)gci_prng_below(p, (uint64_t)plan->nranks);
	make_point(p, plan, e);
	if (e->what != KILLS_EARLY)
		return;
	snprintf(e->point, sizeof(e->point), "outside");
	e->after_ns = delay(p, 60 * GCI_NS_PER_MS);
}

/* Another rank, some time or as soon as the first one's death is known. */
static void make_second(struct gci_prng *p, struct kills_plan *plan)
{
	const struct kills_event *first = &plan->events[0];
	struct kills_event *e = &plan->events[1];

	e->what = KILLS_RANK;
	e->rank = (first->rank + 1 + (int)gci_prng_below(p, (uint64_t)plan->nranks - 1)) %
		  plan->nranks;
	make_point(p, plan, e);
	if (plan->survives && chance(p, 60))
		snprintf(e->point, sizeof(e->point), "shrink");
	else if (first->what != KILLS_EARLY && chance(p, 50))
		snprintf(e->point, sizeof(e->point), "%s", first->point);
	plan->nevents = 2;
}

void kills_plan_make(struct kills_plan *plan, uint64_t seed)
{
	static const char *const security[] = {"off", "auth", "encrypt"};
	struct gci_prng prng = {gci_digest(seed, 7)}, *p = &prng;

	memset(plan, 0, sizeof(*plan));
	plan->seed = seed;
	plan->nranks = 2 + (int)gci_prng_below(p, KILLS_RANKS - 1);
	plan->nclusters = 1 + (int)gci_prng_below(p, 2);
	plan->per_host = plan->nclusters == 1 ? plan->nranks : (plan->nranks + 1) / 2;
	plan->steps = 3 + (int)gci_prng_below(p, 6);
	plan->survives = chance(p, 50);
	plan->thread = chance(p, 20);
	plan->security = security[gci_prng_below(p, 3)];
	plan->brood = chance(p, 40) ? (int)gci_prng_below(p, (uint64_t)plan->nranks) : -1;
	plan->nevents = 1;
	make_event(p, plan, &plan->events[0]);
	if (plan->events[0].what <= KILLS_EARLY && chance(p, 25))
		make_second(p, plan);
}

static const char *event_name(enum kills_what what)
{
	static const char *const names[] = {"kill", "early", "agent", "launcher", "stop"};

	return names[what];
}

static int put_event(const struct kills_event *e, char *text, size_t size)
{
	return snprintf(text, size, "%s:%d@%s+%" PRIu64, event_name(e->what), e->rank, e->point,
		e->after_ns);
}

void kills_plan_argv(const struct kills_plan *p, const char *log, const char *argv[KILLS_ARGS])
{
	static char text[8][32], events[KILLS_EVENTS][64];
	int n = 0, i;

#define NUMBER(i, value) \
	(snprintf(text[i], sizeof(text[i]), "%" PRIu64, (uint64_t)(value)), text[i])
	argv[n++] = "--timers";
	argv[n++] = "fast";
	if (p->events[0].what == KILLS_STOP) { /* perhaps before it has joined */
		argv[n++] = "--start-timeout";
		argv[n++] = "5s";
	}
	argv[n++] = "--data-path";
	argv[n++] = "poll";
	argv[n++] = "--security";
	argv[n++] = p->security;
	argv[n++] = "-n";
	argv[n++] = NUMBER(0, p->nranks);
	if (p->nclusters > 1) {
		argv[n++] = "--grid";
		argv[n++] = env_path("GRIDCOLL_TEST_GRID");
		argv[n++] = "--per-host";
		argv[n++] = NUMBER(1, p->per_host);
	}
	if (p->survives)
		argv[n++] = "--survive";
	argv[n++] = env_path("GRIDCOLL_TEST_KILLS_JOB");
	argv[n++] = log;
	argv[n++] = NUMBER(2, p->seed);
	argv[n++] = NUMBER(3, p->steps);
	argv[n++] = p->survives ? "survive" : "end";
	/* First, so that a rank calls an event by its number here. */
	for (i = 0; i < p->nevents; i++) {
		put_event(&p->events[i], events[i], sizeof(events[i]));
		argv[n++] = events[i];
	}
	if (p->thread)
		argv[n++] = "thread";
	if (p->brood >= 0) {
		snprintf(text[4], sizeof(text[4]), "brood:%d", p->brood);
		argv[n++] = text[4];
	}
	argv[n] = NULL;
#undef NUMBER
}

void kills_plan_print(const struct kills_plan *p, char *text, size_t size)
{
	int i, n = snprintf(text, size,
		       "seed %" PRIu64 ": %d ranks in %d clusters, %s, %d steps%s%s%s", p->seed,
		       p->nranks, p->nclusters, p->security, p->steps,
		       p->survives ? ", survives" : "", p->thread ? ", thread" : "",
		       p->brood >= 0 ? ", brood" : "");

	for (i = 0; i < p->nevents && n < (int)size - 2; i++) {
		text[n++] = ' ';
		n += put_event(&p->events[i], text + n, size - (size_t)n);
	}
}
