/* SPDX-License-Identifier: MIT */
#include "flow/warm.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/threads.h"
#include "collectives/blocks/peers.h"
#include "collectives/blocks/windows.h"
#include "comm/op.h"
#include "flow/pacing.h"

#include <poll.h>
#include <string.h>

/* ---- Which connections, and how much. */

#define PLAN_NBYTES (32ull << 20) /* of the operations that are looked at */
/* Of one operation, to and from. A rank that has more is none of the few that matter, and would
 * hold hundreds of connections that hardly anybody uses. */
#define MOST_PEERS 8

/* Below that a first operation loses little, and padding would only be in its way. */
#define LEAST_RTT_NS (8 * GCI_NS_PER_MS)

/* In slow start a connection may have under way what it has sent so far. Half of what it will need
 * is one round trip from all of it, and ranks that pad the same receiver do not fill its buffers:
 * losses would leave it slower than it was. */
#define PART               2
#define MOST_STREAM_NBYTES (8u << 20)

/* What each stream from rank `from` to `to` must carry to be warm; at least something. */
static uint64_t padding(const struct gci_flight *f, uint32_t npeers)
{
	uint64_t nbytes = f->stream_nbytes / npeers / PART;

	return nbytes > MOST_STREAM_NBYTES ? MOST_STREAM_NBYTES : nbytes ? nbytes : 1;
}

static void flight(const struct gci_topo *t, int a, int b, struct gci_flight *f)
{
	gci_flight_make(
		f, gci_topo_link(t, a, b), gci_topo_link(t, b, a), t->nic_bps[a], t->nic_bps[b]);
}

int gci_warm_pays(const struct gci_topo *t)
{
	struct gci_flight f;
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < a; b++) {
			flight(t, a, b, &f);
			if (f.rtt_ns >= LEAST_RTT_NS)
				return 1;
		}
	return 0;
}

static void want(uint64_t *stream_nbytes, int peer, uint64_t nbytes)
{
	if (stream_nbytes[peer] < nbytes)
		stream_nbytes[peer] = nbytes;
}

/* Of two ranks the lower one connects, whoever sends. */
static int look_at(gcoll_comm *world, const struct gci_sched *s, uint64_t *stream_nbytes)
{
	const struct gci_topo *t = &world->topo;
	uint32_t i, npeers;
	struct gci_flight f;

	if (gci_wan_peers(t, s, &npeers))
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < s->nsteps; i++) {
		const struct gci_step *p = &s->steps[i];

		if (p->kind > GCI_STEP_RECV_REDUCE || t->cluster[p->peer] == t->cluster[s->rank])
			continue;
		flight(t, t->cluster[s->rank], t->cluster[p->peer], &f);
		if (f.rtt_ns < LEAST_RTT_NS)
			continue;
		if (p->kind != GCI_STEP_SEND)
			want(stream_nbytes, p->peer, 1);
		else if (npeers && p->src.length)
			want(stream_nbytes, p->peer, padding(&f, npeers));
	}
	return 0;
}

/* Adds what one operation wants, unless that is with too many. */
static void merge(uint64_t *all, const uint64_t *one, int nranks)
{
	int i, n = 0;

	for (i = 0; i < nranks; i++)
		n += one[i] != 0;
	for (i = 0; i < nranks && n <= MOST_PEERS; i++)
		if (one[i])
			want(all, i, one[i]);
}

static int plan_one(gcoll_comm *world, enum gci_kind kind, uint64_t *stream_nbytes)
{
	uint64_t n = gci_kind_has_vector(kind) ? 1 : (uint64_t)world->size;
	struct gci_coll c = {.kind = kind,
		.topo = &world->topo,
		.esize = 8,
		.count = PLAN_NBYTES / 8 / n,
		.order = world->fixed_order && kind == GCI_ALLREDUCE ? GCI_CLUSTER_ORDER
								     : GCI_ANY_ORDER};
	struct gci_windows w;
	struct gci_decision d;
	struct gci_sched s = {0};
	const char *why;
	int rc;

	gci_windows_cut(&w, &c, world->engine->settings.window_nbytes);
	rc = gci_op_choose(world, &c, 0, &d, &why);
	if (rc)
		return rc == GCOLL_ERR_NOMEM ? rc : 0;
	gci_candidate_apply(&d.how, &c);
	gci_windows_segment(&c, &w);
	c = gci_window_of(&w, &c, 0);
	c.packed = gci_decide_packed(&world->decider, d.how.algorithm, &c);
	rc = gci_emit(d.how.algorithm, &c, world->rank, &s);
	if (!rc)
		rc = look_at(world, &s, stream_nbytes);
	gci_sched_free(&s);
	return rc;
}

int gci_warm_plan(gcoll_comm *world, uint64_t *stream_nbytes, const int *quit)
{
	static const enum gci_kind kinds[] = {GCI_BCAST, GCI_ALLREDUCE, GCI_ALLGATHER};
	unsigned warms = world->warms ? world->warms : ~0u;
	size_t i, nbytes = (size_t)world->size * sizeof(*stream_nbytes);
	uint64_t *one = gci_calloc((size_t)world->size, sizeof(*one));
	int rc = one ? 0 : GCOLL_ERR_NOMEM;

	memset(stream_nbytes, 0, nbytes);
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds) && !rc; i++) {
		if (quit && __atomic_load_n(quit, __ATOMIC_RELAXED))
			break;
		if (!(warms >> kinds[i] & 1))
			continue;
		memset(one, 0, nbytes);
		rc = plan_one(world, kinds[i], one);
		merge(stream_nbytes, one, world->size);
	}
	gci_free(one);
	return rc;
}

/* ---- The thread that warms them. */

#define ROUNDS 24 /* of the longest round trip: TCP's slow start needs no more */
/* Other ranks may be slower to begin; waiting costs nothing. */
#define LEAST_NS (10 * GCI_NS_PER_S)
#define MOST_NS  (30 * GCI_NS_PER_S)
#define BUSY_NS  (20 * GCI_NS_PER_MS) /* until we look again whether the program has a rest */

struct gci_warm {
	struct gci_engine *engine;
	pthread_t id;
	int begun, quit; /* quit: set under the engine's lock, and read without it while planning */
	uint64_t *stream_nbytes;
	char *sends; /* [rank]: of the operation that has begun; NULL: none that is long has */
	gcoll_comm *like_world; /* settings, and a decider of the thread's own */
	pthread_mutex_t news;
	int learnt;  /* the thread is done with its decider */
	int planned; /* before there was a thread */
};

/* The caller's decider learns what the thread has found out, if it is at hand. */
static void learn(struct gci_engine *e, struct gci_decider *d)
{
	struct gci_warm *w = e->flow.warm;

	if (!w || !w->begun)
		return;
	pthread_mutex_lock(&w->news);
	if (w->learnt && w->like_world->decider.topo)
		gci_decider_learn(d, &w->like_world->decider);
	pthread_mutex_unlock(&w->news);
}

static uint64_t longest_ns(const struct gci_topo *t)
{
	uint64_t ns = 0, rtt;
	int a, b;

	for (a = 0; a < t->nclusters; a++)
		for (b = 0; b < a; b++) {
			rtt = gci_topo_link(t, a, b)->delay_ns + gci_topo_link(t, b, a)->delay_ns;
			ns = rtt > ns ? rtt : ns;
		}
	ns = ns > MOST_NS / ROUNDS ? MOST_NS : ns * ROUNDS;
	return ns < LEAST_NS ? LEAST_NS : ns;
}

/* Makes progress unless the program has operations under way, which does so itself. */
static void look(struct gci_warm *w, uint64_t most_ns)
{
	struct gci_engine *e = w->engine;
	struct pollfd p = {.fd = gci_tp_fd(e->tp), .events = POLLIN};
	int busy = e->reqs.active || e->failure.status;
	uint64_t ns = busy ? BUSY_NS : most_ns;

	if (!busy) {
		gci_tp_progress(e->tp, 0);
		if (gci_tp_timeout_ns(e->tp) < ns)
			ns = gci_tp_timeout_ns(e->tp);
	}
	gci_unlock(e);
	if (busy)
		gci_sleep_ns(ns);
	else /* also for gci_warm_close, which wakes the transport */
		poll(&p, 1, (int)((ns + GCI_NS_PER_MS - 1) / GCI_NS_PER_MS));
	if (!pthread_mutex_trylock(&e->callers.lock))
		return;
	gci_sleep_ns(BUSY_NS); /* the program is in a call: not at each of its events */
	gci_lock(e);
}

static void plan(struct gci_warm *w)
{
	int rc = gci_warm_plan(w->like_world, w->stream_nbytes, &w->quit);

	if (rc)
		memset(w->stream_nbytes, 0, (size_t)w->engine->size * sizeof(*w->stream_nbytes));
	pthread_mutex_lock(&w->news);
	w->learnt = 1;
	pthread_mutex_unlock(&w->news);
}

static void ask(struct gci_warm *w)
{
	struct gci_engine *e = w->engine;
	int i;

	for (i = 0; i < e->size && !w->quit; i++)
		if (w->stream_nbytes[i] && !e->failure.status && (!w->sends || w->sends[i]))
			gci_tp_warm(e->tp, i, w->stream_nbytes[i]);
	gci_pacing_warming(e, 1);
}

/* Nothing more is padded for those that a long operation does not send to: they receive at full rate,
 * perhaps, and what has no room at their ports is lost, which leaves connections slower than cold ones
 * for seconds. */
static void yield_to(struct gci_engine *e, const int *ranks, const struct gci_sched *s)
{
	struct gci_warm *w = e->flow.warm;
	uint32_t i;
	int r;

	if (!w || !w->begun || w->sends || gci_tp_warm(e->tp, -1, 0) < 0)
		return;
	w->sends = gci_calloc((size_t)e->size, 1);
	if (!w->sends) /* it goes on as it was */
		return;
	for (i = 0; i < s->nsteps; i++)
		if (s->steps[i].kind == GCI_STEP_SEND)
			w->sends[ranks ? ranks[s->steps[i].peer] : s->steps[i].peer] = 1;
	for (r = 0; r < e->size; r++)
		if (!w->sends[r])
			gci_tp_warm(e->tp, r, 0);
}

static void *warm_up(void *arg)
{
	struct gci_warm *w = arg;
	struct gci_engine *e = w->engine;
	uint64_t now, end;

	if (!w->planned)
		plan(w);
	gci_lock(e);
	if (!w->planned)
		ask(w);
	end = gci_now_ns() + longest_ns(&e->world->topo);
	while (!w->quit && gci_tp_warm(e->tp, -1, 0) >= 0 && (now = gci_now_ns()) < end)
		look(w, end - now);
	gci_pacing_warming(e, 0);
	gci_unlock(e);
	return NULL;
}

int gci_warm_open(struct gci_engine *e)
{
	struct gci_warm *w;

	if (!gci_warm_pays(&e->world->topo))
		return 0;
	w = gci_calloc(1, sizeof(*w));
	if (!w)
		return GCOLL_ERR_NOMEM;
	w->engine = e;
	pthread_mutex_init(&w->news, NULL);
	e->callers.shared = 1;
	e->flow.warm = w;
	e->flow.begins = gci_warm_begin;
	e->flow.first_window = yield_to;
	e->flow.learn = learn;
	return 0;
}

/* The settings as they are now: the program may change them while the thread plans. */
static int copy_world(struct gci_warm *w)
{
	struct gci_engine *e = w->engine;

	w->stream_nbytes = gci_calloc((size_t)e->size, sizeof(*w->stream_nbytes));
	w->like_world = gci_calloc(1, sizeof(*w->like_world));
	if (!w->stream_nbytes || !w->like_world)
		return GCOLL_ERR_NOMEM;
	*w->like_world = *e->world;
	memset(&w->like_world->decider, 0, sizeof(w->like_world->decider));
	w->like_world->planning = NULL;
	return 0;
}

void gci_warm_begin(struct gci_engine *e)
{
	struct gci_warm *w = e->flow.warm;

	if (!w || w->begun || w->quit || e->settings.warm == GCI_WARM_OFF)
		return;
	if (copy_world(w)) {
		w->quit = 1;
		return;
	}
	e->started = 1;
	/* Without a simulation it is soon done, and then the first operation finds connections being
	 * made; the thread has its turn only between calls of the program's. */
	if (w->like_world->tuning != GCI_TUNING_SIMULATE) {
		plan(w);
		ask(w);
		w->planned = 1;
	}
	w->begun = !gci_thread_create(&w->id, warm_up, w);
	if (!w->begun)
		w->quit = 1; /* nobody else reads it */
}

void gci_warm_close(struct gci_engine *e)
{
	struct gci_warm *w = e->flow.warm;

	if (!w)
		return;
	pthread_mutex_lock(&e->callers.lock);
	gci_tp_warm(e->tp, -1, 1);
	__atomic_store_n(&w->quit, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&e->callers.lock);
	if (w->begun) {
		gci_tp_wake(e->tp);
		pthread_join(w->id, NULL);
	}
	e->callers.shared = 0;
	e->flow.warm = NULL;
	e->flow.begins = NULL;
	e->flow.first_window = NULL;
	e->flow.learn = NULL;
	pthread_mutex_destroy(&w->news);
	if (w->like_world)
		gci_decider_free(&w->like_world->decider);
	gci_free(w->like_world);
	gci_free(w->stream_nbytes);
	gci_free(w->sends);
	gci_free(w);
}
