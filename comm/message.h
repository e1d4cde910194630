/* SPDX-License-Identifier: MIT
 * gcoll_send and gcoll_recv: single messages between two ranks, numbered by peer and tag. */
#ifndef GCI_COMM_MESSAGE_H
#define GCI_COMM_MESSAGE_H

#include "comm/request.h"

/* As gci_op_check(), for a message with GCI_SEQ_MESSAGE. */
int gci_message_check(gcoll_comm *c, int peer, const struct gci_tp_key *key, uint64_t digest);

/* This rank has left, another one waits for a message to or from it: fails if its side of the
 * message was never begun. */
void gci_message_asked(struct gci_engine *e, const struct gci_ctl_wait *w);

/* After a failure: ends those that no transport ends, from a rank to itself. */
void gci_messages_fail(struct gci_engine *e);

/* Frees what the communicator keeps of messages. */
void gci_messages_free(gcoll_comm *c);

#endif
