/* SPDX-License-Identifier: MIT */
#include "collectives/planner/game.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdint.h>
#include <string.h>

#define STEP  2.0
#define MOST  50.0 /* an amount counts for no more than so many times a good column's */
#define NEVER -1e9 /* a weight, which no other comes near */

static double larger(double a, double b)
{
	return a > b ? a : b;
}

int gci_game_init(struct gci_game *g, size_t ncolumns, size_t nentries, int nresources, int ngroups)
{
	*g = (struct gci_game){.ncolumns = ncolumns, .nresources = nresources, .ngroups = ngroups};
	g->first = gci_calloc(ncolumns + 1, sizeof(*g->first));
	g->group = gci_calloc(2 * ncolumns, sizeof(*g->group));
	g->resource = gci_calloc(nentries, sizeof(*g->resource));
	g->amount = gci_calloc(nentries, sizeof(*g->amount));
	g->scratch = gci_calloc(
		3 * ncolumns + 4 * (size_t)nresources + 2 * (size_t)ngroups, sizeof(*g->scratch));
	if (!g->first || !g->group || !g->resource || !g->amount || !g->scratch)
		return GCOLL_ERR_NOMEM;
	g->barred = g->group + ncolumns;
	return 0;
}

void gci_game_free(struct gci_game *g)
{
	gci_free(g->first);
	gci_free(g->group);
	gci_free(g->resource);
	gci_free(g->amount);
	gci_free(g->scratch);
}

/* e^x for x <= 0, by + - * alone: the same everywhere. */
static double exponential(double x)
{
	/* ln 2 in two parts: the first has so few bits that its multiples are exact. */
	const double ln2_high = 0.693147180369123816490, ln2_low = 1.90821492927058770002e-10;
	union {
		uint64_t bits;
		double value;
	} scale;
	double r, sum = 1;
	int k, i;

	if (x < -700)
		return 0;
	k = (int)(x * 1.44269504088896338700 - 0.5);
	r = x - k * ln2_high - k * ln2_low;
	for (i = 13; i; i--)
		sum = 1 + sum * r / i;
	scale.bits = (uint64_t)(1023 + k) << 52;
	return sum * scale.value;
}

void gci_game_weights(const double *log, int n, double *out)
{
	double most = -1e300, total = 0;
	int i;

	for (i = 0; i < n; i++)
		most = larger(most, log[i]);
	for (i = 0; i < n; i++) {
		out[i] = exponential(log[i] - most);
		total += out[i];
	}
	for (i = 0; i < n; i++)
		out[i] /= total;
}

/* The fullest resource of the best single columns has 1. `load`: [resource], `least`: [group]. */
static void normalize(struct gci_game *g, double *load, double *least)
{
	double scale = 0, most;
	size_t j, k;
	int i;

	for (i = 0; i < g->ngroups; i++)
		least[i] = -1;
	for (j = 0; j < g->ncolumns; j++) {
		memset(load, 0, (size_t)g->nresources * sizeof(*load));
		for (most = 0, k = g->first[j]; k < g->first[j + 1]; k++) {
			load[g->resource[k]] += g->amount[k];
			most = larger(most, load[g->resource[k]]);
		}
		if (least[g->group[j]] < 0 || most < least[g->group[j]])
			least[g->group[j]] = most;
	}
	for (i = 0; i < g->ngroups; i++)
		scale = larger(scale, least[i]);
	for (k = 0; k < g->first[g->ncolumns]; k++) {
		g->amount[k] /= scale;
		g->amount[k] = g->amount[k] < MOST ? g->amount[k] : MOST;
	}
}

/* What each column costs at prices, and what each resource has of shares. */
static void look(const struct gci_game *g, const double *share, const double *price, double *cost,
	double *load)
{
	size_t j, k;

	memset(load, 0, (size_t)g->nresources * sizeof(*load));
	for (j = 0; j < g->ncolumns; j++) {
		double sum = 0;

		for (k = g->first[j]; k < g->first[j + 1]; k++) {
			sum += g->amount[k] * price[g->resource[k]];
			load[g->resource[k]] += g->amount[k] * share[j];
		}
		cost[j] = sum;
	}
}

/* Shares by weights, which are logarithms. `largest` and `total`: [group]. */
static void share_out(const struct gci_game *g, const double *weight, const double *cost,
	double *share, double *largest, double *total)
{
	int i;
	size_t j;

	for (i = 0; i < g->ngroups; i++) {
		largest[i] = -1e300;
		total[i] = 0;
	}
	for (j = 0; j < g->ncolumns; j++) {
		double *most = &largest[g->group[j]];

		share[j] = weight[j] - STEP * cost[j];
		*most = larger(*most, share[j]);
	}
	for (j = 0; j < g->ncolumns; j++) {
		share[j] = exponential(share[j] - largest[g->group[j]]);
		total[g->group[j]] += share[j];
	}
	for (j = 0; j < g->ncolumns; j++)
		share[j] /= total[g->group[j]];
}

static void set_prices(int n, const double *log, const double *load, double *next, double *price)
{
	int i;

	for (i = 0; i < n; i++)
		next[i] = log[i] + STEP * load[i];
	gci_game_weights(next, n, price);
}

void gci_game_play(struct gci_game *g, int nrounds, double *share, double *price)
{
	size_t n = g->ncolumns, m = (size_t)g->nresources, j;
	double *weight = g->scratch, *cost = weight + n, *sum = cost + n, *load = sum + n;
	double *log = load + m, *next = log + m, *price_sum = next + m, *largest = price_sum + m;
	double *total = largest + g->ngroups, all = nrounds * (nrounds + 1.0) / 2;
	int round, i;

	memset(g->scratch, 0, (size_t)(total - g->scratch) * sizeof(*g->scratch));
	normalize(g, load, total);
	memset(load, 0, m * sizeof(*load));
	for (j = 0; j < n; j++)
		weight[j] = g->barred[j] ? NEVER : 0;
	share_out(g, weight, cost, share, largest, total);
	set_prices(g->nresources, log, load, next, price);
	for (round = 0; round < nrounds; round++) {
		look(g, share, price, cost, load);
		for (j = 0; j < n; j++)
			weight[j] -= STEP * cost[j];
		for (i = 0; i < g->nresources; i++)
			log[i] += STEP * load[i];
		share_out(g, weight, cost, share, largest, total);
		set_prices(g->nresources, log, load, next, price);
		for (j = 0; j < n; j++)
			sum[j] += share[j] * (round + 1);
		for (i = 0; i < g->nresources; i++)
			price_sum[i] += price[i] * (round + 1);
	}
	for (j = 0; j < n; j++)
		share[j] = sum[j] / all;
	for (i = 0; i < g->nresources; i++)
		price[i] = price_sum[i] / all;
}
