/* SPDX-License-Identifier: MIT
 * Emitters of scatter. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_SCATTER_SCATTER_H
#define GCI_COLLECTIVES_SCATTER_SCATTER_H

#include "collectives/blocks/blocks.h"

#endif
