/* SPDX-License-Identifier: MIT */
#include "collectives/models/samples.h"

#include <string.h>

void gci_samples_add(struct gci_samples *s, uint64_t v)
{
	uint32_t i = s->n;

	if (s->n == GCI_SAMPLES_MOST)
		return;
	for (; i && s->v[i - 1] > v; i--)
		;
	memmove(&s->v[i + 1], &s->v[i], (s->n - i) * sizeof(*s->v));
	s->v[i] = v;
	s->n++;
}

/* The least x with x * x >= v. */
static uint64_t root_up(uint64_t v)
{
	uint64_t x = 0;

	while (x * x < v)
		x++;
	return x;
}

/* How many of n times are below the interval: each is below the median with 1/2, so their number
 * is n / 2 give or take 1.645 sqrt(n) / 2. */
static uint32_t outside(uint32_t n)
{
	uint64_t span = root_up((uint64_t)n * 270603 / 10); /* 100 x 1.645 sqrt(n) */
	uint64_t most = (uint64_t)(n ? n - 1 : 0) * 100;

	return span >= most ? 0 : (uint32_t)((most - span) / 200);
}

struct gci_estimate gci_samples_estimate(const struct gci_samples *s)
{
	struct gci_estimate e = {.n = s->n};
	uint32_t n = s->n, skip = outside(n);

	if (!n)
		return e;
	e.ns = s->v[(n - 1) / 2] / 2 + s->v[n / 2] / 2 + (s->v[(n - 1) / 2] & s->v[n / 2] & 1);
	e.err_ns = n > 1 ? (s->v[n - 1 - skip] - s->v[skip]) / 2 : e.ns;
	return e;
}
