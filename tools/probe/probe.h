/* SPDX-License-Identifier: MIT
 * `gridcoll probe`: measures a grid's links, one pair of ranks at a time, while all others wait.
 *
 * One rank of the pair measures: it tells the other one, its mirror, what to do (a command), runs
 * its own part and takes the times. Which trials those are is the pure procedures' business
 * (measure.h; collectives/models/ramp.h). */
#ifndef GCT_PROBE_H
#define GCT_PROBE_H

#include "base/clock.h"
#include "collectives/models/ramp.h"
#include "comm/comm.h"
#include "tools/lib/lab_info.h"
#include "tools/probe/measure.h"

#define GCT_WIRE_MESSAGES GCI_MEASURE_ROW /* at once */

/* ---- wire: messages between two ranks, by the transport itself (trials.c) */

struct gct_wire;

struct gct_flight {
	struct gci_tp_req tp;
	struct gct_wire *wire;
	uint64_t at_ns; /* when it was done */
	int done;
};

struct gct_wire {
	gcoll_comm *comm;     /* of its own: its messages are named by what is counted here */
	uint64_t *sent, *got; /* [rank of the world] */
	struct gct_flight *flights;
	char *out, *in; /* of `most` bytes each; what is in them is of no interest */
	uint64_t most;
	uint32_t streams; /* that a peer in another cluster has */
};

/* GCOLL_ERR_*, with gcoll_last_error() set, here and below. */
int gct_wire_open(struct gct_wire *w, gcoll_comm *comm, uint64_t most, uint32_t streams);
void gct_wire_close(struct gct_wire *w);

/* How many streams messages take that are to take `wanted` of them, at most. */
uint32_t gct_wire_streams(const struct gct_wire *w, int peer, uint32_t wanted);

/* ---- what a measuring rank tells its mirror */

enum gct_command_kind {
	GCT_END,
	GCT_ROUNDS,   /* reps times: n messages, one empty reply */
	GCT_REPLIES,  /* n messages, an empty reply to each */
	GCT_RECEIVES, /* reps times: a message, taken wait_ns after READY; results: times of that */
	GCT_PIECES,   /* n messages in a row; results: when each was there */
	GCT_STAMPS,   /* reps times: a message with the time; results: how long it was on its way */
	GCT_NCOMMANDS
};

struct gct_command {
	uint32_t kind, n, reps;
	uint64_t nbytes, wait_ns;
};

#define GCT_COMMAND_NBYTES 28

int gct_command_say(struct gct_wire *w, int peer, const struct gct_command *c);

/* Does what `peer` says until GCT_END. */
int gct_mirror(struct gct_wire *w, int peer);

/* ---- the measuring side's trials (trials.c); times in ns of this machine's clock */

/* Messages take so many streams. */
int gct_trial_pieces(struct gct_wire *w, int peer, uint32_t streams, uint32_t n, uint64_t nbytes,
	uint64_t *at_ns);

/* RECEIVES: before the message is sent, so that its receiver has gone to sleep. */
static inline uint64_t gct_pause_ns(uint64_t wait_ns)
{
	return wait_ns / 8 > 200 * GCI_NS_PER_US ? wait_ns / 8 : 200 * GCI_NS_PER_US;
}

/* ---- one link */

struct gct_budget {
	uint64_t ns, nbytes;
};

#define GCT_OUT_OF_TIME  1
#define GCT_OUT_OF_BYTES 2

struct gct_probed {
	int from, to;    /* clusters of the grid */
	int first, last; /* ranks that were measured; -1: there are none */
	struct gci_params_link link;
	uint32_t streams; /* with which L, os, or and g were measured */
	uint32_t one_way; /* L is from time stamps of one clock, not half a round trip */
	uint32_t limits;  /* GCT_OUT_OF_*: not all was measured */
	uint64_t err_ppm; /* of g at the largest size: half of the 90 % confidence interval */
	uint64_t took_ns, nbytes;
	int cpu_percent; /* how busy rank 0's machine was meanwhile; < 0: unknown */
	struct gci_params_rate senders[GCI_RAMP_LEVELS];
	size_t nsenders;
};

/* Measures the link to `peer`; times as measured, not divided by any dilation. */
int gct_probe_link(struct gct_wire *w, int peer, const struct gct_budget *most, int shared_clock,
	struct gct_probed *out);

#define GCT_PAIR_VALUES 3 /* bits per second, latency in ns, bytes sent */

/* The rate and the latency of one pair of hosts only. */
int gct_probe_pair(struct gct_wire *w, int peer, const struct gct_budget *most, uint32_t streams,
	uint64_t found[GCT_PAIR_VALUES]);

/* How long a transfer must last to tell a rate. */
uint64_t gct_least_ns(const struct gct_wire *w, uint64_t rtt_ns);

/* What `part` gets of `all`, which is dealt to it and the rest. Not both of these are 0. */
uint64_t gct_probe_share(uint64_t all, uint64_t part, uint64_t rest);

#endif
