/* SPDX-License-Identifier: MIT
 * A rank's part in showing a job's traffic: samples and reports while the launcher wants to know.
 *
 *	gci_telemetry_init(&t);
 *	gci_telemetry_watch(&t, &m);		// from the control thread: the launcher's wish
 *	gci_telemetry_open(&t, engine);		// from now on it is done
 *	...
 *	gci_telemetry_end(&t);		// a last report; before BYE, and before the connection to the launcher is freed */
#ifndef GCI_FLOW_TELEMETRY_H
#define GCI_FLOW_TELEMETRY_H

#include "base/bins.h"
#include "comm/engine.h"
#include "transport/report.h"

/* ---- A rank's traffic by cluster: sums and bins, from what its connections tell again and again. No
 * clock and no sockets: flows and the time go in, reports come out.
 *
 *	rc = gci_sample_init(&s, nclusters);
 *	every now and then:
 *		gci_sample_begin(&s);
 *		gci_sample_flow(&s, cluster, &flow);		// of each connection
 *		gci_sample_end(&s, now_ns);			// CLOCK_REALTIME
 *	less often:
 *		for (c = 0; c < nclusters; c++)
 *			if (gci_sample_report(&s, c, 0, &report))
 *				send it
 *	gci_sample_free(&s);
 *
 * What was sent between two samples is spread over the bins between them. */

struct gci_sample_cluster {
	struct gci_flow sum;
	uint32_t connections;
	uint64_t binned_nbytes; /* sent, as far as it is in bins, or was before the first sample */
	uint64_t told;          /* bins before this number were reported */
	struct gci_bins bins;   /* without any memory until there is a connection */
};

struct gci_sample {
	struct gci_sample_cluster *clusters;
	uint32_t nclusters;
	uint64_t at_ns; /* the last one; 0: none yet */
	int failed;     /* out of memory: some bins are missing */
};

/* 0 or -1: out of memory. */
int gci_sample_init(struct gci_sample *s, uint32_t nclusters);
void gci_sample_free(struct gci_sample *s);

void gci_sample_begin(struct gci_sample *s);
void gci_sample_flow(struct gci_sample *s, uint32_t cluster, const struct gci_flow *f);
void gci_sample_end(struct gci_sample *s, uint64_t now_ns);

/* What is known of cluster c, with the bins that are over and were not reported before; the `last`
 * time also the one that is not over. False: there is, and was, no connection to it. */
int gci_sample_report(struct gci_sample *s, uint32_t c, int last, struct gci_ctl_report *out);

/* ---- Looks at this process's connections a hundred times a second, from a thread of its own: also
 * while the program computes, since the kernel goes on sending. It exists only while somebody wants
 * to know.
 *
 *	const struct gci_sampler_config c = {.engine = e, .period_ms = 500, .report = on_report,
 *		.user = me};
 *	rc = gci_sampler_start(&s, &c);
 *	... on_report(me, &report) for each cluster, each period, from the thread ...
 *	gci_sampler_stop(s);		// after a last report of each */

struct gci_sampler;

struct gci_sampler_config {
	struct gci_engine *engine; /* its world is made already */
	uint32_t period_ms;
	void (*report)(void *user, const struct gci_ctl_report *m);
	/* Connections to other clusters, after the reports; NULL: nobody wants them. */
	void (*flows)(void *user, const struct gci_ctl_flows *m);
	void *user;
};

/* GCOLL_ERR_NOMEM or GCOLL_ERR_SYS. */
int gci_sampler_start(struct gci_sampler **s, const struct gci_sampler_config *config);

/* NULL is legal. */
void gci_sampler_stop(struct gci_sampler *s);

/* ---- both, for the launcher */

struct gci_telemetry {
	pthread_mutex_t lock;
	struct gci_engine *engine; /* NULL: not open yet, or over */
	struct gci_sampler *sampler;
	struct gci_ctl_watch wish;
};

void gci_telemetry_init(struct gci_telemetry *t);
void gci_telemetry_watch(struct gci_telemetry *t, const struct gci_ctl_watch *m);
void gci_telemetry_open(struct gci_telemetry *t, struct gci_engine *e);
/* Any number of times. */
void gci_telemetry_end(struct gci_telemetry *t);

#endif
