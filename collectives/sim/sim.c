/* SPDX-License-Identifier: MIT */
#include "collectives/sim/sim_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

#define PORT_NBYTES (512u << 10) /* buffer of a switch's port */

/* ---- schedules: windows in the middle are alike, the last one may be shorter */

static int make_shape(struct gci_sim *m, uint64_t window)
{
	struct gci_coll part = gci_window_of(&m->windows, &m->coll, window);

	return gci_shape_make(&m->shapes[m->nshapes++], m->op->algorithm, &part, m->op->most_steps);
}

static int make_shapes(struct gci_sim *m)
{
	uint64_t last = m->windows.n - 1;
	uint32_t w;
	int rc = 0;

	for (w = 0; w < m->nwindows && !rc; w++) {
		int alike = w && !m->coll.counts;

		if (w + 1 == m->nwindows && alike)
			alike = gci_window_of(&m->windows, &m->coll, last).count ==
				m->windows.window;
		if (!alike)
			rc = make_shape(m, w + 1 == m->nwindows ? last : w);
		m->shape_of[w] = m->nshapes - 1;
		if (rc)
			continue;
		m->r->nsteps += m->shapes[m->nshapes - 1].nsteps;
		if (!w && m->op->most_steps && m->r->nsteps * m->nwindows > m->op->most_steps)
			m->nwindows = 1;
	}
	return rc;
}

/* ---- the machine */

static uint64_t byte_time(uint64_t bps)
{
	return bps ? (uint64_t)(((unsigned __int128)8 * GCI_NS_PER_S << 20) / bps) : 0;
}

static int allocate(struct gci_sim *m)
{
	size_t n = (size_t)m->net->topo->nranks, k = (size_t)m->net->topo->nclusters, r;

	m->shapes = gci_calloc(m->nwindows, sizeof(*m->shapes));
	m->shape_of = gci_calloc(m->nwindows, sizeof(*m->shape_of));
	m->window_end_ns = gci_calloc(m->nwindows, sizeof(*m->window_end_ns));
	m->ranks = gci_calloc(n, sizeof(*m->ranks));
	m->sends_to = gci_calloc(n * k, 1);
	m->link_free_ns = gci_calloc(k * k, sizeof(uint64_t));
	m->link_nbytes = gci_calloc(k * k, sizeof(uint64_t));
	m->link_byte_time = gci_calloc(k * k, sizeof(uint64_t));
	m->pair_byte_time = gci_calloc(k * k, sizeof(uint64_t));
	m->queue_ns = gci_calloc(k * k, sizeof(uint64_t));
	m->r->end_ns = gci_calloc(n, sizeof(uint64_t));
	m->r->wan_nbytes = gci_calloc(k * k, sizeof(uint64_t));
	m->r->senders = gci_calloc(k * k, sizeof(uint32_t));
	if (!m->shapes || !m->shape_of || !m->window_end_ns || !m->ranks || !m->sends_to ||
		!m->link_free_ns || !m->link_nbytes || !m->link_byte_time || !m->pair_byte_time ||
		!m->queue_ns || !m->r->end_ns || !m->r->wan_nbytes || !m->r->senders)
		return GCOLL_ERR_NOMEM;
	for (r = 0; r < n; r++) {
		m->ranks[r].messages = gci_calloc(m->nwindows, sizeof(*m->ranks[r].messages));
		m->ranks[r].times = gci_calloc(m->nwindows, sizeof(*m->ranks[r].times));
		if (!m->ranks[r].messages || !m->ranks[r].times)
			return GCOLL_ERR_NOMEM;
		m->ranks[r].byte_time = byte_time(m->net->nic_bps[m->net->topo->cluster[r]]);
		m->ranks[r].port_ns = gci_sim_time(PORT_NBYTES, m->ranks[r].byte_time);
	}
	for (r = 0; r < k * k; r++) {
		m->link_byte_time[r] = byte_time(m->net->links[r].bps);
		m->pair_byte_time[r] = byte_time(m->net->links[r].pair_bps);
		m->queue_ns[r] = gci_sim_time(m->net->links[r].queue_nbytes, m->link_byte_time[r]);
	}
	return 0;
}

static void free_rank(struct gci_sim *m, struct gci_sim_rank *r)
{
	uint32_t w;
	int i;

	for (i = 0; i < GCI_MAX_INSTANCES; i++)
		if (r->instances[i].busy)
			gci_ready_free(&r->instances[i].ready);
	for (w = 0; r->messages && w < m->nwindows; w++)
		gci_free(r->messages[w]);
	for (w = 0; r->times && w < m->nwindows; w++)
		gci_free(r->times[w]);
	gci_free(r->messages);
	gci_free(r->times);
}

static void free_all(struct gci_sim *m)
{
	struct gci_pair_slab *slab;
	int r;

	while ((slab = m->slabs)) {
		m->slabs = slab->next;
		gci_free(slab);
	}
	gci_free(m->pairs);
	for (r = 0; m->ranks && r < m->net->topo->nranks; r++)
		free_rank(m, &m->ranks[r]);
	gci_free(m->ranks);
	for (r = 0; r < m->nshapes; r++)
		gci_shape_free(&m->shapes[r], m->net->topo->nranks);
	gci_free(m->shapes);
	gci_free(m->shape_of);
	gci_free(m->window_end_ns);
	gci_free(m->sends_to);
	gci_free(m->link_free_ns);
	gci_free(m->link_nbytes);
	gci_free(m->link_byte_time);
	gci_free(m->pair_byte_time);
	gci_free(m->queue_ns);
	gci_events_free(&m->events);
}

static void handle(struct gci_sim *m, const struct gci_ev *e)
{
	switch (e->kind) {
	case GCI_EV_START:
		gci_sim_start_windows(m, e->rank);
		break;
	case GCI_EV_NIC:
		gci_sim_nic(m, e->rank);
		break;
	case GCI_EV_POST:
		gci_sim_offer(m, &m->ranks[e->rank].messages[e->window][e->step]);
		break;
	case GCI_EV_CREDIT:
		gci_sim_credit(m, &m->ranks[e->rank].messages[e->window][e->step]);
		break;
	case GCI_EV_ARRIVE:
		gci_sim_arrive(m, e);
		break;
	case GCI_EV_ARRIVED:
		gci_sim_arrived(m, &m->ranks[e->rank].messages[e->window][e->step]);
		break;
	case GCI_EV_DONE:
		gci_sim_done(m, e->rank, e->window, e->step);
		break;
	}
}

/* Simulated ranks are all over memory: the next event's things are fetched during this one. */
static void fetch(const struct gci_sim *m, const struct gci_ev *e)
{
	const struct gci_sim_rank *r = e ? &m->ranks[e->rank] : NULL;

	if (!e)
		return;
	__builtin_prefetch(r);
	if (e->kind == GCI_EV_DONE)
		__builtin_prefetch(&gci_sim_sched(m, e->rank, e->window)->steps[e->step]);
	else if (e->kind != GCI_EV_START && e->kind != GCI_EV_NIC)
		__builtin_prefetch(&r->messages[e->window][e->step]);
}

static int is_late(const struct gci_sim *m)
{
	return m->op->until_ns && m->now > m->op->until_ns;
}

static int run(struct gci_sim *m)
{
	struct gci_ev e;
	int r;

	for (r = 0; r < m->net->topo->nranks; r++)
		gci_events_push(
			&m->events, (struct gci_ev){.ns = m->op->start_ns ? m->op->start_ns[r] : 0,
					    .rank = r,
					    .kind = GCI_EV_START});
	while (!m->failed && gci_events_pop(&m->events, &e)) {
		fetch(m, gci_events_next(&m->events));
		m->now = e.ns;
		m->r->nevents++;
		if (is_late(m))
			break;
		handle(m, &e);
		m->failed |= m->events.failed;
	}
	if (m->failed)
		return GCOLL_ERR_NOMEM;
	for (r = 0; r < m->net->topo->nranks; r++) {
		if (m->ranks[r].ended < m->nwindows && is_late(m)) {
			m->r->ns = GCI_NEVER;
			return 0;
		}
		if (m->ranks[r].ended < m->nwindows)
			return GCOLL_ERR_INVAL; /* it waits for ever: no proved schedule does */
		m->r->ns = m->r->end_ns[r] > m->r->ns ? m->r->end_ns[r] : m->r->ns;
	}
	return 0;
}

static void most(uint64_t *a, uint64_t b)
{
	*a = b > *a ? b : *a;
}

static void busiest(struct gci_sim *m)
{
	size_t i, n = (size_t)m->net->topo->nclusters;
	int r;

	for (r = 0; r < m->net->topo->nranks; r++) {
		const struct gci_sim_rank *k = &m->ranks[r];
		uint64_t both = m->net->host == GCI_HOST_HALF_DUPLEX ? k->tx_nbytes : 0;

		most(&m->r->busiest_ns, gci_sim_time(k->tx_nbytes, k->byte_time));
		most(&m->r->busiest_ns, gci_sim_time(k->rx_nbytes + both, k->byte_time));
	}
	for (i = 0; i < n * n; i++)
		most(&m->r->busiest_ns, gci_sim_time(m->link_nbytes[i], m->link_byte_time[i]));
	for (i = 0; i < m->pairs_cap; i++)
		if (m->pairs[i])
			most(&m->r->busiest_ns, gci_sim_time(m->pairs[i]->sent,
							m->pair_byte_time[m->pairs[i]->link_no]));
}

/* x + part * n / of, at most GCI_SIM_MOST: times and bytes of absurd messages do not begin anew at
 * 0. */
static uint64_t plus(uint64_t x, uint64_t part, uint64_t n, uint64_t of)
{
	unsigned __int128 sum = x + (unsigned __int128)part * n / of;

	return sum < GCI_SIM_MOST ? (uint64_t)sum : GCI_SIM_MOST;
}

/* When all of the first n windows were done. */
static uint64_t done_ns(const struct gci_sim *m, uint64_t n)
{
	uint64_t ns = 0;

	while (n--)
		most(&ns, m->window_end_ns[n]);
	return ns;
}

/* What as many windows more as are under way at a time take. Once the pipeline is full, those in
 * the middle end at equal intervals, and none in less than whoever works hardest needs for it.
 * Where the last of them did not end after the first, they share all there is: each takes its part
 * of the whole. Of one window alone: where nobody works all the time, as long as that. */
static uint64_t more_ns(const struct gci_sim *m)
{
	uint64_t work = m->r->busiest_ns / m->nwindows * GCI_MAX_INSTANCES, k = m->nwindows - 1;
	uint64_t ns;

	if (!k)
		return work > m->r->ns ? work : m->r->ns;
	ns = done_ns(m, k) - done_ns(m, k - GCI_MAX_INSTANCES);
	if (!ns)
		return m->r->ns / m->nwindows * GCI_MAX_INSTANCES;
	return work > ns ? work : ns;
}

static void extrapolate(struct gci_sim *m)
{
	uint64_t left = m->windows.n - m->nwindows, more;
	size_t i, n = (size_t)m->net->topo->nclusters;
	int r;

	if (!left)
		return;
	more = more_ns(m);
	m->r->extrapolated = 1;
	m->r->ns = plus(m->r->ns, more, left, GCI_MAX_INSTANCES);
	for (r = 0; r < m->net->topo->nranks; r++)
		m->r->end_ns[r] = plus(m->r->end_ns[r], more, left, GCI_MAX_INSTANCES);
	for (i = 0; i < n * n; i++)
		m->r->wan_nbytes[i] =
			plus(m->r->wan_nbytes[i], m->r->wan_nbytes[i], left, m->nwindows);
	m->r->busiest_ns = plus(m->r->busiest_ns, m->r->busiest_ns, left, m->nwindows);
	m->r->nmessages = plus(m->r->nmessages, m->r->nmessages, left, m->nwindows);
}

static void most_tmp(struct gci_sim *m)
{
	int r, i;

	for (i = 0; i < m->nshapes; i++)
		for (r = 0; r < m->net->topo->nranks; r++)
			most(&m->r->most_tmp_nbytes, m->shapes[i].sched[r].tmp_len * m->coll.esize);
}

int gci_simulate(
	const struct gci_simnet *net, const struct gci_sim_op *op, struct gci_sim_result *r)
{
	struct gci_sim m = {.net = net, .op = op, .coll = *op->coll, .r = r};
	int rc;

	memset(r, 0, sizeof(*r));
	if (gci_ineligible(op->algorithm, op->coll))
		return GCOLL_ERR_INVAL;
	gci_windows_cut(
		&m.windows, &m.coll, op->window_nbytes ? op->window_nbytes : GCI_WINDOW_NBYTES);
	gci_windows_segment(&m.coll, &m.windows);
	m.nwindows =
		m.windows.n < GCI_SIM_MOST_WINDOWS ? (uint32_t)m.windows.n : GCI_SIM_MOST_WINDOWS;
	r->nwindows = m.windows.n < UINT32_MAX ? (uint32_t)m.windows.n : UINT32_MAX;
	rc = allocate(&m);
	if (!rc)
		rc = make_shapes(&m);
	if (!rc)
		rc = run(&m);
	if (!rc && r->ns != GCI_NEVER) {
		busiest(&m);
		extrapolate(&m);
		most_tmp(&m);
	}
	free_all(&m);
	if (rc)
		gci_sim_result_free(r);
	return rc;
}

void gci_sim_result_free(struct gci_sim_result *r)
{
	gci_free(r->end_ns);
	gci_free(r->wan_nbytes);
	gci_free(r->senders);
	memset(r, 0, sizeof(*r));
}
