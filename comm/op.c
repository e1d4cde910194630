/* SPDX-License-Identifier: MIT */
#include "comm/op.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/prng.h"
#include "collectives/blocks/layout.h"
#include "collectives/models/limit.h"
#include "collectives/planner/packed.h"
#include "comm/planning.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- How a call is run. All ranks find the same: what was set, the table that the launcher handed to
 * all, and the topology are the same everywhere, and the rest is the call. What differs between
 * ranks (whether the call is in place) has no part in it. */

/* The topologies of multicasts are not simulated. */
static int simulate(
	gcoll_comm *c, const struct gci_coll *coll, const uint64_t *number, struct gci_decision *d)
{
	if (c->tuning != GCI_TUNING_SIMULATE || coll->topo != &c->topo)
		return GCOLL_ERR_INVAL;
	return gci_planning_decide(c, coll, number, d);
}

/* Of operation *number; NULL: of any later one. */
static int choose(gcoll_comm *c, const struct gci_coll *coll, int internal, const uint64_t *number,
	struct gci_decision *d, const char **why)
{
	const struct gci_choice *choice = &c->choice[coll->kind];
	const struct gci_table *table = c->engine->job.table;
	int rc = GCOLL_ERR_INVAL;

	*why = NULL;
	*d = (struct gci_decision){.by = GCI_BY_DEFAULT};
	if (!internal && !choice->automatic) {
		d->how = choice->how;
		d->by = GCI_BY_USER;
		*why = gci_ineligible(d->how.algorithm, coll);
		return *why ? GCOLL_ERR_INVAL : 0;
	}
	if (!internal && c->tuning != GCI_TUNING_OFF) {
		if (table && gci_decide_by_table(table, coll, d))
			return 0;
		rc = simulate(c, coll, number, d);
	}
	if (rc == GCOLL_ERR_NOMEM)
		*why = "out of memory";
	if (rc != GCOLL_ERR_INVAL)
		return rc;
	rc = gci_decide_roughly(coll, &d->how);
	if (rc)
		*why = rc == GCOLL_ERR_NOMEM ? "out of memory" : "no algorithm can run it";
	return rc;
}

int gci_op_choose(gcoll_comm *c, const struct gci_coll *coll, int internal, struct gci_decision *d,
	const char **why)
{
	return choose(c, coll, internal, NULL, d, why);
}

/* ---- what it is, in words and as a digest */

#define LONG_NBYTES (256u << 10)

int gci_op_is_long(const struct gci_op *op)
{
	const struct gci_coll *c = &op->coll;
	uint64_t blocks = gci_kind_has_vector(c->kind) ? 1 : (unsigned)c->topo->nranks;

	return c->counts || c->count >= LONG_NBYTES / blocks / (c->esize ? c->esize : 1);
}

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
	int rc, i;

	c->senders = c->degree = 0;
	c->segment = 0;
	c->like = whole(op);
	gci_windows_cut(&op->windows, c, comm->engine->settings.window_nbytes);
	chosen_for = *c;
	chosen_for.count = c->like ? c->like : c->count;
	rc = choose(comm, &chosen_for, op->internal, &op->number, &d, &why);
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
	for (i = 0; i < GCI_WINDOWS; i++)
		op->few[i].sched = NULL;
	gci_free(op->more); /* of its last start */
	op->more = NULL;
	op->nslots = 0;
	return 0;
}

/* ---- do all ranks call the same? */

static int mismatch(gcoll_comm *c, uint64_t op, int peer)
{
	struct gci_engine *e = c->engine;
	char what[GCI_SIGNATURE_NBYTES] = "one thing";
	struct gci_sign own;

	if (gci_calls_find(&e->calls, c->id, op, &own))
		gci_sign_print(&own, what, sizeof(what));
	gci_engine_ask_call(e, peer, c->id, op);
	/* Either may be wrong: nobody is named as the one who failed. */
	gci_engine_fail(e, GCOLL_ERR_MISMATCH, -1,
		"operation %" PRIu64
		": rank %d (%s) calls %s, rank %d (%s) " GCI_CTL_SOMETHING_ELSE,
		op, e->rank, e->hosts[e->rank], what, peer, e->hosts[peer]);
	return 0;
}

int gci_op_check(gcoll_comm *c, int peer, uint64_t op, uint64_t digest)
{
	struct gci_seen_op *seen = &c->seen[op % GCI_SEEN_OPS];

	if (!seen->set || seen->op < op)
		*seen = (struct gci_seen_op){op, digest, peer, 1};
	if (seen->op == op && seen->digest != digest && op < c->next_op)
		return mismatch(c, op, peer);
	return 1;
}

int gci_op_see(gcoll_comm *c, uint64_t op, uint64_t digest)
{
	struct gci_seen_op *seen = &c->seen[op % GCI_SEEN_OPS];

	if (seen->set && seen->op == op && seen->digest != digest) {
		mismatch(c, op, seen->peer);
		return GCOLL_ERR_MISMATCH;
	}
	*seen = (struct gci_seen_op){op, digest, c->engine->rank, 1};
	return 0;
}

/* ---- windows */

static struct gci_op_slot *slot_of(struct gci_op *op, int i)
{
	return i < GCI_WINDOWS ? &op->few[i] : &op->more[i - GCI_WINDOWS];
}

/* For want of memory a few must do. */
static void open_slots(struct gci_op *op, int n)
{
	int more = n - GCI_WINDOWS;

	op->more = more > 0 ? gci_calloc((size_t)more, sizeof(*op->more)) : NULL;
	op->nslots = n < GCI_WINDOWS ? n : GCI_WINDOWS;
	if (op->more)
		op->nslots = n;
}

/* The window in this slot is over. */
static void end_run(struct gci_op *op, struct gci_op_slot *s)
{
	gci_run_free(&s->run);
	gci_scratch_put(&op->comm->engine->scratch, s->run.buf[GCI_TMP]);
	gci_sched_cache_put(s->sched);
	s->sched = NULL;
}

void gci_op_drop(struct gci_op *op)
{
	int i;

	gci_list_del(&op->link);
	for (i = 0; i < op->nslots; i++)
		if (slot_of(op, i)->sched)
			end_run(op, slot_of(op, i));
	gci_free(op->more);
	op->more = NULL;
	op->nslots = 0;
}

/* Makes an average of the sum that this window has left on this rank. */
static void divide(const struct gci_op *op, const struct gci_op_slot *slot)
{
	const struct gci_coll *c = &slot->sched->coll;
	char *out = slot->run.buf[GCI_OUT];
	struct gci_slice s = gci_vector(c, GCI_OUT);

	if (!gci_has_out(c, op->rank))
		return;
	if (c->kind == GCI_REDUCE_SCATTER)
		s = gci_out_block(c, op->rank, op->rank);
	if (s.length)
		gci_kernel_scale(op->type, out + s.offset * c->esize, s.length, c->topo->nranks);
}

/* It begins or has ended. */
static void has_changed(const struct gci_op *op)
{
	const struct gci_engine_flow *f = &op->comm->engine->flow;

	if (f->changed)
		f->changed(op);
}

static void fill(struct gci_op *op);

static void on_run(struct gci_run *run, int status)
{
	struct gci_op_slot *slot = gci_container(run, struct gci_op_slot, run);
	struct gci_op *op = run->user;

	if (status && !op->status)
		op->status = status;
	if (!status && op->average)
		divide(op, slot);
	op->ended++;
	end_run(op, slot);
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

/* Sets window->packed; NULL: emitters make their own, which would be another one with counts. 0 or GCOLL_ERR_NOMEM. */
static int pack(struct gci_op *op, struct gci_coll *window)
{
	gcoll_comm *c = op->comm;

	if (!(op->algorithm->traits & GCI_PACKS) || window->topo != &c->topo)
		return 0;
	if (gci_decider_open(&c->decider, &c->topo, c->engine->settings.streams))
		return GCOLL_ERR_NOMEM;
	window->packed = gci_decide_packed(&c->decider, op->algorithm, &op->coll);
	return window->packed || !window->counts ? 0 : GCOLL_ERR_NOMEM;
}

static int start_window(struct gci_op *op, struct gci_op_slot *slot)
{
	struct gci_engine *e = op->comm->engine;
	struct gci_coll coll = gci_window_of(&op->windows, &op->coll, op->started);
	uint64_t at = gci_window_at(&op->windows, op->started) * coll.esize;
	struct gci_run *run = &slot->run;
	int n;

	if (pack(op, &coll))
		return GCOLL_ERR_NOMEM;
	if (!op->started) {
		op->due_ns = gci_now_ns();
		op->window_ns = gci_packed_window_ns(coll.packed, &coll);
	}
	slot->sched = gci_sched_cache_get(&e->cache, op->algorithm, &coll, op->rank);
	if (!slot->sched)
		return GCOLL_ERR_NOMEM;
	if (!op->started) {
		n = gci_windows_at_once(
			&op->windows, &op->coll, slot->sched->sched.tmp_len * coll.esize);
		op->nslots = n < op->nslots ? n : op->nslots;
	}
	if (!op->started && e->flow.first_window && gci_op_is_long(op))
		e->flow.first_window(e, op->ranks, &slot->sched->sched);
	*run = (struct gci_run){.sched = &slot->sched->sched,
		.tp = e->tp,
		.ranks = op->ranks,
		.comm = op->comm->id,
		.seq = op->number << GCI_WINDOW_BITS | op->started,
		.digest = op->digest,
		.esize = coll.esize,
		.reducer = op->reducer,
		.share = slot->sched->wan_peers,
		.trace = e->settings.trace,
		.activity = &e->wait.activity,
		.held = e->at_will ? NULL : &e->held,
		.nic_bps = gci_payload_bps(coll.topo->rank_nic_bps[op->rank]),
		.began_ns = op->due_ns,
		.done = on_run,
		.damaged = on_damage,
		.user = op};
	run->buf[GCI_IN] = op->in ? op->in + at : NULL;
	run->buf[GCI_OUT] = op->out ? op->out + at : NULL;
	if (run->sched->tmp_len)
		run->buf[GCI_TMP] = gci_scratch_get(&e->scratch, run->sched->tmp_len * coll.esize);
	op->started++;
	op->due_ns += op->window_ns;
	if ((!run->sched->tmp_len || run->buf[GCI_TMP]) && !gci_run_start(run))
		return 0;
	end_run(op, slot);
	return GCOLL_ERR_NOMEM;
}

static void fill_slots(struct gci_op *op)
{
	int i;

	for (i = 0; i < op->nslots; i++) {
		if (slot_of(op, i)->sched || op->status || op->started == op->windows.n)
			continue;
		if (start_window(op, slot_of(op, i)))
			op->status = gci_engine_nomem(op->comm->engine);
	}
}

static int busy(struct gci_op *op)
{
	int i, n = 0;

	for (i = 0; i < op->nslots; i++)
		n += slot_of(op, i)->sched != NULL;
	return n;
}

/* No window follows those under way. */
static void tell_last(struct gci_op *op)
{
	int i;

	for (i = 0; i < op->nslots; i++)
		if (slot_of(op, i)->sched)
			gci_run_last(&slot_of(op, i)->run);
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
	has_changed(op);
	op->done(op, op->status);
}

int gci_op_start(struct gci_op *op)
{
	gcoll_comm *c = op->comm;
	int rc;

	gci_list_push(&c->ops, &op->link);
	gci_op_note(op);
	rc = gci_op_see(c, op->number, op->digest);
	if (rc) {
		gci_list_del(&op->link);
		return rc;
	}
	has_changed(op);
	open_slots(op, gci_windows_at_once(&op->windows, &op->coll, 0));
	fill(op);
	gci_engine_release(c->engine);
	return 0;
}

/* ---- how long it may take */

/* What is under way of an operation at once should take. */
static uint64_t expected_ns(const struct gci_op *op)
{
	uint64_t ns = op->expected_ns, n = op->windows.n;

	if (!ns)
		ns = gci_limit_ns(&op->coll, op->comm->engine->settings.streams);
	return n > (uint64_t)op->nslots ? ns / n * (uint64_t)op->nslots : ns;
}

uint64_t gci_ops_expected_ns(const struct gci_engine *e)
{
	uint64_t most = 0, ns;
	struct gci_list *it, *op;

	gci_list_each (it, &e->comms.all) {
		const gcoll_comm *c = gci_container(it, gcoll_comm, link);

		gci_list_each (op, &c->ops) {
			ns = expected_ns(gci_container(op, struct gci_op, link));
			most = ns > most ? ns : most;
		}
	}
	return most;
}
