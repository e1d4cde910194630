/* SPDX-License-Identifier: MIT
 * Prometheus's text format, version 0.0.4: names end in their unit, counters in _total, and all
 * samples of a name stand together behind its HELP and TYPE. */
#include "launcher/traffic_text.h"

struct metric {
	const char *name, *type, *help;
	double (*value)(const struct gci_traffic_view *v, const struct gci_traffic_pair *p);
};

static double sent(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	(void)v;
	return (double)p->sum.sent_nbytes;
}

static double acked(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	(void)v;
	return (double)p->sum.acked_nbytes;
}

static double resent_bytes(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	(void)v;
	return (double)p->sum.resent_nbytes;
}

static double resent(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	(void)v;
	return (double)p->sum.resent;
}

static double connections(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	(void)v;
	return p->connections;
}

static double senders(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	(void)v;
	return p->senders;
}

static double rtt(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	(void)v;
	return (double)p->sum.rtt_ns / (double)GCI_NS_PER_S;
}

static double cwnd(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	(void)v;
	return (double)p->sum.cwnd_nbytes;
}

static double pacing(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	(void)v;
	return (double)p->sum.pacing_bps / 8;
}

static double capacity(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	const struct gci_link *l = gci_grid_link(v->grid, (int)p->from, (int)p->to);

	return l ? (double)l->rate_bps / 8 : 0;
}

static const struct metric metrics[] = {
	{"gridcoll_sent_bytes_total", "counter",
		"TCP payload sent between two clusters, what was sent again included.", sent},
	{"gridcoll_acked_bytes_total", "counter", "TCP payload that has arrived.", acked},
	{"gridcoll_resent_bytes_total", "counter", "TCP payload that was sent again.",
		resent_bytes},
	{"gridcoll_resent_segments_total", "counter", "TCP segments that were sent again.", resent},
	{"gridcoll_connections", "gauge", "TCP connections that are open.", connections},
	{"gridcoll_senders", "gauge", "Ranks that sent something just now.", senders},
	{"gridcoll_rtt_seconds", "gauge", "The longest smoothed round trip.", rtt},
	{"gridcoll_congestion_window_bytes", "gauge", "Sum of the congestion windows.", cwnd},
	{"gridcoll_pacing_bytes_per_second", "gauge",
		"Sum of the rates that TCP paces the connections at.", pacing},
	{"gridcoll_link_bytes_per_second", "gauge",
		"The link's rate by the grid file; 0: it says none.", capacity},
};

/* As a label's value. */
static void put_quoted(struct gci_buf *out, const char *s)
{
	gci_buf_put_u8(out, '"');
	for (; *s; s++)
		if (*s == '\n')
			gci_buf_put(out, "\\n", 2);
		else if (*s == '"' || *s == '\\')
			gci_buf_printf(out, "\\%c", *s);
		else
			gci_buf_put_u8(out, (uint8_t)*s);
	gci_buf_put_u8(out, '"');
}

static void put_head(struct gci_buf *out, const char *name, const char *type, const char *help)
{
	gci_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_pair(struct gci_buf *out, const struct gci_traffic_view *v, const char *job,
	const struct metric *m, const struct gci_traffic_pair *p)
{
	gci_buf_printf(out, "%s{job_id=", m->name);
	put_quoted(out, job);
	gci_buf_printf(out, ",from=");
	put_quoted(out, v->grid->clusters[p->from].name);
	gci_buf_printf(out, ",to=");
	put_quoted(out, v->grid->clusters[p->to].name);
	gci_buf_printf(out, "} %.17g\n", m->value(v, p));
}

void gci_traffic_prometheus(const struct gci_traffic_view *v, const char *job, struct gci_buf *out)
{
	size_t i, k, n = (size_t)v->t->nclusters * v->t->nclusters;

	put_head(out, "gridcoll_ranks", "gauge", "Ranks of the job.");
	gci_buf_printf(out, "gridcoll_ranks{job_id=");
	put_quoted(out, job);
	gci_buf_printf(out, "} %u\n", v->t->size);
	for (i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
		put_head(out, metrics[i].name, metrics[i].type, metrics[i].help);
		for (k = 0; k < n; k++)
			if (v->t->pairs[k])
				put_pair(out, v, job, &metrics[i], v->t->pairs[k]);
	}
}
