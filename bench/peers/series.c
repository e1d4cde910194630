/* SPDX-License-Identifier: MIT */
#include "bench/peers/series.h"

#include "base/median.h"

#include <stdio.h>
#include <string.h>

int gcb_series_run(struct gcb_series *s, struct gcb_pair *p, struct gci_error *e)
{
	struct gcb_pair_result r;
	int round, way, rc;

	for (way = 0; way < s->nways; way++)
		if (s->ways[way]->missing && !s->skipped[way][0])
			s->ways[way]->missing(s->skipped[way]);
	for (round = 0; round < s->rounds; round++) {
		for (way = 0; way < s->nways; way++) {
			if (s->skipped[way][0])
				continue;
			memset(&r, 0, sizeof(r));
			rc = gcb_pair_run(p, s->ways[way], &r, e);
			if (rc == GCOLL_ERR_UNSUPPORTED)
				snprintf(s->skipped[way], sizeof(s->skipped[way]), "%.150s",
					e->text);
			else if (rc)
				return rc;
			s->ns[way][round] = (double)r.ns;
			s->cpu_ns[way][round] = (double)(r.cpu_ns[0] + r.cpu_ns[1]);
		}
	}
	return 0;
}

static double median_of(const double *v, int n)
{
	double copy[GCB_MAX_ROUNDS];

	memcpy(copy, v, (size_t)n * sizeof(*v));
	return gci_median(copy, (size_t)n);
}

static double median_ratio(const double *v, const double *base, int n)
{
	double ratio[GCB_MAX_ROUNDS];
	int i;

	for (i = 0; i < n; i++)
		ratio[i] = base[i] > 0 ? v[i] / base[i] : 0;
	return gci_median(ratio, (size_t)n);
}

double gcb_series_ns(const struct gcb_series *s, int way)
{
	return median_of(s->ns[way], s->rounds);
}

double gcb_series_cpu_ns(const struct gcb_series *s, int way)
{
	return median_of(s->cpu_ns[way], s->rounds);
}

double gcb_series_ratio(const struct gcb_series *s, int way)
{
	return median_ratio(s->ns[way], s->ns[0], s->rounds);
}

double gcb_series_cpu_ratio(const struct gcb_series *s, int way)
{
	return median_ratio(s->cpu_ns[way], s->cpu_ns[0], s->rounds);
}
