/* SPDX-License-Identifier: MIT
 * The messages an endpoint knows of, by peer and key: a hash table. One table holds those it
 * sends, another those it receives.
 *
 *	struct gci_msgs t = {0};
 *	m = gci_msgs_find(&t, peer, &key);		// NULL: it is not there
 *	m = gci_msgs_get(&t, peer, &key, &is_new);	// NULL: out of memory
 *	...
 *	gci_msgs_del(&t, m);
 *	gci_msgs_free(&t); */
#ifndef GCI_TRANSPORT_MESSAGES_H
#define GCI_TRANSPORT_MESSAGES_H

#include "base/hash.h"
#include "transport/transport.h"

struct gci_msg {
	struct gci_hash_node node; /* of its table, or of the spare ones */
	struct gci_list link;      /* of the endpoint's queues */
	int peer;
	struct gci_tp_key key;
	uint64_t nbytes, digest;
	struct gci_tp_req *req; /* NULL: not offered, or not asked for, here */

	/* Sending. */
	uint64_t order; /* of isend */
	uint64_t eager; /* allowance it holds */
	int credited;   /* the receiver waits for it */
	int queued;     /* on `ready` or `waiting` */
	uint16_t id; /* its number while it holds allowance; at the receiver: that it came with */
	int has_id;  /* at the receiver */

	/* Receiving. */
	uint8_t *early;      /* holds what came before it was asked for; owned */
	uint32_t sum;        /* CRC32C of that */
	uint64_t moved;      /* bytes of frames that have begun to arrive */
	uint64_t landed;     /* bytes that are there */
	uint64_t cover;      /* see cover() in endpoint.c */
	int seen;            /* a frame has come */
	int hurried;         /* likewise, without GCI_FRAME_LATER */
	uint8_t refused;     /* frames that came corrupted */
	struct gci_list due; /* its credit waits to be sent, or word that it has none */
};

struct gci_msgs {
	struct gci_hash table;
	struct gci_hash_node *spare;
	size_t nspare;
};

struct gci_msg *gci_msgs_find(const struct gci_msgs *t, int peer, const struct gci_tp_key *key);

/* The message with this name; if there is none, *is_new and a zeroed one. NULL: out of memory. */
struct gci_msg *gci_msgs_get(
	struct gci_msgs *t, int peer, const struct gci_tp_key *key, int *is_new);

/* Takes `m` out of the table and off its list, and frees its early buffer. */
void gci_msgs_del(struct gci_msgs *t, struct gci_msg *m);

void gci_msgs_free(struct gci_msgs *t);

#endif
