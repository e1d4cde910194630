/* SPDX-License-Identifier: MIT */
#include "comm/planning.h"

#include "base/mem.h"
#include "base/threads.h"

struct gci_planning {
	pthread_t id;
	struct gci_decider decider; /* the thread's own */
	struct gci_coll coll;
	int is_done; /* it will not run for long any more */
};

static void *plan(void *arg)
{
	struct gci_planning *p = arg;
	struct gci_decision d;

	/* Whoever waits finds that it has failed. */
	(void)gci_decide(&p->decider, &p->coll, &d);
	__atomic_store_n(&p->is_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* For want of memory or threads the next operation has to do it. */
static void begin(gcoll_comm *c, const struct gci_coll *coll)
{
	struct gci_planning *p = gci_calloc(1, sizeof(*p));

	if (!p)
		return;
	p->coll = gci_decide_model(&c->decider, coll); /* counts are the caller's */
	if (gci_decider_init(&p->decider, &c->topo, c->engine->settings.streams) ||
		gci_thread_create(&p->id, plan, p)) {
		gci_decider_free(&p->decider);
		gci_free(p);
		return;
	}
	c->planning = p;
}

static void end(gcoll_comm *c)
{
	struct gci_planning *p = c->planning;

	if (!p)
		return;
	c->planning = NULL;
	pthread_join(p->id, NULL);
	gci_decider_learn(&c->decider, &p->decider);
	gci_decider_free(&p->decider);
	gci_free(p);
}

int gci_planning_decide(
	gcoll_comm *c, const struct gci_coll *coll, const uint64_t *number, struct gci_decision *d)
{
	int rc = gci_decider_open(&c->decider, &c->topo, c->engine->settings.streams);

	if (rc)
		return rc;
	if (c == c->engine->world && c->engine->flow.learn)
		c->engine->flow.learn(c->engine, &c->decider);
	if (c->planning && __atomic_load_n(&c->planning->is_done, __ATOMIC_ACQUIRE))
		end(c);
	rc = number ? gci_decide_without(&c->decider, coll, *number, d) : 0;
	if (rc) {
		if (rc > 0 && !c->planning && !gci_decide_knows(&c->decider, coll))
			begin(c, coll);
		return rc > 0 ? 0 : rc;
	}
	if (c->planning && !gci_decide_knows(&c->decider, coll) &&
		gci_decide_alike(&c->decider, &c->planning->coll, coll))
		end(c);
	return gci_decide(&c->decider, coll, d);
}

void gci_planning_free(gcoll_comm *c)
{
	end(c);
}
