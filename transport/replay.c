/* SPDX-License-Identifier: MIT */
#include "transport/replay.h"

#include <string.h>

#define MAX_SPARE 256

static int is_pooled(uint32_t nbytes)
{
	return nbytes >= GCI_REPLAY_POOLED && nbytes <= GCI_TP_FRAME_NBYTES;
}

static void *new_copy(struct gci_replay *r, uint32_t nbytes)
{
	return is_pooled(nbytes) ? gci_blocks_take(r->blocks) : gci_reallocarray(NULL, nbytes, 1);
}

static void free_copy(struct gci_replay *r, struct gci_replay_frame *f)
{
	if (f->copy && is_pooled(f->head.nbytes))
		gci_blocks_give(r->blocks, f->copy);
	else
		gci_free(f->copy);
}

struct gci_replay *gci_replay_new(unsigned streams, uint64_t most_nbytes, struct gci_blocks *blocks)
{
	struct gci_replay *r = gci_calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	gci_list_init(&r->lives);
	gci_list_init(&r->again);
	gci_list_init(&r->acked);
	r->most_nbytes = most_nbytes;
	r->blocks = blocks;
	r->streams = streams;
	r->newest = gci_calloc(streams, sizeof(*r->newest));
	if (!r->newest) {
		gci_free(r);
		return NULL;
	}
	return r;
}

static void free_frames(struct gci_replay *r, struct gci_list *list)
{
	while (!gci_list_empty(list)) {
		struct gci_replay_frame *f =
			gci_container(list->next, struct gci_replay_frame, link);

		gci_list_del(&f->link);
		free_copy(r, f);
		gci_free(f);
	}
}

void gci_replay_free(struct gci_replay *r)
{
	struct gci_replay_frame *f;

	if (!r)
		return;
	while (!gci_list_empty(&r->lives)) {
		struct gci_life *life = gci_container(r->lives.next, struct gci_life, link);

		free_frames(r, &life->sent);
		gci_free(life->notice);
		gci_list_del(&life->link);
		gci_free(life);
	}
	free_frames(r, &r->again);
	free_frames(r, &r->acked);
	while (r->spare) {
		f = r->spare;
		r->spare = (struct gci_replay_frame *)f->link.next;
		gci_free(f);
	}
	gci_free(r->newest);
	gci_free(r);
}

/* ---- frames */

static struct gci_replay_frame *get(struct gci_replay *r, const struct gci_frame *head)
{
	struct gci_replay_frame *f = r->spare;

	if (f) {
		r->spare = (struct gci_replay_frame *)f->link.next;
		r->nspare--;
	} else {
		f = gci_calloc(1, sizeof(*f));
		if (!f)
			return NULL;
	}
	*f = (struct gci_replay_frame){.head = *head};
	return f;
}

void gci_replay_put(struct gci_replay *r, struct gci_replay_frame *f)
{
	if (f->copy) {
		r->nbytes -= f->head.nbytes;
		free_copy(r, f);
	}
	if (r->nspare == MAX_SPARE) {
		gci_free(f);
		return;
	}
	f->link.next = (struct gci_list *)r->spare;
	r->spare = f;
	r->nspare++;
}

static void put_on(struct gci_life *life, struct gci_replay_frame *f)
{
	gci_list_push(&life->sent, &f->link);
	f->index = life->nsent++;
	life->asked = 0;
}

struct gci_replay_frame *gci_replay_add(
	struct gci_replay *r, struct gci_life *life, const struct gci_frame *head)
{
	struct gci_replay_frame *f = get(r, head);

	if (!f)
		return NULL;
	put_on(life, f);
	r->nframes++;
	return f;
}

struct gci_replay_frame *gci_replay_next(struct gci_replay *r, struct gci_life *life)
{
	struct gci_replay_frame *f;

	if (gci_list_empty(&r->again))
		return NULL;
	f = gci_container(r->again.next, struct gci_replay_frame, link);
	gci_list_del(&f->link);
	put_on(life, f);
	return f;
}

int gci_replay_copy(struct gci_replay *r, struct gci_replay_frame *f)
{
	uint32_t n = f->head.nbytes;

	if (f->copy || !n)
		return 1;
	if (n > r->most_nbytes - r->nbytes)
		return 0;
	f->copy = new_copy(r, n);
	if (!f->copy)
		return 0;
	memcpy(f->copy, f->payload, n);
	f->payload = f->copy;
	r->nbytes += n;
	return 1;
}

/* Those that the peer has and that nobody sends any more. */
static void release(struct gci_replay *r, struct gci_life *life)
{
	while (!gci_list_empty(&life->sent)) {
		struct gci_replay_frame *f =
			gci_container(life->sent.next, struct gci_replay_frame, link);

		/* The oldest one is at most 2^32 frames behind the newest. */
		if (life->nsent - f->index <= life->nsent - life->nacked ||
			(!f->gone && !life->lost))
			break;
		gci_list_del(&f->link);
		gci_list_push(&r->acked, &f->link);
		r->nframes--;
	}
}

void gci_replay_gone(struct gci_replay *r, struct gci_life *life, struct gci_replay_frame *f)
{
	f->gone = 1;
	release(r, life);
}

int gci_replay_ack(struct gci_replay *r, struct gci_life *life, uint32_t count)
{
	if (count - life->nacked > life->nsent - life->nacked)
		return GCOLL_ERR_PROTO;
	life->nacked = count;
	release(r, life);
	return 0;
}

struct gci_replay_frame *gci_replay_acked(struct gci_replay *r)
{
	struct gci_replay_frame *f;

	if (gci_list_empty(&r->acked))
		return NULL;
	f = gci_container(r->acked.next, struct gci_replay_frame, link);
	gci_list_del(&f->link);
	return f;
}

/* ---- what has come */

static void set_due(struct gci_replay *r, struct gci_life *life, int due)
{
	if (life->due != due)
		r->ndue += due ? 1u : -1u;
	life->due = due;
}

uint32_t gci_replay_tell(struct gci_replay *r, struct gci_life *life)
{
	life->ntold = life->ncame;
	life->untold_nbytes = 0;
	set_due(r, life, 0);
	return life->ncame;
}

void gci_replay_ask(struct gci_replay *r, struct gci_life *life)
{
	set_due(r, life, 1);
}

static void set_wants(struct gci_replay *r, struct gci_life *life, int wants)
{
	if (life->wants != wants)
		r->ndue += wants ? 1u : -1u;
	life->wants = wants;
}

int gci_replay_want(struct gci_replay *r, struct gci_life *life)
{
	if (life->lost || gci_list_empty(&life->sent) || life->asked)
		return 0;
	set_wants(r, life, 1);
	return 1;
}

void gci_replay_asked(struct gci_replay *r, struct gci_life *life)
{
	life->asked |= life->wants;
	set_wants(r, life, 0);
}

void gci_replay_came(struct gci_replay *r, struct gci_life *life, uint32_t nbytes)
{
	life->ncame++;
	life->untold_nbytes += nbytes;
	if (life->ncame - life->ntold >= GCI_REPLAY_FRAMES ||
		life->untold_nbytes >= GCI_REPLAY_NBYTES)
		set_due(r, life, 1);
}

void gci_replay_complete(struct gci_replay *r)
{
	struct gci_list *it;

	gci_list_each (it, &r->lives) {
		struct gci_life *life = gci_container(it, struct gci_life, link);

		if (!life->lost && life->ncame != life->ntold)
			set_due(r, life, 1);
	}
}

/* ---- incarnations */

static struct gci_life *find(const struct gci_replay *r, unsigned stream, uint32_t number)
{
	const struct gci_list *it;

	gci_list_each (it, &r->lives) {
		struct gci_life *life = gci_container(it, struct gci_life, link);

		if (life->stream == stream && life->number == number)
			return life;
	}
	return NULL;
}

static struct gci_life *add_life(struct gci_replay *r, unsigned stream)
{
	const struct gci_frame lost = {
		.type = GCI_FRAME_LOST, .key = {.comm = r->newest[stream] + 1, .tag = stream}};
	struct gci_life *life = gci_calloc(1, sizeof(*life));

	if (life)
		life->notice = get(r, &lost);
	if (!life || !life->notice) {
		gci_free(life);
		return NULL;
	}
	gci_list_init(&life->sent);
	gci_list_push(&r->lives, &life->link);
	r->nlives++;
	life->stream = stream;
	life->number = ++r->newest[stream];
	return life;
}

/* LOST was exchanged, or is not needed. */
static void del_life(struct gci_replay *r, struct gci_life *life)
{
	set_due(r, life, 0);
	set_wants(r, life, 0);
	if (life->notice)
		gci_replay_put(r, life->notice);
	gci_list_del(&life->link);
	r->nlives--;
	gci_free(life);
}

struct gci_life *gci_replay_begin(struct gci_replay *r, unsigned stream, uint32_t number)
{
	struct gci_life *life = NULL;

	while (r->newest[stream] != number) {
		if (life)
			gci_replay_lose(r, life);
		life = add_life(r, stream);
		if (!life)
			break;
	}
	return life;
}

void gci_replay_unbegin(struct gci_replay *r, struct gci_life *life)
{
	r->newest[life->stream]--;
	del_life(r, life);
}

/* Puts at the front of the list. */
static void push_front(struct gci_list *list, struct gci_list *m)
{
	gci_list_push(list->next, m);
}

static void again(struct gci_replay *r, struct gci_replay_frame *f)
{
	f->gone = 0;
	gci_list_del(&f->link);
	push_front(&r->again, &f->link);
}

/* What the peer has not had goes out again, in its order. */
static void resend(struct gci_replay *r, struct gci_life *life)
{
	while (!gci_list_empty(&life->sent))
		again(r, gci_container(life->sent.prev, struct gci_replay_frame, link));
	del_life(r, life);
}

/* Did these wait for the peer's notices, which may wait for these, no one would ever go on. */
static void resend_notices(struct gci_replay *r, struct gci_life *life)
{
	struct gci_list *it, *prev;

	for (it = life->sent.prev; it != &life->sent; it = prev) {
		struct gci_replay_frame *f = gci_container(it, struct gci_replay_frame, link);

		prev = it->prev;
		if (f->head.type == GCI_FRAME_LOST)
			again(r, f);
	}
}

void gci_replay_lose(struct gci_replay *r, struct gci_life *life)
{
	struct gci_replay_frame *notice = life->notice;

	life->lost = 1;
	life->notice = NULL;
	set_due(r, life, 0);
	set_wants(r, life, 0);
	release(r, life);
	notice->head.length = life->ncame;
	r->nframes++;
	resend_notices(r, life);
	if (life->known)
		resend(r, life);
	push_front(&r->again, &notice->link);
}

void gci_replay_end(struct gci_replay *r, struct gci_life *life)
{
	while (!gci_list_empty(&life->sent)) {
		struct gci_replay_frame *f =
			gci_container(life->sent.next, struct gci_replay_frame, link);

		gci_list_del(&f->link);
		gci_list_del(&f->of_req);
		r->nframes--;
		gci_replay_put(r, f);
	}
	del_life(r, life);
}

int gci_replay_on_lost(struct gci_replay *r, unsigned stream, uint32_t number, uint32_t count,
	int may_be_new, struct gci_life **open)
{
	struct gci_life *life = find(r, stream, number);

	*open = NULL;
	if (!life && number - 1 < r->newest[stream])
		return 0; /* told before */
	if (!life) {
		if (!may_be_new || !number || number - r->newest[stream] > GCI_REPLAY_MOST_UNSEEN)
			return GCOLL_ERR_PROTO;
		life = gci_replay_begin(r, stream, number);
		if (!life)
			return GCOLL_ERR_NOMEM;
		gci_replay_lose(r, life);
	}
	if (life->known)
		return 0;
	if (r->nlives > GCI_REPLAY_MOST_LIVES || gci_replay_ack(r, life, count))
		return GCOLL_ERR_PROTO;
	life->known = 1;
	if (life->lost)
		resend(r, life);
	else
		*open = life;
	return 0;
}
