/* SPDX-License-Identifier: MIT
 * Private to the kernels and their tests: kernels_loops.c is compiled once per instruction set. */
#ifndef GCI_COLLECTIVES_KERNELS_KERNELS_IMPL_H
#define GCI_COLLECTIVES_KERNELS_KERNELS_IMPL_H

#include "collectives/kernels/kernels.h"

typedef void (*gci_scaler)(void *buf, uint64_t n, int nranks);

struct gci_kernel_set {
	const char *name;
	gci_kernel kernels[GCOLL_NTYPES][GCOLL_NOPS];
	gci_scaler scalers[GCOLL_NTYPES];
};

extern const struct gci_kernel_set gci_kernels_plain, gci_kernels_avx2, gci_kernels_avx512;

/* Number i of the sets that this machine can run, the best first; NULL behind the last. All give
 * the same bits, but for which NaN a NaN is. */
const struct gci_kernel_set *gci_kernel_set(int i);

#endif
