/* SPDX-License-Identifier: MIT
 * Reduction kernels: out[i] = left[i] OP right[i] over plain arrays. */
#ifndef GCI_COLLECTIVES_KERNELS_KERNELS_H
#define GCI_COLLECTIVES_KERNELS_KERNELS_H

#include <gridcoll/gridcoll.h>

/* `out` may be `left` or `right`, but not overlap them otherwise. n elements, naturally aligned or
 * not. Integers wrap around. MIN and MAX of floats take `right` when the operands are equal, as +0
 * and -0 are, or unordered. 16-bit floats are rounded to nearest, ties to even. */
typedef void (*gci_kernel)(void *out, const void *left, const void *right, uint64_t n);

/* The fastest one for this machine. The same bits on all machines, but for which NaN a NaN is. NULL
 * where the operation has no meaning for the type (bitwise ones on floats, arithmetic on opaque
 * bytes). For GCOLL_AVG it is a sum, to be scaled when it is complete. */
gci_kernel gci_kernel_find(enum gcoll_type type, enum gcoll_op op);

/* Divides n elements by the number of ranks: integers truncated towards zero, floats rounded.
 * `type` is one that GCOLL_AVG has a kernel for. */
void gci_kernel_scale(enum gcoll_type type, void *buf, uint64_t n, int nranks);

const char *gci_type_name(enum gcoll_type type);
const char *gci_op_name(enum gcoll_op op);

#endif
