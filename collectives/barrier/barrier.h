/* SPDX-License-Identifier: MIT
 * Emitters of barrier. */
#ifndef GCI_COLLECTIVES_BARRIER_BARRIER_H
#define GCI_COLLECTIVES_BARRIER_BARRIER_H

#include "collectives/blocks/blocks.h"

#endif
