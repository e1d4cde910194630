/* SPDX-License-Identifier: MIT */
#include "comm/comm.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WINDOW_BITS      24    /* of a message's seq: the window; above it the operation's number */
#define MAX_SEGMENTS     16384 /* of a window: messages that are under way at once */
#define VERDICT_WAIT     (3 * GCI_NS_PER_S)
#define SIGNATURE_NBYTES 160

int gci_comm_create(gcoll_comm **out, int rank, struct gci_topo *topo, const char **hosts)
{
	gcoll_comm *c = gci_calloc(1, sizeof(*c));
	int k;

	*out = c;
	if (!c)
		return GCOLL_ERR_NOMEM;
	c->rank = rank;
	c->size = topo->nranks;
	c->topo = *topo;
	memset(topo, 0, sizeof(*topo));
	c->hosts = hosts;
	c->op_timeout_ns = GCI_NEVER;
	gci_list_init(&c->ops);
	for (k = 0; k < GCI_NKINDS; k++)
		c->choice[k].algorithm = gci_algorithm_find((enum gci_kind)k, NULL);
	return 0;
}

static void put_sched(struct gci_cached_sched *s)
{
	if (--s->users || !s->temporary)
		return;
	gci_sched_free(&s->sched);
	gci_free(s);
}

/* The window in this slot is over. */
static void end_run(gcoll_req *r, int slot)
{
	gci_run_free(&r->runs[slot]);
	gci_scratch_put(&r->comm->scratch, r->runs[slot].buf[GCI_TMP]);
	put_sched(r->scheds[slot]);
	r->scheds[slot] = NULL;
}

void gci_comm_free(gcoll_comm *c)
{
	struct gci_list *it;
	int i;

	if (!c)
		return;
	gci_tp_free(c->tp);
	/* Requests that nobody waited for belong to the caller still; their memory is ours. */
	while (!gci_list_empty(&c->ops)) {
		gcoll_req *r;

		it = c->ops.next;
		r = gci_container(it, gcoll_req, link);
		gci_list_del(it);
		for (i = 0; i < GCI_MAX_INSTANCES; i++)
			if (r->scheds[i])
				end_run(r, i);
		gci_free(r);
	}
	gci_scratch_free(&c->scratch);
	for (i = 0; i < GCI_CACHED_SCHEDS; i++)
		gci_sched_free(&c->cache[i].sched);
	gci_topo_free(&c->topo);
	gci_free(c);
}

void gci_comm_attach(gcoll_comm *c, struct gci_tp *tp)
{
	c->tp = tp;
}

/* ---- failures */

void gci_comm_fail(gcoll_comm *c, int status, int rank, const char *text)
{
	if (c->failure.status)
		return;
	c->failure.status = status;
	c->failure.rank = rank;
	snprintf(c->failure.text, sizeof(c->failure.text), "%s", text);
	gci_log(GCI_LOG_INFO, "rank %d: %s", c->rank, text);
	if (c->ctl)
		gci_control_fail(c->ctl, &c->failure);
	gci_tp_fail(c->tp, status);
}

static void take_verdict(gcoll_comm *c)
{
	struct gci_ctl_failure f;

	if (!c->ctl || !gci_control_verdict(c->ctl, &f))
		return;
	if (!c->failure.status)
		gci_tp_fail(c->tp, f.status);
	c->failure = f;
}

void gci_comm_await_verdict(gcoll_comm *c)
{
	struct gci_ctl_failure f;
	uint64_t end = gci_now_ns() + VERDICT_WAIT;

	while (c->ctl && !gci_control_verdict(c->ctl, &f) && gci_now_ns() < end)
		gci_sleep_ns(10 * GCI_NS_PER_MS);
	take_verdict(c);
}

static void on_failure(void *user, const struct gci_tp_failure *f)
{
	gcoll_comm *c = user;

	gci_comm_fail(c, f->status, f->peer < 0 ? c->rank : f->peer, f->text);
}

/* ---- what the transport asks */

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	gcoll_comm *c = user;
	const struct gci_topo *t = &c->topo;
	int a = t->cluster[c->rank], b = t->cluster[peer];
	uint32_t there = gci_topo_link(t, a, b)->streams, back = gci_topo_link(t, b, a)->streams;

	*out = (struct gci_tp_link){.streams = 1,
		.eager_nbytes = GCI_LAN_EAGER,
		.sockbuf_nbytes = c->sockbuf_nbytes,
		.dead_ns = c->dead_ns};
	if (a == b)
		return;
	out->eager_nbytes = GCI_WAN_EAGER;
	out->streams = there > back ? there : back;
	if (!out->streams)
		out->streams = GCI_DEFAULT_STREAMS;
	if (c->streams)
		out->streams = c->streams;
}

static void signature(const gcoll_req *r, char out[SIGNATURE_NBYTES])
{
	const struct gci_coll *coll = &r->coll;
	int n = snprintf(out, SIGNATURE_NBYTES, "%s", gci_kind_name(coll->kind));

	if (coll->kind != GCI_BARRIER)
		n += snprintf(out + n, SIGNATURE_NBYTES - (size_t)n, " of %" PRIu64 " %s",
			coll->count, gci_type_name(r->type));
	if (coll->kind == GCI_BCAST)
		n += snprintf(out + n, SIGNATURE_NBYTES - (size_t)n, " from rank %d", coll->root);
	if (coll->kind == GCI_ALLREDUCE)
		n += snprintf(
			out + n, SIGNATURE_NBYTES - (size_t)n, " with %s", gci_op_name(r->op));
	snprintf(out + n, SIGNATURE_NBYTES - (size_t)n, " by %s", r->choice.algorithm->name);
}

/* `r` is our call if it has not ended yet, else NULL. */
static int mismatch(gcoll_comm *c, uint64_t op, const gcoll_req *r, int peer)
{
	char text[GCI_CTL_TEXT], what[SIGNATURE_NBYTES] = "one thing";

	if (r)
		signature(r, what);
	snprintf(text, sizeof(text),
		"operation %" PRIu64 ": rank %d (%s) calls %s, rank %d (%s) something else", op,
		c->rank, c->hosts[c->rank], what, peer, c->hosts[peer]);
	gci_comm_fail(c, GCOLL_ERR_MISMATCH, -1, text); /* either may be wrong */
	return 0;
}

static const gcoll_req *find_op(const gcoll_comm *c, uint64_t number)
{
	struct gci_list *it;

	gci_list_each (it, &c->ops) {
		gcoll_req *r = gci_container(it, gcoll_req, link);

		if (r->number == number)
			return r;
	}
	return NULL;
}

/* Every message and credit names its operation: a peer that runs another one is found even if no
 * tag of theirs meets one of ours. */
static int on_check(void *user, int peer, const struct gci_tp_key *key, uint64_t digest)
{
	gcoll_comm *c = user;
	uint64_t op = key->seq >> WINDOW_BITS;
	struct gci_seen_op *seen = &c->seen[op % GCI_SEEN_OPS];

	if (c->finalizing && op >= c->next_op) {
		char text[GCI_CTL_TEXT];

		snprintf(text, sizeof(text),
			"rank %d (%s) has left the job, rank %d (%s) calls operation %" PRIu64,
			c->rank, c->hosts[c->rank], peer, c->hosts[peer], op);
		gci_comm_fail(c, GCOLL_ERR_MISMATCH, -1, text);
		return 0;
	}
	if (!seen->set || seen->op < op)
		*seen = (struct gci_seen_op){op, digest, peer, 1};
	if (seen->op == op && seen->digest != digest && op < c->next_op)
		return mismatch(c, op, find_op(c, op), peer);
	return 1;
}

struct gci_tp_config gci_comm_tp_config(gcoll_comm *c)
{
	return (struct gci_tp_config){.rank = c->rank,
		.size = c->size,
		.epoch = 1,
		.user = c,
		.link = on_link,
		.on_failure = on_failure,
		.check = on_check};
}

/* ---- schedules */

static int same_coll(const struct gci_coll *a, const struct gci_coll *b)
{
	return a->kind == b->kind && a->count == b->count && a->esize == b->esize &&
	       a->root == b->root && a->in_place == b->in_place && a->order == b->order &&
	       a->senders == b->senders && a->degree == b->degree && a->segment == b->segment;
}

static struct gci_cached_sched *get_sched(
	gcoll_comm *c, const struct gci_algorithm *a, const struct gci_coll *coll)
{
	struct gci_cached_sched *slot = NULL;
	int i;

	for (i = 0; i < GCI_CACHED_SCHEDS; i++) {
		struct gci_cached_sched *s = &c->cache[i];

		if (s->used && s->algorithm == a && same_coll(&s->coll, coll)) {
			s->users++;
			s->used = ++c->cache_clock;
			return s;
		}
		if (!s->users && (!slot || s->used < slot->used))
			slot = s;
	}
	if (!slot) { /* all are in use: one that is dropped after it */
		slot = gci_calloc(1, sizeof(*slot));
		if (!slot)
			return NULL;
		slot->temporary = 1;
	}
	gci_sched_free(&slot->sched);
	slot->used = 0;
	if (gci_emit(a, coll, c->rank, &slot->sched)) {
		if (slot->temporary)
			gci_free(slot);
		return NULL;
	}
	slot->algorithm = a;
	slot->coll = *coll;
	slot->users = 1;
	slot->used = ++c->cache_clock;
	return slot;
}

/* ---- operations */

static void fill(gcoll_req *r);

static void on_run(struct gci_run *run, int status)
{
	gcoll_req *r = run->user;
	if (status && !r->status)
		r->status = status;
	r->ended++;
	end_run(r, (int)(run - r->runs));
	fill(r);
}

static int start_window(gcoll_req *r, int slot)
{
	gcoll_comm *c = r->comm;
	uint64_t at = r->started * r->window, left = r->coll.count - at;
	struct gci_coll coll = r->coll;
	struct gci_run *run = &r->runs[slot];

	coll.count = left < r->window ? left : r->window;
	r->scheds[slot] = get_sched(c, r->choice.algorithm, &coll);
	if (!r->scheds[slot])
		return GCOLL_ERR_NOMEM;
	*run = (struct gci_run){.sched = &r->scheds[slot]->sched,
		.tp = c->tp,
		.seq = r->number << WINDOW_BITS | r->started,
		.digest = r->digest,
		.esize = r->coll.esize,
		.kernel = gci_kernel_find(r->type, r->op),
		.activity = &c->activity,
		.done = on_run,
		.user = r};
	run->buf[GCI_IN] = r->in ? r->in + at * coll.esize : NULL;
	run->buf[GCI_OUT] = r->out ? r->out + at * coll.esize : NULL;
	if (run->sched->tmp_len)
		run->buf[GCI_TMP] = gci_scratch_get(&c->scratch, run->sched->tmp_len * coll.esize);
	r->started++;
	if ((!run->sched->tmp_len || run->buf[GCI_TMP]) && !gci_run_start(run))
		return 0;
	end_run(r, slot);
	return GCOLL_ERR_NOMEM;
}

static void fill_slots(gcoll_req *r)
{
	int slot;

	for (slot = 0; slot < GCI_MAX_INSTANCES; slot++) {
		if (r->scheds[slot] || r->status || r->started == r->nwindows)
			continue;
		if (start_window(r, slot)) {
			r->status = GCOLL_ERR_NOMEM;
			gci_comm_fail(r->comm, GCOLL_ERR_NOMEM, r->comm->rank,
				"out of memory for an operation");
		}
	}
}

static int busy(const gcoll_req *r)
{
	int slot, n = 0;

	for (slot = 0; slot < GCI_MAX_INSTANCES; slot++)
		n += r->scheds[slot] != NULL;
	return n;
}

/* Keeps the pipeline full: as many windows under way as may be. Windows that end at once (a rank
 * alone has nothing to wait for) come back here from within; the outer call goes on for them. */
static void fill(gcoll_req *r)
{
	uint64_t before;

	if (r->filling)
		return;
	r->filling = 1;
	do {
		before = r->started;
		fill_slots(r);
	} while (r->started != before);
	r->filling = 0;
	if (!busy(r) && (r->status || r->ended == r->nwindows))
		r->over = 1;
}

static uint64_t digest_of(const gcoll_req *r)
{
	const struct gci_coll *c = &r->coll;
	const char *name = r->choice.algorithm->name;
	uint64_t d = gci_topo_digest(c->topo);

	d = gci_digest(d, (uint64_t)c->kind);
	d = gci_digest(d, c->count);
	d = gci_digest(d, c->kind == GCI_BARRIER ? 0 : (uint64_t)r->type);
	d = gci_digest(d, c->kind == GCI_ALLREDUCE ? (uint64_t)r->op : (uint64_t)c->root);
	d = gci_digest_bytes(d, name, strlen(name));
	d = gci_digest(d, c->senders);
	return gci_digest(d, c->segment);
}

/* Compares with a peer who was here first, and stands for those that come later. */
static int see_own(gcoll_comm *c, const gcoll_req *r)
{
	struct gci_seen_op *seen = &c->seen[r->number % GCI_SEEN_OPS];

	if (seen->set && seen->op == r->number && seen->digest != r->digest) {
		mismatch(c, r->number, r, seen->peer);
		return GCOLL_ERR_MISMATCH;
	}
	*seen = (struct gci_seen_op){r->number, r->digest, c->rank, 1};
	return 0;
}

int gci_comm_start(gcoll_comm *c, const struct gci_coll *coll, enum gcoll_type type,
	enum gcoll_op op, void *in, void *out, gcoll_req **req)
{
	gcoll_req *r;

	*req = NULL;
	take_verdict(c);
	if (c->failure.status)
		return c->failure.status;
	r = gci_calloc(1, sizeof(*r));
	if (!r)
		return GCOLL_ERR_NOMEM;
	r->comm = c;
	r->coll = *coll;
	r->choice = c->choice[coll->kind];
	r->coll.topo = &c->topo;
	r->coll.senders = r->choice.senders;
	r->coll.segment =
		(r->choice.segment_nbytes + coll->esize - 1) / (coll->esize ? coll->esize : 1);
	if (r->coll.segment && r->coll.segment < GCI_WINDOW_NBYTES / coll->esize / MAX_SEGMENTS)
		r->coll.segment = GCI_WINDOW_NBYTES / coll->esize / MAX_SEGMENTS;
	r->type = type;
	r->op = op;
	r->in = in;
	r->out = out;
	r->window = GCI_WINDOW_NBYTES / (coll->esize ? coll->esize : 1);
	r->nwindows = coll->count ? (coll->count - 1) / r->window + 1 : 1;
	r->number = c->next_op++;
	r->digest = digest_of(r);
	gci_list_push(&c->ops, &r->link);
	if (r->nwindows >> WINDOW_BITS || see_own(c, r)) {
		gci_list_del(&r->link);
		gci_free(r);
		return c->failure.status ? c->failure.status : GCOLL_ERR_INVAL;
	}
	fill(r);
	*req = r;
	return 0;
}

/* Only time that was spent waiting here counts, and only while no message comes or goes. */
static void count_waiting(gcoll_comm *c, uint64_t since_ns)
{
	char text[GCI_CTL_TEXT];

	if (c->activity != c->seen_activity || gci_list_empty(&c->ops)) {
		c->seen_activity = c->activity;
		c->waited_ns = 0;
		return;
	}
	c->waited_ns += gci_now_ns() - since_ns;
	if (c->waited_ns < c->op_timeout_ns || c->failure.status)
		return;
	snprintf(text, sizeof(text),
		"operation %" PRIu64 ": rank %d (%s) has waited %" PRIu64 " s for other ranks",
		gci_container(c->ops.next, gcoll_req, link)->number, c->rank, c->hosts[c->rank],
		c->waited_ns / GCI_NS_PER_S);
	gci_comm_fail(c, GCOLL_ERR_TIMEOUT, -1, text);
}

int gci_comm_progress(gcoll_comm *c, uint64_t timeout_ns)
{
	uint64_t now = gci_now_ns();

	take_verdict(c);
	if (c->failure.status)
		timeout_ns = 0;
	else if (c->op_timeout_ns < timeout_ns)
		timeout_ns = c->op_timeout_ns;
	gci_tp_progress(c->tp, timeout_ns);
	take_verdict(c);
	count_waiting(c, now);
	return c->failure.status;
}

/* ---- for benchmarks */

int gci_comm_traffic(gcoll_comm *c, enum gci_kind kind, uint64_t count, uint32_t esize, int root,
	uint64_t *wan_nbytes, uint64_t *nic_nbytes)
{
	const struct gci_choice *choice = &c->choice[kind];
	struct gci_coll coll = {.kind = kind,
		.topo = &c->topo,
		.esize = esize,
		.root = root,
		.senders = choice->senders,
		.segment = (choice->segment_nbytes + esize - 1) / esize};
	uint64_t window = GCI_WINDOW_NBYTES / esize, at = 0;
	uint64_t *moved = gci_calloc((size_t)c->size, 2 * sizeof(*moved));
	int r, rc = moved ? 0 : GCOLL_ERR_NOMEM;
	uint32_t i;

	*wan_nbytes = *nic_nbytes = 0;
	for (; !rc && (at < count || !at); at += window) {
		coll.count = count - at < window ? count - at : window;
		for (r = 0; r < c->size && !rc; r++) {
			struct gci_sched s;

			rc = gci_emit(choice->algorithm, &coll, r, &s);
			for (i = 0; !rc && i < s.nsteps; i++) {
				const struct gci_step *p = &s.steps[i];

				if (p->kind == GCI_STEP_SEND) {
					moved[2 * r] += p->src.length * esize;
					if (c->topo.cluster[r] != c->topo.cluster[p->peer])
						*wan_nbytes += p->src.length * esize;
				} else if (p->kind <= GCI_STEP_RECV_REDUCE) {
					moved[2 * r + 1] += p->dst.length * esize;
				}
			}
			gci_sched_free(&s);
		}
	}
	for (r = 0; !rc && r < 2 * c->size; r++)
		if (moved[r] > *nic_nbytes)
			*nic_nbytes = moved[r];
	gci_free(moved);
	return rc;
}
