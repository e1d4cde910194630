/* SPDX-License-Identifier: MIT
 * gcoll_comm_split in two halves, so that one thread can do it for several ranks.
 *
 *	rc = gci_split_start(&s, c, "split", color, key);
 *	if (!rc)
 *		rc = gcoll_wait(&s.req);
 *	rc = gci_split_end(&s, rc, &out);		// in any case */
#ifndef GCI_COMM_SPLIT_H
#define GCI_COMM_SPLIT_H

#include "comm/comm.h"

struct gci_vote {
	int64_t color, key;
	uint64_t next_id;
	int64_t rank;
};

struct gci_split {
	gcoll_comm *parent;
	gcoll_req *req;
	struct gci_vote mine, *votes; /* [rank] */
};

int gci_split_start(struct gci_split *s, gcoll_comm *c, const char *name, int color, int key);

/* `status` is the request's. Returns it, or that of making the communicator. */
int gci_split_end(struct gci_split *s, int status, gcoll_comm **out);

#endif
