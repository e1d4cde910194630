/* SPDX-License-Identifier: MIT
 * Entering network namespaces, as `ip netns exec` does. Needs CAP_SYS_ADMIN. */
#ifndef GCI_LAUNCHER_NETNS_H
#define GCI_LAUNCHER_NETNS_H

#include "base/error.h"

/* The calling process goes into /run/netns/NAME for good, with a /sys of its own that shows that
 * namespace's devices where mounting is possible. */
int gci_ns_join(const char *name, struct gci_error *e);

/* The calling thread goes there for a moment: *back (a descriptor) leads home. */
int gci_ns_visit(const char *name, int *back, struct gci_error *e);
int gci_ns_return(int back, struct gci_error *e);

#endif
