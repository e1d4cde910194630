/* SPDX-License-Identifier: MIT
 * What a rank tells the launcher of its traffic, when that has asked (GCI_CTL_WATCH): the messages
 * GCI_CTL_REPORT, one for each cluster that it has connections to, and GCI_CTL_FLOWS, a few
 * connections each. Their codec is control.c's. All are sums since the rank's epoch began, so a
 * report that was lost is made up for by the next, but for its bins. */
#ifndef GCI_TRANSPORT_REPORT_H
#define GCI_TRANSPORT_REPORT_H

#include "base/clock.h"
#include "transport/taps.h"

#define GCI_BIN_NS        (10 * GCI_NS_PER_MS)
#define GCI_REPORT_BINS   256  /* at most in one report */
#define GCI_FLOWS_MOST    32   /* at most in one message: it stays below GCI_CTL_MAX_HELLO */
#define GCI_REPORT_PERIOD 1000 /* ms; the longest that may be asked for */

/* What the launcher wants: a report every period_ms, 0: no more. */
struct gci_ctl_watch {
	uint32_t period_ms;
	uint32_t flows; /* with each connection to another cluster */
};

/* This rank's connections to the ranks of one cluster. */
struct gci_ctl_report {
	uint32_t cluster;     /* its number in the grid */
	uint32_t connections; /* open now */
	/* Sums of all of them, but rtt_ns: the longest. peer, stream and open mean nothing. */
	struct gci_flow sum;
	uint64_t end_bin; /* bins before this one are complete, see base/bins.h; of the rank's clock
			   */
	uint32_t nbins;   /* that are told of: those before end_bin */
	uint32_t bins[GCI_REPORT_BINS]; /* bytes sent */
};

struct gci_ctl_flows {
	uint32_t first; /* 1: of all connections the first are these; the rest follows */
	uint32_t n;
	struct gci_flow flows[GCI_FLOWS_MOST];
};

#endif
