/* SPDX-License-Identifier: MIT */
#include "collectives/models/ramp.h"

#include "base/clock.h"

#include <string.h>

#define FIRST_TOTAL (512u << 10)
#define PIECES      64
#define LEAST_PIECE 1024u
#define MOST_PIECE  (256u << 10)

void gci_ramp_init(struct gci_ramp *r, const struct gci_ramp_config *config)
{
	memset(r, 0, sizeof(*r));
	r->config = *config;
	r->trial.level = 1;
	r->total = FIRST_TOTAL;
}

static uint64_t moved(const struct gci_ramp *r, const struct gci_ramp_trial *t)
{
	return t->nbytes * t->n * (r->config.each ? t->level : 1);
}

static void cut(struct gci_ramp *r)
{
	uint64_t piece = r->total / PIECES;

	piece = piece < LEAST_PIECE ? LEAST_PIECE : piece > MOST_PIECE ? MOST_PIECE : piece;
	r->trial.nbytes = piece;
	r->trial.n = (uint32_t)(r->total / piece);
}

/* As long as the one before, for its bytes; the first is tried whatever it takes. */
static int fits(struct gci_ramp *r)
{
	uint64_t left = r->config.most_ns > r->spent_ns ? r->config.most_ns - r->spent_ns : 0;

	if (moved(r, &r->trial) > r->config.most_nbytes - r->spent_nbytes)
		r->out_of_bytes = 1;
	else if (r->spent_nbytes && r->last_ns > left)
		r->out_of_time = 1;
	else
		return 1;
	return 0;
}

static int grew(uint64_t from, uint64_t to)
{
	return to > from && to - from > from / 20;
}

/* New connections are slow at first: what they brought so far may be less than without them. */
static void forget_unsettled(struct gci_ramp *r)
{
	const struct gci_params_rate *last = r->rates + r->nrates;

	if (r->nrates >= 2 && last[-1].streams == r->trial.level &&
		grew(last[-1].bps, last[-2].bps))
		r->nrates--;
}

int gci_ramp_next(struct gci_ramp *r, struct gci_ramp_trial *t)
{
	if (r->over || r->trial.level > r->config.most_level)
		return 0;
	cut(r);
	if (!fits(r)) {
		r->over = 1;
		forget_unsettled(r);
		return 0;
	}
	*t = r->trial;
	return 1;
}

static int is_like(uint64_t a, uint64_t b)
{
	return a && !grew(a, b) && !grew(b, a);
}

/* Nothing has changed since the trial before; or, of connections of one pair, since there were
 * fewer of them. */
static int is_settled(const struct gci_ramp *r, uint64_t bps)
{
	return is_like(r->last_bps, bps) ||
	       (r->nrates >= 2 && !r->config.each && is_like(r->rates[r->nrates - 2].bps, bps));
}

/* Has the rate stopped to grow with the number of them? */
static int is_flat(const struct gci_ramp *r)
{
	const struct gci_params_rate *v = &r->rates[r->nrates - 1];

	return r->nrates >= 3 && !grew(v[-2].bps, v[-1].bps) && !grew(v[-2].bps, v[0].bps);
}

static void next_level(struct gci_ramp *r)
{
	uint32_t level = r->trial.level, most = r->config.most_level;

	r->last_bps = 0;
	r->trial.level = level < most && level > most / 2 ? most : 2 * level;
	r->over |= is_flat(r) || r->nrates == GCI_RAMP_LEVELS;
}

static void keep(struct gci_ramp *r, uint64_t bps)
{
	struct gci_params_rate *v = r->nrates ? &r->rates[r->nrates - 1] : NULL;

	if (!bps)
		return;
	if (!v || v->streams != r->trial.level)
		v = &r->rates[r->nrates++];
	*v = (struct gci_params_rate){r->trial.level, bps};
}

void gci_ramp_done(struct gci_ramp *r, uint64_t bps, uint64_t took_ns)
{
	uint64_t all = moved(r, &r->trial);

	r->spent_ns = r->spent_ns + took_ns < took_ns ? UINT64_MAX : r->spent_ns + took_ns;
	r->spent_nbytes += all;
	r->last_ns = took_ns;
	keep(r, bps);
	if (bps && took_ns >= r->config.least_ns) {
		int first = !r->last_bps;

		if (is_settled(r, bps)) {
			next_level(r);
			return;
		}
		r->last_bps = bps;
		if (first)
			return; /* as long a one again tells more */
	}
	r->last_bps = bps;
	if (2 * r->total / MOST_PIECE <= GCI_RAMP_PIECES) {
		r->total *= 2;
		/* Twice as many take up to twice as long. */
		r->last_ns = took_ns > UINT64_MAX / 2 ? UINT64_MAX : 2 * took_ns;
	} else if (r->nrates && r->rates[r->nrates - 1].streams == r->trial.level) {
		next_level(r);
	} else {
		r->over = 1; /* the most there is, and too fast to tell */
	}
}

uint64_t gci_ramp_bps(const uint64_t *at_ns, size_t n, uint64_t nbytes)
{
	size_t half = n / 2;
	unsigned __int128 bits = (unsigned __int128)nbytes * (n - half) * 8;
	uint64_t ns = n >= 4 && at_ns[n - 1] > at_ns[half - 1] ? at_ns[n - 1] - at_ns[half - 1] : 0;

	bits = ns ? bits * GCI_NS_PER_S / ns : 0;
	return bits > UINT64_MAX ? UINT64_MAX : (uint64_t)bits;
}
