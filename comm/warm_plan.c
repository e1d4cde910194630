/* SPDX-License-Identifier: MIT */
#include "collectives/blocks/peers.h"
#include "collectives/blocks/windows.h"
#include "comm/warm.h"

#include <string.h>

#define PLAN_NBYTES (32ull << 20) /* of the operations that are looked at */
#define MOST_PEERS  8 /* a rank that would send to more is none of the few that matter */

/* TCP doubles what it has under way each round trip, so all of it together is twice the last. */
#define ROUNDS_NBYTES(flight) (2 * (flight) + (flight) / 2)
#define MOST_STREAM_NBYTES    (8u << 20)

/* What each stream from rank `from` to `to` must carry to be warm; at least something. */
static uint64_t padding(const struct gci_topo *t, int from, int to, uint32_t npeers)
{
	int a = t->cluster[from], b = t->cluster[to];
	struct gci_flight f;
	uint64_t nbytes;

	gci_flight_make(
		&f, gci_topo_link(t, a, b), gci_topo_link(t, b, a), t->nic_bps[a], t->nic_bps[b]);
	nbytes = ROUNDS_NBYTES(f.stream_nbytes / npeers);
	return nbytes > MOST_STREAM_NBYTES ? MOST_STREAM_NBYTES : nbytes ? nbytes : 1;
}

static void want(uint64_t *stream_nbytes, int peer, uint64_t nbytes)
{
	if (stream_nbytes[peer] < nbytes)
		stream_nbytes[peer] = nbytes;
}

/* Of two ranks the lower one connects, whoever sends. */
static int look_at(gcoll_comm *world, const struct gci_sched *s, uint64_t *stream_nbytes)
{
	const int *cluster = world->topo.cluster;
	uint32_t i, npeers;

	if (gci_wan_peers(&world->topo, s, &npeers))
		return GCOLL_ERR_NOMEM;
	for (i = 0; i < s->nsteps && npeers <= MOST_PEERS; i++) {
		const struct gci_step *p = &s->steps[i];

		if (p->kind > GCI_STEP_RECV_REDUCE || cluster[p->peer] == cluster[s->rank])
			continue;
		if (p->kind != GCI_STEP_SEND)
			want(stream_nbytes, p->peer, 1);
		else if (npeers && p->src.length)
			want(stream_nbytes, p->peer,
				padding(&world->topo, s->rank, p->peer, npeers));
	}
	return 0;
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

	gci_windows_cut(&w, &c, world->engine->window_nbytes);
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

int gci_warm_plan(gcoll_comm *world, uint64_t *stream_nbytes)
{
	static const enum gci_kind kinds[] = {GCI_BCAST, GCI_ALLREDUCE, GCI_ALLGATHER};
	size_t i;
	int rc = 0;

	memset(stream_nbytes, 0, (size_t)world->size * sizeof(*stream_nbytes));
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds) && !rc; i++)
		rc = plan_one(world, kinds[i], stream_nbytes);
	return rc;
}
