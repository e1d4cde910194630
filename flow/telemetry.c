/* SPDX-License-Identifier: MIT */
#include "flow/telemetry.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/threads.h"
#include "comm/comm.h"

#include <string.h>

/* ---- A rank's traffic by cluster: sums and bins. */

#define KEPT_BINS 512 /* until they are reported: longer than any period */

int gci_sample_init(struct gci_sample *s, uint32_t nclusters)
{
	*s = (struct gci_sample){.nclusters = nclusters};
	s->clusters = gci_calloc(nclusters, sizeof(*s->clusters));
	return s->clusters ? 0 : -1;
}

void gci_sample_free(struct gci_sample *s)
{
	uint32_t i;

	for (i = 0; s->clusters && i < s->nclusters; i++)
		gci_bins_free(&s->clusters[i].bins);
	gci_free(s->clusters);
	*s = (struct gci_sample){0};
}

void gci_sample_begin(struct gci_sample *s)
{
	uint32_t i;

	for (i = 0; i < s->nclusters; i++) {
		s->clusters[i].sum = (struct gci_flow){.peer = -1};
		s->clusters[i].connections = 0;
	}
}

void gci_sample_flow(struct gci_sample *s, uint32_t cluster, const struct gci_flow *f)
{
	struct gci_sample_cluster *c = &s->clusters[cluster];
	struct gci_flow *sum = &c->sum;

	c->connections += !!f->open;
	sum->open |= 1; /* there is, or was, something */
	sum->sent_nbytes += f->sent_nbytes;
	sum->resent_nbytes += f->resent_nbytes;
	sum->acked_nbytes += f->acked_nbytes;
	sum->received_nbytes += f->received_nbytes;
	sum->resent += f->resent;
	sum->rtt_ns = f->rtt_ns > sum->rtt_ns ? f->rtt_ns : sum->rtt_ns;
	sum->cwnd_nbytes += f->cwnd_nbytes;
	sum->pacing_bps += f->pacing_bps;
	sum->delivery_bps += f->delivery_bps;
}

static void bin(struct gci_sample *s, struct gci_sample_cluster *c, uint64_t now_ns)
{
	uint64_t sent = c->sum.sent_nbytes;

	if (!c->sum.open)
		return;
	if (!c->bins.at && gci_bins_init(&c->bins, GCI_BIN_NS, KEPT_BINS)) {
		s->failed = 1;
		return;
	}
	if (!c->told)
		c->told = (s->at_ns ? s->at_ns : now_ns) / GCI_BIN_NS;
	/* A sum that falls could only be a connection's that went unseen. */
	if (s->at_ns && sent > c->binned_nbytes)
		gci_bins_add(&c->bins, s->at_ns, now_ns, sent - c->binned_nbytes);
	c->binned_nbytes = sent;
}

void gci_sample_end(struct gci_sample *s, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < s->nclusters; i++)
		bin(s, &s->clusters[i], now_ns);
	s->at_ns = now_ns;
}

static uint32_t in_u32(uint64_t v)
{
	return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

int gci_sample_report(struct gci_sample *s, uint32_t cluster, int last, struct gci_ctl_report *out)
{
	struct gci_sample_cluster *c = &s->clusters[cluster];
	uint64_t end = s->at_ns / GCI_BIN_NS + !!last, n, i;

	if (!c->sum.open || !c->bins.at)
		return 0;
	memset(out, 0, sizeof(*out));
	out->cluster = cluster;
	out->connections = c->connections;
	out->sum = c->sum;
	n = end > c->told ? end - c->told : 0; /* a clock that was set back: wait for it */
	n = n < GCI_REPORT_BINS ? n : GCI_REPORT_BINS;
	out->end_bin = end;
	out->nbins = (uint32_t)n;
	for (i = 0; i < n; i++)
		out->bins[i] = in_u32(gci_bins_get(&c->bins, end - n + i));
	if (end > c->told)
		c->told = end;
	return 1;
}

/* ---- Looks at this process's connections from a thread of its own. */

#define MOST_LOOKS 512 /* at connections in the time of a bin: with more, less often */
#define MOST_FLOWS 64  /* that are told of */

struct gci_sampler {
	struct gci_sampler_config config;
	struct gci_sample sample;
	struct gci_ctl_flows flows;
	uint32_t nflows; /* told of in this period */
	int telling;     /* this look is for the flows, too */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t news;
	int quit;
};

/* Number of a rank's cluster in the grid. */
static uint32_t cluster_of(const struct gci_engine *e, int rank)
{
	const struct gci_topo *t = &e->world->topo;

	return (uint32_t)t->in_grid[t->cluster[rank]];
}

static void send_flows(struct gci_sampler *s)
{
	if (s->flows.n || s->flows.first)
		s->config.flows(s->config.user, &s->flows);
	s->flows.n = s->flows.first = 0;
}

static void on_flow(void *user, const struct gci_flow *f)
{
	struct gci_sampler *s = user;
	uint32_t there = cluster_of(s->config.engine, f->peer);

	gci_sample_flow(&s->sample, there, f);
	if (!s->telling || !f->open || s->nflows == MOST_FLOWS ||
		there == cluster_of(s->config.engine, s->config.engine->rank))
		return;
	if (s->flows.n == GCI_FLOWS_MOST)
		send_flows(s);
	s->flows.flows[s->flows.n++] = *f;
	s->nflows++;
}

static void look(struct gci_sampler *s, int telling)
{
	s->telling = telling;
	gci_sample_begin(&s->sample);
	gci_taps_look(s->config.engine->taps, on_flow, s);
	gci_sample_end(&s->sample, gci_wall_ns());
}

/* That there is nothing to tell is worth telling: it is not waited for then. */
static void tell_nothing(struct gci_sampler *s)
{
	const struct gci_engine *e = s->config.engine;
	const struct gci_ctl_report none = {
		.cluster = cluster_of(e, e->rank), .end_bin = s->sample.at_ns / GCI_BIN_NS};

	s->config.report(s->config.user, &none);
}

static void tell(struct gci_sampler *s, int last)
{
	struct gci_ctl_report report;
	uint32_t c, n = 0;

	s->nflows = 0;
	s->flows.n = 0;
	s->flows.first = 1;
	look(s, s->config.flows != NULL);
	for (c = 0; c < s->sample.nclusters; c++)
		if (gci_sample_report(&s->sample, c, last, &report)) {
			s->config.report(s->config.user, &report);
			n++;
		}
	if (!n)
		tell_nothing(s);
	if (s->config.flows)
		send_flows(s);
}

static void sleep_for(struct gci_sampler *s, uint64_t ns)
{
	uint64_t end_ns = gci_now_ns() + ns;

	while (!s->quit && !gci_cond_await(&s->news, &s->lock, end_ns))
		;
}

static void *run(void *arg)
{
	struct gci_sampler *s = arg;
	uint64_t period_ns = s->config.period_ms * GCI_NS_PER_MS, step_ns, now;
	uint64_t told_ns = gci_wall_ns();

	pthread_mutex_lock(&s->lock);
	while (!s->quit) {
		step_ns = GCI_BIN_NS * (1 + gci_taps_count(s->config.engine->taps) / MOST_LOOKS);
		sleep_for(s, step_ns - gci_wall_ns() % GCI_BIN_NS); /* to a bin's end */
		pthread_mutex_unlock(&s->lock);
		now = gci_wall_ns();
		/* Also when the clock was set back. */
		if (now - told_ns >= period_ns) {
			told_ns = now;
			tell(s, 0);
		} else {
			look(s, 0);
		}
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	tell(s, 1);
	return NULL;
}

static void sampler_free(struct gci_sampler *s)
{
	gci_sample_free(&s->sample);
	pthread_cond_destroy(&s->news);
	pthread_mutex_destroy(&s->lock);
	gci_free(s);
}

int gci_sampler_start(struct gci_sampler **out, const struct gci_sampler_config *config)
{
	const struct gci_engine *e = config->engine;
	struct gci_sampler *s = gci_calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return GCOLL_ERR_NOMEM;
	s->config = *config;
	pthread_mutex_init(&s->lock, NULL);
	gci_cond_init(&s->news);
	if (gci_sample_init(&s->sample, (uint32_t)e->job.grid->nclusters)) {
		sampler_free(s);
		return GCOLL_ERR_NOMEM;
	}
	look(s, 0); /* what was before does not count */
	if (gci_thread_create(&s->thread, run, s)) {
		sampler_free(s);
		return GCOLL_ERR_SYS;
	}
	*out = s;
	return 0;
}

void gci_sampler_stop(struct gci_sampler *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->quit = 1;
	pthread_cond_signal(&s->news);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	sampler_free(s);
}

/* ---- What the launcher is told, as long as it wants to know. */

void gci_telemetry_init(struct gci_telemetry *t)
{
	*t = (struct gci_telemetry){.engine = NULL};
	pthread_mutex_init(&t->lock, NULL);
}

static void on_report(void *user, const struct gci_ctl_report *m)
{
	struct gci_engine *e = user;

	e->job.launcher->report(e->job.ctl, m);
}

static void on_flows(void *user, const struct gci_ctl_flows *m)
{
	struct gci_engine *e = user;

	e->job.launcher->flows(e->job.ctl, m);
}

/* Samples as is wished now. A job without a view of its traffic goes on. */
static void apply(struct gci_telemetry *t)
{
	const struct gci_sampler_config c = {.engine = t->engine,
		.period_ms = t->wish.period_ms,
		.report = on_report,
		.flows = t->wish.flows ? on_flows : NULL,
		.user = t->engine};
	int rc = 0;

	gci_sampler_stop(t->sampler);
	t->sampler = NULL;
	if (t->engine && t->wish.period_ms)
		rc = gci_sampler_start(&t->sampler, &c);
	if (rc)
		gci_log(GCI_LOG_WARN,
			"this rank cannot report its traffic: %s; the job goes on without the "
			"report",
			gcoll_strerror(rc));
}

void gci_telemetry_watch(struct gci_telemetry *t, const struct gci_ctl_watch *m)
{
	pthread_mutex_lock(&t->lock);
	if (m->period_ms != t->wish.period_ms || m->flows != t->wish.flows) {
		t->wish = *m;
		apply(t);
	}
	pthread_mutex_unlock(&t->lock);
}

void gci_telemetry_open(struct gci_telemetry *t, struct gci_engine *e)
{
	pthread_mutex_lock(&t->lock);
	t->engine = e;
	apply(t);
	pthread_mutex_unlock(&t->lock);
}

void gci_telemetry_end(struct gci_telemetry *t)
{
	pthread_mutex_lock(&t->lock);
	t->engine = NULL;
	apply(t);
	pthread_mutex_unlock(&t->lock);
}
