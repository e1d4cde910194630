/* SPDX-License-Identifier: MIT
 * What each rank does: starts the steps that the readiness core lets it, window by window, as
 * comm/op.c and comm/run.c do. Its processor does one thing at a time. */
#include "collectives/sim/sim_impl.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

static int make_messages(struct gci_sim *m, int dst, uint32_t window)
{
	uint32_t n = m->shapes[m->shape_of[window]].nmessages[dst];
	struct gci_sim_rank *r = &m->ranks[dst];

	r->messages[window] = gci_calloc(n, sizeof(**r->messages));
	if (m->op->trace)
		r->times[window] = gci_calloc(n, sizeof(**r->times));
	if (r->messages[window] && (r->times[window] || !m->op->trace))
		return 0;
	m->failed = 1;
	return -1;
}

/* The message that this step of this rank takes part in, made if need be; NULL: out of memory. */
static struct gci_sim_message *message_of(
	struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	const struct gci_shape *s = &m->shapes[m->shape_of[window]];
	const struct gci_step *p = &s->sched[rank].steps[step];
	int sends = p->kind == GCI_STEP_SEND, dst = sends ? p->peer : rank;
	uint32_t other = s->match[rank][step];
	struct gci_sim_message *msg;

	if (!m->ranks[dst].messages[window] && make_messages(m, dst, window))
		return NULL;
	msg = &m->ranks[dst].messages[window][s->number[rank][step]];
	if (msg->pair)
		return msg;
	msg->pair = gci_sim_pair(m, sends ? rank : p->peer, dst);
	if (!msg->pair)
		return NULL;
	msg->window = window;
	msg->send_step = sends ? step : other;
	msg->recv_step = sends ? other : step;
	msg->credit_ns = GCI_NEVER;
	msg->patient = s->sched[msg->pair->src].steps[msg->send_step].patient != 0;
	msg->nbytes = (sends ? p->src.length : p->dst.length) * m->coll.esize;
	msg->unsent = msg->unarrived = msg->nbytes;
	return msg;
}

void gci_sim_end_step(struct gci_sim *m, int rank, uint32_t window, uint32_t step, uint64_t ns)
{
	gci_events_push(&m->events, (struct gci_ev){.ns = ns,
					    .rank = rank,
					    .window = window,
					    .step = step,
					    .kind = GCI_EV_DONE});
}

/* The processor is this rank's for so long; when it will be done. */
static uint64_t compute(struct gci_sim *m, int rank, uint64_t ns)
{
	struct gci_sim_rank *r = &m->ranks[rank];

	r->cpu_ns = gci_sim_later(r->cpu_ns, m->now) + ns;
	return r->cpu_ns;
}

static uint64_t local_ns(const struct gci_sim *m, uint64_t length)
{
	unsigned __int128 bits = (unsigned __int128)length * m->coll.esize * 8;

	return m->net->local_bps ? (uint64_t)(bits * GCI_NS_PER_S / m->net->local_bps) : 0;
}

static void start_send(struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	struct gci_sim_message *msg = message_of(m, rank, window, step);
	uint64_t ns = msg ? compute(m, rank, gci_sim_send_ns(m, msg)) : 0;

	if (!msg)
		return;
	if (ns == m->now)
		gci_sim_offer(m, msg);
	else
		gci_events_push(&m->events, (struct gci_ev){.ns = ns,
						    .rank = msg->pair->dst,
						    .window = window,
						    .step = gci_sim_number(m, msg),
						    .kind = GCI_EV_POST});
}

static void start_recv(struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	struct gci_sim_message *msg = message_of(m, rank, window, step);

	if (msg)
		gci_sim_ask(m, msg);
}

void gci_sim_received(struct gci_sim *m, struct gci_sim_message *msg)
{
	const struct gci_step *s =
		&gci_sim_sched(m, msg->pair->dst, msg->window)->steps[msg->recv_step];
	uint64_t ns = gci_sim_recv_ns(m, msg);

	if (s->kind == GCI_STEP_RECV_REDUCE)
		ns += local_ns(m, s->dst.length);
	gci_sim_end_step(
		m, msg->pair->dst, msg->window, msg->recv_step, compute(m, msg->pair->dst, ns));
}

static struct gci_sim_instance *instance_of(struct gci_sim_rank *r, uint32_t window)
{
	int i;

	for (i = 0; i < GCI_MAX_INSTANCES; i++)
		if (r->instances[i].busy && r->instances[i].window == window)
			return &r->instances[i];
	return NULL;
}

static struct gci_sim_instance *idle_instance(struct gci_sim_rank *r)
{
	int i;

	for (i = 0; i < GCI_MAX_INSTANCES; i++)
		if (!r->instances[i].busy)
			return &r->instances[i];
	return NULL;
}

static void advance(struct gci_sim *m, int rank, struct gci_sim_instance *in)
{
	const struct gci_sched *s = in->ready.sched;
	uint32_t step;

	while (gci_ready_next(&in->ready, &step)) {
		const struct gci_step *p = &s->steps[step];

		if (p->kind == GCI_STEP_SEND)
			start_send(m, rank, in->window, step);
		else if (p->kind <= GCI_STEP_RECV_REDUCE)
			start_recv(m, rank, in->window, step);
		else
			gci_sim_end_step(m, rank, in->window, step,
				compute(m, rank, local_ns(m, p->dst.length)));
	}
}

static void end_window(struct gci_sim *m, int rank, struct gci_sim_instance *in)
{
	struct gci_sim_rank *r = &m->ranks[rank];

	in->busy = 0;
	gci_ready_free(&in->ready);
	if (m->now > m->window_end_ns[in->window])
		m->window_end_ns[in->window] = m->now;
	if (++r->ended == m->nwindows)
		m->r->end_ns[rank] = m->now;
}

static void start_window(struct gci_sim *m, int rank, struct gci_sim_instance *in)
{
	uint32_t window = m->ranks[rank].started++;

	if (gci_ready_init(&in->ready, gci_sim_sched(m, rank, window))) {
		m->failed = 1;
		return;
	}
	in->busy = 1;
	in->window = window;
	advance(m, rank, in);
	if (gci_ready_finished(&in->ready))
		end_window(m, rank, in);
}

/* As many windows under way as may be. */
void gci_sim_start_windows(struct gci_sim *m, int rank)
{
	struct gci_sim_rank *r = &m->ranks[rank];
	struct gci_sim_instance *in;

	while (!m->failed && r->started < m->nwindows && (in = idle_instance(r)))
		start_window(m, rank, in);
}

void gci_sim_trace(struct gci_sim *m, int rank, uint32_t window, uint32_t step, uint64_t ready_ns,
	uint64_t from_ns, uint64_t to_ns)
{
	struct gci_sim_event e = {.rank = rank,
		.step = step,
		.window = window,
		.s = &gci_sim_sched(m, rank, window)->steps[step],
		.ready_ns = ready_ns,
		.from_ns = from_ns,
		.to_ns = to_ns};

	if (m->op->trace)
		m->op->trace(m->op->ctx, &e);
}

/* A SEND's bytes leave later than it ends: wire.c tells of it. */
static void trace_end(struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	const struct gci_step *s = &gci_sim_sched(m, rank, window)->steps[step];
	uint64_t ns = local_ns(m, s->dst.length);
	const struct gci_sim_times *times;

	if (!m->op->trace || s->kind == GCI_STEP_SEND)
		return;
	if (s->kind > GCI_STEP_RECV_REDUCE) {
		ns = m->now > ns ? m->now - ns : 0;
		gci_sim_trace(m, rank, window, step, ns, ns, m->now);
		return;
	}
	times = &m->ranks[rank].times[window][m->shapes[m->shape_of[window]].number[rank][step]];
	gci_sim_trace(m, rank, window, step, times->asked_ns, times->rx_ns, m->now);
}

void gci_sim_done(struct gci_sim *m, int rank, uint32_t window, uint32_t step)
{
	struct gci_sim_instance *in = instance_of(&m->ranks[rank], window);

	trace_end(m, rank, window, step);
	gci_ready_done(&in->ready, step);
	advance(m, rank, in);
	if (!gci_ready_finished(&in->ready))
		return;
	end_window(m, rank, in);
	gci_sim_start_windows(m, rank);
}
