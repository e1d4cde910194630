/* SPDX-License-Identifier: MIT
 * Budgets: how fast a job may send from one cluster to another, and what that is for each of those
 * who send.
 *
 *	struct gci_budget b = {.given_bps = 4000000000, .link_bps = 10000000000,
 *		.nic_bps = 1000000000};
 *
 *	bps = gci_budget_sender(&b, 8);		// each of 8 hosts that send; 0: at will
 *
 *	struct gci_budget_order o;
 *	rc = gci_budget_parse(&o, "kyoto>tokyo=4Gbit", &e);
 *
 * Pure. Rates are bits per second on the wire (transport/pace.h). 0: unknown, or not given. */
#ifndef GCI_SHAPING_BUDGET_H
#define GCI_SHAPING_BUDGET_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define GCI_BUDGET_EXPECTED "FROM>TO=RATE, such as kyoto>tokyo=4Gbit, or off in place of the rate"
#define GCI_BUDGET_NAME     50 /* bytes of a cluster's name, with its zero */

/* What is left of a link's own rate for acknowledgements of what comes the other way (one of 66
 * bytes for two packets of 1514, at most), which no one paces, and so that a queue that has built
 * up empties again. A budget that was given is used to the full. */
#define GCI_BUDGET_SPARE_PERCENT 4

/* Of an ordered pair of clusters. */
struct gci_budget {
	uint64_t given_bps;
	uint64_t link_bps; /* the link's own rate */
	uint64_t nic_bps;  /* of each host that sends */
};

/* What each of `senders` may send, if pacing is of use: where a budget was given, or where several
 * together could send more than the link carries. 0: it is not. */
uint64_t gci_budget_sender(const struct gci_budget *b, unsigned senders);

/* As a user gives it. */
struct gci_budget_order {
	char from[GCI_BUDGET_NAME], to[GCI_BUDGET_NAME];
	uint64_t bps; /* 0: none any more */
};

/* "FROM>TO=RATE", blanks around the names and the rate; GCOLL_ERR_INVAL. Whether there are such
 * clusters is the grid's business. */
int gci_budget_parse(struct gci_budget_order *o, const char *text, struct gci_error *e);

#endif
