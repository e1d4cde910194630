/* SPDX-License-Identifier: MIT
 * Callbacks of requests (gcoll_on_done): called outside of the transport, one after the other, and
 * outside of the gate, so that they may call gridcoll. */
#ifndef GCI_COMM_DONE_H
#define GCI_COMM_DONE_H

#include "comm/engine.h"

struct gcoll_req;

/* Calls what is due, unless it is a callback that is asking. After a failure, not before all is
 * known about it (gci_engine_settled). */
void gci_done_tell(struct gci_engine *e);

/* The transport is gone: tells all that have a callback and are under way that they are not. */
void gci_done_cancel(struct gci_engine *e);

#endif
