/* SPDX-License-Identifier: MIT */
#include "collectives/models/measure_isend.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_SPIKES 3
#define LEAST_RATIO  3

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* 256 log2(v), to 1 %: times differ by factors. */
static int64_t log_of(uint64_t v)
{
	int e = 63;

	if (v < 2)
		return 0;
	while (!(v >> e))
		e--;
	/* Between powers of two, a straight line. */
	return 256 * e + (int64_t)((e < 8 ? v << (8 - e) : v >> (e - 8)) & 255);
}

/* Where two sorts of times part best, by the variance between them (Otsu 1979): the least of the
 * long ones. 0: they are of one sort. `v` is rising. */
static uint64_t threshold(const uint64_t *v, uint32_t n)
{
	int64_t all = 0, low = 0, best = 0, apart = 0;
	uint32_t i, at = 0;

	for (i = 0; i < n; i++)
		all += log_of(v[i]);
	for (i = 1; i < n; i++) {
		int64_t far, weight;

		low += log_of(v[i - 1]);
		far = (all - low) / (n - i) - low / i;
		weight = far * far * i * (n - i);
		if (weight > best && v[i] > v[i - 1]) {
			best = weight;
			apart = far;
			at = i;
		}
	}
	return at && apart >= log_of(LEAST_RATIO) && n - at >= LEAST_SPIKES ? v[at] : 0;
}

static uint64_t median(uint64_t *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

/* Of those from..to-1 that are (or are not) spikes; `otherwise` when there are none. */
static uint64_t middle(const uint64_t *ns, uint32_t from, uint32_t to, uint64_t least, int spikes,
	uint64_t otherwise)
{
	uint64_t v[GCI_ISEND_MOST];
	uint32_t i, n = 0;

	for (i = from; i < to; i++)
		if ((ns[i] >= least) == spikes)
			v[n++] = ns[i];
	return n ? median(v, n) : otherwise;
}

uint32_t gci_isend_pattern(const uint64_t *ns, uint32_t n, struct gci_params_isend *out)
{
	uint64_t sorted[GCI_ISEND_MOST], least;
	uint32_t i, first = n, last = 0, spikes = 0;

	memcpy(sorted, ns, n * sizeof(*ns));
	out->os_start_ns = out->os_mid_ns = out->os_spike_ns = median(sorted, n);
	out->initial = n;
	out->mid = 0;
	least = threshold(sorted, n);
	for (i = 0; least && i < n; i++) {
		if (ns[i] < least)
			continue;
		if (!spikes++)
			first = i;
		last = i;
	}
	/* Short ones that are rare, after long ones, are not what the pattern is about: sockets
	 * that are full take nothing. */
	if (!spikes || (!first && spikes > n / 2))
		return 0;
	out->initial = first;
	/* Between two spikes, on average, to the nearest. */
	out->mid = (last - first - (spikes - 1) + (spikes - 1) / 2) / (spikes - 1);
	out->os_start_ns = middle(ns, 0, first, least, 0, middle(ns, 0, n, least, 0, 0));
	out->os_spike_ns = middle(ns, 0, n, least, 1, 0);
	out->os_mid_ns = middle(ns, first, n, least, 0, out->os_start_ns);
	return spikes;
}

int gci_isend_is_immediate(uint64_t whole_ns, uint64_t recv_ns)
{
	return recv_ns < whole_ns - whole_ns / 4;
}
