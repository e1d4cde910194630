/* SPDX-License-Identifier: MIT
 * A job's traffic as JSON and as Prometheus reads it. The keys are documented in gridcoll-top(1).
 *
 *	const struct gci_traffic_view v = {t, &grid, names, gci_wall_ns()};
 *
 *	gci_traffic_sum(t);
 *	json_object_set_new(reply, "pairs", gci_traffic_pairs_json(&v, since));
 *
 * JSON is the caller's; NULL: out of memory. */
#ifndef GCI_LAUNCHER_TRAFFIC_TEXT_H
#define GCI_LAUNCHER_TRAFFIC_TEXT_H

#include "collectives/grid/grid.h"
#include "launcher/traffic.h"

#include <jansson.h>

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
