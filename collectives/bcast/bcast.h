/* SPDX-License-Identifier: MIT
 * Emitters of bcast. One file each; the cost formula and source stand on top of it. */
#ifndef GCI_COLLECTIVES_BCAST_BCAST_H
#define GCI_COLLECTIVES_BCAST_BCAST_H

#include "collectives/blocks/blocks.h"

#endif
