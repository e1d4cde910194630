/* SPDX-License-Identifier: MIT
 * How links change while a lab runs: a file with a change a line.
 *
 *	# time, which way, what from then on
 *	0s     kyoto > tokyo   jitter=1ms loss=0.1% burst=5
 *	12.5s  kyoto tokyo     rate=400Mbit delay=25ms		both ways
 *	30s    all             loss=0% codel=5ms,100ms
 *	40s    tokyo > uplink  rate=100Mbit
 *
 * Keys: rate, delay, queue, flow_rate and loss as in a grid file; jitter (a time, as much more or
 * less), burst (segments that a loss takes on average), reorder, duplicate, corrupt (percentages),
 * codel (off, or target and interval).
 *
 *	struct gci_weather w;
 *	if (gci_weather_parse(&w, text, len, "trace", &grid, &e)) ...
 *	gci_weather_dilate(&w, k);
 *	for (i = 0; i < w.nchanges; i++)		// in the order of their times
 *		gci_weather_apply(&w.changes[i], &models[w.changes[i].wire]);
 *	gci_weather_free(&w);
 *
 * Pure. */
#ifndef GCI_NETEM_WEATHER_H
#define GCI_NETEM_WEATHER_H

#include "collectives/grid/grid.h"
#include "netem/wires.h"

#define GCI_WEATHER_MAX_NBYTES  (64u << 20)
#define GCI_WEATHER_MAX_CHANGES 1000000

struct gci_weather_change {
	uint64_t at_ns;
	int wire;     /* of the grid */
	uint32_t set; /* which of the model's values, a bit for each key */
	struct gci_wire_model to;
};

struct gci_weather {
	struct gci_weather_change *changes;
	size_t nchanges, cap;
};

/* GCOLL_ERR_PARSE with file and line, or _NOMEM; then `w` is empty. */
int gci_weather_parse(struct gci_weather *w, const char *text, size_t len, const char *name,
	const struct gci_grid *g, struct gci_error *e);

/* As gci_grid_dilate: rates divided, times multiplied. */
void gci_weather_dilate(struct gci_weather *w, uint32_t k);

void gci_weather_apply(const struct gci_weather_change *c, struct gci_wire_model *model);

void gci_weather_free(struct gci_weather *w);

#endif
