/* SPDX-License-Identifier: MIT
 * Options of data sockets. */
#ifndef GCI_TRANSPORT_SOCKOPT_H
#define GCI_TRANSPORT_SOCKOPT_H

#include "transport/transport.h"

#include <stdint.h>

/* What has been said in the log already, so that it is said once. */
struct gci_sockopt_said {
	int buffers, small, congestion;
};

/* Sets what can be set on the TCP socket `fd` of a connection to `peer`; what the kernel refuses
 * is said in the log. Call it before connect, and after accept.
 *
 * SO_RCVBUF after accept is early enough on Linux: the window scale offered in the handshake
 * follows net.core.rmem_max and tcp_rmem, unless the listening socket has a buffer of its own. */
void gci_sockopt_data(int fd, int peer, const struct gci_tp_link *link, const char *congestion,
	struct gci_sockopt_said *said);

#endif
