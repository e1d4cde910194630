/* SPDX-License-Identifier: MIT
 * Table 2 of Banikazemi, Moorthy and Panda 1998: how near FNF's trees are to the best ones, among 2
 * to 9 hosts whose messages cost 100, 200, ... or 800 us, each of these as likely, the source among
 * them.
 *	bench_hnow2 [CASES]
 * prints mean latencies over so many seeded cases (10000, as in the paper), by how much FNF's is
 * longer, and how many of its trees are as good as the best; beside each the paper's.
 * bench/papers says what agrees. */
#include "base/clock.h"
#include "base/prng.h"
#include "base/units.h"
#include "collectives/models/hnow.h"

#include <stdio.h>
#include <string.h>

#define MOST_HOSTS 9
#define NCASES     10000

static const struct {
	double fnf_us, optimal_us;
} paper[MOST_HOSTS + 1] = {[2] = {453.37, 453.37},
	{705.60, 705.60},
	{805.70, 805.70},
	{871.01, 871.01},
	{914.90, 913.15},
	{947.56, 942.26},
	{976.90, 967.27},
	{984.29, 977.12}};

struct outcome {
	double fnf_us, optimal_us; /* means */
	uint64_t alike;            /* cases */
};

/* Rank 0 is the source. 0: out of memory. */
static uint64_t latency_ns(const uint64_t *tini_ns, int n, int (*build)(struct gci_hnow *t))
{
	struct gci_hnow t;
	uint64_t ns = 0;

	if (gci_hnow_init(&t, tini_ns, n, 0))
		return 0;
	if (!build(&t))
		ns = gci_hnow_completion(&t);
	gci_hnow_free(&t);
	return ns;
}

static int measure(struct gci_prng *prng, int n, uint64_t ncases, struct outcome *o)
{
	uint64_t tini_ns[MOST_HOSTS], i, fnf, optimal;
	int k;

	memset(o, 0, sizeof(*o));
	for (i = 0; i < ncases; i++) {
		for (k = 0; k < n; k++)
			tini_ns[k] = 100 * GCI_NS_PER_US * (1 + gci_prng_below(prng, 8));
		fnf = latency_ns(tini_ns, n, gci_hnow_fnf);
		optimal = latency_ns(tini_ns, n, gci_hnow_optimal);
		if (!fnf || !optimal)
			return -1;
		o->fnf_us += (double)fnf / 1e3 / (double)ncases;
		o->optimal_us += (double)optimal / 1e3 / (double)ncases;
		o->alike += fnf == optimal;
	}
	return 0;
}

static double behind(double fnf, double optimal)
{
	return (fnf / optimal - 1) * 100;
}

int main(int argc, char **argv)
{
	struct gci_prng prng = {1998};
	uint64_t ncases = NCASES;
	struct outcome o;
	int n;

	if (argc > 2 || (argc > 1 && (gci_parse_uint(argv[1], 1000000, &ncases) || !ncases))) {
		fprintf(stderr, "usage: bench_hnow2 [CASES]\n");
		return 2;
	}
	printf("%5s %9s %9s %7s %7s   %s\n", "hosts", "FNF us", "best us", "behind", "alike",
		"the paper's FNF, best, behind");
	for (n = 2; n <= MOST_HOSTS; n++) {
		if (measure(&prng, n, ncases, &o)) {
			fprintf(stderr, "out of memory\n");
			return 2;
		}
		printf("%5d %9.2f %9.2f %5.2f %% %5.1f %% %9.2f %9.2f %5.2f %%\n", n, o.fnf_us,
			o.optimal_us, behind(o.fnf_us, o.optimal_us),
			100.0 * (double)o.alike / (double)ncases, paper[n].fnf_us,
			paper[n].optimal_us, behind(paper[n].fnf_us, paper[n].optimal_us));
	}
	return 0;
}
