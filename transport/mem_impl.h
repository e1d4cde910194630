/* SPDX-License-Identifier: MIT
 * Between mem.c (a rank's side), mem_net.c (the network) and mem_loss.c (its losses). A connection
 * is two ends; each holds the bytes on their way to it, as a list of chunks. */
#ifndef GCI_TRANSPORT_MEM_IMPL_H
#define GCI_TRANSPORT_MEM_IMPL_H

#include "base/prng.h"
#include "transport/mem.h"
#include "transport/stream.h"

#include <stdatomic.h>

/* A part of the bytes on their way. */
struct gci_mem_chunk {
	struct gci_list link;
	size_t lo, hi;
	uint8_t data[];
};

struct gci_mem_end {
	struct gci_stream stream;
	struct gci_mem_end *other;
	struct gci_mem *owner;
	struct gci_mem_end *next; /* of the same owner */
	int peer;
	unsigned index;
	uint32_t life;
	struct gci_list chunks;
	size_t flight;
	int calling; /* the owner has not taken this connection yet: there is no stream */
	int cut;     /* what is sent here does not arrive any more */
	int eof;     /* nothing more is put into chunks */
	int over;    /* and the stream knows */
	int queued;  /* among the net's active ends */
	int closed;  /* the owner is gone or dead */
};

struct gci_mem {
	struct gci_tp tp;
	struct gci_ep ep;
	struct gci_mem_net *net;
	struct gci_mem_end *ends;
	atomic_int woken;
	int stopping;
};

/* A connection that is to be made again. */
struct gci_mem_call {
	struct gci_mem *from;
	int to;
	unsigned index;
};

struct gci_mem_net {
	struct gci_mem **ranks;
	int size;
	struct gci_mem_faults faults;
	struct gci_prng prng;
	uint64_t steps, delivered;
	int flipped;
	uint8_t *open; /* [lower * size + higher]: connected, or asked for by the lower */
	uint8_t *gone; /* by rank: stopped, freed or killed */
	struct gci_mem_end **active;
	size_t nactive, cap_active;
	size_t nends;
	struct gci_mem_call *calls;
	size_t ncalls, cap_calls;
	uint32_t nlosses;
	struct gci_mem_end *graveyard; /* ends of freed ranks, chained by next */
};

/* It may have something to do. */
void gci_mem_activate(struct gci_mem_net *net, struct gci_mem_end *e);

/* Nothing more comes from this end. */
void gci_mem_close(struct gci_mem_net *net, struct gci_mem_end *e);

/* mem.c: an end that knows its stream's place, but has no stream; NULL: its owner has failed. */
struct gci_mem_end *gci_mem_new_end(struct gci_mem *m, int peer, unsigned index);
/* Gives it a stream; 0, or its owner has failed. */
int gci_mem_open_end(struct gci_mem_end *e, uint32_t life);

/* mem_loss.c */
void gci_mem_maybe_lose(struct gci_mem_net *net);
/* Takes up a connection that is to be made again; 0: there is none. */
int gci_mem_call_again(struct gci_mem_net *net);
/* The owner's end is lost: gives its frames back, and sees to a new connection. */
void gci_mem_lose(struct gci_mem_end *e);
/* The owner takes a connection, or turns it away. */
void gci_mem_take(struct gci_mem_end *e);

#endif
