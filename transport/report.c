/* SPDX-License-Identifier: MIT */
#include "transport/report.h"

static void put_flow(struct gci_buf *out, const struct gci_flow *f)
{
	gci_buf_put_u64(out, f->sent_nbytes);
	gci_buf_put_u64(out, f->resent_nbytes);
	gci_buf_put_u64(out, f->acked_nbytes);
	gci_buf_put_u64(out, f->received_nbytes);
	gci_buf_put_u64(out, f->resent);
	gci_buf_put_u64(out, f->rtt_ns);
	gci_buf_put_u64(out, f->cwnd_nbytes);
	gci_buf_put_u64(out, f->pacing_bps);
	gci_buf_put_u64(out, f->delivery_bps);
}

static void read_flow(struct gci_reader *r, struct gci_flow *f)
{
	f->sent_nbytes = gci_read_u64(r);
	f->resent_nbytes = gci_read_u64(r);
	f->acked_nbytes = gci_read_u64(r);
	f->received_nbytes = gci_read_u64(r);
	f->resent = gci_read_u64(r);
	f->rtt_ns = gci_read_u64(r);
	f->cwnd_nbytes = gci_read_u64(r);
	f->pacing_bps = gci_read_u64(r);
	f->delivery_bps = gci_read_u64(r);
}

void gci_report_put_watch(struct gci_buf *out, const struct gci_ctl_watch *m)
{
	gci_buf_put_u32(out, m->period_ms);
	gci_buf_put_u32(out, m->flows);
}

void gci_report_read_watch(struct gci_reader *r, struct gci_ctl_watch *m)
{
	m->period_ms = gci_read_u32(r);
	m->flows = gci_read_u32(r);
	if (m->period_ms > GCI_REPORT_PERIOD || m->flows > 1)
		r->failed = 1;
}

void gci_report_put(struct gci_buf *out, const struct gci_ctl_report *m)
{
	uint32_t i;

	gci_buf_put_u32(out, m->cluster);
	gci_buf_put_u32(out, m->connections);
	put_flow(out, &m->sum);
	gci_buf_put_u64(out, m->end_bin);
	gci_buf_put_u32(out, m->nbins);
	for (i = 0; i < m->nbins; i++)
		gci_buf_put_u32(out, m->bins[i]);
}

void gci_report_read(struct gci_reader *r, struct gci_ctl_report *m)
{
	uint32_t i;

	m->cluster = gci_read_u32(r);
	m->connections = gci_read_u32(r);
	read_flow(r, &m->sum);
	m->end_bin = gci_read_u64(r);
	m->nbins = gci_read_u32(r);
	if (m->nbins > GCI_REPORT_BINS || m->nbins > m->end_bin)
		r->failed = 1;
	for (i = 0; !r->failed && i < m->nbins; i++)
		m->bins[i] = gci_read_u32(r);
}

void gci_report_put_flows(struct gci_buf *out, const struct gci_ctl_flows *m)
{
	uint32_t i;

	gci_buf_put_u32(out, m->first);
	gci_buf_put_u32(out, m->n);
	for (i = 0; i < m->n; i++) {
		gci_buf_put_u32(out, (uint32_t)m->flows[i].peer);
		gci_buf_put_u32(out, m->flows[i].stream);
		put_flow(out, &m->flows[i]);
	}
}

void gci_report_read_flows(struct gci_reader *r, struct gci_ctl_flows *m)
{
	uint32_t i;

	m->first = gci_read_u32(r);
	m->n = gci_read_u32(r);
	if (m->n > GCI_FLOWS_MOST || m->first > 1)
		r->failed = 1;
	for (i = 0; !r->failed && i < m->n; i++) {
		m->flows[i].peer = (int)gci_read_u32(r);
		m->flows[i].stream = gci_read_u32(r);
		m->flows[i].open = 1;
		read_flow(r, &m->flows[i]);
		if (m->flows[i].peer < 0)
			r->failed = 1;
	}
}
