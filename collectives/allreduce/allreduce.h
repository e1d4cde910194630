/* SPDX-License-Identifier: MIT
 * Emitters of allreduce. */
#ifndef GCI_COLLECTIVES_ALLREDUCE_ALLREDUCE_H
#define GCI_COLLECTIVES_ALLREDUCE_ALLREDUCE_H

#include "collectives/blocks/reduction.h"

#endif
