/* SPDX-License-Identifier: MIT
 * Two network namespaces with a veth pair between them, for as long as this process lives.
 *
 *	rc = gcb_veth_enter(&v, &e);	// this process is in the first one from here on
 *	...
 *	gcb_veth_join(&v);		// a child: goes to the second one
 *	...
 *	gcb_veth_leave(&v);
 *
 * Needs ip(8), and root or user namespaces that an ordinary user may make. */
#ifndef GCB_VETH_H
#define GCB_VETH_H

#include "base/error.h"

#include <sys/types.h>

#define GCB_VETH_IP0 "10.99.0.1"
#define GCB_VETH_IP1 "10.99.0.2"

struct gcb_veth {
	pid_t holder; /* lives in the second namespace */
};

/* Only a namespace of our own, with its loopback up, whose counters nobody else moves. As below. */
int gcb_net_own(struct gci_error *e);

/* GCOLL_ERR_UNSUPPORTED with the reason where it cannot be had. There is no way back. */
int gcb_veth_enter(struct gcb_veth *v, struct gci_error *e);
int gcb_veth_join(const struct gcb_veth *v); /* 0, or -1 and errno */
void gcb_veth_leave(struct gcb_veth *v);

#endif
