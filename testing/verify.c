/* SPDX-License-Identifier: MIT
 * The verifier: its passes, their order, and how it words a fault. */
#include "testing/verify.h"

#include "base/mem.h"
#include "base/prng.h"
#include "collectives/blocks/layout.h"
#include "collectives/blocks/order.h"
#include "collectives/schedule/ready.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Symbolic values: expression trees over the ranks' contributions, each tree stored once, so that
 * equal trees have equal numbers. OP is taken neither as associative nor as commutative: the bits
 * of a minimum of floats, for one, depend on the order of operands when these are +0 and -0. */

#define NONE UINT32_MAX

struct gci_expr_node {
	uint32_t a, b; /* left, right; leaves: NONE, rank */
};

struct gci_exprs {
	int nranks;
	size_t nwords; /* of a set of ranks */
	struct gci_expr_node *nodes;
	size_t n, cap;
	uint64_t *sets; /* [expr * nwords]: whose contributions are in it */
	size_t sets_cap;
	uint32_t *table; /* open addressing; expr + 1, 0: empty */
	size_t table_size;
};

static uint64_t hash(struct gci_expr_node n)
{
	return gci_mix64((uint64_t)n.a << 32 | n.b);
}

static int grow_table(struct gci_exprs *x)
{
	size_t size = x->table_size ? 2 * x->table_size : 256, i;
	uint32_t *table = gci_calloc(size, sizeof(*table));

	if (!table)
		return -1;
	for (i = 0; i < x->n; i++) {
		size_t at = hash(x->nodes[i]) & (size - 1);

		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = (uint32_t)i + 1;
	}
	gci_free(x->table);
	x->table = table;
	x->table_size = size;
	return 0;
}

/* The number of the node, new or old; -1 when out of memory. *fresh tells which. */
static int64_t intern(struct gci_exprs *x, struct gci_expr_node n, int *fresh)
{
	size_t at;

	*fresh = 0;
	if (2 * (x->n + 1) > x->table_size && grow_table(x))
		return -1;
	for (at = hash(n) & (x->table_size - 1); x->table[at];
		at = (at + 1) & (x->table_size - 1)) {
		uint32_t i = x->table[at] - 1;

		if (x->nodes[i].a == n.a && x->nodes[i].b == n.b)
			return i;
	}
	if (x->n >= NONE - 1 || gci_grow(&x->nodes, &x->cap, x->n + 1, sizeof(n)) ||
		gci_grow(&x->sets, &x->sets_cap, (x->n + 1) * x->nwords, sizeof(*x->sets)))
		return -1;
	x->nodes[x->n] = n;
	memset(x->sets + x->n * x->nwords, 0, x->nwords * sizeof(*x->sets));
	x->table[at] = (uint32_t)++x->n;
	*fresh = 1;
	return (int64_t)x->n - 1;
}

static void gci_exprs_free(struct gci_exprs *x)
{
	gci_free(x->nodes);
	gci_free(x->sets);
	gci_free(x->table);
	memset(x, 0, sizeof(*x));
}

/* Expression r, for 0 <= r < nranks, is rank r's contribution. 0 or -1 (out of memory). */
static int gci_exprs_init(struct gci_exprs *x, int nranks)
{
	int r, fresh;

	memset(x, 0, sizeof(*x));
	x->nranks = nranks;
	x->nwords = ((size_t)nranks + 63) / 64;
	for (r = 0; r < nranks; r++) {
		if (intern(x, (struct gci_expr_node){NONE, (uint32_t)r}, &fresh) != r) {
			gci_exprs_free(x);
			return -1;
		}
		x->sets[(size_t)r * x->nwords + (size_t)r / 64] = 1ull << (r % 64);
	}
	return 0;
}

/* The expression a OP b: its number, -1 when out of memory, -2 - r when rank r's contribution is
 * in both. */
static int64_t gci_expr_join(struct gci_exprs *x, uint32_t a, uint32_t b)
{
	struct gci_expr_node n = {a, b};
	size_t w;
	int64_t e;
	int fresh;

	for (w = 0; w < x->nwords; w++) {
		uint64_t both = x->sets[a * x->nwords + w] & x->sets[b * x->nwords + w];

		if (both)
			return -2 - (int64_t)(w * 64) - __builtin_ctzll(both);
	}
	e = intern(x, n, &fresh);
	for (w = 0; e >= 0 && fresh && w < x->nwords; w++)
		x->sets[(size_t)e * x->nwords + w] =
			x->sets[a * x->nwords + w] | x->sets[b * x->nwords + w];
	return e;
}

/* The first rank whose contribution is missing, or -1. */
static int gci_expr_missing(const struct gci_exprs *x, uint32_t e)
{
	int r;

	for (r = 0; r < x->nranks; r++)
		if (!(x->sets[e * x->nwords + (size_t)r / 64] >> (r % 64) & 1))
			return r;
	return -1;
}

/* ---- The verifier. */

struct gci_verify_rank {
	uint32_t *match; /* [step]: its counterpart at the peer, for messages */
	struct gci_ready ready;
	unsigned char *started;
	/* What an element holds: a = expression, b = offset of the contributions' element in
	 * their ranks' input, less its own offset (modulo 2^64). Undefined elements are not in
	 * the map. */
	struct gci_imap held[GCI_NBUFFERS];
	uint64_t *known; /* barrier: [step * nwords] ranks known to have come */
};

struct gci_verifier {
	const struct gci_sched *const *scheds;
	const struct gci_coll *c;
	int nranks;
	struct gci_verify_rank *ranks;
	struct gci_exprs exprs;
	/* Results by their elements' offset in the input: all ranks' bits must be equal. */
	struct gci_imap reference;
	int64_t canonical; /* the expression of a fixed order; -1: any order will do */
	struct gci_verify_report *report;
	struct gci_error *e;
	/* Worklist of ranks that may have something to start. */
	int *queue;
	unsigned char *queued;
	int queue_head, queue_len;
};

/* Where in the schedules a pass is, for messages. */
struct gci_at {
	struct gci_verifier *v;
	int rank;
	uint32_t step;
};

static inline const struct gci_step *gci_at_step(const struct gci_at *at)
{
	return &at->v->scheds[at->rank]->steps[at->step];
}

static inline int gci_is_message(const struct gci_step *s)
{
	return s->kind <= GCI_STEP_RECV_REDUCE;
}

static inline int gci_reads_src(const struct gci_step *s)
{
	return s->kind != GCI_STEP_RECV;
}

static inline int gci_writes_dst(const struct gci_step *s)
{
	return s->kind != GCI_STEP_SEND;
}

static int gci_verify_fault(struct gci_verifier *v, enum gci_fault kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int gci_verify_fault_at(const struct gci_at *at, enum gci_fault kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int gci_verify_nomem(struct gci_verifier *v);

/* ---- The verifier's race pass: any two accesses of a rank to one element, of which one writes,
 * must have an order by the rank's own dependencies. An order that only follows by way of other
 * ranks does not count: no emitter needs one, and a schedule stays correct if the peers' change. */

struct race_check {
	struct gci_at at;
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
		return gci_verify_fault_at(&rc->at, GCI_FAULT_RACE,
			"%s %s[%" PRIu64 "..%" PRIu64 ") without order to step %u, which writes it",
			rc->write ? "writes" : "reads", gci_buffer_name(rc->buffer), lo, hi,
			(uint32_t)v->a - 1);
	if (!rc->write) {
		if (gci_grow(&rc->accesses, &rc->cap, rc->n + 1, sizeof(*rc->accesses)))
			return gci_verify_nomem(rc->at.v);
		rc->accesses[rc->n++] = (struct access){rc->at.step, v->b};
		v->b = rc->n;
		return 0;
	}
	for (i = v->b; i; i = rc->accesses[i - 1].next)
		if (!ordered(rc, rc->accesses[i - 1].step))
			return gci_verify_fault_at(&rc->at, GCI_FAULT_RACE,
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
	if (status || !write)
		return status;
	gci_imap_set(&maps[s->buffer], s->offset, s->offset + s->length,
		(struct gci_ival){(uint64_t)rc->at.step + 1, 0});
	return maps[s->buffer].failed ? gci_verify_nomem(rc->at.v) : 0;
}

/* Pieces of a message come in any order, and kernels go through elements as they like: a step's
 * own slices must be the same or apart. */
static int overlap_in_part(const struct gci_step *p)
{
	const struct gci_slice *a = &p->src, *b = &p->dst;

	return gci_reads_src(p) && gci_writes_dst(p) && a->buffer == b->buffer &&
	       a->offset != b->offset && a->offset < b->offset + b->length &&
	       b->offset < a->offset + a->length;
}

static int check_step_order(struct race_check *rc, struct gci_imap *maps)
{
	const struct gci_step *p = gci_at_step(&rc->at);
	int status = 0;

	if (overlap_in_part(p))
		return gci_verify_fault_at(
			&rc->at, GCI_FAULT_RACE, "source and destination overlap in part");
	if (gci_reads_src(p))
		status = check_access(rc, maps, &p->src, 0);
	if (!status && p->kind == GCI_STEP_REDUCE)
		status = check_access(rc, maps, &p->dst, 0);
	if (!status && gci_writes_dst(p))
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

static int gci_verify_order(struct gci_verifier *v, int rank)
{
	const struct gci_sched *s = v->scheds[rank];
	size_t nwords = ((size_t)s->nsteps + 63) / 64;
	struct race_check rc = {.at = {v, rank, 0}};
	struct gci_imap maps[GCI_NBUFFERS];
	uint64_t *matrix = gci_calloc(s->nsteps, nwords * sizeof(*matrix));
	int i, status = matrix ? 0 : gci_verify_nomem(v);

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

/* ---- The verifier's first passes: every step alone, then messages with their counterparts. */

static uint64_t buffer_length(const struct gci_sched *s, enum gci_buffer buffer)
{
	return buffer == GCI_IN ? s->in_len : buffer == GCI_OUT ? s->out_len : s->tmp_len;
}

static int check_slice(const struct gci_at *at, const struct gci_slice *s)
{
	uint64_t length;

	if ((unsigned)s->buffer >= GCI_NBUFFERS)
		return gci_verify_fault_at(
			at, GCI_FAULT_SHAPE, "no such buffer: %d", (int)s->buffer);
	length = buffer_length(at->v->scheds[at->rank], s->buffer);
	if (s->length > length || s->offset > length - s->length)
		return gci_verify_fault_at(at, GCI_FAULT_SHAPE,
			"%s[%" PRIu64 " +%" PRIu64 "] is out of bounds, which are %" PRIu64,
			gci_buffer_name(s->buffer), s->offset, s->length, length);
	return 0;
}

static int check_step(const struct gci_at *at)
{
	const struct gci_sched *s = at->v->scheds[at->rank];
	const struct gci_step *p = gci_at_step(at);
	uint32_t i;
	int rc = 0;

	if ((unsigned)p->kind > GCI_STEP_REDUCE)
		return gci_verify_fault(at->v, GCI_FAULT_SHAPE,
			"rank %d step %u: no such kind of step: %d", at->rank, at->step,
			(int)p->kind);
	if (gci_is_message(p) && (p->peer < 0 || p->peer >= at->v->nranks || p->peer == at->rank))
		return gci_verify_fault_at(at, GCI_FAULT_SHAPE, "no such peer: %d", p->peer);
	if (gci_reads_src(p))
		rc = check_slice(at, &p->src);
	if (!rc && gci_writes_dst(p))
		rc = check_slice(at, &p->dst);
	if (rc)
		return rc;
	if (gci_writes_dst(p) && p->dst.buffer == GCI_IN)
		return gci_verify_fault_at(at, GCI_FAULT_SHAPE, "writes to IN");
	if (gci_reads_src(p) && gci_writes_dst(p) && p->src.length != p->dst.length)
		return gci_verify_fault_at(
			at, GCI_FAULT_SHAPE, "source and destination differ in length");
	for (i = 0; i < p->ndeps; i++)
		if (s->deps[p->deps + i] >= at->step)
			return gci_verify_fault_at(at, GCI_FAULT_SHAPE,
				"waits for step %u, not an earlier one", s->deps[p->deps + i]);
	return 0;
}

static int check_lengths(struct gci_verifier *v, int rank)
{
	const struct gci_coll *c = v->c;
	const struct gci_sched *s = v->scheds[rank];

	if (s->rank != rank || s->nranks != v->nranks)
		return gci_verify_fault(v, GCI_FAULT_SHAPE, "rank %d: schedule of rank %d of %d",
			rank, s->rank, s->nranks);
	if (s->in_len != gci_in_extent(c, rank) || s->out_len != gci_out_extent(c, rank))
		return gci_verify_fault(v, GCI_FAULT_SHAPE,
			"rank %d: IN is %" PRIu64 ", OUT %" PRIu64 " elements: not the operation's",
			rank, s->in_len, s->out_len);
	if (s->nsteps > GCI_VERIFY_MAX_STEPS)
		return gci_verify_fault(v, GCI_FAULT_LIMIT, "rank %d: %u steps, more than %d", rank,
			s->nsteps, GCI_VERIFY_MAX_STEPS);
	return 0;
}

/* The readiness core walks the edges forwards, the race pass backwards: they must be the same. All
 * of them stand in deps[] in the order of steps, next_at[nsteps] in number. */
static int check_edges(struct gci_verifier *v, int rank)
{
	const struct gci_sched *s = v->scheds[rank];
	uint32_t *fill = gci_calloc(s->nsteps, sizeof(*fill));
	uint64_t ndeps = 0;
	uint32_t i, k, bad = 0;

	if (!fill)
		return gci_verify_nomem(v);
	for (i = 0; i < s->nsteps && !bad; i++) {
		bad = s->next_at[i] > s->next_at[i + 1] || s->steps[i].deps != ndeps;
		ndeps += s->steps[i].ndeps;
	}
	bad = bad || s->next_at[0] || s->next_at[s->nsteps] != ndeps;
	for (i = 0; i < s->nsteps && !bad; i++)
		for (k = 0; k < s->steps[i].ndeps && !bad; k++) {
			uint32_t d = s->deps[s->steps[i].deps + k], at;

			if (d >= i) /* check_step says so */
				continue;
			at = s->next_at[d] + fill[d]++;
			bad = at >= s->next_at[d + 1] || s->next[at] != i;
		}
	gci_free(fill);
	return bad ? gci_verify_fault(v, GCI_FAULT_SHAPE,
			     "rank %d: edges backwards and forwards are not the same", rank)
		   : 0;
}

/* The passes: 0 or a status. */
static int gci_verify_shape(struct gci_verifier *v)
{
	struct gci_at at = {v, 0, 0};
	int rc = 0;

	for (; at.rank < v->nranks && !rc; at.rank++) {
		rc = check_lengths(v, at.rank);
		if (!rc)
			rc = check_edges(v, at.rank);
		for (at.step = 0; !rc && at.step < v->scheds[at.rank]->nsteps; at.step++)
			rc = check_step(&at);
	}
	return rc;
}

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
	return s->kind == GCI_STEP_SEND ? s->src.length : s->dst.length;
}

static int match_one(struct gci_verifier *v, const struct message *list, size_t left)
{
	const struct message *m = list, *o = left > 1 ? list + 1 : NULL;
	struct gci_at here = {v, m->sent ? m->from : m->to, m->step}, there;

	if (!o || !same_message(m, o))
		return gci_verify_fault_at(&here, GCI_FAULT_UNMATCHED,
			"tag 0x%x: the peer, rank %d, has no step for it", m->tag,
			m->sent ? m->to : m->from);
	there = (struct gci_at){v, o->sent ? o->from : o->to, o->step};
	if (m->sent == o->sent || (left > 2 && same_message(m, list + 2)))
		return gci_verify_fault_at(&there, GCI_FAULT_DUPLICATE,
			"tag 0x%x from %d to %d is used twice", m->tag, m->from, m->to);
	if (message_length(gci_at_step(&here)) != message_length(gci_at_step(&there)))
		return gci_verify_fault_at(&there, GCI_FAULT_LENGTH,
			"receives %" PRIu64 " elements, rank %d step %u sends %" PRIu64,
			message_length(gci_at_step(&there)), here.rank, here.step,
			message_length(gci_at_step(&here)));
	v->ranks[m->from].match[m->step] = o->step;
	v->ranks[m->to].match[o->step] = m->step;
	return 0;
}

static int gci_verify_matching(struct gci_verifier *v)
{
	struct message *list = NULL;
	size_t n = 0, cap = 0, i;
	uint32_t k;
	int r, rc = 0;

	for (r = 0; r < v->nranks; r++)
		for (k = 0; k < v->scheds[r]->nsteps; k++) {
			const struct gci_step *s = &v->scheds[r]->steps[k];
			int sent = s->kind == GCI_STEP_SEND;

			if (!gci_is_message(s))
				continue;
			if (gci_grow(&list, &cap, n + 1, sizeof(*list))) {
				gci_free(list);
				return gci_verify_nomem(v);
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

/* ---- The verifier's main pass: runs all ranks' schedules at once on symbols, a SEND ending
 * together with its RECV (rendezvous: a network that buffers nothing).
 *
 * One execution stands for all. Nothing a step waits for can be taken away again, neither by
 * another step nor by a peer, as messages are matched by name: so the steps that can finish are
 * the same in whatever order they are tried, and if all finish here, all finish always; more
 * buffering only lets steps finish earlier. What a step reads is the same in every execution too:
 * conflicting accesses of a rank are ordered by its dependencies, so between the start of a step
 * and its end nobody else touches what it writes, and nobody writes what it reads. It does not
 * matter, then, that a step here works at one moment. */

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

static int gci_verify_execute(struct gci_verifier *v)
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

/* ---- The verifier's last passes: what the buffers hold in the end, what barriers have proved, and
 * what was sent between clusters. */

#define ALL_RANKS -1

/* What a piece of OUT must hold in the end. */
struct expected {
	struct gci_slice at;
	int leaf;        /* this rank's input, or that of ALL_RANKS combined */
	uint64_t offset; /* in the input, of the first element */
};

struct result_check {
	struct gci_verifier *v;
	int rank;
	const struct expected *expected;
	uint64_t seen;
	struct gci_ival value;
};

static int on_reference(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct result_check *rc = ctx;

	if (v->a != rc->value.a)
		return gci_verify_fault(rc->v, GCI_FAULT_BITS,
			"rank %d: the result of elements [%" PRIu64 "..%" PRIu64
			") is reduced in another order than on other ranks",
			rc->rank, lo, hi);
	return 0;
}

/* All contributions are in it, in the order asked for, and in that of other ranks. */
static int check_reduced(struct result_check *rc, uint64_t lo, uint64_t hi, struct gci_ival v)
{
	struct gci_verifier *vf = rc->v;
	int missing = gci_expr_missing(&vf->exprs, (uint32_t)v.a);
	int rank = rc->rank;

	if (missing >= 0)
		return gci_verify_fault(vf, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] lacks rank %d's contribution", rank, lo,
			missing);
	if (vf->canonical >= 0 && v.a != (uint64_t)vf->canonical)
		return gci_verify_fault(vf, GCI_FAULT_BITS,
			"rank %d: OUT[%" PRIu64 "..%" PRIu64 ") is not reduced in the fixed order",
			rank, lo, hi);
	if (vf->c->kind != GCI_ALLREDUCE)
		return 0;
	if (rank == 0) {
		gci_imap_set(&vf->reference, lo, hi, v);
		return vf->reference.failed ? gci_verify_nomem(vf) : 0;
	}
	rc->value = v;
	return gci_imap_each(&vf->reference, lo, hi, NULL, on_reference, rc);
}

static int on_result(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct result_check *rc = ctx;
	const struct expected *x = rc->expected;
	uint64_t holds = lo + v->b, wanted = x->offset + (lo - x->at.offset);

	if (lo != rc->seen)
		return 1;
	rc->seen = hi;
	if (holds != wanted)
		return gci_verify_fault(rc->v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] holds element %" PRIu64 ", not %" PRIu64,
			rc->rank, lo, holds, wanted);
	if (x->leaf == ALL_RANKS)
		return check_reduced(rc, lo, hi, *v);
	if (v->a != (uint64_t)x->leaf)
		return gci_verify_fault(rc->v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] is not rank %d's", rc->rank, lo, x->leaf);
	return 0;
}

static int check_piece(struct gci_verifier *v, int rank, const struct expected *x)
{
	struct result_check rc = {.v = v, .rank = rank, .expected = x, .seen = x->at.offset};
	uint64_t end = x->at.offset + x->at.length;
	struct gci_imap *out = &v->ranks[rank].held[GCI_OUT];
	int status = gci_imap_each(out, x->at.offset, end, NULL, on_result, &rc);

	if (status == 1 || (!status && rc.seen != end))
		return gci_verify_fault(v, GCI_FAULT_RESULT,
			"rank %d: OUT[%" PRIu64 "] is undefined at the end", rank, rc.seen);
	return status;
}

/* What block number i of rank's output must hold. */
static struct expected expected_block(const struct gci_coll *c, int rank, int i)
{
	struct expected x = {.at = gci_out_block(c, rank, i), .leaf = i};

	switch (c->kind) {
	case GCI_REDUCE_SCATTER:
		x.leaf = ALL_RANKS;
		x.offset = gci_in_block(c, rank, rank).offset;
		break;
	case GCI_SCATTER:
		x.leaf = c->root;
		x.offset = gci_in_block(c, c->root, rank).offset;
		break;
	case GCI_ALLTOALL:
		x.offset = c->in_place ? gci_out_block(c, i, rank).offset
				       : gci_in_block(c, i, rank).offset;
		break;
	default: /* gather, allgather */
		x.offset = gci_own_at(c, i);
	}
	return x;
}

static int compare_pieces(const void *a, const void *b)
{
	const struct expected *x = a, *y = b;

	return x->at.offset < y->at.offset ? -1 : x->at.offset > y->at.offset;
}

static int on_stray(void *ctx, uint64_t lo, uint64_t hi, struct gci_ival *v)
{
	struct result_check *rc = ctx;

	(void)v;
	return gci_verify_fault(rc->v, GCI_FAULT_RESULT,
		"rank %d: writes OUT[%" PRIu64 "..%" PRIu64 "), not part of its result", rc->rank,
		lo, hi);
}

/* Between the blocks of this part of an operation stand other parts of it. */
static int check_gaps(struct gci_verifier *v, int rank, struct expected *x, int n)
{
	struct result_check rc = {.v = v, .rank = rank};
	uint64_t at = 0, end = v->scheds[rank]->out_len;
	int i, status = 0;

	qsort(x, (size_t)n, sizeof(*x), compare_pieces);
	for (i = 0; i <= n && !status; i++) {
		uint64_t to = i < n ? x[i].at.offset : end;

		if (at < to)
			status = gci_imap_each(
				&v->ranks[rank].held[GCI_OUT], at, to, NULL, on_stray, &rc);
		if (i < n)
			at = x[i].at.offset + x[i].at.length;
	}
	return status;
}

static int check_blocks(struct gci_verifier *v, int rank)
{
	const struct gci_coll *c = v->c;
	int one = c->kind == GCI_SCATTER || c->kind == GCI_REDUCE_SCATTER;
	int n = one ? 1 : v->nranks, i, rc = 0;
	struct expected *x = gci_calloc((size_t)n, sizeof(*x));

	if (!x)
		return gci_verify_nomem(v);
	for (i = 0; i < n && !rc; i++) {
		x[i] = expected_block(c, rank, i);
		rc = check_piece(v, rank, &x[i]);
	}
	if (!rc)
		rc = check_gaps(v, rank, x, n);
	gci_free(x);
	return rc;
}

static int check_vector(struct gci_verifier *v, int rank)
{
	const struct gci_coll *c = v->c;
	struct expected x = {.at = gci_vector(c, GCI_OUT),
		.leaf = c->kind == GCI_BCAST ? c->root : ALL_RANKS,
		.offset = c->shift};
	int rc = check_piece(v, rank, &x);

	return rc ? rc : check_gaps(v, rank, &x, 1);
}

static int64_t join_range(
	struct gci_exprs *x, const int64_t *parts, const int *members, int a, int z)
{
	int mid = gci_middle(a, z);
	int64_t low, high;

	if (z - a == 1)
		return parts ? parts[a] : members ? members[a] : a;
	low = join_range(x, parts, members, a, mid);
	high = join_range(x, parts, members, mid, z);
	return low < 0 || high < 0 ? -1 : gci_expr_join(x, (uint32_t)low, (uint32_t)high);
}

static int gci_verify_canonical(struct gci_verifier *v)
{
	const struct gci_topo *t = v->c->topo;
	int64_t *clusters;
	int i;

	v->canonical = -1;
	if (v->c->order == GCI_ANY_ORDER)
		return 0;
	if (gci_order_is_flat(v->c)) {
		v->canonical = join_range(&v->exprs, NULL, NULL, 0, v->nranks);
		return v->canonical < 0 ? gci_verify_nomem(v) : 0;
	}
	clusters = gci_calloc((size_t)t->nclusters, sizeof(*clusters));
	for (i = 0; clusters && i < t->nclusters; i++)
		clusters[i] =
			join_range(&v->exprs, NULL, gci_topo_members(t, i), 0, gci_topo_size(t, i));
	if (clusters)
		v->canonical = join_range(&v->exprs, clusters, NULL, 0, t->nclusters);
	gci_free(clusters);
	return v->canonical < 0 ? gci_verify_nomem(v) : 0;
}

static int check_barrier(struct gci_verifier *v, int rank)
{
	size_t n = v->exprs.nwords, w;
	uint64_t *known = gci_calloc(n, sizeof(*known));
	uint32_t step;
	int r, rc = 0;

	if (!known)
		return gci_verify_nomem(v);
	known[(size_t)rank / 64] |= 1ull << (rank % 64);
	for (step = 0; step < v->scheds[rank]->nsteps; step++)
		for (w = 0; w < n; w++)
			known[w] |= v->ranks[rank].known[step * n + w];
	for (r = 0; r < v->nranks && !rc; r++)
		if (!(known[(size_t)r / 64] >> (r % 64) & 1))
			rc = gci_verify_fault(v, GCI_FAULT_BARRIER,
				"rank %d can leave before rank %d has come", rank, r);
	gci_free(known);
	return rc;
}

static int gci_verify_result(struct gci_verifier *v, int rank)
{
	switch (v->c->kind) {
	case GCI_BARRIER:
		return check_barrier(v, rank);
	case GCI_BCAST:
	case GCI_REDUCE:
	case GCI_ALLREDUCE:
		return gci_has_out(v->c, rank) ? check_vector(v, rank) : 0;
	default:
		return gci_has_out(v->c, rank) ? check_blocks(v, rank) : 0;
	}
}

/* Distinct senders per ordered pair of clusters; `last` is the rank counted latest, + 1. */
struct pair {
	int last, nsenders;
};

static void count_rank(struct gci_verifier *v, int rank, struct pair *pairs)
{
	const struct gci_topo *t = v->c->topo;
	const struct gci_sched *s = v->scheds[rank];
	uint64_t out = 0, in = 0;
	uint32_t k;

	for (k = 0; k < s->nsteps; k++) {
		const struct gci_step *p = &s->steps[k];
		struct pair *pair;

		if (p->kind == GCI_STEP_RECV || p->kind == GCI_STEP_RECV_REDUCE)
			in += p->dst.length;
		if (p->kind != GCI_STEP_SEND)
			continue;
		out += p->src.length;
		if (t->cluster[rank] == t->cluster[p->peer] || !p->src.length)
			continue;
		v->report->wan_elements += p->src.length;
		pair = &pairs[t->cluster[rank] * t->nclusters + t->cluster[p->peer]];
		pair->nsenders += pair->last != rank + 1;
		pair->last = rank + 1;
	}
	v->report->nsteps += s->nsteps;
	v->report->most_out = out > v->report->most_out ? out : v->report->most_out;
	v->report->most_in = in > v->report->most_in ? in : v->report->most_in;
}

static int gci_verify_traffic(struct gci_verifier *v, int check_senders)
{
	int nc = v->c->topo->nclusters, r, i, rc = 0;
	struct pair *pairs = gci_calloc((size_t)nc * (size_t)nc, sizeof(*pairs));

	if (!pairs)
		return gci_verify_nomem(v);
	for (r = 0; r < v->nranks; r++)
		count_rank(v, r, pairs);
	for (i = 0; check_senders && !rc && i < nc * nc; i++) {
		int from = i / nc, to = i % nc, most = gci_coll_senders(v->c, from, to);

		if (pairs[i].nsenders > most)
			rc = gci_verify_fault(v, GCI_FAULT_SENDERS,
				"%d ranks of cluster %d send to cluster %d, allowed are %d",
				pairs[i].nsenders, from, to, most);
	}
	gci_free(pairs);
	return rc;
}

/* ---- set-up, the passes in their order, and faults */

/* Each returns the status to be passed up. */
static int gci_verify_fault(struct gci_verifier *v, enum gci_fault kind, const char *fmt, ...)
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

/* The same, with rank and step in front. */
static int gci_verify_fault_at(const struct gci_at *at, enum gci_fault kind, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return gci_verify_fault(at->v, kind, "rank %d step %u %s: %s", at->rank, at->step,
		gci_step_name(gci_at_step(at)->kind), text);
}

static int gci_verify_nomem(struct gci_verifier *v)
{
	v->report->fault = GCI_FAULT_LIMIT;
	return gci_error_set(v->e, GCOLL_ERR_NOMEM, "out of memory");
}

static void hold(struct gci_verify_rank *st, int rank, struct gci_slice s, uint64_t shift)
{
	gci_imap_set(&st->held[s.buffer], s.offset, s.offset + s.length,
		(struct gci_ival){(uint64_t)rank, shift});
}

/* The rank's input stands where the operation has it. Its elements are counted as they stand in the
 * input, but a block of its own in OUT, in place, as it would stand in IN. */
static void hold_input(struct gci_verifier *v, struct gci_verify_rank *st, int r)
{
	const struct gci_coll *c = v->c;
	int in_place = !gci_has_in(c, r), i;
	struct gci_slice s;

	switch (c->kind) {
	case GCI_BCAST:
	case GCI_SCATTER:
		if (r != c->root)
			return;
		if (c->kind == GCI_BCAST)
			hold(st, r, gci_vector(c, GCI_IN), 0);
		for (i = 0; c->kind == GCI_SCATTER && i < v->nranks; i++)
			hold(st, r, gci_in_block(c, r, i), 0);
		return;
	case GCI_REDUCE:
	case GCI_ALLREDUCE:
		hold(st, r, gci_vector(c, gci_input(c, r)), 0);
		return;
	case GCI_GATHER:
	case GCI_ALLGATHER:
		s = gci_in_block(c, r, r);
		hold(st, r, s, in_place ? gci_own_at(c, r) - s.offset : 0);
		return;
	case GCI_REDUCE_SCATTER:
	case GCI_ALLTOALL:
		for (i = 0; i < v->nranks; i++)
			hold(st, r, in_place ? gci_out_block(c, r, i) : gci_in_block(c, r, i), 0);
		return;
	default:
		return;
	}
}

static int init_rank(struct gci_verifier *v, int r)
{
	const struct gci_sched *s = v->scheds[r];
	struct gci_verify_rank *st = &v->ranks[r];
	const struct gci_coll *c = v->c;
	int i;

	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_init(&st->held[i]);
	st->match = gci_calloc(s->nsteps, sizeof(*st->match));
	st->started = gci_calloc(s->nsteps, 1);
	if (c->kind == GCI_BARRIER)
		st->known = gci_calloc(s->nsteps, v->exprs.nwords * sizeof(*st->known));
	if (!st->match || !st->started || (c->kind == GCI_BARRIER && !st->known))
		return gci_verify_nomem(v);
	hold_input(v, st, r);
	return st->held[GCI_IN].failed || st->held[GCI_OUT].failed ? gci_verify_nomem(v) : 0;
}

static void free_rank(struct gci_verify_rank *st)
{
	int i;

	gci_ready_free(&st->ready);
	for (i = 0; i < GCI_NBUFFERS; i++)
		gci_imap_free(&st->held[i]);
	gci_free(st->match);
	gci_free(st->started);
	gci_free(st->known);
}

static int run_passes(struct gci_verifier *v, int check_senders)
{
	int r, rc = gci_verify_shape(v);

	for (r = 0; !rc && r < v->nranks; r++)
		rc = init_rank(v, r);
	if (!rc)
		rc = gci_verify_matching(v);
	for (r = 0; !rc && r < v->nranks; r++)
		rc = gci_verify_order(v, r);
	for (r = 0; !rc && r < v->nranks; r++)
		rc = gci_ready_init(&v->ranks[r].ready, v->scheds[r]);
	if (!rc)
		rc = gci_verify_execute(v);
	if (!rc)
		rc = gci_verify_canonical(v);
	for (r = 0; !rc && r < v->nranks; r++)
		rc = gci_verify_result(v, r);
	if (!rc)
		rc = gci_verify_traffic(v, check_senders);
	/* Maps and the readiness core do not know of reports. */
	return rc == GCOLL_ERR_NOMEM ? gci_verify_nomem(v) : rc;
}

int gci_verify(const struct gci_sched *const *scheds, const struct gci_coll *c, int check_senders,
	struct gci_verify_report *report, struct gci_error *e)
{
	struct gci_verify_report unused;
	size_t n = (size_t)c->topo->nranks;
	struct gci_verifier v = {.scheds = scheds, .c = c, .nranks = c->topo->nranks, .e = e};
	int rc;

	gci_imap_init(&v.reference);
	v.report = report ? report : &unused;
	memset(v.report, 0, sizeof(*v.report));
	v.ranks = gci_calloc(n, sizeof(*v.ranks));
	v.queue = gci_calloc(n, sizeof(*v.queue));
	v.queued = gci_calloc(n, 1);
	if (!v.ranks || !v.queue || !v.queued || gci_exprs_init(&v.exprs, v.nranks))
		rc = gci_verify_nomem(&v);
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
