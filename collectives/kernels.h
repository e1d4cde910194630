/* SPDX-License-Identifier: MIT
 * Reduction kernels: out[i] = left[i] OP right[i] over plain arrays. */
#ifndef GCI_COLLECTIVES_KERNELS_H
#define GCI_COLLECTIVES_KERNELS_H

#include <gridcoll/gridcoll.h>

/* `out` may be `left` or `right`, but not overlap them otherwise. n elements, naturally aligned or
 * not. Integers wrap around; MIN and MAX of floats take `left` when the operands are unordered. */
typedef void (*gci_kernel)(void *out, const void *left, const void *right, uint64_t n);

/* NULL where the operation has no meaning for the type (bitwise ones on floats, arithmetic on
 * opaque bytes). */
gci_kernel gci_kernel_find(enum gcoll_type type, enum gcoll_op op);

const char *gci_type_name(enum gcoll_type type);
const char *gci_op_name(enum gcoll_op op);

/* By name; -1 when there is none. */
int gci_type_find(const char *name);
int gci_op_find(const char *name);

#endif
