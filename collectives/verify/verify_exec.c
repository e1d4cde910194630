/* SPDX-License-Identifier: MIT
 * The verifier's main pass: runs all ranks' schedules at once on symbols, a SEND ending together
 * with its RECV (rendezvous: a network that buffers nothing).
 *
 * One execution stands for all. Nothing a step waits for can be taken away again, neither by
 * another step nor by a peer, as messages are matched by name: so the steps that can finish are
 * the same in whatever order they are tried, and if all finish here, all finish always; more
 * buffering only lets steps finish earlier. What a step reads is the same in every execution too:
 * conflicting accesses of a rank are ordered by its dependencies, so between the start of a step
 * and its end nobody else touches what it writes, and nobody writes what it reads. It does not
 * matter, then, that a step here works at one moment. */
#include "collectives/verify/verify_impl.h"

/* Collects what a slice holds, relative to the slice's start. */
struct value_list {
	struct gci_at at;
	const struct gci_slice *slice;
	struct gci_imap *into; /* values by offset from the slice's start, shifts by that too */
	uint64_t seen;         /* up to here the slice is defined */
};

static int on_value(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct value_list *l = ctx;

	if (lo != l->seen)
		return 1;
	l->seen = hi;
	gci_imap_set(l->into, lo - l->slice->offset, hi - l->slice->offset,
		(struct gci_ival){v->a, v->b + l->slice->offset});
	return 0;
}

static int load(const struct gci_at *at, const struct gci_slice *s, struct gci_imap *into)
{
	struct value_list l = {.at = *at, .slice = s, .into = into, .seen = s->offset};
	struct gci_imap *held = &at->v->ranks[at->rank].held[s->buffer];

	gci_imap_init(into);
	gci_imap_each(held, s->offset, s->offset + s->length, NULL, on_value, &l);
	if (held->failed || into->failed)
		return gci_verify_nomem(at->v);
	if (l.seen != s->offset + s->length)
		return gci_verify_fault_at(at, GCI_FAULT_UNDEFINED,
			"reads undefined %s[%" PRIu64 "]", gci_buffer_name(s->buffer), l.seen);
	return 0;
}

struct store {
	struct gci_at at;
	const struct gci_slice *slice;
	struct gci_imap *other; /* second operand, or NULL */
	struct gci_ival value;  /* of the first operand */
};

static int store_piece(struct store *st, uint64_t lo, uint64_t hi, struct gci_ival v)
{
	struct gci_imap *held = &st->at.v->ranks[st->at.rank].held[st->slice->buffer];

	gci_imap_set(held, lo + st->slice->offset, hi + st->slice->offset,
		(struct gci_ival){v.a, v.b - st->slice->offset});
	return held->failed ? gci_verify_nomem(st->at.v) : 0;
}

static int on_second_operand(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct store *st = ctx;
	uint32_t first = (uint32_t)st->value.a, second = (uint32_t)v->a;
	int64_t joined;

	if (v->b != st->value.b)
		return gci_verify_fault_at(&st->at, GCI_FAULT_OFFSET,
			"combines elements of different offsets at %" PRIu64, lo);
	joined = gci_at_step(&st->at)->swapped ? gci_expr_join(&st->at.v->exprs, first, second)
					       : gci_expr_join(&st->at.v->exprs, second, first);
	if (joined == -1)
		return gci_verify_nomem(st->at.v);
	if (joined < 0)
		return gci_verify_fault_at(&st->at, GCI_FAULT_TWICE,
			"counts rank %d's contribution twice at %" PRIu64, (int)(-2 - joined), lo);
	return store_piece(st, lo, hi, (struct gci_ival){(uint64_t)joined, v->b});
}

static int on_first_operand(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct store *st = ctx;

	if (!st->other)
		return store_piece(st, lo, hi, *v);
	st->value = *v;
	return gci_imap_each(st->other, lo, hi, NULL, on_second_operand, st);
}

/* dst = first; or second OP first, the other way round for swapped steps: first is what comes in
 * or what is added, second what is there. */
static int store(const struct gci_at *at, const struct gci_slice *dst, struct gci_imap *first,
	struct gci_imap *second)
{
	struct store st = {.at = *at, .slice = dst, .other = second};

	return gci_imap_each(first, 0, dst->length, NULL, on_first_operand, &st);
}

static int run_local(const struct gci_at *at)
{
	const struct gci_step *p = gci_at_step(at);
	struct gci_imap src = {0}, dst = {0};
	int rc = load(at, &p->src, &src);

	if (!rc && p->kind == GCI_STEP_REDUCE)
		rc = load(at, &p->dst, &dst);
	if (!rc)
		rc = store(at, &p->dst, &src, p->kind == GCI_STEP_REDUCE ? &dst : NULL);
	gci_imap_free(&src);
	gci_imap_free(&dst);
	return rc;
}

static int run_message(const struct gci_at *from, const struct gci_at *to)
{
	const struct gci_step *recv = gci_at_step(to);
	struct gci_imap sent = {0}, own = {0};
	int rc = load(from, &gci_at_step(from)->src, &sent);

	if (!rc && recv->kind == GCI_STEP_RECV_REDUCE)
		rc = load(to, &recv->src, &own);
	if (!rc)
		rc = store(to, &recv->dst, &sent, recv->kind == GCI_STEP_RECV_REDUCE ? &own : NULL);
	gci_imap_free(&sent);
	gci_imap_free(&own);
	return rc;
}

/* Barrier: what a step knows of ranks having come: what those before it knew, and itself. */
static void learn(struct gci_verifier *v, int rank, uint32_t step, const struct gci_at *sender)
{
	size_t n = v->exprs.nwords, w;
	uint64_t *known = v->ranks[rank].known;
	const struct gci_sched *s = v->scheds[rank];
	uint32_t i;

	if (!known)
		return;
	known[step * n + (size_t)rank / 64] |= 1ull << (rank % 64);
	for (i = 0; i < s->steps[step].ndeps; i++)
		for (w = 0; w < n; w++)
			known[step * n + w] |= known[s->deps[s->steps[step].deps + i] * n + w];
	for (w = 0; sender && w < n; w++)
		known[step * n + w] |= v->ranks[sender->rank].known[sender->step * n + w];
}

static void wake(struct gci_verifier *v, int rank)
{
	if (v->queued[rank])
		return;
	v->queued[rank] = 1;
	v->queue[(v->queue_head + v->queue_len++) % v->nranks] = rank;
}

static int finish_message(struct gci_verifier *v, struct gci_at a, struct gci_at b)
{
	struct gci_at from = gci_at_step(&a)->kind == GCI_STEP_SEND ? a : b;
	struct gci_at to = gci_at_step(&a)->kind == GCI_STEP_SEND ? b : a;
	int rc = run_message(&from, &to);

	/* The sender learns nothing from a receive: its SEND may end before. */
	learn(v, to.rank, to.step, &from);
	gci_ready_done(&v->ranks[a.rank].ready, a.step);
	gci_ready_done(&v->ranks[b.rank].ready, b.step);
	wake(v, a.rank);
	wake(v, b.rank);
	return rc;
}

static int start_step(struct gci_verifier *v, struct gci_at at)
{
	const struct gci_step *p = gci_at_step(&at);
	struct gci_verify_rank *r = &v->ranks[at.rank];
	struct gci_at peer;
	int rc;

	r->started[at.step] = 1;
	learn(v, at.rank, at.step, NULL);
	if (!gci_is_message(p)) {
		rc = run_local(&at);
		gci_ready_done(&r->ready, at.step);
		return rc;
	}
	peer = (struct gci_at){v, p->peer, r->match[at.step]};
	return v->ranks[peer.rank].started[peer.step] ? finish_message(v, at, peer) : 0;
}

static int report_deadlock(struct gci_verifier *v)
{
	struct gci_at at = {v, 0, 0};

	for (; at.rank < v->nranks; at.rank++) {
		if (gci_ready_finished(&v->ranks[at.rank].ready))
			continue;
		for (at.step = 0; at.step < v->scheds[at.rank]->nsteps; at.step++) {
			const struct gci_step *p = gci_at_step(&at);

			if (!v->ranks[at.rank].started[at.step] || !gci_is_message(p))
				continue;
			if (!v->ranks[p->peer].started[v->ranks[at.rank].match[at.step]])
				return gci_verify_fault_at(&at, GCI_FAULT_DEADLOCK,
					"deadlock: waits for rank %d step %u, which cannot start",
					p->peer, v->ranks[at.rank].match[at.step]);
		}
	}
	return gci_verify_fault(v, GCI_FAULT_DEADLOCK, "deadlock");
}

int gci_verify_execute(struct gci_verifier *v)
{
	int r, rc = 0, finished = 0;

	for (r = 0; r < v->nranks; r++)
		wake(v, r);
	while (!rc && v->queue_len) {
		struct gci_at at = {v, v->queue[v->queue_head], 0};

		v->queue_head = (v->queue_head + 1) % v->nranks;
		v->queue_len--;
		v->queued[at.rank] = 0;
		while (!rc && gci_ready_next(&v->ranks[at.rank].ready, &at.step))
			rc = start_step(v, at);
	}
	for (r = 0; r < v->nranks; r++)
		finished += gci_ready_finished(&v->ranks[r].ready);
	return rc || finished == v->nranks ? rc : report_deadlock(v);
}
