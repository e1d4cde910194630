/* SPDX-License-Identifier: MIT */
#include "comm/run.h"

#include "base/clock.h"
#include "base/mem.h"

struct gci_run_message {
	struct gci_tp_req req;
	struct gci_run *run;
	struct gci_list link; /* run->sends, or *run->held */
	uint64_t due_ns;      /* of one that is held */
	uint32_t step;
};

static char *at(const struct gci_run *run, const struct gci_slice *s)
{
	char *base = run->buf[s->buffer];

	return base ? base + s->offset * run->esize : NULL;
}

static int peer_of(const struct gci_run *run, const struct gci_step *s)
{
	return run->ranks ? run->ranks[s->peer] : s->peer;
}

static void operate(
	const struct gci_run *run, void *out, const void *left, const void *right, uint64_t n)
{
	const struct gci_reducer *r = &run->reducer;

	if (r->kernel)
		r->kernel(out, left, right, n);
	else
		r->fn(out, left, right, n, r->type, r->ctx);
}

static void advance(struct gci_run *run);

static void end(struct gci_run *run, int status)
{
	if (!run->status)
		run->status = status;
	/* After a failure the transport ends each request; the last one ends the run. */
	if (run->over || (run->status ? run->nmessages : !gci_ready_finished(&run->ready)))
		return;
	if (run->starting)
		return;
	run->over = 1;
	run->done(run, run->status);
}

static void count(const struct gci_run *run)
{
	if (run->activity)
		++*run->activity;
}

static void trace(const struct gci_run *run, uint32_t step, int ended)
{
	if (run->trace)
		run->trace->step(run->trace->ctx, run, step, ended);
}

/* Nobody shall wait for the way back of a last acknowledgement. */
static void detach_sends(struct gci_run *run)
{
	if (!run->last || run->nmessages != run->nsends)
		return;
	while (!gci_list_empty(&run->sends)) {
		struct gci_run_message *m =
			gci_container(run->sends.next, struct gci_run_message, link);

		gci_list_del(&m->link);
		gci_tp_detach(run->tp, &m->req);
	}
}

/* While others are to follow, acknowledgements may come a few together. When none is, all that are missing should
 * be there by the end of the run, which has to wait for them or to copy what may be lost yet. */
static void ask_for_sends(struct gci_run *run)
{
	struct gci_list *it;

	gci_list_each (it, &run->sends)
		gci_tp_ask(run->tp, &gci_container(it, struct gci_run_message, link)->req);
}

static void on_message(struct gci_tp_req *req, int status)
{
	struct gci_run_message *m = req->user;
	struct gci_run *run = m->run;

	run->nmessages--;
	run->nsends -= run->sched->steps[m->step].kind == GCI_STEP_SEND;
	gci_list_del(&m->link);
	count(run);
	trace(run, m->step, 1);
	gci_ready_done(&run->ready, m->step);
	if (!status && !run->status) {
		advance(run);
		detach_sends(run);
	}
	end(run, status);
}

static void reduce(struct gci_run *run, const struct gci_step *s, uint64_t offset,
	const void *incoming, uint64_t nbytes)
{
	char *out = at(run, &s->dst) + offset;
	const char *own = at(run, &s->src) + offset;

	if (s->swapped)
		operate(run, out, incoming, own, nbytes / run->esize);
	else
		operate(run, out, own, incoming, nbytes / run->esize);
	gci_sums_forget(&run->sums, out, nbytes);
}

static void on_piece(struct gci_tp_req *req, uint64_t offset, const void *data, size_t nbytes)
{
	struct gci_run_message *m = req->user;

	count(m->run);
	reduce(m->run, &m->run->sched->steps[m->step], offset, data, nbytes);
}

/* No step waits for this one. */
static int is_last(const struct gci_run *run, uint32_t step)
{
	return run->sched->next_at[step] == run->sched->next_at[step + 1];
}

static void start_message(struct gci_run *run, uint32_t step)
{
	const struct gci_step *s = &run->sched->steps[step];
	const struct gci_slice *slice = s->kind == GCI_STEP_SEND ? &s->src : &s->dst;
	struct gci_run_message *m = &run->messages[step];

	m->run = run;
	m->step = step;
	m->req = (struct gci_tp_req){.peer = peer_of(run, s),
		.key = {.comm = run->comm, .tag = s->tag, .seq = run->seq},
		.buf = at(run, slice),
		.nbytes = slice->length * run->esize,
		.digest = run->digest,
		.align = run->esize <= GCI_TP_FRAME_NBYTES ? run->esize : 1,
		.share = run->share,
		.tells = 1,
		.done = on_message,
		.piece = s->kind == GCI_STEP_RECV_REDUCE ? on_piece : NULL,
		.sums = s->kind == GCI_STEP_SEND || !is_last(run, step) ? &run->sums : NULL,
		.user = m};
	run->nmessages++;
	if (s->kind != GCI_STEP_SEND) {
		if (s->kind == GCI_STEP_RECV) /* whatever has come there before is over */
			gci_sums_forget(&run->sums, m->req.buf, m->req.nbytes);
		gci_tp_irecv(run->tp, &m->req);
		return;
	}
	run->nsends++;
	run->nunsent--;
	m->req.patient = run->nunsent && is_last(run, step);
	gci_tp_isend(run->tp, &m->req);
	if (is_last(run, step))
		gci_list_push(&run->sends, &m->link);
	else /* other steps wait until its memory may be used again */
		gci_tp_detach(run->tp, &m->req);
	if (!run->nunsent)
		ask_for_sends(run);
}

#define BEHIND_NS (20 * GCI_NS_PER_MS) /* who wakes up so late makes up for it */

static struct gci_run_message *first_held(const struct gci_held *held)
{
	return gci_container(held->sends.next, struct gci_run_message, link);
}

/* True if it waits. */
static int hold(struct gci_run *run, uint32_t step)
{
	struct gci_run_message *m = &run->messages[step];
	struct gci_list *after;

	if (!run->held || !run->sched->steps[step].due_ns)
		return 0;
	m->run = run;
	m->step = step;
	m->due_ns = run->began_ns + run->sched->steps[step].due_ns;
	after = run->held->sends.prev;
	while (after != &run->held->sends &&
		gci_container(after, struct gci_run_message, link)->due_ns > m->due_ns)
		after = after->prev;
	gci_list_push(after->next, &m->link);
	run->nmessages++;
	return 1;
}

void gci_held_init(struct gci_held *held)
{
	gci_list_init(&held->sends);
	held->given_ns = 0;
}

uint64_t gci_held_due_ns(const struct gci_held *held)
{
	uint64_t due_ns = gci_list_empty(&held->sends) ? GCI_NEVER : first_held(held)->due_ns;

	return due_ns > held->given_ns ? due_ns : held->given_ns;
}

static uint64_t nic_ns(const struct gci_run *run, uint32_t step)
{
	uint64_t bits = run->sched->steps[step].src.length * run->esize * 8;

	return run->nic_bps ? (uint64_t)((unsigned __int128)bits * GCI_NS_PER_S / run->nic_bps) : 0;
}

void gci_held_release(struct gci_held *held, uint64_t now_ns, int all)
{
	while (!gci_list_empty(&held->sends) && (all || gci_held_due_ns(held) <= now_ns)) {
		struct gci_run_message *m = first_held(held);
		struct gci_run *run = m->run;

		if (held->given_ns + BEHIND_NS < now_ns)
			held->given_ns = now_ns - BEHIND_NS;
		if (!all)
			held->given_ns += nic_ns(run, m->step);
		gci_list_del(&m->link);
		run->nmessages--;
		trace(run, m->step, 0);
		start_message(run, m->step);
		detach_sends(run);
	}
}

/* Those of a run that is freed before its end. */
static void drop_held(struct gci_run *run)
{
	struct gci_list *it = run->held && !run->over ? run->held->sends.next : NULL;

	while (it && it != &run->held->sends) {
		struct gci_run_message *m = gci_container(it, struct gci_run_message, link);

		it = it->next;
		if (m->run == run)
			gci_list_del(&m->link);
	}
}

static void copy(struct gci_run *run, void *to, const void *from, uint64_t nbytes)
{
	if (!gci_sums_copy(&run->sums, to, from, nbytes) || run->status)
		return;
	run->status = GCOLL_ERR_CORRUPT;
	run->damaged(run);
}

static void run_local(struct gci_run *run, const struct gci_step *s)
{
	uint64_t nbytes = s->dst.length * run->esize;

	if (!nbytes)
		return;
	if (s->kind == GCI_STEP_COPY) {
		copy(run, at(run, &s->dst), at(run, &s->src), nbytes);
		return;
	}
	gci_sums_forget(&run->sums, at(run, &s->dst), nbytes);
	if (s->swapped)
		operate(run, at(run, &s->dst), at(run, &s->src), at(run, &s->dst), s->dst.length);
	else
		operate(run, at(run, &s->dst), at(run, &s->dst), at(run, &s->src), s->dst.length);
}

static void advance(struct gci_run *run)
{
	uint32_t step;

	while (gci_ready_next(&run->ready, &step)) {
		const struct gci_step *s = &run->sched->steps[step];

		if (s->kind == GCI_STEP_SEND && hold(run, step))
			continue;
		trace(run, step, 0);
		if (s->kind <= GCI_STEP_RECV_REDUCE) {
			start_message(run, step);
		} else {
			run_local(run, s);
			trace(run, step, 1);
			gci_ready_done(&run->ready, step);
		}
	}
}

int gci_run_start(struct gci_run *run)
{
	const struct gci_sched *s = run->sched;
	int rc = gci_ready_init(&run->ready, s);
	uint32_t i;

	run->sums = (struct gci_sums){0};
	run->nmessages = run->nsends = 0;
	run->last = 0;
	run->nunsent = 0;
	gci_list_init(&run->sends);
	run->status = run->over = 0;
	run->messages = rc ? NULL : gci_calloc(s->nsteps, sizeof(*run->messages));
	if (rc || !run->messages) {
		gci_run_free(run);
		return GCOLL_ERR_NOMEM;
	}
	/* Connections that later steps need are opened while the first ones run. */
	for (i = 0; i < s->nsteps; i++) {
		if (s->steps[i].kind <= GCI_STEP_RECV_REDUCE)
			gci_tp_connect(run->tp, peer_of(run, &s->steps[i]));
		run->nunsent += s->steps[i].kind == GCI_STEP_SEND;
	}
	run->starting = 1;
	advance(run);
	run->starting = 0;
	end(run, 0);
	return 0;
}

void gci_run_last(struct gci_run *run)
{
	run->last = 1;
	detach_sends(run);
}

void gci_run_free(struct gci_run *run)
{
	drop_held(run);
	gci_ready_free(&run->ready);
	gci_sums_free(&run->sums);
	gci_free(run->messages);
	run->messages = NULL;
}
