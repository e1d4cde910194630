/* SPDX-License-Identifier: MIT
 * In place of a transport that was freed: it moves nothing, and there is nothing to wait for. Begin
 * no requests on it. */
#ifndef GCI_TRANSPORT_CLOSED_H
#define GCI_TRANSPORT_CLOSED_H

#include "transport/transport.h"

/* One for all; free does nothing. */
struct gci_tp *gci_tp_closed(void);

#endif
