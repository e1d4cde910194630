/* SPDX-License-Identifier: MIT
 * Emitters of gather. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_GATHER_GATHER_H
#define GCI_COLLECTIVES_GATHER_GATHER_H

#include "collectives/blocks/blocks.h"

#endif
