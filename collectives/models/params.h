/* SPDX-License-Identifier: MIT
 * What was measured of a grid's links: parameterized LogP (Kielmann 2001, 2.1 and 2.2), the rate of
 * a pair of hosts by number of streams, and the pattern of send overheads (Vadhiyar 2004, 4.3). One
 * set per link class: inside each cluster, and each ordered pair of clusters.
 *
 *	gci_params_init(&p, grid, date);	// nothing measured yet; or gci_params_parse()
 *	...
 *	gci_params_at(gci_params_link(&p, from, to), nbytes, &at);
 *	ns = at.gap_ns;
 *	gci_params_free(&p);
 *
 * Times are those of the grid as its file says, not of a dilated lab; gci_params_dilate() gives the
 * latter. Immutable once read. */
#ifndef GCI_COLLECTIVES_MODELS_PARAMS_H
#define GCI_COLLECTIVES_MODELS_PARAMS_H

#include "collectives/grid/grid.h"

/* A message of this size: what sending it, and receiving it when it is there, keeps the process
 * busy for; and the least time between two in a row on one link. */
struct gci_params_point {
	uint64_t nbytes, os_ns, or_ns, gap_ns;
};

/* What one pair of hosts gets with so many streams, bits of payload per second; or so many pairs
 * that send at once, all together. */
struct gci_params_rate {
	uint32_t streams; /* or senders */
	uint64_t bps;
};

/* The first `initial` isends of such messages take os_start; then each one in (mid + 1) takes
 * os_spike and the others os_mid. */
struct gci_params_isend {
	uint64_t nbytes;
	int immediate; /* else an isend lasts until the receiver has the message: no pattern */
	uint32_t initial, mid;
	uint64_t os_start_ns, os_spike_ns, os_mid_ns;
};

struct gci_params_link {
	uint64_t latency_ns;             /* L; 0 with npoints 0: not measured */
	struct gci_params_point *points; /* rising sizes, the first is 0 bytes */
	struct gci_params_rate *rates;   /* rising numbers of streams */
	struct gci_params_isend *isends; /* rising sizes */
	size_t npoints, nrates, nisends;
	struct gci_params_rate *senders; /* rising numbers of them */
	size_t nsenders;
};

/* What the latency is: clocks of two hosts that agree tell it, else each way counts as a half. */
enum gci_params_latency { GCI_LATENCY_HALF_ROUND_TRIP, GCI_LATENCY_ONE_WAY };

struct gci_params {
	uint64_t grid_digest; /* gci_grid_digest() of the grid it was measured on */
	char date[32];        /* ISO 8601, UTC: "2026-11-21T16:29:00Z" */
	uint32_t dilation;    /* of the lab it was measured in; 1: no lab */
	enum gci_params_latency latency;
	int nclusters;
	char **clusters;               /* names, in the grid file's order */
	struct gci_params_link *links; /* [from * nclusters + to]; the diagonal: inside */
};

/* For this grid, with nothing measured, and measured in a lab if the grid is dilated. 0, or
 * GCOLL_ERR_NOMEM with `p` empty. */
int gci_params_init(struct gci_params *p, const struct gci_grid *g, const char *date);

/* A link's lists are from base/mem.h and freed with it. */
void gci_params_free(struct gci_params *p);

static inline struct gci_params_link *gci_params_link(const struct gci_params *p, int from, int to)
{
	return &p->links[from * p->nclusters + to];
}

/* os, or and gap at any size: between measured ones a straight line, beyond the last one the line
 * through the last two; where that falls, it is level; the gap is never below os or or there. What
 * would be beyond 64 bits is UINT64_MAX. `at->nbytes` is nbytes. All 0 where nothing was measured.
 */
void gci_params_at(const struct gci_params_link *l, uint64_t nbytes, struct gci_params_point *at);

/* The rate with this many streams: of the nearest number measured that is no more, else of the
 * least; 0: not measured. */
uint64_t gci_params_rate(const struct gci_params_link *l, uint32_t streams);

/* How many streams a pair of hosts is worth: the least number within 5 % of the best rate; 0: too
 * little was measured to tell. */
uint32_t gci_params_knee(const struct gci_params_link *l);

/* Gives those of the grid's links that have no number of streams the one they are worth. `p` is of
 * this grid. Returns how many were given one. */
int gci_params_streams(const struct gci_params *p, struct gci_grid *g);

/* The same for senders: the least number within 5 % of the best rate, where more were measured and
 * got no further; else the links' and the NICs' rates tell better. Returns how many links. */
int gci_params_senders(const struct gci_params *p, struct gci_grid *g);

/* All times k times as long, all rates k times as slow. */
void gci_params_dilate(struct gci_params *p, uint32_t k);

/* The reverse, rounded to the nearest: of what was measured in a lab, before it is kept. */
void gci_params_undilate(struct gci_params *p, uint32_t k);

/* The first that reaches 95 % of the best rate. n > 0. */
size_t gci_params_rate_knee(const struct gci_params_rate *r, size_t n);

#endif
