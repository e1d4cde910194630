/* SPDX-License-Identifier: MIT
 * The measuring side. A "send call" is an isend and one round of progress, which hands to the
 * sockets what they take without waiting: what MPI_Isend does in the papers. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/models/measure_isend.h"
#include "flow/warm.h"
#include "tools/probe/probe.h"

#include <stdlib.h>
#include <string.h>

/* Messages take so many streams. */
static int gct_trial(struct gct_wire *w, int peer, uint32_t streams, const struct gci_trial *t,
	struct gci_trial_time *times);
static int gct_trial_isends(
	struct gct_wire *w, int peer, uint32_t streams, uint32_t n, uint64_t nbytes, uint64_t *ns);
static int gct_trial_stamps(struct gct_wire *w, int peer, uint32_t reps, uint64_t *ns);

/* ---- Messages by the transport itself: gcoll_send ends only when the message has been handed
 * over, and cannot choose streams. Named by their number per direction, on a communicator that
 * nobody else uses. */

int gct_wire_open(struct gct_wire *w, gcoll_comm *comm, uint64_t most, uint32_t streams)
{
	size_t n = (size_t)comm->engine->size;

	*w = (struct gct_wire){.most = most, .streams = streams};
	gci_warm_close(comm->engine); /* its thread is not to make progress beside ours */
	w->sent = gci_calloc(n, sizeof(*w->sent));
	w->got = gci_calloc(n, sizeof(*w->got));
	w->flights = gci_calloc(GCT_WIRE_MESSAGES, sizeof(*w->flights));
	w->out = gci_calloc(most, 1);
	w->in = gci_calloc(most, 1);
	if (!w->sent || !w->got || !w->flights || !w->out || !w->in)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for messages");
	return gcoll_comm_dup(comm, &w->comm);
}

/* Messages that are under way keep using this: only when none is, or when the engine is gone. */
void gct_wire_close(struct gct_wire *w)
{
	gci_free(w->sent);
	gci_free(w->got);
	gci_free(w->flights);
	gci_free(w->out);
	gci_free(w->in);
}

static void on_done(struct gci_tp_req *t, int status)
{
	struct gct_flight *f = t->user;

	(void)status; /* a failure is the engine's, too */
	f->at_ns = gci_now_ns();
	f->done = 1;
	f->wire->comm->engine->wait.activity++;
}

static void begin_wire(
	struct gct_wire *w, struct gct_flight *f, int peer, uint64_t nbytes, int sends)
{
	int up = sends == (w->comm->engine->rank < peer);
	uint64_t *count = sends ? w->sent : w->got;

	*f = (struct gct_flight){.wire = w};
	f->tp = (struct gci_tp_req){.peer = peer,
		.key = {w->comm->id, (uint32_t)up, GCI_SEQ_MESSAGE | ++count[peer]},
		.nbytes = nbytes,
		.digest = nbytes,
		.align = 1,
		.done = on_done,
		.user = f};
}

uint32_t gct_wire_streams(const struct gct_wire *w, int peer, uint32_t wanted)
{
	const struct gci_topo *t = &w->comm->topo;

	if (t->cluster[w->comm->rank] == t->cluster[peer])
		return 1;
	/* The transport gives a message an n-th of a peer's streams. */
	return w->streams / ((w->streams + wanted - 1) / wanted);
}

/* Begin. Over so many of the streams, 0: all. */
static void gct_wire_send(struct gct_wire *w, struct gct_flight *f, int peer, const void *buf,
	uint64_t nbytes, uint32_t streams)
{
	begin_wire(w, f, peer, nbytes, 1);
	f->tp.buf = (void *)buf;
	f->tp.share = streams ? (w->streams + streams - 1) / streams : 1;
	gci_tp_isend(w->comm->engine->tp, &f->tp);
}

static void gct_wire_recv(
	struct gct_wire *w, struct gct_flight *f, int peer, void *buf, uint64_t nbytes)
{
	begin_wire(w, f, peer, nbytes, 0);
	f->tp.buf = buf;
	gci_tp_irecv(w->comm->engine->tp, &f->tp);
}

static int progress(struct gct_wire *w, uint64_t timeout_ns)
{
	struct gci_engine *e = w->comm->engine;

	if (!gci_engine_progress(e, timeout_ns))
		return 0;
	gci_engine_await_verdict(e, GCI_NEVER);
	return gci_comm_error(e->failure.status, "%s", e->failure.text);
}

/* Does what can be done without waiting. */
static int gct_wire_push(struct gct_wire *w)
{
	return progress(w, 0);
}

/* Waits so long at most for anything to do, and does it. */
static int gct_wire_idle(struct gct_wire *w, uint64_t timeout_ns)
{
	return progress(w, timeout_ns);
}

/* Waits until n of them are done. */
static int gct_wire_wait(struct gct_wire *w, struct gct_flight *f, uint32_t n)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++)
		while (!f[i].done && !rc)
			rc = progress(w, GCI_NS_PER_S);
	return rc;
}

/* Both in one. */
static int gct_wire_say(struct gct_wire *w, int peer, const void *buf, uint64_t nbytes)
{
	struct gct_flight f;

	gct_wire_send(w, &f, peer, buf, nbytes, 0);
	return gct_wire_wait(w, &f, 1);
}

static int gct_wire_hear(struct gct_wire *w, int peer, void *buf, uint64_t nbytes)
{
	struct gct_flight f;

	gct_wire_recv(w, &f, peer, buf, nbytes);
	return gct_wire_wait(w, &f, 1);
}

int gct_command_say(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint8_t data[GCT_COMMAND_NBYTES];

	gci_store_u32(data, c->kind);
	gci_store_u32(data + 4, c->n);
	gci_store_u32(data + 8, c->reps);
	gci_store_u64(data + 12, c->nbytes);
	gci_store_u64(data + 20, c->wait_ns);
	return gct_wire_say(w, peer, data, sizeof(data));
}

/* ---- The other side of a measured link. It says READY (an empty message) when its receives are
 * begun and their credits on their way ahead of that, so that a message never waits for its
 * receiver. */

/* A round of progress takes so much, or more. */
#define PUSH_NBYTES (64u << 10)
#define MORE_PUSHES 8

static int expect(struct gct_wire *w, int peer, uint32_t n, uint64_t nbytes)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		gct_wire_recv(w, &w->flights[i], peer, w->in, nbytes);
	return gct_wire_say(w, peer, NULL, 0);
}

static int rounds(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < c->reps && !rc; i++) {
		rc = expect(w, peer, c->n, c->nbytes);
		if (!rc)
			rc = gct_wire_wait(w, w->flights, c->n);
		if (!rc)
			rc = gct_wire_say(w, peer, NULL, 0);
	}
	return rc;
}

static int replies(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint32_t i;
	int rc = expect(w, peer, c->n, c->nbytes);

	for (i = 0; i < c->n && !rc; i++) {
		rc = gct_wire_wait(w, &w->flights[i], 1);
		if (!rc)
			rc = gct_wire_say(w, peer, NULL, 0);
	}
	return rc;
}

/* The time that taking the message keeps this process busy; GCI_TRIAL_LATE when not all of it was
 * there: more than the socket buffers hold never is. */
static int take_late(struct gct_wire *w, const struct gct_command *c, uint64_t *busy_ns)
{
	uint64_t from, pushes = c->nbytes / PUSH_NBYTES + MORE_PUSHES;
	int rc = 0;

	gci_sleep_ns(c->wait_ns + 2 * gct_pause_ns(c->wait_ns));
	from = gci_now_ns();
	while (!rc && !w->flights[0].done && pushes--)
		rc = gct_wire_push(w);
	*busy_ns = w->flights[0].done ? gci_now_ns() - from : GCI_TRIAL_LATE;
	return rc ? rc : gct_wire_wait(w, w->flights, 1);
}

static int mirror_receives(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint64_t ns[GCI_SAMPLES_MOST];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < c->reps && !rc; i++) {
		rc = expect(w, peer, 1, c->nbytes);
		if (!rc)
			rc = take_late(w, c, &ns[i]);
	}
	return rc ? rc : gct_wire_say(w, peer, ns, c->reps * sizeof(*ns));
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int pieces(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint64_t *at_ns = gci_calloc(c->n, sizeof(*at_ns));
	uint32_t i;
	int rc = at_ns ? 0 : gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for times");

	if (!rc)
		rc = expect(w, peer, c->n, c->nbytes);
	if (!rc)
		rc = gct_wire_wait(w, w->flights, c->n);
	for (i = 0; i < c->n && !rc; i++)
		at_ns[i] = w->flights[i].at_ns;
	if (!rc) {
		qsort(at_ns, c->n, sizeof(*at_ns), compare);
		rc = gct_wire_say(w, peer, at_ns, c->n * sizeof(*at_ns));
	}
	gci_free(at_ns);
	return rc;
}

static int stamps(struct gct_wire *w, int peer, const struct gct_command *c)
{
	uint64_t ns[GCI_SAMPLES_MOST], sent, now;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < c->reps && !rc; i++) {
		gct_wire_recv(w, &w->flights[0], peer, &sent, sizeof(sent));
		rc = gct_wire_say(w, peer, NULL, 0);
		if (!rc)
			rc = gct_wire_wait(w, w->flights, 1);
		now = gci_wall_ns();
		ns[i] = now > sent ? now - sent : 0;
	}
	return rc ? rc : gct_wire_say(w, peer, ns, c->reps * sizeof(*ns));
}

static int (*const parts[GCT_NCOMMANDS])(
	struct gct_wire *w, int peer, const struct gct_command *c) = {
	[GCT_ROUNDS] = rounds,
	[GCT_REPLIES] = replies,
	[GCT_RECEIVES] = mirror_receives,
	[GCT_PIECES] = pieces,
	[GCT_STAMPS] = stamps,
};

static int hear(struct gct_wire *w, int peer, struct gct_command *c)
{
	uint8_t data[GCT_COMMAND_NBYTES];
	int rc = gct_wire_hear(w, peer, data, sizeof(data));

	if (rc)
		return rc;
	c->kind = gci_load_u32(data);
	c->n = gci_load_u32(data + 4);
	c->reps = gci_load_u32(data + 8);
	c->nbytes = gci_load_u64(data + 12);
	c->wait_ns = gci_load_u64(data + 20);
	if (c->kind >= GCT_NCOMMANDS || c->n > GCT_WIRE_MESSAGES || c->reps > GCI_SAMPLES_MOST ||
		c->nbytes > w->most)
		return gci_comm_error(GCOLL_ERR_PROTO,
			"rank %d asks for %u x %u messages of %llu bytes by command %u", peer,
			c->reps, c->n, (unsigned long long)c->nbytes, c->kind);
	return 0;
}

int gct_mirror(struct gct_wire *w, int peer)
{
	struct gct_command c;
	int rc;

	for (;;) {
		rc = hear(w, peer, &c);
		if (rc || c.kind == GCT_END)
			return rc;
		rc = parts[c.kind](w, peer, &c);
		if (rc)
			return rc;
	}
}

/* ---- One link, as its measuring rank sees it: rates by number of streams first, which opens and
 * warms the connections; then time stamps, P-LogP, and isends. */

#define FIRST_ROUNDS  5
#define STAMPS        7
#define RATE_PERCENT  30 /* of the link's time and bytes */
#define ISEND_PERCENT 10
#define NISENDS       4
#define ROUND_TRIPS   5 /* a transfer tells a rate that lasts so many of them, and so long */
#define LEAST_RATE_NS (50 * GCI_NS_PER_MS)

static const uint64_t isend_sizes[NISENDS] = {1u << 10, 4u << 10, 64u << 10, 256u << 10};

/* The measurement under way. */
struct link {
	struct gct_wire *w;
	int peer;
	uint64_t end_ns;      /* of its time */
	uint64_t left_nbytes; /* of its bytes */
	uint64_t rtt_ns;
	uint64_t gap_ns; /* g(0) */
	struct gct_probed *out;
};

static uint64_t left_ns(const struct link *l)
{
	uint64_t now = gci_now_ns();

	return now < l->end_ns ? l->end_ns - now : 0;
}

static void spend(struct link *l, uint64_t nbytes)
{
	l->out->nbytes += nbytes;
	l->left_nbytes -= nbytes < l->left_nbytes ? nbytes : l->left_nbytes;
}

static void note_limits(struct link *l, int out_of_time, int out_of_bytes)
{
	l->out->limits |= out_of_time ? GCT_OUT_OF_TIME : 0u;
	l->out->limits |= out_of_bytes ? GCT_OUT_OF_BYTES : 0u;
}

/* The round trip of an empty message; the first opens the connections. */
static int first_rounds(struct link *l)
{
	struct gci_trial t = {.kind = GCI_TRIAL_ROUND, .n = 1, .reps = FIRST_ROUNDS};
	struct gci_trial_time times[FIRST_ROUNDS];
	struct gci_samples s = {0};
	int i, rc = gct_trial(l->w, l->peer, 0, &t, times);

	for (i = 0; i < FIRST_ROUNDS && !rc; i++)
		gci_samples_add(&s, times[i].total_ns);
	l->rtt_ns = gci_samples_estimate(&s).ns;
	return rc;
}

static int keep_rates(struct link *l, const struct gci_ramp *r)
{
	struct gci_params_link *p = &l->out->link;

	p->rates = gci_calloc(r->nrates, sizeof(*p->rates));
	if (!p->rates)
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for rates");
	memcpy(p->rates, r->rates, r->nrates * sizeof(*p->rates));
	p->nrates = r->nrates;
	return 0;
}

uint64_t gct_least_ns(const struct gct_wire *w, uint64_t rtt_ns)
{
	uint64_t least = LEAST_RATE_NS * w->comm->engine->job.grid->dilation;

	return ROUND_TRIPS * rtt_ns > least ? ROUND_TRIPS * rtt_ns : least;
}

/* `streams` 0: as many as each trial says, up to all. */
static int run_ramp(struct link *l, struct gci_ramp *r, uint32_t streams)
{
	uint64_t *at_ns = gci_calloc(GCI_RAMP_PIECES, sizeof(*at_ns));
	struct gci_ramp_trial t;
	int rc = at_ns ? 0 : gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for times");

	while (!rc && gci_ramp_next(r, &t)) {
		uint64_t from = gci_now_ns();

		rc = gct_trial_pieces(
			l->w, l->peer, streams ? streams : t.level, t.n, t.nbytes, at_ns);
		gci_ramp_done(r, gci_ramp_bps(at_ns, t.n, t.nbytes), gci_now_ns() - from);
	}
	spend(l, r->spent_nbytes);
	gci_free(at_ns);
	return rc;
}

static int measure_rates(struct link *l)
{
	struct gci_ramp_config config = {.most_ns = left_ns(l) / 100 * RATE_PERCENT,
		.most_nbytes = l->left_nbytes / 100 * RATE_PERCENT,
		.least_ns = gct_least_ns(l->w, l->rtt_ns),
		.most_level = gct_wire_streams(l->w, l->peer, l->w->streams)};
	struct gci_ramp r;
	int rc;

	gci_ramp_init(&r, &config);
	rc = run_ramp(l, &r, 0);
	note_limits(l, r.out_of_time, r.out_of_bytes);
	return rc ? rc : keep_rates(l, &r);
}

/* r(m) = L + g(m), of messages that are as good as empty. */
static int measure_one_way(struct link *l, uint64_t *ns)
{
	uint64_t times[STAMPS];
	struct gci_samples s = {0};
	int i, rc = gct_trial_stamps(l->w, l->peer, STAMPS, times);

	for (i = 0; i < STAMPS && !rc; i++)
		gci_samples_add(&s, times[i]);
	*ns = gci_samples_estimate(&s).ns;
	return rc;
}

/* How sure g of the largest size is. */
static uint64_t err_ppm(const struct gci_measure *m)
{
	const struct gci_measure_point *p = &m->points[m->npoints - 1];
	uint64_t gap = gci_measure_gap_ns(m, p);

	return gap ? (uint64_t)((unsigned __int128)p->rtt.err_ns * 1000000 / gap) : 0;
}

/* Whatever the number of streams: a gap is no less than this leaves. */
static uint64_t best_rate(const struct gci_params_link *p)
{
	return p->nrates ? p->rates[gci_params_rate_knee(p->rates, p->nrates)].bps : 0;
}

static int measure_plogp(struct link *l, uint64_t most_message)
{
	struct gci_measure_config config = {.most_ns = left_ns(l) / 100 * (100 - ISEND_PERCENT),
		.most_nbytes = l->left_nbytes / 100 * (100 - ISEND_PERCENT),
		.most_message = most_message};
	struct gci_trial_time times[GCI_SAMPLES_MOST];
	struct gci_measure m;
	struct gci_trial t;
	int rc = 0;

	gci_measure_init(&m, &config);
	while (!rc && gci_measure_next(&m, &t)) {
		uint64_t from = gci_now_ns();

		rc = gct_trial(l->w, l->peer, l->out->streams, &t, times);
		if (!rc)
			gci_measure_done(&m, times, gci_now_ns() - from);
	}
	spend(l, m.spent_nbytes);
	note_limits(l, m.out_of_time, m.out_of_bytes);
	if (rc || !m.npoints)
		return rc;
	l->gap_ns = m.gap_ns;
	l->out->err_ppm = err_ppm(&m);
	if (gci_measure_result(&m, &l->out->link))
		return gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for sizes");
	gci_measure_saturate(&l->out->link, best_rate(&l->out->link));
	return 0;
}

/* From the start of an isend to the end of the receive: the model's L + g(m). */
static uint64_t whole_ns(const struct gci_params_link *l, const struct gci_params_point *at)
{
	return l->latency_ns + at->gap_ns;
}

static int measure_isend(struct link *l, uint64_t nbytes, uint64_t most_nbytes, uint64_t *ns)
{
	struct gci_params_link *p = &l->out->link;
	struct gci_params_isend *out = &p->isends[p->nisends];
	struct gci_params_point at;
	uint32_t n;
	int rc = 0;

	gci_params_at(p, nbytes, &at);
	out->nbytes = nbytes;
	out->immediate = gci_isend_is_immediate(whole_ns(p, &at), at.or_ns);
	for (n = GCI_ISEND_FIRST; n <= GCI_ISEND_MOST && !rc; n *= 2) {
		if (n * nbytes > most_nbytes || n * nbytes > l->left_nbytes ||
			2 * l->rtt_ns + n * at.gap_ns > left_ns(l))
			break;
		spend(l, n * nbytes);
		rc = gct_trial_isends(l->w, l->peer, l->out->streams, n, nbytes, ns);
		if (rc)
			break;
		p->nisends += n == GCI_ISEND_FIRST;
		if (gci_isend_pattern(ns, n, out) >= GCI_ISEND_SPIKES)
			break;
	}
	return rc;
}

static int measure_isends(struct link *l)
{
	struct gci_params_link *p = &l->out->link;
	uint64_t *ns = gci_calloc(GCI_ISEND_MOST, sizeof(*ns)), most = l->left_nbytes / NISENDS;
	int i, rc = 0;

	p->isends = gci_calloc(NISENDS, sizeof(*p->isends));
	if (!ns || !p->isends)
		rc = gci_comm_error(GCOLL_ERR_NOMEM, "out of memory for isends");
	for (i = 0; i < NISENDS && !rc; i++)
		rc = measure_isend(l, isend_sizes[i], most, ns);
	gci_free(ns);
	return rc;
}

static int measure_all(struct link *l, uint64_t most_message, int shared_clock)
{
	struct gct_probed *out = l->out;
	uint64_t one_way = 0;
	int rc = first_rounds(l);

	if (!rc)
		rc = measure_rates(l);
	if (!rc && shared_clock)
		rc = measure_one_way(l, &one_way);
	if (!rc)
		rc = measure_plogp(l, most_message);
	if (rc || !out->link.npoints)
		return rc;
	out->one_way = shared_clock != 0;
	if (shared_clock)
		out->link.latency_ns = one_way > l->gap_ns ? one_way - l->gap_ns : 0;
	return measure_isends(l);
}

int gct_probe_link(struct gct_wire *w, int peer, const struct gct_budget *most, int shared_clock,
	struct gct_probed *out)
{
	const struct gct_command end = {.kind = GCT_END};
	uint64_t from = gci_now_ns();
	struct link l = {.w = w, .peer = peer, .left_nbytes = most->nbytes, .out = out};
	int rc;

	l.end_ns = from + most->ns < from ? GCI_NEVER : from + most->ns;
	/* First touches are the kernel's time, not the network's. */
	memset(w->out, 1, w->most);
	rc = measure_all(&l, w->most, shared_clock);
	out->took_ns = gci_now_ns() - from;
	return rc ? rc : gct_command_say(w, peer, &end);
}

int gct_probe_pair(struct gct_wire *w, int peer, const struct gct_budget *most, uint32_t streams,
	uint64_t found[GCT_PAIR_VALUES])
{
	const struct gct_command end = {.kind = GCT_END};
	struct gct_probed out = {0};
	struct link l = {.w = w, .peer = peer, .left_nbytes = most->nbytes, .out = &out};
	struct gci_ramp_config config = {
		.most_ns = most->ns, .most_nbytes = most->nbytes, .most_level = 1};
	struct gci_ramp r;
	int rc = first_rounds(&l);

	config.least_ns = gct_least_ns(w, l.rtt_ns);
	gci_ramp_init(&r, &config);
	if (!rc)
		rc = run_ramp(&l, &r, streams);
	found[0] = r.nrates ? r.rates[0].bps : 0;
	found[1] = l.rtt_ns / 2;
	found[2] = out.nbytes;
	return rc ? rc : gct_command_say(w, peer, &end);
}

/* ---- the trials */

static int send_call(struct gct_wire *w, struct gct_flight *f, int peer, uint32_t streams,
	uint64_t nbytes, uint64_t *busy_ns)
{
	uint64_t from = gci_now_ns();
	int rc;

	gct_wire_send(w, f, peer, w->out, nbytes, streams);
	rc = gct_wire_push(w);
	*busy_ns = gci_now_ns() - from;
	return rc;
}

static int begin(struct gct_wire *w, int peer, const struct gct_command *c)
{
	return gct_command_say(w, peer, c);
}

static int ready(struct gct_wire *w, int peer)
{
	return gct_wire_hear(w, peer, NULL, 0);
}

/* What did not fit into the socket buffers is taken to cost as much per byte as what did. */
static uint64_t of_whole(const struct gct_flight *f, uint64_t busy_ns)
{
	if (f->done || !f->tp.moved)
		return busy_ns;
	return (uint64_t)((unsigned __int128)busy_ns * f->tp.nbytes / f->tp.moved);
}

static int one_round(struct gct_wire *w, int peer, uint32_t streams, const struct gci_trial *t,
	struct gci_trial_time *time)
{
	struct gct_flight reply;
	uint64_t from, busy = 0;
	uint32_t i;
	int rc = ready(w, peer);

	if (rc)
		return rc;
	gct_wire_recv(w, &reply, peer, NULL, 0);
	rc = gct_wire_push(w);
	from = gci_now_ns();
	for (i = 0; i < t->n && !rc; i++)
		rc = send_call(w, &w->flights[i], peer, streams, t->nbytes, &busy);
	if (!rc)
		time->busy_ns = of_whole(&w->flights[0], busy);
	if (!rc)
		rc = gct_wire_wait(w, &reply, 1);
	time->total_ns = gci_now_ns() - from;
	return rc ? rc : gct_wire_wait(w, w->flights, t->n);
}

/* Waits, and takes what comes, until then. */
static int idle_until(struct gct_wire *w, uint64_t end_ns)
{
	uint64_t now = gci_now_ns();
	int rc = 0;

	while (!rc && now < end_ns) {
		rc = gct_wire_idle(w, end_ns - now);
		now = gci_now_ns();
	}
	return rc;
}

/* Round trips that do not wait for each other. */
static int spaced_rounds(struct gct_wire *w, int peer, uint32_t streams, const struct gci_trial *t,
	struct gci_trial_time *times)
{
	struct gct_flight reply[GCI_SAMPLES_MOST];
	uint64_t from[GCI_SAMPLES_MOST];
	uint32_t i;
	int rc = ready(w, peer);

	if (rc)
		return rc;
	for (i = 0; i < t->reps; i++)
		gct_wire_recv(w, &reply[i], peer, NULL, 0);
	rc = gct_wire_push(w);
	for (i = 0; i < t->reps && !rc; i++) {
		from[i] = gci_now_ns();
		rc = send_call(w, &w->flights[i], peer, streams, t->nbytes, &times[i].busy_ns);
		times[i].busy_ns = of_whole(&w->flights[i], times[i].busy_ns);
		if (!rc && i + 1 < t->reps)
			rc = idle_until(w, from[i] + t->space_ns);
	}
	if (!rc)
		rc = gct_wire_wait(w, reply, t->reps);
	for (i = 0; i < t->reps && !rc; i++)
		times[i].total_ns = reply[i].at_ns - from[i];
	return rc ? rc : gct_wire_wait(w, w->flights, t->reps);
}

static int receives(struct gct_wire *w, int peer, uint32_t streams, const struct gci_trial *t,
	struct gci_trial_time *times)
{
	uint64_t ns[GCI_SAMPLES_MOST];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < t->reps && !rc; i++) {
		rc = ready(w, peer);
		if (rc)
			break;
		gci_sleep_ns(gct_pause_ns(t->wait_ns));
		gct_wire_send(w, &w->flights[0], peer, w->out, t->nbytes, streams);
		rc = gct_wire_wait(w, w->flights, 1);
	}
	if (!rc)
		rc = gct_wire_hear(w, peer, ns, t->reps * sizeof(*ns));
	for (i = 0; i < t->reps && !rc; i++)
		times[i] = (struct gci_trial_time){.busy_ns = ns[i]};
	return rc;
}

static int gct_trial(struct gct_wire *w, int peer, uint32_t streams, const struct gci_trial *t,
	struct gci_trial_time *times)
{
	int late = t->kind == GCI_TRIAL_RECEIVE;
	struct gct_command c = {
		late ? GCT_RECEIVES : GCT_ROUNDS, t->n, t->reps, t->nbytes, t->wait_ns};
	uint32_t i;
	int rc;

	if (t->space_ns && !late)
		c = (struct gct_command){GCT_REPLIES, t->reps, 1, t->nbytes, 0};
	rc = begin(w, peer, &c);
	if (!rc && late)
		return receives(w, peer, streams, t, times);
	if (!rc && t->space_ns)
		return spaced_rounds(w, peer, streams, t, times);
	for (i = 0; i < t->reps && !rc; i++)
		rc = one_round(w, peer, streams, t, &times[i]);
	return rc;
}

int gct_trial_pieces(struct gct_wire *w, int peer, uint32_t streams, uint32_t n, uint64_t nbytes,
	uint64_t *at_ns)
{
	struct gct_command c = {GCT_PIECES, n, 1, nbytes, 0};
	uint32_t i;
	int rc = begin(w, peer, &c);

	if (!rc)
		rc = ready(w, peer);
	for (i = 0; i < n && !rc; i++)
		gct_wire_send(w, &w->flights[i], peer, w->out, nbytes, streams);
	if (!rc)
		rc = gct_wire_wait(w, w->flights, n);
	return rc ? rc : gct_wire_hear(w, peer, at_ns, n * sizeof(*at_ns));
}

static int gct_trial_isends(
	struct gct_wire *w, int peer, uint32_t streams, uint32_t n, uint64_t nbytes, uint64_t *ns)
{
	struct gct_command c = {GCT_ROUNDS, n, 1, nbytes, 0};
	uint32_t i;
	int rc = begin(w, peer, &c);

	if (!rc)
		rc = ready(w, peer);
	for (i = 0; i < n && !rc; i++)
		rc = send_call(w, &w->flights[i], peer, streams, nbytes, &ns[i]);
	if (!rc)
		rc = gct_wire_wait(w, w->flights, n);
	return rc ? rc : gct_wire_hear(w, peer, NULL, 0); /* the reply */
}

static int gct_trial_stamps(struct gct_wire *w, int peer, uint32_t reps, uint64_t *ns)
{
	struct gct_command c = {GCT_STAMPS, 1, reps, sizeof(uint64_t), 0};
	uint64_t now;
	uint32_t i;
	int rc = begin(w, peer, &c);

	for (i = 0; i < reps && !rc; i++) {
		rc = ready(w, peer);
		now = gci_wall_ns();
		if (!rc)
			rc = gct_wire_say(w, peer, &now, sizeof(now));
	}
	return rc ? rc : gct_wire_hear(w, peer, ns, reps * sizeof(*ns));
}
