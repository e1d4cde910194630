/* SPDX-License-Identifier: MIT
 * When each message of an operation goes: the messages of all hosts as a graph, and a time for each.
 *
 *	struct gci_timetable t = {.net = &net, .message_ns = 15000, .about_ns = 100e6, .spacing = 1, .eager_nbytes = 1 << 20};
 *
 *	i = gci_timetable_add(&t, from, to, nbytes, key);
 *	gci_timetable_after(&t, i, before);
 *	rc = gci_timetable_find(&t);
 *	use(t.messages[i].start_ns);
 *	gci_timetable_free(&t);
 *
 * Messages are placed one after the other, of those whose predecessors are there the one with the least key: each goes
 * as soon as its sender, all links on its way and its receiver have time for it when it gets there, so that it waits
 * nowhere but at its sender. How long all of it takes depends on the keys. The time at which a message ends when
 * everything runs backwards, from the last end to the first start, says how late it may start; so each
 * direction's times are the other's keys, there, back, and there again (forward-backward scheduling: Li
 * and Willis 1992); more hardly help. The better way there stays. */
#ifndef GCI_COLLECTIVES_PLANNER_TIMETABLE_H
#define GCI_COLLECTIVES_PLANNER_TIMETABLE_H

#include "collectives/network/network.h"

#include <stddef.h>

struct gci_timetable_message {
	int from, to; /* ranks; the same: takes no time */
	double nbytes;
	double key;      /* ns: in what order they go, the first time */
	double start_ns; /* found */
};

struct gci_timetable {
	/* Set by the caller. */
	const struct gci_network *net; /* must outlive it */
	double message_ns;             /* what a message costs its sender, and its receiver */
	double about_ns; /* what all of it may take: times are looked at in parts of that */
	double spacing;  /* at least 1: a message takes so many times its part of what it passes */
	double eager_nbytes; /* that a peer in another cluster takes unasked */
	/* Its own. */
	struct gci_timetable_message *messages;
	size_t nmessages, messages_cap;
	struct gci_timetable_pair {
		uint32_t before, after;
	} * pairs;
	size_t npairs, pairs_cap;
	double ns; /* found: until the last has come */
	int failed;
};

/* Returns its number. For want of memory, t->failed. */
uint32_t gci_timetable_add(struct gci_timetable *t, int from, int to, double nbytes, double key);

/* `after` does not start before `before` has come, as a whole. */
void gci_timetable_after(struct gci_timetable *t, uint32_t after, uint32_t before);

/* 0, GCOLL_ERR_NOMEM, or GCOLL_ERR_INVAL (a circle). */
int gci_timetable_find(struct gci_timetable *t);

void gci_timetable_free(struct gci_timetable *t);

#endif
