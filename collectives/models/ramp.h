/* SPDX-License-Identifier: MIT
 * How a rate grows with the number of streams of a pair of hosts, or of pairs of hosts that send at
 * once: 1, 2, 4, ... of them, until two doublings in a row bring nothing.
 *
 *	gci_ramp_init(&r, &config);
 *	while (gci_ramp_next(&r, &t))
 *		... t.n pieces of t.nbytes each, over t.level streams ...
 *		gci_ramp_done(&r, gci_ramp_bps(at_ns, t.n, t.nbytes), took_ns);
 *	best = r.rates[gci_params_rate_knee(r.rates, r.nrates)].streams;
 *
 * Each number begins with few bytes, and twice as many as long as that is not a matter of
 * least_ns, or the rate still grows: TCP finds the link's rate in a few round trips only.
 *
 * Pure; bounded by time and bytes. */
#ifndef GCI_COLLECTIVES_MODELS_RAMP_H
#define GCI_COLLECTIVES_MODELS_RAMP_H

#include "collectives/models/params.h"

#define GCI_RAMP_PIECES 1024 /* most of them in a trial */
#define GCI_RAMP_LEVELS 18

struct gci_ramp_config {
	uint64_t most_ns, most_nbytes; /* in all */
	uint64_t least_ns;             /* a shorter transfer tells nothing: some round trips */
	uint32_t most_level;
	int each; /* every one of a level's members moves the trial's bytes, not all together */
};

struct gci_ramp_trial {
	uint32_t level, n;
	uint64_t nbytes;
};

struct gci_ramp {
	struct gci_ramp_config config;
	uint64_t spent_ns, spent_nbytes, last_ns, last_bps;
	int out_of_time, out_of_bytes, over;
	uint64_t total; /* bytes of the trial under way */
	struct gci_ramp_trial trial;
	struct gci_params_rate rates[GCI_RAMP_LEVELS];
	size_t nrates;
};

void gci_ramp_init(struct gci_ramp *r, const struct gci_ramp_config *config);

/* The next trial; 0: over. */
int gci_ramp_next(struct gci_ramp *r, struct gci_ramp_trial *t);

/* Its rate (0: unknown) and how long all of it took. */
void gci_ramp_done(struct gci_ramp *r, uint64_t bps, uint64_t took_ns);

/* Of n pieces of nbytes that arrived at these times, rising: the rate of the second half. 0: they
 * are too few, or came at once. */
uint64_t gci_ramp_bps(const uint64_t *at_ns, size_t n, uint64_t nbytes);

#endif
