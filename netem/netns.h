/* SPDX-License-Identifier: MIT
 * Network namespaces by name, as `ip netns` keeps them.
 *
 *	int here = gci_netns_open(NULL, &e);
 *	if (!gci_netns_enter("gcl-k1", &e))
 *		...			// sockets made now are k1's
 *	gci_netns_leave(here);
 *
 * They move the calling thread, and only it. */
#ifndef GCI_NETEM_NETNS_H
#define GCI_NETEM_NETNS_H

#include "base/error.h"

#define GCI_NETNS_DIR "/run/netns"

/* A descriptor of the namespace of this name, or (NULL) of the one we are in; -1 and `e`. */
int gci_netns_open(const char *name, struct gci_error *e);

int gci_netns_enter(const char *name, struct gci_error *e);

/* Goes back to `fd` and closes it. */
void gci_netns_leave(int fd);

/* Ends all processes inside and takes the name away; the kernel drops the devices with the last
 * user. Silent about one that is not there. */
int gci_netns_remove(const char *name, struct gci_error *e);

#endif
