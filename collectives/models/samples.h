/* SPDX-License-Identifier: MIT
 * A few measured times: their median, and how sure it is. Order statistics, which one disturbed
 * time in a dozen does not move. */
#ifndef GCI_COLLECTIVES_MODELS_SAMPLES_H
#define GCI_COLLECTIVES_MODELS_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#define GCI_SAMPLES_MOST  60
#define GCI_SAMPLES_LEAST 5 /* fewer have no 90 % interval */

struct gci_samples {
	uint64_t v[GCI_SAMPLES_MOST]; /* rising */
	uint32_t n;
};

/* The median, and half of the interval that has the true one in it with 90 %; with fewer than
 * GCI_SAMPLES_LEAST times, half of the range; with one, all of it. */
struct gci_estimate {
	uint64_t ns, err_ns;
	uint32_t n;
};

/* Keeps `v` in order; when it is full, does nothing. */
void gci_samples_add(struct gci_samples *s, uint64_t v);

struct gci_estimate gci_samples_estimate(const struct gci_samples *s);

#endif
