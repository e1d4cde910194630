/* SPDX-License-Identifier: MIT
 * Ways to do the same between two processes, measured in turns: medians, and ratios to the first
 * way, which is what the kernel alone makes of it. Shared by bench_stream and bench_pingpong.
 *
 *	struct gcb_series s = {.ways = ways, .nways = n, .rounds = 5};
 *	rc = gcb_series_run(&s, &pair, &e);
 *	... s.ns[way][round] ... */
#ifndef GCB_SERIES_H
#define GCB_SERIES_H

#include "bench/peers/pair.h"

#define GCB_MAX_WAYS   10
#define GCB_MAX_ROUNDS 100

struct gcb_series {
	const struct gcb_way *const *ways;
	int nways, rounds;
	double ns[GCB_MAX_WAYS][GCB_MAX_ROUNDS], cpu_ns[GCB_MAX_WAYS][GCB_MAX_ROUNDS];
	char skipped[GCB_MAX_WAYS][GCI_PATH_WHY]; /* why; "" when it was measured */
};

/* A way that is not there is skipped; another failure ends the series. */
int gcb_series_run(struct gcb_series *s, struct gcb_pair *p, struct gci_error *e);

/* Medians of one way, and the median over the rounds of what it took in parts of the first way's.
 */
double gcb_series_ns(const struct gcb_series *s, int way);
double gcb_series_cpu_ns(const struct gcb_series *s, int way);
double gcb_series_ratio(const struct gcb_series *s, int way);
double gcb_series_cpu_ratio(const struct gcb_series *s, int way);

#endif
