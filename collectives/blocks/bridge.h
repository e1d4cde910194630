/* SPDX-License-Identifier: MIT
 * counter_copy (Matsuda 2006, 2.2 to 2.5): how a vector that is cut over one cluster crosses to
 * another one, where it is cut in another way, by no more than n senders.
 *
 * On either side the vector is cut over the ranges of some depth (blocks.h), each held by one
 * member. Holders that may not send forward theirs to one that may, which sends it straight to the
 * final counterparts. Every ordered pair of clusters has a bridge of its own: its own number of
 * senders, and its own depths. */
#ifndef GCI_COLLECTIVES_BLOCKS_BRIDGE_H
#define GCI_COLLECTIVES_BLOCKS_BRIDGE_H

#include "collectives/blocks/blocks.h"

/* How the number of senders comes about. */
enum gci_bridge_how {
	/* Any number: others forward to them (2.2). Of two clusters that differ by more than two
	 * times, the larger one works with as few holders as the smaller one has (2.5). */
	GCI_BRIDGE_FORWARD,
	/* 2^i: so many ranges hold the vector, on both sides; nothing is forwarded (2.4). */
	GCI_BRIDGE_HALVES,
};

/* One side of it. */
struct gci_bank {
	struct gci_group g;
	struct gci_parts p; /* one per member */
	int depth, n;       /* the ranges, and how many they are */
};

struct gci_bridge {
	struct gci_bank from, to;
	int to_cluster;
	int senders; /* the holders of ranges first ... first + senders - 1, modulo their number */
	int first;   /* not the same for all clusters: skewed, so that others' NICs work as well */
	int copies;  /* all members of a range hold it (they merged), not only the first */
	int turn;    /* which of them sends */
};

/* The members of `cluster`, with the root of a bcast first, and one part for each. */
struct gci_bank gci_bank_of(const struct gci_coll *c, int cluster, int rank);

/* Between clusters `from` and `to`, which are different. */
void gci_bridge_make(struct gci_bridge *x, const struct gci_coll *c, int rank, int from, int to,
	enum gci_bridge_how how, int copies);

/* On the sending side. Forwards, in rounds. Returns where in TMP a sender finds what was forwarded
 * to it; gci_bridge_send_forwarded wants to know. */
uint64_t gci_bridge_forward(struct gci_builder *b, const struct gci_bridge *x,
	const struct gci_stage *s, uint32_t phase);
/* A sender's: the range that it holds itself, and those of others. */
void gci_bridge_send_own(struct gci_builder *b, const struct gci_bridge *x,
	const struct gci_stage *s, uint32_t phase);
void gci_bridge_send_forwarded(struct gci_builder *b, const struct gci_bridge *x,
	const struct gci_stage *s, uint64_t forwarded, uint32_t phase);

/* On the receiving side, one after the other, the messages that make up what this rank takes: the
 * sender, the tag, and what of the vector there is in it. Begin with *i = 0; 0 when there are no
 * more. */
int gci_bridge_next(
	const struct gci_bridge *x, int *i, int *peer, uint32_t *tag, struct gci_slice *what);

/* Receives them to where they stand in `s`. */
void gci_bridge_recv(struct gci_builder *b, const struct gci_bridge *x, const struct gci_stage *s,
	uint32_t phase);

#endif
