/* SPDX-License-Identifier: MIT
 * A packing as it becomes steps of one rank, messages of all hosts, or rates of their pairs: all walk through all
 * segments in the same order (packed_trees.c, packed_paths.c), and note what concerns them. */
#ifndef GCI_COLLECTIVES_PLANNER_EMISSION_H
#define GCI_COLLECTIVES_PLANNER_EMISSION_H

#include "collectives/blocks/blocks.h"
#include "collectives/planner/packed_impl.h"
#include "collectives/planner/timetable.h"

enum gci_act_kind { GCI_ACT_RECV, GCI_ACT_RECV_REDUCE, GCI_ACT_REDUCE, GCI_ACT_COPY, GCI_ACT_SEND };

/* A step that this rank will have. */
struct gci_act {
	double key; /* ns */
	size_t nth; /* in the order in which they were noted */
	enum gci_act_kind kind;
	int swapped; /* of a REDUCE or RECV_REDUCE */
	int peer;
	uint32_t tag;
	struct gci_slice dst, src;
};

/* All hosts' messages. */
struct gci_listing {
	struct gci_timetable table;
	int *parents;    /* [rank], twice: scratch */
	uint32_t *first; /* [parcel]: its first message */
};

struct gci_emission {
	struct gci_builder *b; /* NULL: all hosts' messages are listed, or their rates added up */
	const struct gci_coll *c;
	const struct gci_packed *p;
	struct gci_network net;
	struct gci_sum_order order; /* if p->is_ordered */
	struct gci_listing *list;   /* NULL: this rank's acts are noted */
	uint64_t *even_bps;         /* [from * nranks + to]; NULL: not asked for */
	const double
		*start_ns; /* [message]: p->times.start_ns; NULL: keys come from depths and tails */
	double scale;      /* of those */
	int me, nranks;
	int *first_column; /* [commodity], and one more */
	int64_t *turn;     /* [column]: of the smooth weighted round robin */
	uint64_t *duty;    /* [rank]: bytes that it was chosen to send */
	int *entry;        /* [class]: its first host, of the segment under way */
	int *place;        /* [rank]: in its class */
	int *slot; /* [rank]: among all, by class and place: the same for all roots that a packing serves */
	unsigned *rotation; /* [class]: of large ones */
	int *fanout; /* [nhosts * GCI_BINOMIAL_HOSTS + place]: of binomial trees over so many hosts */
	uint64_t segment; /* elements */
	double ns;        /* of so many bytes, by their packing */
	int mine;         /* this rank's class */
	int *commodity;   /* [from * nclasses + to]; of trees, [from]; -1: none */
	uint64_t *copies; /* [column * nclasses + class]: that the class's first host sends */
	struct gci_timing *timing; /* [2 * column + second]: of its trees */
	struct gci_act *acts;
	size_t nacts, acts_cap;
};

/* When a tree's segments pass, from the start of one at its root. */
struct gci_timing {
	double *depth; /* [class]: until its first host has it */
	double *tail;  /* [class]: from then on until the last behind it has it */
	double *copies; /* [class]: of sums in a fixed order: how many go from its first host to the next */
	double *late; /* [class]: of sums: when what is below it may be complete where it ends, at the latest */
	double end; /* of all */
	double all; /* of both trees, of the first */
};

static inline double gci_later(double a, double b)
{
	return a > b ? a : b;
}

/* Of `b`'s rank; NULL: of all hosts. `e` is to be ended either way. 0, GCOLL_ERR_NOMEM, or GCOLL_ERR_INVAL: the packing is
 * not for `c`. */
int gci_emission_start(struct gci_emission *e, struct gci_builder *b, const struct gci_coll *c,
	const struct gci_packed *p);
void gci_emission_end(struct gci_emission *e);

/* Walks through all segments. 0 or GCOLL_ERR_NOMEM. */
int gci_emission_pass(struct gci_emission *e);
int gci_emission_pass_trees(struct gci_emission *e);
void gci_emission_pass_paths(struct gci_emission *e);

/* A step that this rank will have, at its key. */
void gci_emission_note(struct gci_emission *e, double key, struct gci_act act);

/* From one class to another, as bytes go. */
double gci_emission_hop_ns(const struct gci_emission *e, int from, int to);

/* Whose turn it is among a commodity's columns. */
int gci_emission_next_column(struct gci_emission *e, int commodity);

/* The host of a class that has sent least, the first of equals; of large classes one after the other. */
int gci_emission_choose_host(struct gci_emission *e, int class, uint64_t more);

/* What a segment counts. */
uint64_t gci_emission_weight(const struct gci_emission *e, uint64_t length);

/* Segment i of a slice. */
struct gci_slice gci_emission_part(struct gci_slice s, uint64_t segment, uint64_t i);

/* Of what a packing was made for, c is so much: about all, or a window. */
double gci_emission_part_of(const struct gci_packed *p, const struct gci_coll *c);

#endif
