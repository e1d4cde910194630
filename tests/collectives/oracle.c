/* SPDX-License-Identifier: MIT */
#include "tests/collectives/oracle.h"

#include "base/mem.h"
#include "tests/collectives/oracle_impl.h"

#include <stdlib.h>
#include <string.h>

enum state { WAITING, STARTABLE, MOVING, DONE };

struct step_state {
	enum state state;
	uint32_t match;    /* at the peer */
	uint64_t moved;    /* elements so far */
	uint64_t priority; /* in runs that go by it */
	int backwards;     /* the order of elements */
	/* SENDs whose content the network keeps: what it has, and if that is all. */
	int buffered;
	struct value *kept;
};

struct rank {
	struct value *buf[GCI_NBUFFERS];
	struct step_state *steps;
	uint32_t ndone;
};

struct oracle {
	const struct scheds *x;
	struct gci_prng prng;
	int late; /* this rank has not come yet; -1: all have */
	struct rank ranks[SCHEDS_MAX];
	struct contents at_first[SCHEDS_MAX];
};

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static int inside(const struct gci_sched *s, const struct gci_slice *slice)
{
	uint64_t length;

	if (slice->buffer >= GCI_NBUFFERS)
		return 0;
	length = slice->buffer == GCI_IN    ? s->in_len
		 : slice->buffer == GCI_OUT ? s->out_len
					    : s->tmp_len;
	return slice->length <= length && slice->offset <= length - slice->length;
}

static uint64_t length_of(const struct gci_step *p)
{
	return p->kind == GCI_STEP_SEND ? p->src.length : p->dst.length;
}

static int well_formed(const struct scheds *x, int rank, uint32_t step)
{
	const struct gci_sched *s = &x->s[rank];
	const struct gci_step *p = &s->steps[step];
	uint32_t k;

	for (k = 0; k < p->ndeps; k++)
		if (s->deps[p->deps + k] >= step)
			return 0;
	if (p->kind <= GCI_STEP_RECV_REDUCE && (p->peer < 0 || p->peer >= x->n || p->peer == rank))
		return 0;
	if (p->kind != GCI_STEP_SEND && (!inside(s, &p->dst) || p->dst.buffer == GCI_IN))
		return 0;
	if (p->kind != GCI_STEP_RECV && !inside(s, &p->src))
		return 0;
	return p->kind <= GCI_STEP_RECV || p->src.length == p->dst.length;
}

/* The one step of the peer that takes or gives this message. */
static int find_match(struct oracle *o, int rank, uint32_t step)
{
	const struct gci_step *p = &o->x->s[rank].steps[step], *q;
	const struct gci_sched *peer;
	uint32_t i, n = 0;

	if (p->kind > GCI_STEP_RECV_REDUCE)
		return 1;
	peer = &o->x->s[p->peer];
	for (i = 0; i < peer->nsteps; i++) {
		q = &peer->steps[i];
		if (q->kind > GCI_STEP_RECV_REDUCE || q->peer != rank || q->tag != p->tag ||
			(q->kind == GCI_STEP_SEND) == (p->kind == GCI_STEP_SEND))
			continue;
		n++;
		o->ranks[rank].steps[step].match = i;
		if (length_of(q) != length_of(p))
			return 0;
	}
	return n == 1;
}

struct oracle *oracle_new(const struct scheds *x)
{
	struct oracle *o = must(gci_calloc(1, sizeof(*o)));
	uint32_t i;
	int r, ok = 1;

	o->x = x;
	for (r = 0; r < x->n; r++) {
		const struct gci_sched *s = &x->s[r];
		struct rank *k = &o->ranks[r];

		k->buf[GCI_IN] = must(gci_calloc(s->in_len, sizeof(struct value)));
		k->buf[GCI_OUT] = must(gci_calloc(s->out_len, sizeof(struct value)));
		k->buf[GCI_TMP] = must(gci_calloc(s->tmp_len, sizeof(struct value)));
		o->at_first[r].buf[GCI_IN] = k->buf[GCI_IN]; /* never written */
		o->at_first[r].buf[GCI_OUT] = must(gci_calloc(s->out_len, sizeof(struct value)));
		o->at_first[r].out_len = s->out_len;
		k->steps = must(gci_calloc(s->nsteps, sizeof(*k->steps)));
		for (i = 0; i < s->nsteps && ok; i++)
			ok = well_formed(x, r, i) && find_match(o, r, i);
	}
	if (ok)
		return o;
	oracle_free(o);
	return NULL;
}

static void drop_kept(struct oracle *o)
{
	uint32_t i;
	int r;

	for (r = 0; r < o->x->n; r++)
		for (i = 0; o->ranks[r].steps && i < o->x->s[r].nsteps; i++) {
			gci_free(o->ranks[r].steps[i].kept);
			o->ranks[r].steps[i].kept = NULL;
		}
}

void oracle_free(struct oracle *o)
{
	int r, i;

	if (!o)
		return;
	drop_kept(o);
	for (r = 0; r < o->x->n; r++) {
		for (i = 0; i < GCI_NBUFFERS; i++)
			gci_free(o->ranks[r].buf[i]);
		gci_free(o->at_first[r].buf[GCI_OUT]);
		gci_free(o->ranks[r].steps);
	}
	gci_free(o);
}

static void fill(struct oracle *o, struct value *v, uint64_t n)
{
	while (n--)
		*v++ = (struct value){gci_prng_next(&o->prng), gci_prng_next(&o->prng)};
}

/* Everything holds garbage at first, of another kind in each run; the garbage in the input is
 * what the operation is about. */
static void reset(struct oracle *o)
{
	uint32_t i;
	int r;

	drop_kept(o);
	for (r = 0; r < o->x->n; r++) {
		const struct gci_sched *s = &o->x->s[r];
		struct rank *k = &o->ranks[r];

		fill(o, k->buf[GCI_IN], s->in_len);
		fill(o, k->buf[GCI_OUT], s->out_len);
		fill(o, k->buf[GCI_TMP], s->tmp_len);
		memcpy(o->at_first[r].buf[GCI_OUT], k->buf[GCI_OUT],
			s->out_len * sizeof(struct value));
		k->ndone = 0;
		for (i = 0; i < s->nsteps; i++) {
			struct step_state *t = &k->steps[i];
			uint32_t match = t->match;

			*t = (struct step_state){.match = match,
				.state = s->steps[i].ndeps ? WAITING : STARTABLE,
				.priority = gci_prng_next(&o->prng),
				.backwards = (int)gci_prng_below(&o->prng, 2)};
		}
	}
}

static struct value *at(struct oracle *o, int rank, const struct gci_slice *s, uint64_t i)
{
	return &o->ranks[rank].buf[s->buffer][s->offset + i];
}

static void finish(struct oracle *o, int rank, uint32_t step)
{
	const struct gci_sched *s = &o->x->s[rank];
	struct step_state *t = o->ranks[rank].steps;
	uint32_t i, k;

	t[step].state = DONE;
	o->ranks[rank].ndone++;
	for (i = step + 1; i < s->nsteps; i++) {
		for (k = 0; k < s->steps[i].ndeps; k++)
			if (t[s->deps[s->steps[i].deps + k]].state != DONE)
				break;
		if (t[i].state == WAITING && k == s->steps[i].ndeps)
			t[i].state = STARTABLE;
	}
}

/* Element i of a message arrives. */
static void arrive(struct oracle *o, int rank, const struct gci_step *p, uint64_t i, struct value v)
{
	struct value own;

	if (p->kind == GCI_STEP_RECV_REDUCE) {
		own = *at(o, rank, &p->src, i);
		v = p->swapped ? combine(v, own) : combine(own, v);
	}
	*at(o, rank, &p->dst, i) = v;
}

static void work(struct oracle *o, int rank, const struct gci_step *p, uint64_t i)
{
	struct value *dst = at(o, rank, &p->dst, i), src = *at(o, rank, &p->src, i);

	if (p->kind == GCI_STEP_COPY)
		*dst = src;
	else
		*dst = p->swapped ? combine(src, *dst) : combine(*dst, src);
}

/* Can the step go on by itself now? */
static int can_move(const struct oracle *o, int rank, uint32_t step)
{
	const struct gci_step *p = &o->x->s[rank].steps[step];
	const struct step_state *t = &o->ranks[rank].steps[step], *peer;

	if (rank == o->late)
		return 0;
	if (t->state == STARTABLE)
		return 1;
	if (t->state != MOVING)
		return 0;
	if (p->kind > GCI_STEP_RECV_REDUCE || t->buffered)
		return 1;
	/* Messages are moved by their receivers, SENDs to the network's buffer by themselves. */
	peer = &o->ranks[p->peer].steps[t->match];
	if (p->kind == GCI_STEP_SEND)
		return 0;
	return peer->buffered ? peer->state == DONE : peer->state == MOVING;
}

/* Moves element number t->moved of the step. */
static void move_one(struct oracle *o, int rank, uint32_t step)
{
	const struct gci_step *p = &o->x->s[rank].steps[step];
	struct step_state *t = &o->ranks[rank].steps[step], *peer;
	uint64_t i = t->backwards ? length_of(p) - 1 - t->moved : t->moved;

	t->moved++;
	if (p->kind > GCI_STEP_RECV_REDUCE) {
		work(o, rank, p, i);
	} else if (p->kind == GCI_STEP_SEND) {
		t->kept[i] = *at(o, rank, &p->src, i);
	} else {
		peer = &o->ranks[p->peer].steps[t->match];
		arrive(o, rank, p, i,
			peer->buffered ? peer->kept[i]
				       : *at(o, p->peer, &o->x->s[p->peer].steps[t->match].src, i));
	}
}

static void advance(struct oracle *o, int rank, uint32_t step, int buffering)
{
	const struct gci_step *p = &o->x->s[rank].steps[step];
	struct step_state *t = &o->ranks[rank].steps[step];
	uint64_t n;

	if (t->state == STARTABLE) {
		t->state = MOVING;
		if (p->kind == GCI_STEP_SEND && buffering && gci_prng_below(&o->prng, 4)) {
			t->buffered = 1;
			t->kept = must(gci_calloc(p->src.length, sizeof(*t->kept)));
		}
		return;
	}
	n = 1 + gci_prng_below(&o->prng, 3);
	while (n-- && t->moved < length_of(p))
		move_one(o, rank, step);
	if (t->moved < length_of(p))
		return;
	finish(o, rank, step);
	if ((p->kind == GCI_STEP_RECV || p->kind == GCI_STEP_RECV_REDUCE) &&
		!o->ranks[p->peer].steps[t->match].buffered)
		finish(o, p->peer, t->match);
}

/* Chooses what goes on next: at random, or what has the highest priority, which keeps some steps
 * back for very long. False when nothing can. */
static int choose(struct oracle *o, int by_priority, int *rank, uint32_t *step)
{
	uint64_t best = 0, seen = 0;
	uint32_t i;
	int r, take;

	for (r = 0; r < o->x->n; r++)
		for (i = 0; i < o->x->s[r].nsteps; i++) {
			if (!can_move(o, r, i))
				continue;
			seen++;
			take = by_priority ? o->ranks[r].steps[i].priority >= best
					   : !gci_prng_below(&o->prng, seen);
			if (!take)
				continue;
			best = o->ranks[r].steps[i].priority;
			*rank = r;
			*step = i;
		}
	return seen > 0;
}

static int all_done(const struct oracle *o, int rank)
{
	return o->ranks[rank].ndone == o->x->s[rank].nsteps;
}

/* A barrier's rank must not be done while another has not come. */
static int left_early(const struct oracle *o)
{
	int r;

	if (o->x->c.kind != GCI_BARRIER || o->late < 0)
		return 0;
	for (r = 0; r < o->x->n; r++)
		if (r != o->late && all_done(o, r))
			return 1;
	return 0;
}

static const char *execute(struct oracle *o, uint64_t seed)
{
	const char *wrong = NULL;
	uint32_t step = 0;
	int rank = 0, r;

	for (;;) {
		while (choose(o, seed & 1, &rank, &step))
			advance(o, rank, step, seed & 2);
		if (left_early(o))
			return "left the barrier early";
		if (o->late < 0)
			break;
		o->late = -1;
	}
	for (r = 0; r < o->x->n; r++)
		if (!all_done(o, r))
			return "deadlock";
	for (r = 0; r < o->x->n && !wrong; r++)
		wrong = oracle_check(&o->x->c, o->at_first, r, o->ranks[r].buf[GCI_OUT],
			o->ranks[0].buf[GCI_OUT]);
	return wrong;
}

const char *oracle_run(struct oracle *o, uint64_t seed)
{
	o->prng.state = seed;
	o->late = (int)(seed / 4 % (unsigned)(o->x->n + 1)) - 1;
	reset(o);
	return execute(o, seed);
}
