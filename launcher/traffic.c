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
