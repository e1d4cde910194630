/* SPDX-License-Identifier: MIT */
#include "tests/collectives/mutations.h"

#define NO_STEP UINT32_MAX

static int is_message(const struct gci_step *p)
{
	return p->kind <= GCI_STEP_RECV_REDUCE;
}

static int reduces(const struct gci_step *p)
{
	return p->kind == GCI_STEP_RECV_REDUCE || p->kind == GCI_STEP_REDUCE;
}

/* The step at the other end of a message, or NO_STEP when an earlier mutation took it away. */
static uint32_t counterpart(const struct scheds *x, int rank, uint32_t step)
{
	const struct gci_step *p = &x->s[rank].steps[step];
	uint32_t i = 0;

	for (; p->peer >= 0 && i < x->s[p->peer].nsteps; i++) {
		const struct gci_step *q = &x->s[p->peer].steps[i];

		if (is_message(q) && q->peer == rank && q->tag == p->tag &&
			(q->kind == GCI_STEP_SEND) != (p->kind == GCI_STEP_SEND))
			return i;
	}
	return NO_STEP;
}

static int drop_dependency(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	if (k >= x->s[rank].steps[step].ndeps)
		return -1;
	sched_drop_dep(&x->s[rank], step, k);
	return 1;
}

/* The step waits for the one before instead. */
static int redirect_dependency(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	uint32_t *d;

	if (k >= x->s[rank].steps[step].ndeps)
		return -1;
	d = &x->s[rank].deps[x->s[rank].steps[step].deps + k];
	if (!*d)
		return 0;
	--*d;
	sched_relink(&x->s[rank]);
	return 1;
}

static int add_dependency(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	if (k >= step)
		return -1;
	sched_add_dep(&x->s[rank], step, step - 1 - k);
	return 1;
}

static int change_tag(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step];

	if (!is_message(p) || k >= 3)
		return -1;
	if (k == 2 && p->tag == x->s[rank].steps[0].tag)
		return 0;
	p->tag = k < 2 ? p->tag ^ (k + 1) : x->s[rank].steps[0].tag;
	return 1;
}

static int swap_peers(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_sched *s = &x->s[rank];
	struct gci_step *p = &s->steps[step], *q;
	int peer = p->peer;

	if (!is_message(p) || step + 1 + k >= s->nsteps || k >= 8)
		return -1;
	q = p + 1 + k;
	if (!is_message(q) || q->peer == p->peer)
		return 0;
	p->peer = q->peer;
	q->peer = peer;
	return 1;
}

/* Two steps of one kind change what they read and write. */
static int swap_contents(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_sched *s = &x->s[rank];
	struct gci_step *p = &s->steps[step], *q;
	struct gci_slice src = p->src, dst = p->dst;

	if (step + 1 + k >= s->nsteps || k >= 8)
		return -1;
	q = p + 1 + k;
	if (q->kind != p->kind || q->src.length != src.length || q->dst.length != dst.length)
		return 0;
	p->src = q->src;
	p->dst = q->dst;
	q->src = src;
	q->dst = dst;
	return 1;
}

static int shift_by(struct gci_slice *s, int by)
{
	if (!s->length || (by < 0 && !s->offset))
		return 0;
	s->offset += (uint64_t)(int64_t)by;
	return 1;
}

static int shift_slice(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step];
	int by = k & 1 ? 1 : -1;

	if (k >= 6)
		return -1;
	if (k < 2)
		return p->kind != GCI_STEP_RECV && shift_by(&p->src, by);
	if (k < 4)
		return p->kind != GCI_STEP_SEND && shift_by(&p->dst, by);
	return (reduces(p) || p->kind == GCI_STEP_COPY) && shift_by(&p->src, by) &&
	       shift_by(&p->dst, by);
}

/* On both sides of a message. */
static int shift_message(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step], *q;

	if (p->kind != GCI_STEP_SEND || k >= 2 || counterpart(x, rank, step) == NO_STEP)
		return -1;
	q = &x->s[p->peer].steps[counterpart(x, rank, step)];
	if (q->kind == GCI_STEP_RECV_REDUCE)
		shift_by(&q->src, k ? 1 : -1);
	return shift_by(&p->src, k ? 1 : -1) && shift_by(&q->dst, k ? 1 : -1);
}

static int shorten_message(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step], *q;

	if (p->kind != GCI_STEP_SEND || k >= 2 || counterpart(x, rank, step) == NO_STEP)
		return -1;
	if (!p->src.length)
		return 0;
	q = &x->s[p->peer].steps[counterpart(x, rank, step)];
	p->src.length--;
	q->dst.length--;
	q->src.length -= q->kind == GCI_STEP_RECV_REDUCE;
	p->src.offset += k;
	q->dst.offset += k;
	q->src.offset += k;
	return 1;
}

static int change_buffer(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step];
	struct gci_slice *s = k < 2 ? &p->src : &p->dst;

	if (k >= 4)
		return -1;
	if ((k < 2 && p->kind == GCI_STEP_RECV) || (k >= 2 && p->kind == GCI_STEP_SEND) ||
		!s->length)
		return 0;
	s->buffer = (enum gci_buffer)((s->buffer + 1 + k % 2) % GCI_NBUFFERS);
	return 1;
}

static int drop_message(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	const struct gci_step *p = &x->s[rank].steps[step];
	int peer = p->peer;
	uint32_t other;

	if (p->kind != GCI_STEP_SEND || k)
		return -1;
	other = counterpart(x, rank, step);
	if (other == NO_STEP)
		return 0;
	sched_drop_step(&x->s[rank], step);
	sched_drop_step(&x->s[peer], other);
	return 1;
}

static int drop_local(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	if (is_message(&x->s[rank].steps[step]) || k)
		return -1;
	sched_drop_step(&x->s[rank], step);
	return 1;
}

static int receive_only(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step *p = &x->s[rank].steps[step];

	if (!reduces(p) || k)
		return -1;
	p->kind = p->kind == GCI_STEP_REDUCE ? GCI_STEP_COPY : GCI_STEP_RECV;
	return 1;
}

static int flip_swapped(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	if (!reduces(&x->s[rank].steps[step]) || k)
		return -1;
	x->s[rank].steps[step].swapped ^= 1;
	return 1;
}

static int reduce_twice(struct scheds *x, int rank, uint32_t step, uint32_t k)
{
	struct gci_step again = x->s[rank].steps[step], send;
	uint32_t other;

	if (!reduces(&again) || k)
		return -1;
	if (again.kind == GCI_STEP_RECV_REDUCE) {
		other = counterpart(x, rank, step);
		if (other == NO_STEP)
			return 0;
		send = x->s[again.peer].steps[other];
		again.src = again.dst;
		again.tag = send.tag = UINT32_MAX;
		sched_insert(&x->s[again.peer], other, send);
	}
	sched_insert(&x->s[rank], step, again);
	return 1;
}

struct mutation mutations[] = {
	{.name = "drop a dependency", .apply = drop_dependency},
	{.name = "redirect a dependency", .apply = redirect_dependency},
	{.name = "add a dependency", .apply = add_dependency},
	{.name = "change a tag", .apply = change_tag},
	{.name = "swap two peers", .apply = swap_peers},
	{.name = "swap two contents", .apply = swap_contents},
	{.name = "shift a slice", .apply = shift_slice},
	{.name = "shift a message", .apply = shift_message},
	{.name = "shorten a message", .apply = shorten_message},
	{.name = "change a buffer", .apply = change_buffer},
	{.name = "drop a message", .apply = drop_message},
	{.name = "drop a local step", .apply = drop_local},
	{.name = "receive, not reduce", .apply = receive_only},
	{.name = "flip swapped", .apply = flip_swapped},
	{.name = "reduce twice", .apply = reduce_twice},
	{.name = NULL},
};
