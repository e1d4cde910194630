/* SPDX-License-Identifier: MIT
 * The verifier's passes over a set of schedules: shape, matching, order (races), then symbolic
 * execution with rendezvous, and the result. Confluence makes one execution enough: messages are
 * matched by name and races are excluded before, so no timing can lead to other values. */
#include "collectives/verify.h"

#include "base/mem.h"
#include "collectives/expr.h"
#include "collectives/ready.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_STEP UINT32_MAX

/* What an element holds, in a gci_ival: a = expression, b = offset of the contributions' element
 * less its own (modulo 2^64). */

struct rank_state {
	struct gci_ready ready;
	struct gci_imap held[GCI_NBUFFERS];
	uint32_t *match; /* [step]: its counterpart at the peer, for messages */
	unsigned char *started;
	uint64_t *known; /* barrier: [step * nwords] ranks known to have come */
};

struct verifier {
	const struct gci_sched *const *scheds;
	const struct gci_coll *c;
	int nranks;
	struct rank_state *ranks;
	struct gci_exprs exprs;
	struct gci_imap reference; /* rank 0's result: all ranks' bits must be equal */
	struct gci_verify_report *report;
	struct gci_error *e;
	/* worklist of ranks that may have something to start */
	int *queue;
	unsigned char *queued;
	int queue_head, queue_len;
};

/* Where in the schedules we are, for messages. */
struct at {
	struct verifier *v;
	int rank;
	uint32_t step;
};

__attribute__((format(printf, 3, 4))) static int fault(
	struct verifier *v, enum gci_fault kind, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (v->report->fault == GCI_FAULT_NONE)
		v->report->fault = kind;
	return gci_error_set(v->e, GCOLL_ERR_VERIFY, "%s", text);
}

__attribute__((format(printf, 3, 4))) static int fault_at(
	const struct at *at, enum gci_fault kind, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return fault(at->v, kind, "rank %d step %u %s: %s", at->rank, at->step,
		gci_step_name(at->v->scheds[at->rank]->steps[at->step].kind), text);
}

static int nomem(struct verifier *v)
{
	v->report->fault = GCI_FAULT_LIMIT;
	return gci_error_set(v->e, GCOLL_ERR_NOMEM, "out of memory");
}

static const struct gci_step *step_of(const struct at *at)
{
	return &at->v->scheds[at->rank]->steps[at->step];
}

static int is_message(const struct gci_step *s)
{
	return s->kind <= GCI_RECV_REDUCE;
}

static int reads_src(const struct gci_step *s)
{
	return s->kind != GCI_RECV;
}

static int writes_dst(const struct gci_step *s)
{
	return s->kind != GCI_SEND;
}

/* ---- shape */

static uint64_t buffer_length(const struct gci_sched *s, enum gci_buffer buffer)
{
	return buffer == GCI_IN ? s->in_len : buffer == GCI_OUT ? s->out_len : s->tmp_len;
}

static int check_slice(const struct at *at, const struct gci_slice *s)
{
	uint64_t length;

	if ((unsigned)s->buffer >= GCI_NBUFFERS)
		return fault_at(at, GCI_FAULT_SHAPE, "no such buffer: %d", (int)s->buffer);
	length = buffer_length(at->v->scheds[at->rank], s->buffer);
	if (s->length > length || s->offset > length - s->length)
		return fault_at(at, GCI_FAULT_SHAPE,
			"%s[%" PRIu64 " +%" PRIu64 "] is out of bounds, which are %" PRIu64,
			gci_buffer_name(s->buffer), s->offset, s->length, length);
	return 0;
}

static int check_step(const struct at *at)
{
	const struct gci_sched *s = at->v->scheds[at->rank];
	const struct gci_step *p = step_of(at);
	uint32_t i;
	int rc = 0;

	if ((unsigned)p->kind > GCI_REDUCE)
		return fault(at->v, GCI_FAULT_SHAPE, "rank %d step %u: no such kind of step: %d",
			at->rank, at->step, (int)p->kind);
	if (is_message(p) && (p->peer < 0 || p->peer >= at->v->nranks || p->peer == at->rank))
		return fault_at(at, GCI_FAULT_SHAPE, "no such peer: %d", p->peer);
	if (reads_src(p))
		rc = check_slice(at, &p->src);
	if (!rc && writes_dst(p))
		rc = check_slice(at, &p->dst);
	if (rc)
		return rc;
	if (writes_dst(p) && p->dst.buffer == GCI_IN)
		return fault_at(at, GCI_FAULT_SHAPE, "writes to IN");
	if (reads_src(p) && writes_dst(p) && p->src.length != p->dst.length)
		return fault_at(at, GCI_FAULT_SHAPE, "source and destination differ in length");
	for (i = 0; i < p->ndeps; i++)
		if (s->deps[p->deps + i] >= at->step)
			return fault_at(at, GCI_FAULT_SHAPE,
				"waits for step %u, not an earlier one", s->deps[p->deps + i]);
	return 0;
}

static int check_lengths(struct verifier *v, int rank)
{
	const struct gci_coll *c = v->c;
	const struct gci_sched *s = v->scheds[rank];
	int has_in =
		c->kind == GCI_BCAST ? rank == c->root : c->kind == GCI_ALLREDUCE && !c->in_place;
	int has_out = c->kind == GCI_ALLREDUCE || (c->kind == GCI_BCAST && rank != c->root);

	if (s->rank != rank || s->nranks != v->nranks)
		return fault(v, GCI_FAULT_SHAPE, "rank %d: schedule of rank %d of %d", rank,
			s->rank, s->nranks);
	if (s->in_len != (has_in ? c->count : 0) || s->out_len != (has_out ? c->count : 0))
		return fault(v, GCI_FAULT_SHAPE,
			"rank %d: IN is %" PRIu64 ", OUT %" PRIu64 " elements: not the operation's",
			rank, s->in_len, s->out_len);
	if (s->nsteps > GCI_VERIFY_MAX_STEPS)
		return fault(v, GCI_FAULT_LIMIT, "rank %d: %u steps, more than %d", rank, s->nsteps,
			GCI_VERIFY_MAX_STEPS);
	return 0;
}

static int check_shape(struct verifier *v)
{
	struct at at = {v, 0, 0};
	int rc = 0;

	for (; at.rank < v->nranks && !rc; at.rank++) {
		rc = check_lengths(v, at.rank);
		for (at.step = 0; !rc && at.step < v->scheds[at.rank]->nsteps; at.step++)
			rc = check_step(&at);
	}
	return rc;
}

/* ---- matching */

struct message {
	int from, to;
	uint32_t tag, step;
	int sent; /* as seen by the sender */
};

static int compare_messages(const void *a, const void *b)
{
	const struct message *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	return y->sent - x->sent;
}

static int same_message(const struct message *x, const struct message *y)
{
	return x->from == y->from && x->to == y->to && x->tag == y->tag;
}

static uint64_t message_length(const struct gci_step *s)
{
	return s->kind == GCI_SEND ? s->src.length : s->dst.length;
}

static int match_one(struct verifier *v, const struct message *list, size_t left)
{
	const struct message *m = list, *o = left > 1 ? list + 1 : NULL;
	struct at here = {v, m->sent ? m->from : m->to, m->step}, there;

	if (!o || !same_message(m, o))
		return fault_at(&here, GCI_FAULT_UNMATCHED,
			"tag 0x%x: the peer, rank %d, has no step for it", m->tag,
			m->sent ? m->to : m->from);
	there = (struct at){v, o->sent ? o->from : o->to, o->step};
	if (m->sent == o->sent || (left > 2 && same_message(m, list + 2)))
		return fault_at(&there, GCI_FAULT_DUPLICATE, "tag 0x%x from %d to %d is used twice",
			m->tag, m->from, m->to);
	if (message_length(step_of(&here)) != message_length(step_of(&there)))
		return fault_at(&there, GCI_FAULT_LENGTH,
			"receives %" PRIu64 " elements, rank %d step %u sends %" PRIu64,
			message_length(step_of(&there)), here.rank, here.step,
			message_length(step_of(&here)));
	v->ranks[m->from].match[m->step] = o->step;
	v->ranks[m->to].match[o->step] = m->step;
	return 0;
}

static int match_messages(struct verifier *v)
{
	struct message *list = NULL;
	size_t n = 0, cap = 0, i;
	uint32_t k;
	int r, rc = 0;

	for (r = 0; r < v->nranks; r++)
		for (k = 0; k < v->scheds[r]->nsteps; k++) {
			const struct gci_step *s = &v->scheds[r]->steps[k];
			int sent = s->kind == GCI_SEND;

			if (!is_message(s))
				continue;
			if (gci_grow(&list, &cap, n + 1, sizeof(*list))) {
				gci_free(list);
				return nomem(v);
			}
			list[n++] = (struct message){
				sent ? r : s->peer, sent ? s->peer : r, s->tag, k, sent};
		}
	if (n)
		qsort(list, n, sizeof(*list), compare_messages);
	for (i = 0; i < n && !rc; i += 2)
		rc = match_one(v, list + i, n - i);
	v->report->nmessages = n / 2;
	gci_free(list);
	return rc;
}

/* ---- order: any two accesses to an element, one of them a write, must have an order */

struct race_check {
	struct at at;
	const uint64_t *before; /* bits of the steps that come before at.step */
	struct access *accesses;
	size_t n, cap;
	enum gci_buffer buffer;
	int write;
};

/* In the interval map: a = last writer + 1, b = newest read since then, as an index + 1 into
 * accesses, which are chained. */
struct access {
	uint32_t step;
	size_t next;
};

static int ordered(const struct race_check *rc, uint32_t earlier)
{
	return earlier == rc->at.step || (rc->before[earlier / 64] >> (earlier % 64) & 1);
}

static int on_access(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct race_check *rc = ctx;
	size_t i;

	if (v->a && !ordered(rc, (uint32_t)v->a - 1))
		return fault_at(&rc->at, GCI_FAULT_RACE,
			"%s %s[%" PRIu64 "..%" PRIu64 ") without order to step %u, which writes it",
			rc->write ? "writes" : "reads", gci_buffer_name(rc->buffer), lo, hi,
			(uint32_t)v->a - 1);
	if (!rc->write) {
		if (gci_grow(&rc->accesses, &rc->cap, rc->n + 1, sizeof(*rc->accesses)))
			return nomem(rc->at.v);
		rc->accesses[rc->n++] = (struct access){rc->at.step, v->b};
		v->b = rc->n;
		return 0;
	}
	for (i = v->b; i; i = rc->accesses[i - 1].next)
		if (!ordered(rc, rc->accesses[i - 1].step))
			return fault_at(&rc->at, GCI_FAULT_RACE,
				"writes %s[%" PRIu64 "..%" PRIu64
				") without order to step %u, which reads it",
				gci_buffer_name(rc->buffer), lo, hi, rc->accesses[i - 1].step);
	return 0;
}

static int check_access(
	struct race_check *rc, struct gci_imap *maps, const struct gci_slice *s, int write)
{
	static const struct gci_ival untouched = {0, 0};
	int status;

	rc->buffer = s->buffer;
	rc->write = write;
	status = gci_imap_each(
		&maps[s->buffer], s->offset, s->offset + s->length, &untouched, on_access, rc);
	if (status == -1 && maps[s->buffer].failed)
		return nomem(rc->at.v);
	if (!status && write)
		gci_imap_set(&maps[s->buffer], s->offset, s->offset + s->length,
			(struct gci_ival){(uint64_t)rc->at.step + 1, 0});
	return status;
}

static int check_step_order(struct race_check *rc, struct gci_imap *maps)
{
	const struct gci_step *p = step_of(&rc->at);
	int status = 0;

	if (reads_src(p))
		status = check_access(rc, maps, &p->src, 0);
	if (!status && p->kind == GCI_REDUCE)
		status = check_access(rc, maps, &p->dst, 0);
	if (!status && writes_dst(p))
		status = check_access(rc, maps, &p->dst, 1);
	return status;
}

/* Fills row `step` of the matrix: its dependencies and all that come before those. */
static void fill_before(const struct gci_sched *s, uint32_t step, uint64_t *matrix, size_t nwords)
{
	uint64_t *row = matrix + step * nwords;
	uint32_t i;
	size_t w;

	for (i = 0; i < s->steps[step].ndeps; i++) {
		uint32_t d = s->deps[s->steps[step].deps + i];

		for (w = 0; w <= d / 64; w++)
			row[w] |= matrix[d * nwords + w];
		row[d / 64] |= 1ull << (d % 64);
	}
}

static int check_rank_order(struct verifier *v, int rank)
{
	const struct gci_sched *s = v->scheds[rank];
	size_t nwords = ((size_t)s->nsteps + 63) / 64;
	struct race_check rc = {.at = {v, rank, 0}};
	struct gci_imap maps[GCI_NBUFFERS];
	uint64_t *matrix = gci_calloc(s->nsteps, nwords * sizeof(*matrix));
	int i, status = matrix ? 0 : nomem(v);

	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_init(&maps[i]);
	for (; !status && rc.at.step < s->nsteps; rc.at.step++) {
		fill_before(s, rc.at.step, matrix, nwords);
		rc.before = matrix + rc.at.step * nwords;
		status = check_step_order(&rc, maps);
	}
	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_free(&maps[i]);
	gci_free(rc.accesses);
	gci_free(matrix);
	return status;
}

/* ---- symbolic execution */

/* Collects what a slice holds, relative to the slice's start. */
struct value_list {
	struct at at;
	const struct gci_slice *slice;
	struct gci_imap *into; /* values by offset from the slice's start, shifts by that too */
	uint64_t seen;         /* up to here the slice is defined */
	int status;
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

static int load(const struct at *at, const struct gci_slice *s, struct gci_imap *into)
{
	struct value_list l = {.at = *at, .slice = s, .into = into, .seen = s->offset};
	struct gci_imap *held = &at->v->ranks[at->rank].held[s->buffer];

	gci_imap_init(into);
	gci_imap_each(held, s->offset, s->offset + s->length, NULL, on_value, &l);
	if (held->failed || into->failed)
		return nomem(at->v);
	if (l.seen != s->offset + s->length)
		return fault_at(at, GCI_FAULT_UNDEFINED, "reads undefined %s[%" PRIu64 "]",
			gci_buffer_name(s->buffer), l.seen);
	return 0;
}

struct store {
	struct at at;
	const struct gci_slice *slice;
	struct gci_imap *other; /* second operand, or NULL */
	uint64_t lo, hi;        /* of the piece in hand */
	struct gci_ival value;
};

static int store_piece(struct store *st, uint64_t lo, uint64_t hi, struct gci_ival v)
{
	struct gci_imap *held = &st->at.v->ranks[st->at.rank].held[st->slice->buffer];

	gci_imap_set(held, lo + st->slice->offset, hi + st->slice->offset,
		(struct gci_ival){v.a, v.b - st->slice->offset});
	return held->failed ? nomem(st->at.v) : 0;
}

static int on_second_operand(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct store *st = ctx;
	int64_t joined;

	if (v->b != st->value.b)
		return fault_at(&st->at, GCI_FAULT_OFFSET,
			"combines elements of different offsets at %" PRIu64, lo);
	joined = gci_expr_join(&st->at.v->exprs, (uint32_t)st->value.a, (uint32_t)v->a);
	if (joined == -1)
		return nomem(st->at.v);
	if (joined < 0)
		return fault_at(&st->at, GCI_FAULT_TWICE,
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

/* dst = first, or first OP second. */
static int store(const struct at *at, const struct gci_slice *dst, struct gci_imap *first,
	struct gci_imap *second)
{
	struct store st = {.at = *at, .slice = dst, .other = second};

	return gci_imap_each(first, 0, dst->length, NULL, on_first_operand, &st);
}

static int run_local(const struct at *at)
{
	const struct gci_step *p = step_of(at);
	struct gci_imap src = {0}, dst = {0};
	int rc = load(at, &p->src, &src);

	if (!rc && p->kind == GCI_REDUCE)
		rc = load(at, &p->dst, &dst);
	if (!rc)
		rc = store(at, &p->dst, &src, p->kind == GCI_REDUCE ? &dst : NULL);
	gci_imap_free(&src);
	gci_imap_free(&dst);
	return rc;
}

static int run_message(const struct at *from, const struct at *to)
{
	const struct gci_step *recv = step_of(to);
	struct gci_imap sent = {0}, own = {0};
	int rc = load(from, &step_of(from)->src, &sent);

	if (!rc && recv->kind == GCI_RECV_REDUCE)
		rc = load(to, &recv->src, &own);
	if (!rc)
		rc = store(to, &recv->dst, &sent, recv->kind == GCI_RECV_REDUCE ? &own : NULL);
	gci_imap_free(&sent);
	gci_imap_free(&own);
	return rc;
}

/* Barrier: what a step knows of ranks having come: what those before it knew, and itself. */
static void learn(struct verifier *v, int rank, uint32_t step, const struct at *sender)
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

static void wake(struct verifier *v, int rank)
{
	if (v->queued[rank])
		return;
	v->queued[rank] = 1;
	v->queue[(v->queue_head + v->queue_len++) % v->nranks] = rank;
}

static int finish_message(struct verifier *v, struct at a, struct at b)
{
	struct at from = step_of(&a)->kind == GCI_SEND ? a : b;
	struct at to = step_of(&a)->kind == GCI_SEND ? b : a;
	int rc = run_message(&from, &to);

	/* The sender learns nothing from a receive: its SEND may end before. */
	learn(v, to.rank, to.step, &from);
	gci_ready_done(&v->ranks[a.rank].ready, a.step);
	gci_ready_done(&v->ranks[b.rank].ready, b.step);
	wake(v, a.rank);
	wake(v, b.rank);
	return rc;
}

static int start_step(struct verifier *v, struct at at)
{
	const struct gci_step *p = step_of(&at);
	struct rank_state *r = &v->ranks[at.rank];
	struct at peer;
	int rc;

	r->started[at.step] = 1;
	learn(v, at.rank, at.step, NULL);
	if (!is_message(p)) {
		rc = run_local(&at);
		gci_ready_done(&r->ready, at.step);
		return rc;
	}
	peer = (struct at){v, p->peer, r->match[at.step]};
	return v->ranks[peer.rank].started[peer.step] ? finish_message(v, at, peer) : 0;
}

static int report_deadlock(struct verifier *v)
{
	struct at at = {v, 0, 0};

	for (; at.rank < v->nranks; at.rank++) {
		if (gci_ready_finished(&v->ranks[at.rank].ready))
			continue;
		for (at.step = 0; at.step < v->scheds[at.rank]->nsteps; at.step++) {
			const struct gci_step *p = step_of(&at);

			if (!v->ranks[at.rank].started[at.step] || !is_message(p))
				continue;
			if (!v->ranks[p->peer].started[v->ranks[at.rank].match[at.step]])
				return fault_at(&at, GCI_FAULT_DEADLOCK,
					"deadlock: waits for rank %d step %u, which cannot start",
					p->peer, v->ranks[at.rank].match[at.step]);
		}
	}
	return fault(v, GCI_FAULT_DEADLOCK, "deadlock");
}

static int execute(struct verifier *v)
{
	int r, rc = 0, finished = 0;

	for (r = 0; r < v->nranks; r++)
		wake(v, r);
	while (!rc && v->queue_len) {
		struct at at = {v, v->queue[v->queue_head], 0};

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

/* ---- result */

struct result_check {
	struct verifier *v;
	int rank;
	uint64_t seen;
	struct gci_ival value;
};

static int on_reference(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct result_check *rc = ctx;

	if (v->a != rc->value.a)
		return fault(rc->v, GCI_FAULT_BITS,
			"rank %d: OUT[%" PRIu64 "..%" PRIu64
			") is reduced in another order than on rank 0",
			rc->rank, lo, hi);
	return 0;
}

static int on_result(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct result_check *rc = ctx;
	const struct gci_coll *c = rc->v->c;
	int missing;

	if (lo != rc->seen)
		return 1;
	rc->seen = hi;
	if (v->b)
		return fault(rc->v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] holds element %" PRIu64, rc->rank, lo,
			lo + v->b);
	if (c->kind == GCI_BCAST)
		return v->a == (uint64_t)c->root
			       ? 0
			       : fault(rc->v, GCI_FAULT_RESULT,
					 "rank %d: OUT[%" PRIu64 "] is not the root's", rc->rank,
					 lo);
	missing = gci_expr_missing(&rc->v->exprs, (uint32_t)v->a);
	if (missing >= 0)
		return fault(rc->v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] lacks rank %d's contribution", rc->rank, lo,
			missing);
	if (rc->rank == 0) {
		gci_imap_set(&rc->v->reference, lo, hi, *v);
		return rc->v->reference.failed ? nomem(rc->v) : 0;
	}
	rc->value = *v;
	return gci_imap_each(&rc->v->reference, lo, hi, NULL, on_reference, rc);
}

static int check_result(struct verifier *v, int rank)
{
	struct result_check rc = {.v = v, .rank = rank};
	uint64_t length = v->scheds[rank]->out_len;
	int status =
		gci_imap_each(&v->ranks[rank].held[GCI_OUT], 0, length, NULL, on_result, &rc);

	if (status == 1 || (!status && rc.seen != length))
		return fault(v, GCI_FAULT_RESULT, "rank %d: OUT[%" PRIu64 "] is undefined at the end",
			rank, rc.seen);
	return status;
}

static int check_barrier(struct verifier *v, int rank)
{
	size_t n = v->exprs.nwords, w;
	uint64_t *known = gci_calloc(n, sizeof(*known));
	uint32_t step;
	int r, rc = 0;

	if (!known)
		return nomem(v);
	known[(size_t)rank / 64] |= 1ull << (rank % 64);
	for (step = 0; step < v->scheds[rank]->nsteps; step++)
		for (w = 0; w < n; w++)
			known[w] |= v->ranks[rank].known[step * n + w];
	for (r = 0; r < v->nranks && !rc; r++)
		if (!(known[(size_t)r / 64] >> (r % 64) & 1))
			rc = fault(v, GCI_FAULT_BARRIER,
				"rank %d can leave before rank %d has come", rank, r);
	gci_free(known);
	return rc;
}

/* ---- traffic */

static int count_senders(struct verifier *v, int check_senders)
{
	const struct gci_topo *t = v->c->topo;
	size_t nc = (size_t)t->nclusters;
	int *last = gci_calloc(nc * nc, sizeof(*last)),
	    *count = gci_calloc(nc * nc, sizeof(*count));
	int i, a, b, rc = 0;
	uint32_t k;

	if (!last || !count)
		rc = nomem(v);
	/* Ranks in order of clusters, so that each is counted once per pair. */
	for (i = 0; !rc && i < t->nranks; i++) {
		int r = t->member[i];
		uint64_t out = 0, in = 0;

		for (k = 0; k < v->scheds[r]->nsteps; k++) {
			const struct gci_step *s = &v->scheds[r]->steps[k];
			size_t pair;

			if (!is_message(s))
				continue;
			if (s->kind != GCI_SEND) {
				in += s->dst.length;
				continue;
			}
			out += s->src.length;
			pair = (size_t)t->cluster[r] * nc + (size_t)t->cluster[s->peer];
			if (t->cluster[r] == t->cluster[s->peer] || !s->src.length)
				continue;
			v->report->wan_elements += s->src.length;
			count[pair] += last[pair] != r + 1;
			last[pair] = r + 1;
		}
		v->report->nsteps += v->scheds[r]->nsteps;
		if (out > v->report->most_out)
			v->report->most_out = out;
		if (in > v->report->most_in)
			v->report->most_in = in;
	}
	for (a = 0; !rc && check_senders && a < t->nclusters; a++)
		for (b = 0; !rc && b < t->nclusters; b++)
			if (a != b &&
				count[(size_t)a * nc + (size_t)b] > gci_coll_senders(v->c, a, b))
				rc = fault(v, GCI_FAULT_SENDERS,
					"%d ranks of cluster %d send to cluster %d, allowed are %d",
					count[(size_t)a * nc + (size_t)b], a, b,
					gci_coll_senders(v->c, a, b));
	gci_free(last);
	gci_free(count);
	return rc;
}

/* ---- set-up */

static int init_rank(struct verifier *v, int r)
{
	const struct gci_sched *s = v->scheds[r];
	struct rank_state *st = &v->ranks[r];
	const struct gci_coll *c = v->c;
	enum gci_buffer holds = c->kind == GCI_ALLREDUCE && c->in_place ? GCI_OUT : GCI_IN;
	int i;

	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_init(&st->held[i]);
	st->match = gci_calloc(s->nsteps, sizeof(*st->match));
	st->started = gci_calloc(s->nsteps, 1);
	if (c->kind == GCI_BARRIER)
		st->known = gci_calloc(s->nsteps, v->exprs.nwords * sizeof(*st->known));
	if (!st->match || !st->started || (c->kind == GCI_BARRIER && !st->known))
		return nomem(v);
	if (c->kind == GCI_ALLREDUCE || (c->kind == GCI_BCAST && r == c->root))
		gci_imap_set(&st->held[holds], 0, c->count, (struct gci_ival){(uint64_t)r, 0});
	return st->held[holds].failed ? nomem(v) : 0;
}

static void free_rank(struct rank_state *st)
{
	int i;

	gci_ready_free(&st->ready);
	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_free(&st->held[i]);
	gci_free(st->match);
	gci_free(st->started);
	gci_free(st->known);
}

static int run_passes(struct verifier *v, int check_senders)
{
	int r, rc = check_shape(v);

	for (r = 0; !rc && r < v->nranks; r++)
		rc = init_rank(v, r);
	if (!rc)
		rc = match_messages(v);
	for (r = 0; !rc && r < v->nranks; r++)
		rc = check_rank_order(v, r);
	for (r = 0; !rc && r < v->nranks; r++)
		rc = gci_ready_init(&v->ranks[r].ready, v->scheds[r]) ? nomem(v) : 0;
	if (!rc)
		rc = execute(v);
	for (r = 0; !rc && r < v->nranks; r++)
		rc = v->c->kind == GCI_BARRIER ? check_barrier(v, r) : check_result(v, r);
	return rc ? rc : count_senders(v, check_senders);
}

int gci_verify(const struct gci_sched *const *scheds, const struct gci_coll *c, int check_senders,
	struct gci_verify_report *report, struct gci_error *e)
{
	struct gci_verify_report unused;
	size_t n = (size_t)c->topo->nranks;
	struct verifier v = {.scheds = scheds, .c = c, .nranks = c->topo->nranks, .e = e};
	int rc;

	gci_imap_init(&v.reference);
	v.report = report ? report : &unused;
	memset(v.report, 0, sizeof(*v.report));
	v.ranks = gci_calloc(n, sizeof(*v.ranks));
	v.queue = gci_calloc(n, sizeof(*v.queue));
	v.queued = gci_calloc(n, 1);
	if (!v.ranks || !v.queue || !v.queued || gci_exprs_init(&v.exprs, v.nranks))
		rc = nomem(&v);
	else
		rc = run_passes(&v, check_senders);
	for (size_t r = 0; v.ranks && r < n; r++)
		free_rank(&v.ranks[r]);
	gci_exprs_free(&v.exprs);
	gci_imap_free(&v.reference);
	gci_free(v.ranks);
	gci_free(v.queue);
	gci_free(v.queued);
	return rc;
}
