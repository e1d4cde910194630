/* SPDX-License-Identifier: MIT */
#include "comm/sampler.h"

#include "base/mem.h"
#include "base/threads.h"
#include "comm/comm.h"
#include "comm/sample.h"

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
	if (gci_sample_init(&s->sample, (uint32_t)e->grid->nclusters)) {
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
