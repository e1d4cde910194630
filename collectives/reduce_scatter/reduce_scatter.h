/* SPDX-License-Identifier: MIT
 * Emitters of reduce_scatter. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_REDUCE_SCATTER_REDUCE_SCATTER_H
#define GCI_COLLECTIVES_REDUCE_SCATTER_REDUCE_SCATTER_H

#include "collectives/blocks/reduction.h"

#endif
