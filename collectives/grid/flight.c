/* SPDX-License-Identifier: MIT */
#include "collectives/grid/flight.h"

#include "base/clock.h"

#include <string.h>

#define BULK_STREAM_NBYTES (128u << 10) /* three doublings from TCP's first window */

/* Of those that are known. */
static uint64_t least(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t bytes_of(uint64_t bps, uint64_t ns)
{
	unsigned __int128 n = (unsigned __int128)bps * ns / 8 / GCI_NS_PER_S;

	return n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;
}

/* The grid file's number; else as many as flow_rate makes necessary for one pair at full rate. */
static uint32_t streams_of(const struct gci_link *l, uint64_t bps)
{
	uint64_t n = 0;

	if (l->streams)
		return l->streams;
	if (l->flow_rate_bps && bps)
		n = (bps - 1) / l->flow_rate_bps + 1;
	if (n < GCI_DEFAULT_STREAMS)
		n = GCI_DEFAULT_STREAMS;
	return n > GCI_MOST_FLOWS ? GCI_MOST_FLOWS : (uint32_t)n;
}

void gci_flight_make(struct gci_flight *f, const struct gci_link *there,
	const struct gci_link *back, uint64_t from_nic_bps, uint64_t to_nic_bps)
{
	uint64_t nic_bps = least(from_nic_bps, to_nic_bps), stream_bps;
	uint32_t n = streams_of(back, least(nic_bps, back->rate_bps));

	memset(f, 0, sizeof(*f));
	f->bps = least(nic_bps, there->rate_bps);
	f->rtt_ns = sum(there->delay_ns, back->delay_ns);
	f->nbytes = bytes_of(f->bps, f->rtt_ns);
	f->streams = streams_of(there, f->bps);
	if ((back->streams && !there->streams) ||
		(!!back->streams == !!there->streams && n > f->streams))
		f->streams = n;
	stream_bps = least((f->bps + f->streams - 1) / f->streams, there->flow_rate_bps);
	f->stream_nbytes = bytes_of(stream_bps, f->rtt_ns);
}

uint32_t gci_flight_bulk_streams(const struct gci_flight *f)
{
	uint64_t n = f->nbytes / BULK_STREAM_NBYTES;

	n = n > GCI_MOST_FLOWS ? GCI_MOST_FLOWS : n;
	return n > f->streams ? (uint32_t)n : f->streams;
}

void gci_flight_inside(struct gci_flight *f, uint64_t nic_bps, uint64_t lan_delay_ns)
{
	uint64_t ns = sum(lan_delay_ns, lan_delay_ns);

	*f = (struct gci_flight){.streams = 1,
		.bps = nic_bps,
		.rtt_ns = ns,
		.nbytes = bytes_of(nic_bps, ns),
		.stream_nbytes = bytes_of(nic_bps, ns)};
}
