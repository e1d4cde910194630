/* SPDX-License-Identifier: MIT */
#include "comm/engine.h"

#include "base/log.h"
#include "base/mem.h"
#include "collectives/blocks/windows.h"
#include "comm/comm.h"
#include "comm/deadline.h"
#include "comm/done.h"
#include "comm/loop.h"
#include "comm/message.h"
#include "comm/pacing.h"
#include "comm/request.h"
#include "comm/warm.h"
#include "transport/taps.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

#define VERDICT_WAIT  (3 * GCI_NS_PER_S)
#define VERDICT_LOOK  (10 * GCI_NS_PER_MS) /* between two looks, when it is late */
#define REPLAY_NBYTES (64u << 20)

struct gci_engine *gci_engine_create(int rank, int size, const char **hosts)
{
	struct gci_engine *e = gci_calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->rank = rank;
	e->size = size;
	e->hosts = hosts;
	e->settings.op_timeout_ns = GCI_NEVER;
	e->settings.warm = GCI_WARM_ON;
	e->settings.window_nbytes = GCI_WINDOW_NBYTES;
	e->taps = gci_taps_create();
	if (!e->taps) {
		gci_free(e);
		return NULL;
	}
	gci_calls_init(&e->calls);
	gci_list_init(&e->comms);
	gci_list_init(&e->requests);
	gci_list_init(&e->untold);
	return e;
}

void gci_engine_free(struct gci_engine *e)
{
	if (!e)
		return;
	gci_tp_free(e->tp);
	e->tp = NULL;
	gci_loop_close(e);
	gci_done_cancel(e);
	/* Requests that nobody waited for belong to the caller still; their memory is ours. */
	while (!gci_list_empty(&e->requests))
		gci_req_drop(gci_container(e->requests.next, gcoll_req, link));
	gci_reqs_free(e);
	gci_sched_cache_forget(&e->cache, NULL);
	while (!gci_list_empty(&e->comms))
		gci_comm_drop(gci_container(e->comms.next, gcoll_comm, link));
	gci_comms_free(&e->by_id);
	gci_calls_free(&e->calls);
	gci_scratch_free(&e->scratch);
	gci_recording_set(e, NULL);
	gci_pacing_close(e);
	gci_taps_free(e->taps);
	gci_free(e);
}

/* ---- failures */

void gci_engine_fail(struct gci_engine *e, int status, int rank, const char *fmt, ...)
{
	va_list ap;

	if (e->failure.status)
		return;
	e->failed_ns = gci_now_ns();
	e->failure.status = status;
	e->failure.rank = rank;
	va_start(ap, fmt);
	vsnprintf(e->failure.text, sizeof(e->failure.text), fmt, ap);
	va_end(ap);
	gci_log(GCI_LOG_INFO, "rank %d: %s", e->rank, e->failure.text);
	if (e->ctl)
		gci_control_fail(e->ctl, &e->failure);
	gci_tp_fail(e->tp, status);
}

void gci_engine_ask_call(struct gci_engine *e, int peer, uint32_t comm, uint64_t op)
{
	if (e->ctl && !e->failure.status)
		gci_control_ask_call(e->ctl,
			&(struct gci_ctl_call){.rank = (uint32_t)peer, .comm = comm, .op = op});
}

int gci_engine_nomem(struct gci_engine *e)
{
	gci_engine_fail(e, GCOLL_ERR_NOMEM, e->rank, "rank %d (%s) is out of memory", e->rank,
		e->hosts[e->rank]);
	return GCOLL_ERR_NOMEM;
}

int gci_engine_hear(struct gci_engine *e)
{
	struct gci_ctl_failure f;

	if (gci_control_verdict(e->ctl, &f)) {
		if (!e->failure.status)
			gci_tp_fail(e->tp, f.status);
		e->failure = f;
		e->has_verdict = 1;
	}
	return e->failure.status;
}

static uint64_t verdict_until(const struct gci_engine *e)
{
	return e->failed_ns + gci_engine_patience(e, VERDICT_WAIT);
}

/* The launcher's silence counts, and not that of a process which was stopped. */
static int verdict_is_late(const struct gci_engine *e)
{
	struct gci_ctl_failure f;

	return gci_control_looked_ns(e->ctl) >= verdict_until(e) &&
	       !gci_control_verdict(e->ctl, &f);
}

static void take_budgets(struct gci_engine *e)
{
	struct gci_ctl_budget b;

	while (e->ctl && gci_control_budget(e->ctl, &b))
		gci_pacing_budget(e, b.from, b.to, b.bps);
}

int gci_engine_settled(const struct gci_engine *e)
{
	return !e->failure.status || !e->ctl || e->has_verdict || verdict_is_late(e);
}

void gci_engine_await_verdict(struct gci_engine *e, uint64_t timeout_ns)
{
	uint64_t start = gci_now_ns();

	gci_engine_check(e);
	while (!gci_engine_settled(e) && gci_now_ns() - start < timeout_ns) {
		gci_sleep_ns(VERDICT_LOOK);
		gci_engine_check(e);
	}
}

void gci_engine_check_parting(struct gci_engine *e)
{
	const struct gci_tp_failure *f = &e->parting;

	if (f->status && !e->failure.status && verdict_is_late(e) && !gci_control_all_gone(e->ctl))
		gci_engine_fail(e, f->status, f->peer < 0 ? e->rank : f->peer, "%s", f->text);
}

static void on_failure(void *user, const struct gci_tp_failure *f)
{
	struct gci_engine *e = user;

	/* If all have said that they leave, some are just faster. The launcher knows of deaths. */
	if (e->finalizing && f->status == GCOLL_ERR_PEER) {
		e->parting = *f;
		e->failed_ns = gci_now_ns();
		return;
	}
	gci_engine_fail(e, f->status, f->peer < 0 ? e->rank : f->peer, "%s", f->text);
}

uint64_t gci_engine_patience(const struct gci_engine *e, uint64_t ns)
{
	return e->grid ? ns + 2 * gci_grid_held_ns(e->grid) : ns;
}

/* ---- what the transport asks */

/* Within a machine nothing is congested: what paces its packets, as BBR does, only sets timers and
 * waits for them. */
static const char *congestion_of(const struct gci_engine *e, int far)
{
	if (far && *e->settings.congestion)
		return e->settings.congestion;
	return e->world->topo.one_host ? "reno" : NULL;
}

/* Encrypted links always: the lengths of TLS records have no sum, so one that has changed on the way
 * cannot be told from a sender that computes, and its connection can only be made again. */
static int replays(const struct gci_engine *e, int far, int encrypted)
{
	switch (e->settings.replay) {
	case GCI_REPLAY_AUTO: /* nothing on the way resets what goes from memory to memory */
		return encrypted || far || !e->world->topo.one_host;
	case GCI_REPLAY_WAN:
		return encrypted || far;
	default:
		return encrypted || e->settings.replay == GCI_REPLAY_ALWAYS;
	}
}

static void on_link(void *user, int peer, struct gci_tp_link *out)
{
	struct gci_engine *e = user;
	const struct gci_topo *t = &e->world->topo;
	int a = t->cluster[e->rank], b = t->cluster[peer];
	struct gci_flight f, back;

	gci_topo_flight(t, a, b, e->settings.streams, &f);
	gci_topo_flight(t, b, a, e->settings.streams, &back);
	*out = (struct gci_tp_link){.streams = f.streams,
		.eager_nbytes = a == b ? GCI_LAN_EAGER : GCI_WAN_EAGER,
		.sockbuf_nbytes = e->settings.sockbuf_nbytes,
		.flight_nbytes =
			back.stream_nbytes > f.stream_nbytes ? back.stream_nbytes : f.stream_nbytes,
		.rtt_ns = f.rtt_ns,
		.congestion = congestion_of(e, a != b),
		/* A machine's own network does not fall silent, but drops when it is loaded. */
		.dead_ns = t->one_host ? 0 : e->dead_ns,
		.unchecked = e->settings.checksum == GCI_CHECKSUM_OFF ||
			     (e->settings.checksum == GCI_CHECKSUM_AUTO && t->one_host),
		.encrypted = gci_security_encrypts(e->settings.security, a != b),
		.open = e->settings.security == GCI_SECURITY_OFF,
		.path = e->settings.data_path,
		.pace_group = a == b ? 0 : gci_pacing_group(e, b)};
	if (replays(e, a != b, out->encrypted))
		out->replay_nbytes = REPLAY_NBYTES;
	if (a == b && e->lanes) {
		out->streams = e->lanes(e->job, e->rank, peer);
		out->flight_nbytes /= out->streams;
	}
}

gcoll_comm *gci_engine_comm(const struct gci_engine *e, uint32_t id)
{
	return gci_comms_find(&e->by_id, id);
}

/* A communicator that is not here: another rank may be ahead of us in making it, or behind in
 * using it. An operation that was begun here on no communicator of this number is an error. */
static int check_absent(
	struct gci_engine *e, int peer, const struct gci_tp_key *key, uint64_t digest)
{
	uint32_t i;

	if (key->comm >= e->next_id) {
		e->early[e->nearly++ % GCI_EARLY_OPS] =
			(struct gci_early_op){key->comm, peer, key->seq, digest};
		return 1;
	}
	for (i = 0; i < GCI_FREED_COMMS; i++) {
		const struct gci_freed_comm *f = &e->freed[i];

		if (f->id != key->comm || key->seq & GCI_SEQ_MESSAGE ||
			key->seq >> GCI_WINDOW_BITS < f->next_op)
			continue;
		gci_engine_ask_call(e, peer, key->comm, key->seq >> GCI_WINDOW_BITS);
		gci_engine_fail(e, GCOLL_ERR_MISMATCH, -1,
			"operation %" PRIu64 " on communicator %" PRIu32
			": rank %d (%s) has freed it, rank %d (%s) calls " GCI_CTL_SOMETHING_ELSE,
			key->seq >> GCI_WINDOW_BITS, key->comm, e->rank, e->hosts[e->rank], peer,
			e->hosts[peer]);
		return 0;
	}
	return 1;
}

/* Every message and credit names its operation: a peer that runs another one is found even if no
 * tag of theirs meets one of ours. */
static int on_check(void *user, int peer, const struct gci_tp_key *key, uint64_t digest)
{
	struct gci_engine *e = user;
	gcoll_comm *c = gci_engine_comm(e, key->comm);
	uint64_t op = key->seq >> GCI_WINDOW_BITS;

	if (e->finalizing && c && !(key->seq & GCI_SEQ_MESSAGE) && op >= c->next_op) {
		gci_engine_ask_call(e, peer, key->comm, op);
		gci_engine_fail(e, GCOLL_ERR_MISMATCH, -1,
			"operation %" PRIu64 ": rank %d (%s) has left the job, rank %d (%s) "
			"calls " GCI_CTL_SOMETHING_ELSE,
			op, e->rank, e->hosts[e->rank], peer, e->hosts[peer]);
		return 0;
	}
	return c ? gci_comm_check(c, peer, key, digest) : check_absent(e, peer, key, digest);
}

struct gci_tp_config gci_engine_tp_config(struct gci_engine *e)
{
	return (struct gci_tp_config){.rank = e->rank,
		.size = e->size,
		.epoch = 1,
		.user = e,
		.link = on_link,
		.on_failure = on_failure,
		.check = on_check,
		.activity = &e->activity,
		.taps = e->taps};
}

/* ---- progress */

void gci_engine_after(struct gci_engine *e, uint64_t since_ns)
{
	if (gci_engine_check(e))
		gci_messages_fail(e);
	take_budgets(e);
	gci_deadline_count(e, since_ns);
	if (e->waited_ns)
		gci_reqs_ask(e);
	if (!gci_list_empty(&e->untold))
		gci_done_tell(e);
}

/* The clock is looked at only where it tells something: as long as bytes come and go, no wait is
 * counted. The first one in which nothing does counts only if some time-out may end it. */
static uint64_t wait_begins(struct gci_engine *e)
{
	uint64_t asleep_ns = e->asleep_ns;

	e->asleep_ns = 0;
	if (asleep_ns)
		return asleep_ns;
	return e->quiet || gci_deadline_least(e) != GCI_NEVER ? gci_now_ns() : 0;
}

/* True if something came while looking again and again. What is waited for may come from a process
 * that waits for this processor. */
static int spin(struct gci_engine *e)
{
	uint64_t activity = e->activity, ended = e->nended;
	uint64_t end = gci_now_ns() + gci_spin_budget(&e->settings.spin);
	int hit;

	do {
		sched_yield();
		gci_tp_progress(e->tp, 0);
		hit = e->activity != activity || e->nended != ended || e->failure.status;
	} while (!hit && gci_now_ns() < end);
	gci_spin_learn(&e->settings.spin, hit);
	return hit;
}

int gci_engine_progress(struct gci_engine *e, uint64_t timeout_ns)
{
	uint64_t since = wait_begins(e);

	if (gci_engine_check(e) || !gci_list_empty(&e->untold))
		timeout_ns = 0;
	else if (gci_deadline_least(e) < timeout_ns)
		timeout_ns = gci_deadline_least(e);
	if (!timeout_ns || !gci_spin_budget(&e->settings.spin) || !spin(e))
		gci_tp_progress(e->tp, timeout_ns);
	/* A loop of the program's has counted the time, in there. */
	gci_engine_after(e, e->loop ? gci_now_ns() : since);
	return e->failure.status;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t gci_engine_sleep_ns(struct gci_engine *e)
{
	uint64_t ns = gci_tp_timeout_ns(e->tp), now = gci_now_ns();

	if (e->failure.status && !gci_engine_settled(e))
		ns = least(ns, verdict_until(e) > now ? verdict_until(e) - now : VERDICT_LOOK);
	else if (!gci_list_empty(&e->untold))
		ns = 0;
	if (e->active && !e->failure.status)
		ns = least(ns, least(gci_deadline_left(e), gci_reqs_ask_in(e)));
	e->asleep_ns = ns && e->active ? now : 0;
	return ns;
}
