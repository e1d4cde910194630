/* SPDX-License-Identifier: MIT
 * Who belongs to a job's present epoch, what they agree upon, and who goes on when it has failed.
 * No I/O and no clock: what ranks say and the time go in, decisions come out.
 *
 *	rc = gci_members_create(&m, size, bound_ns);
 *	gci_members_agrees(&m, 3, flags);	// rank 3 is in gcoll_comm_agree
 *	gci_members_gone(&m, 5);		// rank 5 is dead
 *	gci_members_fail(&m);			// the epoch has a failure: only shrinking helps
 *	gci_members_shrinks(&m, 3, now);	// rank 3 is in gcoll_comm_shrink
 *	do
 *		gci_members_next(&m, now, &d);	// and tell the ranks
 *	while (d.what != GCI_MEMBERS_NOTHING);
 *	gci_members_free(&m);
 *
 * Nothing is decided as long as a rank that lives does something else: it may be about to come.
 * After a failure that wait has an end: `bound_ns` from the first rank that came to shrink. Ranks
 * are the job's, as it was started; each epoch numbers its own from 0, in the same order. */
#ifndef GCI_LAUNCHER_MEMBERS_H
#define GCI_LAUNCHER_MEMBERS_H

#include <stdint.h>

#define GCI_MEMBERS_NONE  UINT32_MAX
#define GCI_MEMBER_STATES 5

enum gci_member_state {
	GCI_MEMBER_OUT,  /* dead, left out, or it has left a failed epoch: for good */
	GCI_MEMBER_RUNS, /* anything else than what follows */
	GCI_MEMBER_AGREES,
	GCI_MEMBER_SHRINKS,
	GCI_MEMBER_LEAVES /* in gcoll_finalize */
};

struct gci_member {
	enum gci_member_state state;
	uint32_t number; /* in the present epoch, or the last it was in */
	uint64_t flags;  /* AGREES */
};

struct gci_members {
	uint32_t size;   /* of the job */
	uint32_t epoch;  /* from 1 */
	uint32_t n;      /* ranks that it began with */
	uint32_t *ranks; /* [n]: the job's, by number in the epoch */
	uint32_t *lost;  /* [nlost]: of those before, who is not in it */
	uint32_t nlost;
	struct gci_member *of;             /* [size] */
	uint32_t count[GCI_MEMBER_STATES]; /* of the epoch's ranks, by state */
	int failed;
	uint64_t bound_ns;
	uint64_t late_ns; /* when those who have not come to shrink are left out; GCI_NEVER */
};

struct gci_members_decision {
	enum {
		GCI_MEMBERS_NOTHING,
		GCI_MEMBERS_AGREED, /* all that live; they run again */
		/* Others leave or shrink, and so never come: who agrees is told so, and runs again.
		 */
		GCI_MEMBERS_ASTRAY,
		GCI_MEMBERS_LATE,  /* `rank` has not come to shrink: it is out */
		GCI_MEMBERS_SHRUNK /* the next epoch has begun, for all that shrank */
	} what;
	uint64_t flags;   /* AGREED: the AND of all */
	uint32_t missing; /* AGREED: a rank of the epoch that did not take part, or NONE */
	uint32_t rank;    /* ASTRAY: one of the others; LATE */
};

/* 0 or GCOLL_ERR_NOMEM. All ranks run. */
int gci_members_create(struct gci_members *m, uint32_t size, uint64_t bound_ns);
void gci_members_free(struct gci_members *m);

/* `rank` is one of the job's; of one that is out, nothing counts. */
void gci_members_agrees(struct gci_members *m, uint32_t rank, uint64_t flags);
void gci_members_shrinks(struct gci_members *m, uint32_t rank, uint64_t now_ns);
void gci_members_leaves(struct gci_members *m, uint32_t rank);
void gci_members_gone(struct gci_members *m, uint32_t rank);

/* Time that is not to count: those who have not come to shrink may come so much later. */
void gci_members_postpone(struct gci_members *m, uint64_t ns);

/* The present epoch has failed. Those who had begun to leave have left. */
void gci_members_fail(struct gci_members *m);

/* The next decision, which holds from now on; to be asked again until there is NOTHING. */
void gci_members_next(struct gci_members *m, uint64_t now_ns, struct gci_members_decision *d);

/* When to ask again though nothing has happened; GCI_NEVER. */
uint64_t gci_members_deadline(const struct gci_members *m);

static inline int gci_members_in(const struct gci_members *m, uint32_t rank)
{
	return m->of[rank].state != GCI_MEMBER_OUT;
}

#endif
