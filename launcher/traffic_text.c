/* SPDX-License-Identifier: MIT */
#include "launcher/traffic_text.h"

#define NOW_BINS  100       /* a rate is that of the last second */
#define MOST_BINS (1 << 18) /* of all pairs together: some megabytes of text */

/* JSON's numbers end at 2^63 - 1. */
static json_int_t whole(uint64_t v)
{
	return v > INT64_MAX ? INT64_MAX : (json_int_t)v;
}

static const char *cluster(const struct gci_traffic_view *v, uint32_t c)
{
	return v->grid->clusters[c].name;
}

/* Over `object`: the figures of a flow, or of a sum of them. */
static json_t *with_flow(json_t *object, const struct gci_flow *f)
{
	json_t *figures = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "sent_bytes",
		whole(f->sent_nbytes), "resent_bytes", whole(f->resent_nbytes), "resent_segments",
		whole(f->resent), "acked_bytes", whole(f->acked_nbytes), "received_bytes",
		whole(f->received_nbytes), "rtt_ns", whole(f->rtt_ns), "cwnd_bytes",
		whole(f->cwnd_nbytes), "pacing_bps", whole(f->pacing_bps));
	int failed = !object || !figures || json_object_update(object, figures);

	json_decref(figures);
	if (!failed)
		return object;
	json_decref(object);
	return NULL;
}

static uint64_t rate_now(const struct gci_traffic_view *v, const struct gci_traffic_pair *p)
{
	uint64_t end = gci_traffic_settled(v->t, v->now_ns), first = end - NOW_BINS;

	if (end <= v->t->first_bin || !v->t->first_bin)
		return 0;
	first = end < NOW_BINS || first < v->t->first_bin ? v->t->first_bin : first;
	return (uint64_t)((double)gci_bins_sum(&p->bins, first, end) * 8 * (double)GCI_NS_PER_S /
			  (double)((end - first) * GCI_BIN_NS));
}

static json_t *bins_json(const struct gci_traffic_pair *p, uint64_t first, uint64_t end)
{
	json_t *list = json_array();

	for (; list && first < end; first++)
		if (json_array_append_new(
			    list, json_integer(whole(gci_bins_get(&p->bins, first))))) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

json_t *gci_traffic_pair_json(const struct gci_traffic_view *v, const struct gci_traffic_pair *p,
	uint64_t since, uint64_t end)
{
	const struct gci_link *l = gci_grid_link(v->grid, (int)p->from, (int)p->to);
	uint64_t first = since > v->t->first_bin ? since : v->t->first_bin;

	if (end > p->bins.cap && first < end - p->bins.cap)
		first = end - p->bins.cap;
	first = first < end ? first : end;
	return with_flow(
		json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "from", cluster(v, p->from),
			"to", cluster(v, p->to), "link_bps", whole(l ? l->rate_bps : 0),
			"connections", (json_int_t)p->connections, "senders",
			(json_int_t)p->senders, "rate_bps", whole(rate_now(v, p)), "first_bin",
			whole(first), "bytes", bins_json(p, first, end)),
		&p->sum);
}

static uint64_t rate_of(const struct gci_traffic_view *v, uint32_t rank, uint64_t nbytes)
{
	uint64_t ns = v->t->ranks[rank].period_ns;

	return ns ? (uint64_t)((double)nbytes * 8 * (double)GCI_NS_PER_S / (double)ns) : 0;
}

json_t *gci_traffic_part_json(
	const struct gci_traffic_view *v, uint32_t rank, const struct gci_traffic_part *part)
{
	return with_flow(
		json_pack("{s:I, s:s, s:s, s:s, s:I, s:I}", "rank", (json_int_t)rank, "host",
			v->names[rank], "from", cluster(v, v->t->cluster_of[rank]), "to",
			cluster(v, part->to), "connections", (json_int_t)part->connections,
			"rate_bps", whole(rate_of(v, rank, part->fresh_nbytes))),
		&part->sum);
}

json_t *gci_traffic_flow_json(
	const struct gci_traffic_view *v, uint32_t rank, const struct gci_flow *f)
{
	return with_flow(json_pack("{s:I, s:s, s:I, s:s, s:I, s:s, s:s, s:I}", "rank",
				 (json_int_t)rank, "host", v->names[rank], "peer",
				 (json_int_t)f->peer, "peer_host", v->names[f->peer], "stream",
				 (json_int_t)f->stream, "from", cluster(v, v->t->cluster_of[rank]),
				 "to", cluster(v, v->t->cluster_of[f->peer]), "delivery_bps",
				 whole(f->delivery_bps)),
		f);
}

/* Takes both over. */
static json_t *append(json_t *list, json_t *v)
{
	if (list && !json_array_append_new(list, v))
		return list;
	json_decref(list);
	return NULL;
}

static int has_sent(const struct gci_traffic_pair *p)
{
	return p && p->sum.sent_nbytes;
}

/* The more pairs, the fewer bins of each. */
static uint64_t most_bins(const struct gci_traffic *t)
{
	size_t i, n = (size_t)t->nclusters * t->nclusters, nsent = 0;

	for (i = 0; i < n; i++)
		nsent += (size_t)has_sent(t->pairs[i]);
	return MOST_BINS / (nsent ? nsent : 1);
}

json_t *gci_traffic_pairs_json(const struct gci_traffic_view *v, uint64_t since)
{
	size_t i, n = (size_t)v->t->nclusters * v->t->nclusters;
	uint64_t end = gci_traffic_settled(v->t, v->now_ns), most = most_bins(v->t);
	json_t *list = json_array();

	if (end > most && since < end - most)
		since = end - most;
	for (i = 0; i < n && list; i++)
		if (has_sent(v->t->pairs[i]))
			list = append(list, gci_traffic_pair_json(v, v->t->pairs[i], since, end));
	return list;
}

json_t *gci_traffic_parts_json(const struct gci_traffic_view *v)
{
	json_t *list = json_array();
	uint32_t r;
	size_t i;

	for (r = 0; r < v->t->size; r++)
		for (i = 0; i < v->t->ranks[r].nparts && list; i++)
			list = append(list, gci_traffic_part_json(v, r, &v->t->ranks[r].parts[i]));
	return list;
}

json_t *gci_traffic_flows_json(const struct gci_traffic_view *v)
{
	json_t *list = json_array();
	uint32_t r;
	size_t i;

	for (r = 0; r < v->t->size; r++)
		for (i = 0; i < v->t->ranks[r].nflows && list; i++)
			list = append(list, gci_traffic_flow_json(v, r, &v->t->ranks[r].flows[i]));
	return list;
}

/* ---- Prometheus's text format, version 0.0.4: names end in their unit, counters in _total, and all
 * samples of a name stand together behind its HELP and TYPE. */

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
