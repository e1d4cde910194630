/* SPDX-License-Identifier: MIT
 * Packs trees or paths into a network, so that an operation's bytes load everything that they share as
 * evenly as delays allow.
 *
 *	struct gci_commodity one = {.from = net.nclasses - 1, .part = 1};
 *	struct gci_packing_wish w = {.net = &net, .shape = GCI_TREES, .commodities = &one,
 *		.ncommodities = 1, .nbytes = 8 << 20, .segment_nbytes = 16 << 10};
 *	struct gci_packing p;
 *
 *	rc = gci_pack(&p, &w);
 *	for (i = 0; i < p.ncolumns; i++)
 *		use(&p.columns[i]);
 *	gci_packing_free(&p);
 *
 * A column is a tree or a path between classes of hosts. It loads each resource with so many copies of
 * its share. What has theta still to travel on a resource can use it for T - theta only; T is the least
 * time in which shares of columns fit everywhere. It is enough, and often more than that: what has far to go may
 * go first, and leave the rest of the time to others. So there is another reading, `by_spans`: into each span of
 * time, from so long after the start until so long before the end, has to fit what can pass at no other time. That
 * is about the least that each resource needs; together they may need more. New columns are the cheapest ones at the
 * prices that make the fullest resources dear: minimum arborescences (Chu and Liu 1965, Edmonds 1967) or shortest
 * paths. Shares and prices are the two sides of a game, played by multiplicative weights (Rakhlin and
 * Sridharan 2013), as concurrent flows are (Garg and Koenemann 2007). */
#ifndef GCI_COLLECTIVES_PLANNER_PACK_H
#define GCI_COLLECTIVES_PLANNER_PACK_H

#include "collectives/planner/sum_order.h"

enum gci_packing_shape {
	GCI_TREES, /* to all hosts, from each commodity's class */
	GCI_PATHS, /* from each commodity's class to another, or within it */
	GCI_SUMS   /* one commodity, without classes: a tree to some class and one from it */
};

/* Of the bytes, a part that goes the same way. */
struct gci_commodity {
	int from, to;
	double part;
};

struct gci_packing_wish {
	const struct gci_network *net;
	enum gci_packing_shape shape;
	const struct gci_commodity *commodities;
	int ncommodities;
	double nbytes;         /* of all commodities */
	double segment_nbytes; /* what is sent on once it is there as a whole */
	double message_ns;     /* what a message costs its sender, and its receiver; above 0 */
	const struct gci_sum_order *order; /* that sums of trees keep; NULL: none */
	int by_spans;                      /* that reading */
	int bound; /* asks for gci_packing.bound_ns, which takes a fifth of the time more */
};

#define GCI_SHARES 65536

/* One way for bytes of a commodity. */
struct gci_column {
	int commodity;
	uint32_t share;  /* of the commodity's GCI_SHARES */
	double delay_ns; /* of a segment, from its start to the last host that gets it */
	/* GCI_TREES: [class]: where its first host has it from, then [class]: where its others do.
	 * GCI_SUMS: both of the tree to the root, arrows turned, then both of the one from it.
	 * GCI_PATHS: classes, from the first to the last. */
	int *way;
	int nway, root;
	int meet; /* GCI_SUMS: the class whose first host and the root's tell each other what they have; -1: none */
};

struct gci_packing {
	struct gci_column *columns; /* by commodity */
	int ncolumns;
	double ns;       /* T, of these shares, by the first reading: how fast they can be fed */
	double least_ns; /* T by the reading that was asked for */
	double busy_ns;  /* of that, for how long the fullest resource is at work */
	/* What any way of doing it takes, by bytes' shares of what they pass and by delays alone: prices of all
	 * resources that sum to 1 make each byte cost at least what its cheapest tree or path does, and nothing
	 * is busy for longer than T less the delays to it and from it. */
	double bound_ns;
};

/* Of one commodity at least. 0 or GCOLL_ERR_NOMEM (then `p` is empty). */
int gci_pack(struct gci_packing *p, const struct gci_packing_wish *w);
void gci_packing_free(struct gci_packing *p);

/* Inside of a class segments go by a binomial tree; of more hosts than that, by two binary trees in turns. */
#define GCI_BINOMIAL_HOSTS 24

/* How often what has a segment must double until so many hosts have it. */
int gci_packing_rounds(int nhosts);

/* Hops inside of a class of so many hosts, from the first that has something to the last. */
int gci_packing_lan_hops(int nhosts);

#endif
