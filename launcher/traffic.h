/* SPDX-License-Identifier: MIT
 * A job's traffic, from what its ranks report: by pair of clusters, by rank, by connection. As JSON and as
 * Prometheus reads it. No I/O and no clock.
 *
 *	struct gci_traffic *t;
 *	rc = gci_traffic_create(&t, size, cluster_of, nclusters);
 *	gci_traffic_report(t, rank, &report, gci_wall_ns());
 *	...
 *	gci_traffic_sum(t, gci_wall_ns());
 *	pair = gci_traffic_pair(t, from, to);
 *	for (n = first; n < gci_traffic_settled(t, now); n++)
 *		gci_bins_get(&pair->bins, n);
 *	const struct gci_traffic_view v = {t, &grid, names, gci_wall_ns()};
 *	json_object_set_new(reply, "pairs", gci_traffic_pairs_json(&v, since));
 *	gci_traffic_free(t);
 *
 * Reports are taken as they are, but for what could do harm: numbers of clusters and ranks that the
 * job does not have, and bins that are not of about now. Bins are put together by the clocks of
 * the ranks' hosts: as far as these are apart, so are the bins. */
#ifndef GCI_LAUNCHER_TRAFFIC_H
#define GCI_LAUNCHER_TRAFFIC_H

#include "base/bins.h"
#include "base/buf.h"
#include "collectives/grid/grid.h"
#include "transport/report.h"

#include <jansson.h>

#define GCI_TRAFFIC_FLOWS 64 /* kept of each rank */

/* What one rank sends to one cluster. */
struct gci_traffic_part {
	uint32_t to;
	uint32_t connections;
	struct gci_flow sum;    /* since the job began */
	struct gci_flow before; /* of it, what earlier epochs' connections have moved */
	uint64_t fresh_nbytes,
		fresh_resent; /* bytes sent, segments sent again: in the last period */
};

struct gci_traffic_rank {
	struct gci_traffic_part *parts;
	size_t nparts, parts_cap;
	struct gci_flow *flows; /* to other clusters */
	size_t nflows, flows_cap;
	uint64_t end_bin;   /* its bins before this one are here */
	uint64_t heard_ns;  /* 0: nothing was heard */
	uint64_t period_ns; /* between its last two reports; 0: there is one only */
};

struct gci_traffic_pair {
	uint32_t from, to;
	struct gci_bins bins; /* bytes sent, payload */
	/* By gci_traffic_sum(): */
	uint32_t connections, senders; /* senders: ranks that sent something in their last period */
	struct gci_flow sum;           /* rtt_ns: the longest */
};

struct gci_traffic {
	uint32_t size, nclusters;
	uint32_t *cluster_of; /* [rank] */
	struct gci_traffic_rank *ranks;
	struct gci_traffic_pair **pairs; /* [from * nclusters + to]; NULL: nothing was reported */
	uint64_t heard_ns;               /* when the first report came */
	uint64_t first_bin;              /* that was reported, of about now; 0: nothing was */
	uint64_t misplaced_nbytes;       /* in bins that are not of about now */
	int failed;                      /* out of memory: something is missing */
};

/* `cluster_of` is copied. GCOLL_ERR_NOMEM. */
int gci_traffic_create(
	struct gci_traffic **t, uint32_t size, const uint32_t *cluster_of, uint32_t nclusters);
void gci_traffic_free(struct gci_traffic *t);

/* now_ns: CLOCK_REALTIME, like the bins. */
void gci_traffic_report(
	struct gci_traffic *t, uint32_t rank, const struct gci_ctl_report *m, uint64_t now_ns);
void gci_traffic_flows(struct gci_traffic *t, uint32_t rank, const struct gci_ctl_flows *m);

/* The rank goes on with new connections, whose reports begin at 0; what those before have moved
 * stays counted. */
void gci_traffic_renew(struct gci_traffic *t, uint32_t rank);

/* Bins before this one are complete, as far as ranks that still report are concerned; 0: there are
 * none. */
uint64_t gci_traffic_settled(const struct gci_traffic *t, uint64_t now_ns);

/* Sums the pairs up anew. Ranks that have not reported for 3 s count with what they have sent, and
 * no longer with connections, windows and rates. */
void gci_traffic_sum(struct gci_traffic *t, uint64_t now_ns);

/* NULL: nothing was reported. */
const struct gci_traffic_pair *gci_traffic_pair(
	const struct gci_traffic *t, uint32_t from, uint32_t to);

/* ---- for people and programs: JSON is the caller's; NULL: out of memory. */

struct gci_traffic_view {
	const struct gci_traffic *t; /* summed up */
	const struct gci_grid *grid;
	const char *const *names; /* [rank]: its host */
	uint64_t now_ns;
};

/* One pair of clusters; with its bins from number `since` to before `end`, as far as they are
 * there: "first_bin" and "bytes". */
json_t *gci_traffic_pair_json(const struct gci_traffic_view *v, const struct gci_traffic_pair *p,
	uint64_t since, uint64_t end);

/* What one rank sends to one cluster. */
json_t *gci_traffic_part_json(
	const struct gci_traffic_view *v, uint32_t rank, const struct gci_traffic_part *part);

/* A connection of `rank`. */
json_t *gci_traffic_flow_json(
	const struct gci_traffic_view *v, uint32_t rank, const struct gci_flow *f);

/* Arrays of all of them; of the pairs those that have sent something, with fewer bins where there
 * are many. */
json_t *gci_traffic_pairs_json(const struct gci_traffic_view *v, uint64_t since);
json_t *gci_traffic_parts_json(const struct gci_traffic_view *v);
json_t *gci_traffic_flows_json(const struct gci_traffic_view *v);

/* All of it in Prometheus's text format; `job` is a label of each figure. */
void gci_traffic_prometheus(const struct gci_traffic_view *v, const char *job, struct gci_buf *out);

#endif
