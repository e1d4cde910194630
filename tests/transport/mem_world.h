/* SPDX-License-Identifier: MIT
 * The mem backend under test, and what a test wants to be different when it opens a world. */
#ifndef GCI_TESTS_TRANSPORT_MEM_WORLD_H
#define GCI_TESTS_TRANSPORT_MEM_WORLD_H

#include "tests/transport/conformance.h"

#include "testing/network.h"

extern const struct backend mem_backend; /* `private` of its worlds: the network */
extern struct gci_mem_faults mem_faults;
extern uint64_t mem_seed;

#endif
