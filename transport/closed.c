/* SPDX-License-Identifier: MIT */
#include "transport/closed.h"

#include "base/clock.h"

#include <string.h>

static void no_request(struct gci_tp *tp, struct gci_tp_req *r)
{
	(void)tp;
	(void)r;
}

static void no_connect(struct gci_tp *tp, int peer)
{
	(void)tp;
	(void)peer;
}

static int no_warm(struct gci_tp *tp, int peer, uint64_t stream_nbytes)
{
	(void)tp;
	(void)peer;
	(void)stream_nbytes;
	return -1;
}

static void no_pace(struct gci_tp *tp, uint32_t group, const struct gci_pace *pace)
{
	(void)tp;
	(void)group;
	(void)pace;
}

static void no_window_peer(struct gci_tp *tp, int peer, uint64_t nbytes)
{
	(void)tp;
	(void)peer;
	(void)nbytes;
}

static void no_pace_peer(struct gci_tp *tp, int peer, uint64_t bps, uint32_t burst_nbytes)
{
	(void)tp;
	(void)peer;
	(void)bps;
	(void)burst_nbytes;
}

static int no_progress(struct gci_tp *tp, uint64_t timeout_ns)
{
	(void)tp;
	(void)timeout_ns;
	return GCOLL_ERR_ABORTED;
}

static int no_fd(struct gci_tp *tp)
{
	(void)tp;
	return GCOLL_ERR_ABORTED;
}

static uint64_t no_timeout_ns(struct gci_tp *tp)
{
	(void)tp;
	return GCI_NEVER;
}

static void nothing(struct gci_tp *tp)
{
	(void)tp;
}

static void no_fail(struct gci_tp *tp, int status)
{
	(void)tp;
	(void)status;
}

static void no_stop(struct gci_tp *tp, uint64_t timeout_ns)
{
	(void)tp;
	(void)timeout_ns;
}

static void no_stats(struct gci_tp *tp, int peer, struct gci_tp_stats *out)
{
	(void)tp;
	(void)peer;
	memset(out, 0, sizeof(*out));
}

static int no_waits(struct gci_tp *tp, struct gci_tp_wait *out)
{
	(void)tp;
	(void)out;
	return 0;
}

static const struct gci_tp_ops closed_ops = {
	.name = "closed",
	.isend = no_request,
	.irecv = no_request,
	.detach = no_request,
	.ask = no_request,
	.connect = no_connect,
	.warm = no_warm,
	.pace = no_pace,
	.pace_peer = no_pace_peer,
	.window_peer = no_window_peer,
	.progress = no_progress,
	.fd = no_fd,
	.timeout_ns = no_timeout_ns,
	.wake = nothing,
	.fail = no_fail,
	.stop = no_stop,
	.stats = no_stats,
	.waits = no_waits,
	.free = nothing,
};

struct gci_tp *gci_tp_closed(void)
{
	static struct gci_tp closed = {.ops = &closed_ops};

	return &closed;
}
