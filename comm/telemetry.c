/* SPDX-License-Identifier: MIT */
#include "comm/telemetry.h"

#include "base/log.h"

void gci_telemetry_init(struct gci_telemetry *t)
{
	*t = (struct gci_telemetry){.engine = NULL};
	pthread_mutex_init(&t->lock, NULL);
}

static void on_report(void *user, const struct gci_ctl_report *m)
{
	gci_control_report(user, m);
}

static void on_flows(void *user, const struct gci_ctl_flows *m)
{
	gci_control_flows(user, m);
}

/* Samples as is wished now. A job without a view of its traffic goes on. */
static void apply(struct gci_telemetry *t)
{
	const struct gci_sampler_config c = {.engine = t->engine,
		.period_ms = t->wish.period_ms,
		.report = on_report,
		.flows = t->wish.flows ? on_flows : NULL,
		.user = t->ctl};
	int rc = 0;

	gci_sampler_stop(t->sampler);
	t->sampler = NULL;
	if (t->engine && t->wish.period_ms)
		rc = gci_sampler_start(&t->sampler, &c);
	if (rc)
		gci_log(GCI_LOG_WARN, "this rank cannot tell of its traffic: %s",
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

void gci_telemetry_open(struct gci_telemetry *t, struct gci_engine *e, struct gci_control *ctl)
{
	pthread_mutex_lock(&t->lock);
	t->engine = e;
	t->ctl = ctl;
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
