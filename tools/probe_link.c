/* SPDX-License-Identifier: MIT
 * One link, as its measuring rank sees it: rates by number of streams first, which opens and warms
 * the connections; then time stamps, P-LogP, and isends. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "collectives/models/measure_isend.h"
#include "tools/probe.h"

#include <string.h>

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
	uint64_t least = LEAST_RATE_NS * w->comm->engine->grid->dilation;

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
	return p->nrates ? p->rates[gci_ramp_knee(p->rates, p->nrates)].bps : 0;
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
