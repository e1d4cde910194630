/* SPDX-License-Identifier: MIT
 * How near to the physical limit what is chosen comes on networks that nobody has seen: random grids, every
 * second one with switches and uplinks.
 *	bench_networks [-s SEED] [-n GRIDS] [-c LEAST-MOST] [-H HOSTS] [-b BYTES,...] [-o KIND,...]
 *		[-a NAME,...] [-f] [-u] [-v] [-g]
 * prints, per operation and size, the predicted time over the largest limit, by ends, by prices and by cuts
 * (median, 90 %, worst), of what a rank chooses by itself, of `packed` alone, and of its shares, were there no
 * messages. Without a seed it takes one from the clock, and says it.
 *	-c of so many clusters (2-8)	-H of about so many hosts together
 *	-v a line for each case		-g nothing but the grids themselves
 *	-a how many times as long as the choice the best of these algorithms takes (geometric mean, least); named as
 *	   `gridcoll bench` does
 *	-f reductions in a fixed order
 *	-u blocks of random lengths, each of none or of 1 to 32 parts, beside what stands first (`packed` is then that) */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "collectives/models/limit.h"
#include "collectives/planner/packed.h"
#include "collectives/tuner/decide.h"
#include "collectives/tuner/rates.h"
#include "testing/random_grid.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_GRIDS  1000
#define MOST_SIZES  16
#define MOST_OTHERS 16

enum { CHOSEN, PACED, PACKED, FLUID, NCOLUMNS };

struct options {
	uint64_t seed, sizes[MOST_SIZES];
	unsigned ngrids, nsizes, kinds;
	unsigned least_clusters, most_clusters, nhosts; /* 0: the generator's own */
	int verbose, print, uneven, fixed;
	const char *others[MOST_OTHERS + 1]; /* the last one is NULL */
};

struct figures {
	double ratio[NCOLUMNS][MOST_GRIDS], plan_ms[MOST_GRIDS];
	size_t n, by_prices;             /* of n, those whose bound is that by prices */
	double others_log, others_least; /* over what is chosen */
	size_t nothers;
};

/* ---- one case */

static uint64_t whole_ns(
	const struct gci_simnet *net, const struct gci_coll *c, const struct gci_candidate *how)
{
	uint64_t ns = 0;

	return gci_predict(net, c, how, NULL, &ns) ? 0 : ns;
}

/* The best of those that run it; 0: none does. */
static uint64_t others_ns(
	const struct gci_simnet *net, const struct gci_coll *c, const char *const *names)
{
	struct gci_candidate how;
	struct gci_error e;
	uint64_t ns, best = 0;

	for (; *names; names++) {
		if (gci_candidate_parse(&how, c->kind, *names, &e))
			continue;
		ns = whole_ns(net, c, &how);
		if (ns && (!best || ns < best))
			best = ns;
	}
	return best;
}

static void note_others(struct figures *f, double ratio)
{
	f->others_log += log(ratio);
	if (!f->nothers++ || ratio < f->others_least)
		f->others_least = ratio;
}

static void measure(struct figures *f, const char *name, const struct gci_topo *t,
	struct gci_decider *d, const struct gci_coll *c, const struct options *o)
{
	uint64_t others = others_ns(&d->net, c, o->others);
	struct gci_candidate packed = {
		.algorithm = gci_algorithm_find(c->kind, c->counts ? NULL : "packed")};
	uint64_t limit = gci_limit_ns(c, 0), bound = 0, ns[NCOLUMNS] = {0}, began, at_will;
	char how[GCI_CANDIDATE_NBYTES] = "";
	struct gci_packed *p = NULL;
	struct gci_decision chosen;

	if (!limit || f->n == MOST_GRIDS || gci_packed_bound(c, &bound))
		return;
	f->by_prices += bound > limit;
	limit = bound > limit ? bound : limit;
	if (!gci_decide(d, c, &chosen)) {
		struct gci_coll own = *c;

		gci_candidate_apply(&chosen.how, &own);
		own.packed = gci_decide_packed(d, chosen.how.algorithm, &own);
		ns[CHOSEN] = whole_ns(&d->net, c->counts ? &own : c, &chosen.how);
		if (own.packed && (own.packed->timed || gci_packed_is_even(&own)))
			ns[PACED] = whole_ns(&d->net, &own, &chosen.how);
		else if (gci_rates_ns(&d->net, chosen.how.algorithm, &own, 0, &ns[PACED], &at_will))
			ns[PACED] = ns[CHOSEN];
		gci_candidate_print(&chosen.how, how);
	}
	began = gci_now_ns();
	if (!gci_packed_make(&p, c, 0)) {
		f->plan_ms[f->n] = (double)(gci_now_ns() - began) / 1e6;
		f->ratio[FLUID][f->n] = p->packing.ns / (double)limit;
	}
	gci_packed_free(p);
	if (packed.algorithm)
		ns[PACKED] = whole_ns(&d->net, c, &packed);
	f->ratio[CHOSEN][f->n] = (double)ns[CHOSEN] / (double)limit;
	f->ratio[PACED][f->n] = (double)ns[PACED] / (double)limit;
	f->ratio[PACKED][f->n] = (double)ns[PACKED] / (double)limit;
	if (others && ns[CHOSEN])
		note_others(f, (double)others / (double)ns[CHOSEN]);
	if (o->verbose)
		printf("%s %3d ranks %d clusters %-14s %9" PRIu64
		       ": limit %8.2f ms, chosen %5.2f (%s), packed %5.2f, "
		       "paced %5.2f, fluid %5.2f, others %5.2f, %.1f ms to plan\n",
			name, t->nranks, t->nclusters, gci_kind_name(c->kind), gci_packed_total(c),
			(double)limit / 1e6, f->ratio[CHOSEN][f->n], how, f->ratio[PACKED][f->n],
			f->ratio[PACED][f->n], f->ratio[FLUID][f->n],
			(double)others / (double)limit, f->plan_ms[f->n]);
	f->n++;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void print_distribution(double *x, size_t n)
{
	qsort(x, n, sizeof(*x), compare);
	printf("  %5.2f %5.2f %5.2f", x[n / 2], x[(n - 1) * 9 / 10], x[n - 1]);
}

/* ---- */

/* Of any operation. */
static int is_algorithm(const char *name)
{
	struct gci_candidate how;
	struct gci_error e;
	int k = 0;

	while (k < GCI_BARRIER && gci_candidate_parse(&how, (enum gci_kind)k, name, &e))
		k++;
	if (k == GCI_BARRIER)
		fprintf(stderr, "bench_networks: -a \"%s\", expected algorithms\n", name);
	return k < GCI_BARRIER;
}

static int parse(int argc, char **argv, struct options *o)
{
	char *item;
	int opt, kind, nothers = 0;

	*o = (struct options){.seed = (uint64_t)time(NULL),
		.ngrids = 24,
		.nsizes = 2,
		.sizes = {1 << 20, 8 << 20},
		.kinds = (1u << GCI_BARRIER) - 1};
	while ((opt = getopt(argc, argv, "s:n:c:H:b:o:a:fuvg")) != -1) {
		if (opt == 's')
			o->seed = strtoull(optarg, NULL, 10);
		else if (opt == 'n')
			o->ngrids = (unsigned)strtoul(optarg, NULL, 10);
		else if (opt == 'H')
			o->nhosts = (unsigned)strtoul(optarg, NULL, 10);
		else if (opt == 'u')
			o->uneven = 1;
		else if (opt == 'f')
			o->fixed = 1;
		else if (opt == 'c') {
			if (sscanf(optarg, "%u-%u", &o->least_clusters, &o->most_clusters) != 2 ||
				o->least_clusters < 2 || o->most_clusters < o->least_clusters ||
				o->most_clusters > GCI_RANDOM_CLUSTERS)
				return -1;
		} else if (opt == 'v' || opt == 'g')
			*(opt == 'v' ? &o->verbose : &o->print) = 1;
		else if (opt == 'a')
			for (item = strtok(optarg, ","); item; item = strtok(NULL, ",")) {
				if (nothers == MOST_OTHERS || !is_algorithm(item))
					return -1;
				o->others[nothers++] = item;
			}
		else if (opt == 'b')
			for (o->nsizes = 0, item = strtok(optarg, ",");
				item && o->nsizes < MOST_SIZES; item = strtok(NULL, ",")) {
				if (gci_parse_bytes(item, &o->sizes[o->nsizes++]))
					return -1;
			}
		else if (opt == 'o')
			for (o->kinds = 0, item = strtok(optarg, ","); item;
				item = strtok(NULL, ",")) {
				kind = gci_kind_find(item);
				if (kind < 0)
					return -1;
				o->kinds |= 1u << kind;
			}
		else
			return -1;
	}
	return o->ngrids && o->ngrids <= MOST_GRIDS && optind == argc ? 0 : -1;
}

/* Of about so many bytes together, of an alltoall for each rank. NULL: there are no blocks. */
static uint64_t *random_counts(
	struct gci_prng *r, enum gci_kind kind, uint64_t nranks, uint64_t nbytes)
{
	uint64_t n = kind == GCI_ALLTOALL ? nranks * nranks : nranks, all = 0, i, *counts;

	if (gci_kind_has_vector(kind))
		return NULL;
	counts = gci_calloc(n, sizeof(*counts));
	for (i = 0; counts && i < n; i++) {
		counts[i] = gci_prng_below(r, 8) ? UINT64_C(1) << gci_prng_below(r, 6) : 0;
		all += counts[i];
	}
	for (i = 0; counts && i < n; i++)
		counts[i] = counts[i] * nbytes / (all ? all : 1) * (n / nranks);
	return counts;
}

static void run_grid(
	const struct options *o, unsigned number, struct gci_prng *r, struct figures *f)
{
	struct gci_buf text = {0};
	struct gci_topo t;
	struct gci_decider d;
	struct gci_error e = {0};
	char name[32];
	unsigned k, s, nclusters = o->least_clusters;

	if (nclusters)
		nclusters += (unsigned)gci_prng_below(r, o->most_clusters - nclusters + 1);
	if (number % 2)
		gci_random_switched_grid(r, nclusters, o->nhosts, &text);
	else
		gci_random_grid(r, nclusters, o->nhosts, &text);
	snprintf(name, sizeof(name), "%" PRIu64 "/%u", o->seed, number);
	if (o->print)
		printf("; grid %s\n%.*s\n", name, (int)text.len, text.data);
	if (gci_topo_parse(&t, (const char *)text.data, text.len, name, &e) ||
		gci_decider_init(&d, &t, 0)) {
		fprintf(stderr, "bench_networks: %s\n", e.text);
		exit(2);
	}
	for (k = 0; k < GCI_BARRIER; k++)
		for (s = 0; s < o->nsizes && t.nranks > 1; s++) {
			struct gci_coll c = {.kind = (enum gci_kind)k,
				.topo = &t,
				.esize = 1,
				.order = o->fixed ? GCI_CLUSTER_ORDER : GCI_ANY_ORDER,
				.count = o->sizes[s] / (gci_kind_has_vector((enum gci_kind)k)
								       ? 1
								       : (unsigned)t.nranks)};

			uint64_t *counts = o->uneven ? random_counts(r, c.kind, (unsigned)t.nranks,
							       o->sizes[s])
						     : NULL;

			c.counts = counts;
			if (o->kinds & 1u << k && !o->print && (counts || !o->uneven))
				measure(&f[k * MOST_SIZES + s], name, &t, &d, &c, o);
			gci_free(counts);
		}
	gci_decider_free(&d);
	gci_topo_free(&t);
	gci_buf_free(&text);
}

int main(int argc, char **argv)
{
	struct figures *f = gci_calloc(GCI_BARRIER * MOST_SIZES, sizeof(*f));
	struct options o;
	struct gci_prng r;
	unsigned i, k, s;
	char size[16];

	if (!f || parse(argc, argv, &o)) {
		fprintf(stderr,
			"usage: bench_networks [-s SEED] [-n GRIDS] [-c LEAST-MOST] [-H HOSTS] "
			"[-b BYTES,...] [-o KIND,...] [-a NAME,...] [-f] [-u] [-v] [-g]\n");
		return 2;
	}
	r.state = o.seed;
	for (i = 0; i < o.ngrids; i++)
		run_grid(&o, i, &r, f);
	if (o.print)
		return 0;
	printf("%u random grids, seed %" PRIu64
	       "; predicted time over the largest limit: median, 90 %%, worst\n"
	       "%-15s %9s    n by prices   chosen               paced                packed        "
	       "       its shares    "
	       "       ms "
	       "to plan\n",
		o.ngrids, o.seed, "operation", "size");
	for (k = 0; k < GCI_BARRIER; k++)
		for (s = 0; s < o.nsizes; s++) {
			struct figures *x = &f[k * MOST_SIZES + s];

			if (!x->n)
				continue;
			printf("%-15s %9s %4zu %9zu", gci_kind_name((enum gci_kind)k),
				gci_format_bytes(o.sizes[s], size, sizeof(size)), x->n,
				x->by_prices);
			print_distribution(x->ratio[CHOSEN], x->n);
			print_distribution(x->ratio[PACED], x->n);
			print_distribution(x->ratio[PACKED], x->n);
			print_distribution(x->ratio[FLUID], x->n);
			print_distribution(x->plan_ms, x->n);
			if (x->nothers)
				printf("  others %5.2f %5.2f",
					exp(x->others_log / (double)x->nothers), x->others_least);
			printf("\n");
		}
	gci_free(f);
	return 0;
}
