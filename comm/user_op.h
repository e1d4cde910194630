/* SPDX-License-Identifier: MIT
 * Reduction operations of the user's, by number. Any thread. */
#ifndef GCI_COMM_USER_OP_H
#define GCI_COMM_USER_OP_H

#include <gridcoll/gridcoll.h>

/* 0, or -1 when there is none of this number. */
int gci_user_op_find(enum gcoll_op op, gcoll_op_fn **fn, void **ctx, int *commutative);

#endif
