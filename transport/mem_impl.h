/* SPDX-License-Identifier: MIT
 * Between mem.c (a rank's side) and mem_net.c (the network). A connection is two ends; each holds
 * the bytes on their way to it, as a list of chunks. */
#ifndef GCI_TRANSPORT_MEM_IMPL_H
#define GCI_TRANSPORT_MEM_IMPL_H

#include "base/prng.h"
#include "transport/mem.h"
#include "transport/stream.h"

#include <stdatomic.h>

struct gci_mem_end {
	struct gci_stream stream;
	struct gci_mem_end *other;
	struct gci_mem *owner;
	struct gci_mem_end *next; /* of the same owner */
	struct gci_list chunks;
	size_t flight;
	int eof;    /* nothing more is put into chunks */
	int over;   /* and the stream knows */
	int queued; /* among the net's active ends */
	int closed; /* the owner is gone or dead */
};

struct gci_mem {
	struct gci_tp tp;
	struct gci_ep ep;
	struct gci_mem_net *net;
	struct gci_mem_end *ends;
	atomic_int woken;
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
	struct gci_mem_end *graveyard; /* ends of freed ranks, chained by next */
};

/* It may have something to do. */
void gci_mem_activate(struct gci_mem_net *net, struct gci_mem_end *e);

/* Nothing more comes from this end. */
void gci_mem_close(struct gci_mem_net *net, struct gci_mem_end *e);

#endif
