/* SPDX-License-Identifier: MIT */
#include "launcher/traffic.h"

#include "base/mem.h"

#include <gridcoll/gridcoll.h>
#include <string.h>

#define FEW_CLUSTERS 32   /* whose pairs have many bins */
#define MANY_BINS    1024 /* 10 s */
#define FEW_BINS     512  /* more than LATE_BINS and two periods of reports */
#define LATE_BINS    256  /* that a rank may be behind for the others to wait */
#define AHEAD_BINS   200  /* that a host's clock may be */
#define QUIET_NS     (3 * GCI_NS_PER_S)

int gci_traffic_create(
	struct gci_traffic **out, uint32_t size, const uint32_t *cluster_of, uint32_t nclusters)
{
	struct gci_traffic *t = gci_calloc(1, sizeof(*t));

	*out = NULL;
	if (!t)
		return GCOLL_ERR_NOMEM;
	t->size = size;
	t->nclusters = nclusters;
	t->cluster_of = gci_calloc(size, sizeof(*t->cluster_of));
	t->ranks = gci_calloc(size, sizeof(*t->ranks));
	t->pairs = gci_calloc((size_t)nclusters * nclusters, sizeof(*t->pairs));
	if (!t->cluster_of || !t->ranks || !t->pairs) {
		gci_traffic_free(t);
		return GCOLL_ERR_NOMEM;
	}
	memcpy(t->cluster_of, cluster_of, size * sizeof(*cluster_of));
	*out = t;
	return 0;
}

void gci_traffic_free(struct gci_traffic *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; t->ranks && i < t->size; i++) {
		gci_free(t->ranks[i].parts);
		gci_free(t->ranks[i].flows);
	}
	for (i = 0; t->pairs && i < (size_t)t->nclusters * t->nclusters; i++) {
		if (t->pairs[i])
			gci_bins_free(&t->pairs[i]->bins);
		gci_free(t->pairs[i]);
	}
	gci_free(t->cluster_of);
	gci_free(t->ranks);
	gci_free(t->pairs);
	gci_free(t);
}

static struct gci_traffic_pair *pair_at(struct gci_traffic *t, uint32_t from, uint32_t to)
{
	struct gci_traffic_pair **at = &t->pairs[(size_t)from * t->nclusters + to];
	struct gci_traffic_pair *p = *at;

	if (p)
		return p;
	p = gci_calloc(1, sizeof(*p));
	if (!p || gci_bins_init(&p->bins, GCI_BIN_NS,
			  t->nclusters <= FEW_CLUSTERS ? MANY_BINS : FEW_BINS)) {
		gci_free(p);
		t->failed = 1;
		return NULL;
	}
	p->from = from;
	p->to = to;
	return *at = p;
}

static struct gci_traffic_part *part_at(
	struct gci_traffic *t, struct gci_traffic_rank *k, uint32_t to)
{
	size_t i;

	for (i = 0; i < k->nparts; i++)
		if (k->parts[i].to == to)
			return &k->parts[i];
	if (gci_grow(&k->parts, &k->parts_cap, k->nparts + 1, sizeof(*k->parts))) {
		t->failed = 1;
		return NULL;
	}
	k->parts[k->nparts] = (struct gci_traffic_part){.to = to};
	return &k->parts[k->nparts++];
}

static void put_bins(struct gci_traffic *t, struct gci_traffic_pair *p,
	const struct gci_ctl_report *m, uint64_t now_ns)
{
	uint64_t first = m->end_bin - m->nbins, now = now_ns / GCI_BIN_NS;
	uint32_t i;

	for (i = 0; i < m->nbins; i++)
		if (first + i > now + AHEAD_BINS || first + i + p->bins.cap < now)
			t->misplaced_nbytes += m->bins[i];
		else
			gci_bins_put(&p->bins, first + i, m->bins[i]);
}

/* Bins that are not of about now count for nothing here, either. */
static void note_first(struct gci_traffic *t, const struct gci_traffic_pair *p,
	const struct gci_ctl_report *m, uint64_t now_ns)
{
	uint64_t first = m->end_bin - m->nbins, now = now_ns / GCI_BIN_NS;
	uint64_t oldest = now > p->bins.cap ? now - p->bins.cap : 1;

	first = first > oldest ? first : oldest;
	if (first > m->end_bin || first > now + AHEAD_BINS)
		return;
	if (!t->first_bin || first < t->first_bin)
		t->first_bin = first;
}

static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void add_counters(struct gci_flow *to, const struct gci_flow *f)
{
	to->sent_nbytes += f->sent_nbytes;
	to->resent_nbytes += f->resent_nbytes;
	to->acked_nbytes += f->acked_nbytes;
	to->received_nbytes += f->received_nbytes;
	to->resent += f->resent;
}

/* Of connections that are closed only what they have moved counts. */
void gci_traffic_renew(struct gci_traffic *t, uint32_t rank)
{
	struct gci_traffic_rank *k = &t->ranks[rank];
	size_t i;

	for (i = 0; i < k->nparts; i++) {
		struct gci_traffic_part *part = &k->parts[i];

		part->before = (struct gci_flow){.peer = -1};
		add_counters(&part->before, &part->sum);
		part->sum = part->before;
		part->connections = 0;
		part->fresh_nbytes = part->fresh_resent = 0;
	}
	k->nflows = 0;
}

void gci_traffic_report(
	struct gci_traffic *t, uint32_t rank, const struct gci_ctl_report *m, uint64_t now_ns)
{
	struct gci_traffic_rank *k = &t->ranks[rank];
	struct gci_traffic_part *part;
	struct gci_traffic_pair *pair;
	struct gci_flow sum = m->sum;

	if (m->cluster >= t->nclusters || m->nbins > m->end_bin)
		return;
	pair = pair_at(t, t->cluster_of[rank], m->cluster);
	part = pair ? part_at(t, k, m->cluster) : NULL; /* each part has its pair */
	if (!part)
		return;
	add_counters(&sum, &part->before);
	part->connections = m->connections;
	part->fresh_nbytes = grown(sum.sent_nbytes, part->sum.sent_nbytes);
	part->fresh_resent = grown(sum.resent, part->sum.resent);
	part->sum = sum;
	put_bins(t, pair, m, now_ns);
	note_first(t, pair, m, now_ns);
	if (m->end_bin > k->end_bin)
		k->period_ns = k->end_bin ? (m->end_bin - k->end_bin) * GCI_BIN_NS : 0;
	k->end_bin = m->end_bin;
	k->heard_ns = now_ns;
	if (!t->heard_ns)
		t->heard_ns = now_ns;
}

void gci_traffic_flows(struct gci_traffic *t, uint32_t rank, const struct gci_ctl_flows *m)
{
	struct gci_traffic_rank *k = &t->ranks[rank];
	uint32_t i;

	if (m->first)
		k->nflows = 0;
	for (i = 0; i < m->n && k->nflows < GCI_TRAFFIC_FLOWS; i++) {
		if ((uint32_t)m->flows[i].peer >= t->size)
			continue;
		if (gci_grow(&k->flows, &k->flows_cap, k->nflows + 1, sizeof(*k->flows))) {
			t->failed = 1;
			return;
		}
		k->flows[k->nflows++] = m->flows[i];
	}
}

/* Ranks that have not reported at all may only be late, or not use gridcoll; those that have fallen
 * silent may be stopped. Neither is waited for longer than a while. */
uint64_t gci_traffic_settled(const struct gci_traffic *t, uint64_t now_ns)
{
	uint64_t now = now_ns / GCI_BIN_NS, end = now;
	uint32_t i;

	if (!t->first_bin)
		return 0;
	for (i = 0; i < t->size; i++) {
		const struct gci_traffic_rank *k = &t->ranks[i];

		if (grown(now_ns, k->heard_ns ? k->heard_ns : t->heard_ns) >= QUIET_NS)
			continue;
		if (!k->heard_ns)
			return t->first_bin;
		if (k->end_bin + LATE_BINS > now && k->end_bin < end)
			end = k->end_bin;
	}
	return end;
}

static int is_silent(const struct gci_traffic_rank *k, uint64_t now_ns)
{
	return grown(now_ns, k->heard_ns) >= QUIET_NS;
}

/* Of a rank that has fallen silent only what it had done is known, not how it is. */
static void add_part(struct gci_traffic_pair *p, const struct gci_traffic_part *part, int silent)
{
	const struct gci_flow *f = &part->sum;

	add_counters(&p->sum, f);
	if (silent)
		return;
	p->connections += part->connections;
	p->senders += part->fresh_nbytes != 0;
	p->sum.rtt_ns = f->rtt_ns > p->sum.rtt_ns ? f->rtt_ns : p->sum.rtt_ns;
	p->sum.cwnd_nbytes += f->cwnd_nbytes;
	p->sum.pacing_bps += f->pacing_bps;
	p->sum.delivery_bps += f->delivery_bps;
}

void gci_traffic_sum(struct gci_traffic *t, uint64_t now_ns)
{
	size_t i, n = (size_t)t->nclusters * t->nclusters, j;

	for (i = 0; i < n; i++) {
		if (!t->pairs[i])
			continue;
		t->pairs[i]->connections = t->pairs[i]->senders = 0;
		t->pairs[i]->sum = (struct gci_flow){.peer = -1};
	}
	for (i = 0; i < t->size; i++)
		for (j = 0; j < t->ranks[i].nparts; j++) {
			const struct gci_traffic_part *part = &t->ranks[i].parts[j];

			add_part(t->pairs[(size_t)t->cluster_of[i] * t->nclusters + part->to], part,
				is_silent(&t->ranks[i], now_ns));
		}
}

const struct gci_traffic_pair *gci_traffic_pair(
	const struct gci_traffic *t, uint32_t from, uint32_t to)
{
	return t->pairs[(size_t)from * t->nclusters + to];
}

/* ---- as JSON. The keys are documented in gridcoll-top(1). */

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
