/* SPDX-License-Identifier: MIT
 * How the parameters of one link are measured (Kielmann 2001, 2.2): what to try next, and what the
 * times that come back say. `measure` sends to `mirror`, on the same link and in one direction.
 *
 *	gci_measure_init(&m, &config);
 *	while (gci_measure_next(&m, &trial)) {
 *		... run the trial, trial.reps times ...
 *		gci_measure_done(&m, times, nanoseconds_that_the_trial_took);
 *	}
 *	rc = gci_measure_result(&m, &link);
 *
 * 1. The gap g(0) by saturation: n messages in a row and one reply, n = 1, 10, 20, 40, ... until
 *    the gap changes by less than 1 %, and the round trip of one is less than 1 % of that of n.
 *    (On a WAN n would have to be very large for the latter: it ends at GCI_MEASURE_ROW, too. The
 *    whole round trip of n = 1 is subtracted, so that what is left is n - 1 gaps in any case.)
 * 2. Round trips RTT(m) of sizes 0 and 2^k: os(m) is the time in the send call, g(m) = RTT(m) -
 *    RTT(0) + g(0), L = RTT(0) / 2 - g(0). Receptions of messages that are there already: or(m).
 * 3. Larger sizes until g(2^k) is what the two before it lead to expect, within 1 %.
 * 4. Sizes in between where a straight line fails, until they are max(32 bytes, 1 %) apart.
 *
 * Where latency rules, round trips of one size do not wait for each other: each begins well after
 * the one before has passed. And or(m) is measured of 0 and 4^k only, where time is short, and not
 * of messages that no socket buffer holds: it is on the line through its neighbours there.
 *
 * Each size is tried until the 90 % confidence interval of its median is small enough, or 60 times
 * (15 times, above 64 KiB). All that within given time and bytes: what does not fit in is left
 * out, small and large sizes alike, and `out_of_time` and `out_of_bytes` tell. Where it is or(m)
 * that does not, os(m) stands for it.
 *
 * Pure: no clock, no memory of its own. */
#ifndef GCT_PROBE_MEASURE_H
#define GCT_PROBE_MEASURE_H

#include "collectives/models/params.h"

/* A few measured times: their median, and how sure it is. Order statistics, which one disturbed
 * time in a dozen does not move. */
#define GCI_SAMPLES_MOST  60
#define GCI_SAMPLES_LEAST 5 /* fewer have no 90 % interval */

struct gci_samples {
	uint64_t v[GCI_SAMPLES_MOST]; /* rising */
	uint32_t n;
};

/* The median, and half of the interval that has the true one in it with 90 %; with fewer than
 * GCI_SAMPLES_LEAST times, half of the range; with one, all of it. */
struct gci_estimate {
	uint64_t ns, err_ns;
	uint32_t n;
};

/* Keeps `v` in order; when it is full, does nothing. */
void gci_samples_add(struct gci_samples *s, uint64_t v);

struct gci_estimate gci_samples_estimate(const struct gci_samples *s);

#define GCI_MEASURE_ROW    8192 /* most messages in a row */
#define GCI_MEASURE_POINTS 96   /* most sizes */

enum gci_trial_kind {
	GCI_TRIAL_ROW,    /* n messages in a row, one empty reply: total_ns of all that */
	GCI_TRIAL_ROUND,  /* one message, one empty reply: total_ns; busy_ns of the send call */
	GCI_TRIAL_RECEIVE /* one message, received wait_ns after its sender was let go: busy_ns */
};

struct gci_trial {
	enum gci_trial_kind kind;
	uint64_t nbytes, wait_ns;
	uint64_t space_ns; /* ROUND: a repetition begins so long after the one before; 0: at its end
			    */
	uint32_t n, reps;
};

#define GCI_TRIAL_LATE UINT64_MAX /* busy_ns of RECEIVE: the message was not there in time */

struct gci_trial_time {
	uint64_t total_ns, busy_ns;
};

struct gci_measure_config {
	uint64_t most_ns, most_nbytes; /* in all */
	uint64_t most_message;         /* the largest size worth trying, at least 4 */
};

struct gci_measure_point {
	uint64_t nbytes;
	struct gci_estimate rtt, send, recv; /* with how sure they are */
};

enum gci_measure_phase {
	GCI_MEASURE_SATURATE,
	GCI_MEASURE_SIZES,
	GCI_MEASURE_GROW,
	GCI_MEASURE_FILL,
	GCI_MEASURE_OVER
};

struct gci_measure {
	struct gci_measure_config config;
	uint64_t spent_ns, spent_nbytes;
	int out_of_time, out_of_bytes;
	enum gci_measure_phase phase;
	struct gci_trial trial; /* given out */

	uint64_t row_ns[2]; /* round trip with 1, and with the most messages so far */
	uint64_t gap_ns;    /* g(0) */
	uint64_t late; /* messages that are so large cannot be there before they are received */

	struct gci_measure_point points[GCI_MEASURE_POINTS]; /* rising sizes */
	size_t npoints;
	uint32_t turn, top; /* sizes begun; the largest one's exponent */

	/* The point under way. */
	int open;
	uint64_t nbytes, until_ns; /* it may use time up to there */
	struct gci_samples rtt, send, recv;
	uint32_t nlate; /* receptions that were */
};

void gci_measure_init(struct gci_measure *m, const struct gci_measure_config *config);

/* The next trial; 0: over. */
int gci_measure_next(struct gci_measure *m, struct gci_trial *t);

/* Its times, trial.reps of them; and how long all of it took, waiting for each other included. */
void gci_measure_done(struct gci_measure *m, const struct gci_trial_time *times, uint64_t took_ns);

uint64_t gci_measure_gap_ns(const struct gci_measure *m, const struct gci_measure_point *p);

/* Latency and points (new memory) into `l`, all else in it stays. 0, GCOLL_ERR_NOMEM, or
 * GCOLL_ERR_TIMEOUT: the time or the bytes did not suffice for anything. */
int gci_measure_result(const struct gci_measure *m, struct gci_params_link *l);

/* A bucket that shapes the link, or a buffer, lets one message pass sooner than many in a row, and
 * g is of a row: raises the gaps to what such messages take at the rate that the link keeps up. */
void gci_measure_saturate(struct gci_params_link *l, uint64_t bps);

#endif
