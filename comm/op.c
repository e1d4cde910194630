/* SPDX-License-Identifier: MIT */
#include "comm/op.h"

#include "base/mem.h"
#include "base/prng.h"
#include "collectives/blocks/layout.h"
#include "collectives/blocks/peers.h"
#include "comm/pacing.h"
#include "comm/sched_cache.h"
#include "comm/scratch.h"
#include "comm/warm.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Schedules kept from one operation to the next.
 *
 *	struct gci_cached_sched *s = gci_sched_cache_get(&cache, algorithm, &coll, rank);
 *	... s->sched ...
 *	gci_sched_cache_put(s); */

static int may_be_kept(const struct gci_coll *coll)
{
	return !coll->counts && !coll->in_at && !coll->out_at;
}

/* A kept one with this content, or the slot to put it in; NULL: there is none. */
static struct gci_cached_sched *find_slot(struct gci_sched_cache *cache,
	const struct gci_algorithm *a, const struct gci_coll *coll, int *found)
{
	struct gci_cached_sched *slot = NULL;
	int i;

	*found = 0;
	if (!may_be_kept(coll))
		return NULL;
	for (i = 0; i < GCI_CACHED_SCHEDS; i++) {
		struct gci_cached_sched *s = &cache->slots[i];

		if (s->used && s->algorithm == a && gci_coll_same(&s->coll, coll)) {
			*found = 1;
			return s;
		}
		if (!s->users && (!slot || s->used < slot->used))
			slot = s;
	}
	return slot;
}

/* The schedule of `rank`, from the cache or made now; NULL: out of memory. Those of operations
 * with counts[] are not kept: the arrays are their callers'. */
static struct gci_cached_sched *gci_sched_cache_get(struct gci_sched_cache *cache,
	const struct gci_algorithm *a, const struct gci_coll *coll, int rank)
{
	struct gci_cached_sched *s;
	int found;

	s = find_slot(cache, a, coll, &found);
	if (found) {
		s->users++;
		s->used = ++cache->clock;
		return s;
	}
	if (!s) { /* all are in use: one that is dropped after it */
		s = gci_calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		s->temporary = 1;
	}
	gci_sched_free(&s->sched);
	s->used = 0;
	if (gci_emit(a, coll, rank, &s->sched) ||
		gci_wan_peers(coll->topo, &s->sched, &s->wan_peers)) {
		gci_sched_free(&s->sched);
		if (s->temporary)
			gci_free(s);
		return NULL;
	}
	s->algorithm = a;
	s->coll = *coll;
	s->users = 1;
	s->used = ++cache->clock;
	return s;
}

static void gci_sched_cache_put(struct gci_cached_sched *s)
{
	if (--s->users || !s->temporary)
		return;
	gci_sched_free(&s->sched);
	gci_free(s);
}

void gci_sched_cache_forget(struct gci_sched_cache *cache, const struct gci_topo *topo)
{
	int i;

	for (i = 0; i < GCI_CACHED_SCHEDS; i++) {
		struct gci_cached_sched *s = &cache->slots[i];

		if (topo && s->coll.topo != topo)
			continue;
		gci_sched_free(&s->sched);
		memset(s, 0, sizeof(*s));
	}
}

/* ---- Scratch memory of operations, kept from one to the next. */

/* At least nbytes, not zeroed; NULL when out of memory. */
static char *gci_scratch_get(struct gci_scratch *s, uint64_t nbytes)
{
	char *data;
	int i, slot = -1;

	for (i = 0; i < GCI_SCRATCH_KEPT; i++) {
		if (s->kept[i].used)
			continue;
		if (s->kept[i].data && s->kept[i].nbytes >= nbytes) {
			s->kept[i].used = 1;
			return s->kept[i].data;
		}
		slot = i;
	}
	data = gci_reallocarray(NULL, nbytes, 1);
	if (!data || slot < 0)
		return data;
	gci_free(s->kept[slot].data);
	s->kept[slot].data = data;
	s->kept[slot].nbytes = nbytes;
	s->kept[slot].used = 1;
	return data;
}

/* Gives back what get returned; NULL is legal. */
static void gci_scratch_put(struct gci_scratch *s, char *data)
{
	int i;

	for (i = 0; data && i < GCI_SCRATCH_KEPT; i++)
		if (s->kept[i].data == data) {
			s->kept[i].used = 0;
			return;
		}
	gci_free(data);
}

void gci_scratch_free(struct gci_scratch *s)
{
	int i;

	for (i = 0; i < GCI_SCRATCH_KEPT; i++)
		gci_free(s->kept[i].data);
	memset(s, 0, sizeof(*s));
}

/* ---- The operation. */

/* All of the lengths of blocks, which all ranks must have said the same of. */
static void sum_blocks(const struct gci_coll *c, struct gci_sign *sign)
{
	uint64_t d = 0;
	int i;

	sign->count = 0;
	for (i = 0; i < c->topo->nranks; i++) {
		sign->count += c->counts[i];
		d = gci_digest(d, c->counts[i]);
	}
	sign->blocks = (uint32_t)d;
}

static struct gci_sign sign_of(const struct gci_op *op)
{
	const struct gci_coll *c = &op->coll;
	struct gci_sign sign = {.kind = c->kind,
		.name = op->name,
		.algorithm = op->algorithm ? op->algorithm->name : NULL,
		.type = op->type,
		.op = op->op,
		.esize = c->esize,
		.count = c->count,
		.has_counts = c->counts != NULL,
		.root = c->root};

	if (op->shares) {
		sign.kind = GCI_ALLTOALL;
		sign.has_counts = 1;
		sign.type = op->shared;
		sign.esize = (uint32_t)gcoll_type_size(op->shared);
	} else if (c->counts && c->kind != GCI_ALLTOALL)
		sum_blocks(c, &sign);
	return sign;
}

void gci_op_signature(const struct gci_op *op, char *out, size_t size)
{
	const struct gci_sign sign = sign_of(op);

	gci_sign_print(&sign, out, size);
}

void gci_op_note(const struct gci_op *op)
{
	const struct gci_sign sign = sign_of(op);

	gci_calls_note(&op->comm->engine->calls, op->comm->id, op->number, &sign);
}

static uint64_t digest_of(const struct gci_op *op)
{
	const struct gci_coll *c = &op->coll;
	const char *name = op->algorithm->name;
	uint64_t d = gci_digest(op->digest_more, (uint64_t)c->kind);
	int i, n = c->kind == GCI_ALLTOALL ? 0 : c->topo->nranks;

	d = gci_digest(d, c->kind == GCI_BARRIER ? 0 : (uint64_t)op->type);
	d = gci_digest(d, gci_kind_has_root(c->kind) ? (uint64_t)c->root : 0);
	d = gci_digest(d, op->op >= GCOLL_OP_USER ? GCOLL_OP_USER : op->op);
	d = gci_digest(d, (uint64_t)c->order);
	d = gci_digest_bytes(d, name, strlen(name));
	d = gci_digest(d, (uint64_t)c->senders << 32 | c->degree);
	d = gci_digest(d, c->segment);
	d = gci_digest(d, c->like);
	/* Of alltoallv each rank has compared its own counts (comm/alltoallv.c). */
	if (!c->counts)
		return gci_digest(d, c->count);
	for (i = 0; i < n; i++)
		d = gci_digest(d, c->counts[i]);
	return gci_digest(d, 1);
}

/* The vector that it is a part of (see gcoll_comm.stream_nbytes), as far as one window goes: there is
 * nothing longer that a schedule is made for. */
static uint64_t whole(const struct gci_op *op)
{
	const struct gci_coll *c = &op->coll;
	uint64_t most = op->comm->engine->settings.window_nbytes;
	uint64_t n = op->comm->stream_nbytes < most ? op->comm->stream_nbytes : most;

	return c->kind == GCI_BCAST && !op->internal && n / c->esize > c->count ? n / c->esize : 0;
}

int gci_op_prepare(struct gci_op *op)
{
	gcoll_comm *comm = op->comm;
	struct gci_coll *c = &op->coll, chosen_for;
	struct gci_decision d;
	const char *why;
	int rc;

	c->senders = c->degree = 0;
	c->segment = 0;
	c->like = whole(op);
	gci_windows_cut(&op->windows, c, comm->engine->settings.window_nbytes);
	chosen_for = *c;
	chosen_for.count = c->like ? c->like : c->count;
	rc = gci_comm_choose(comm, &chosen_for, op->internal, &d, &why);
	if (rc == GCOLL_ERR_NOMEM) /* others run it */
		return gci_engine_nomem(comm->engine);
	if (rc)
		return gci_comm_error(GCOLL_ERR_INVAL, "%s: %s %s", gci_kind_name(c->kind),
			comm->choice[c->kind].how.algorithm->name, why);
	op->algorithm = d.how.algorithm;
	op->expected_ns = d.ns;
	if (op->windows.n >> GCI_WINDOW_BITS)
		return gci_comm_error(GCOLL_ERR_INVAL, "%s: the message is too long",
			op->name ? op->name : gci_kind_name(c->kind));
	gci_candidate_apply(&d.how, c);
	gci_windows_segment(c, &op->windows);
	op->digest = digest_of(op);
	op->started = op->ended = 0;
	op->status = op->over = op->filling = 0;
	memset(op->scheds, 0, sizeof(op->scheds));
	return 0;
}

/* ---- windows */

/* The window in this slot is over. */
static void end_run(struct gci_op *op, int slot)
{
	gci_run_free(&op->runs[slot]);
	gci_scratch_put(&op->comm->engine->scratch, op->runs[slot].buf[GCI_TMP]);
	gci_sched_cache_put(op->scheds[slot]);
	op->scheds[slot] = NULL;
}

void gci_op_drop(struct gci_op *op)
{
	int slot;

	gci_list_del(&op->link);
	for (slot = 0; slot < GCI_MAX_INSTANCES; slot++)
		if (op->scheds[slot])
			end_run(op, slot);
}

/* Makes an average of the sum that this window has left on this rank. */
static void divide(const struct gci_op *op, int slot)
{
	const struct gci_coll *c = &op->scheds[slot]->coll;
	char *out = op->runs[slot].buf[GCI_OUT];
	struct gci_slice s = gci_vector(c, GCI_OUT);

	if (!gci_has_out(c, op->rank))
		return;
	if (c->kind == GCI_REDUCE_SCATTER)
		s = gci_out_block(c, op->rank, op->rank);
	if (s.length)
		gci_kernel_scale(op->type, out + s.offset * c->esize, s.length, c->topo->nranks);
}

static void fill(struct gci_op *op);

static void on_run(struct gci_run *run, int status)
{
	struct gci_op *op = run->user;

	if (status && !op->status)
		op->status = status;
	if (!status && op->average)
		divide(op, (int)(run - op->runs));
	op->ended++;
	end_run(op, (int)(run - op->runs));
	fill(op);
}

static void on_damage(struct gci_run *run)
{
	struct gci_op *op = run->user;
	struct gci_engine *e = op->comm->engine;

	gci_engine_fail(e, GCOLL_ERR_CORRUPT, e->rank,
		"at rank %d, bytes of operation %" PRIu64
		" changed in memory after they had come from another rank",
		e->rank, op->number);
}

static int start_window(struct gci_op *op, int slot)
{
	struct gci_engine *e = op->comm->engine;
	struct gci_coll coll = gci_window_of(&op->windows, &op->coll, op->started);
	uint64_t at = gci_window_at(&op->windows, op->started) * coll.esize;
	struct gci_run *run = &op->runs[slot];

	op->scheds[slot] = gci_sched_cache_get(&e->cache, op->algorithm, &coll, op->rank);
	if (!op->scheds[slot])
		return GCOLL_ERR_NOMEM;
	if (!op->started && gci_pacing_is_long(op))
		gci_warm_yield(e, op->ranks, &op->scheds[slot]->sched);
	*run = (struct gci_run){.sched = &op->scheds[slot]->sched,
		.tp = e->tp,
		.ranks = op->ranks,
		.comm = op->comm->id,
		.seq = op->number << GCI_WINDOW_BITS | op->started,
		.digest = op->digest,
		.esize = coll.esize,
		.reducer = op->reducer,
		.share = op->scheds[slot]->wan_peers,
		.trace = e->settings.trace,
		.activity = &e->activity,
		.done = on_run,
		.damaged = on_damage,
		.user = op};
	run->buf[GCI_IN] = op->in ? op->in + at : NULL;
	run->buf[GCI_OUT] = op->out ? op->out + at : NULL;
	if (run->sched->tmp_len)
		run->buf[GCI_TMP] = gci_scratch_get(&e->scratch, run->sched->tmp_len * coll.esize);
	op->started++;
	if ((!run->sched->tmp_len || run->buf[GCI_TMP]) && !gci_run_start(run))
		return 0;
	end_run(op, slot);
	return GCOLL_ERR_NOMEM;
}

static void fill_slots(struct gci_op *op)
{
	int slot;

	for (slot = 0; slot < GCI_MAX_INSTANCES; slot++) {
		if (op->scheds[slot] || op->status || op->started == op->windows.n)
			continue;
		if (start_window(op, slot))
			op->status = gci_engine_nomem(op->comm->engine);
	}
}

static int busy(const struct gci_op *op)
{
	int slot, n = 0;

	for (slot = 0; slot < GCI_MAX_INSTANCES; slot++)
		n += op->scheds[slot] != NULL;
	return n;
}

/* No window follows those under way. */
static void tell_last(struct gci_op *op)
{
	int slot;

	for (slot = 0; slot < GCI_MAX_INSTANCES; slot++)
		if (op->scheds[slot])
			gci_run_last(&op->runs[slot]);
}

/* Keeps the pipeline full: as many windows under way as may be. Windows that end at once (a rank
 * alone has nothing to wait for) come back here from within; the outer call goes on for them. */
static void fill(struct gci_op *op)
{
	uint64_t before;

	if (op->filling)
		return;
	op->filling = 1;
	do {
		before = op->started;
		fill_slots(op);
	} while (op->started != before);
	op->filling = 0;
	if (op->started == op->windows.n)
		tell_last(op);
	if (op->over || busy(op) || (!op->status && op->ended != op->windows.n))
		return;
	op->over = 1;
	gci_list_del(&op->link);
	gci_pacing_update(op);
	op->done(op, op->status);
}

int gci_op_start(struct gci_op *op)
{
	gcoll_comm *c = op->comm;
	int rc;

	gci_list_push(&c->ops, &op->link);
	gci_op_note(op);
	rc = gci_comm_see(c, op->number, op->digest);
	if (rc) {
		gci_list_del(&op->link);
		return rc;
	}
	gci_pacing_update(op);
	fill(op);
	return 0;
}
