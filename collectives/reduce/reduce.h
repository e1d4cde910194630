/* SPDX-License-Identifier: MIT
 * Emitters of reduce. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_REDUCE_REDUCE_H
#define GCI_COLLECTIVES_REDUCE_REDUCE_H

#include "collectives/blocks/reduction.h"

#endif
