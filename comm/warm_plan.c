/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/blocks/peers.h"
#include "collectives/blocks/windows.h"
#include "comm/warm.h"

#include <string.h>

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
	rc = gci_comm_choose(world, &c, 0, &d, &why);
	if (rc)
		return rc == GCOLL_ERR_NOMEM ? rc : 0;
	gci_candidate_apply(&d.how, &c);
	gci_windows_segment(&c, &w);
	c = gci_window_of(&w, &c, 0);
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
