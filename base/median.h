/* SPDX-License-Identifier: MIT */
#ifndef GCI_BASE_MEDIAN_H
#define GCI_BASE_MEDIAN_H

#include <stddef.h>
#include <stdlib.h>

static inline int gci_median_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of n > 0 numbers, none of them NAN; of an even number of them the mean of the two in the middle.
 * Sorts v. */
static inline double gci_median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), gci_median_order);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

#endif
