/* SPDX-License-Identifier: MIT
 * A rank's traffic by cluster: sums and bins, from what its connections tell again and again. No
 * clock and no sockets: flows and the time go in, reports come out.
 *
 *	rc = gci_sample_init(&s, nclusters);
 *	every now and then:
 *		gci_sample_begin(&s);
 *		gci_sample_flow(&s, cluster, &flow);		// of each connection
 *		gci_sample_end(&s, now_ns);			// CLOCK_REALTIME
 *	less often:
 *		for (c = 0; c < nclusters; c++)
 *			if (gci_sample_report(&s, c, 0, &report))
 *				send it
 *	gci_sample_free(&s);
 *
 * What was sent between two samples is spread over the bins between them. */
#ifndef GCI_COMM_SAMPLE_H
#define GCI_COMM_SAMPLE_H

#include "base/bins.h"
#include "transport/report.h"

struct gci_sample_cluster {
	struct gci_flow sum;
	uint32_t connections;
	uint64_t binned_nbytes; /* sent, as far as it is in bins, or was before the first sample */
	uint64_t told;          /* bins before this number were reported */
	struct gci_bins bins;   /* without any memory until there is a connection */
};

struct gci_sample {
	struct gci_sample_cluster *clusters;
	uint32_t nclusters;
	uint64_t at_ns; /* the last one; 0: none yet */
	int failed;     /* out of memory: some bins are missing */
};

/* 0 or -1: out of memory. */
int gci_sample_init(struct gci_sample *s, uint32_t nclusters);
void gci_sample_free(struct gci_sample *s);

void gci_sample_begin(struct gci_sample *s);
void gci_sample_flow(struct gci_sample *s, uint32_t cluster, const struct gci_flow *f);
void gci_sample_end(struct gci_sample *s, uint64_t now_ns);

/* What is known of cluster c, with the bins that are over and were not reported before; the `last`
 * time also the one that is not over. False: there is, and was, no connection to it. */
int gci_sample_report(struct gci_sample *s, uint32_t c, int last, struct gci_ctl_report *out);

#endif
