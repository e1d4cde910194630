/* SPDX-License-Identifier: MIT */
#include "comm/sample.h"

#include "base/mem.h"

#include <string.h>

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
