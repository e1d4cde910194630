/* SPDX-License-Identifier: MIT
 * Which of the ways to keep connections to a rate holds here, and why. The ladder, best first:
 *
 *	fq	SO_MAX_PACING_RATE, kept by the packet scheduler on the way out: each packet leaves
 *		when its time has come
 *	tcp	the same, kept by TCP itself: wherever there is no fq, needs no rights, but a timer
 *		for each connection
 *	user	a token bucket in this process: anywhere, but in bursts of a millisecond's bytes
 *
 * and, only when asked for by name, since they change a device that others use as well,
 *
 *	htb	a class for each cluster in tc's HTB, for all that this host sends there; needs the
 *		right to, and a device without queues of its own
 *	edt	the same by earliest departure times, shared with other jobs; needs fq, too
 *
 *	struct gci_ladder_facts facts = {.socket = 1, .fq = 0, .fq_why = "..."};
 *	rc = gci_ladder_choose(GCI_PACE_AUTO, &facts, &rung, why, &e);
 *
 * Pure; shaping/facts.h finds the facts. */
#ifndef GCI_SHAPING_LADDER_H
#define GCI_SHAPING_LADDER_H

#include "base/error.h"
#include "transport/pace.h"

#define GCI_LADDER_WHY    320
#define GCI_PACE_EXPECTED "auto, fq, tcp, htb, edt, user or off"

/* What is asked for; but for AUTO, also what holds. */
enum gci_pace_how {
	GCI_PACE_AUTO,
	GCI_PACE_FQ,
	GCI_PACE_TCP,
	GCI_PACE_HTB,
	GCI_PACE_EDT,
	GCI_PACE_USER,
	GCI_PACE_OFF
};

/* Of the device by which this process sends. A rung that is not to be had has a reason. */
struct gci_ladder_facts {
	char device[16]; /* "": not known */
	char other[16];  /* another one, by which it may send as well; "": there is none */
	int socket;      /* the kernel takes SO_MAX_PACING_RATE */
	int fq, htb, edt;
	char fq_why[GCI_LADDER_WHY / 2], htb_why[GCI_LADDER_WHY / 2], edt_why[GCI_LADDER_WHY / 2];
};

/* 0 or GCOLL_ERR_INVAL. */
int gci_pace_parse(const char *name, enum gci_pace_how *out);
const char *gci_pace_name(enum gci_pace_how how);

/* What holds, and a sentence that says why, and what would be better. What was asked for by name
 * and is not to be had is GCOLL_ERR_UNSUPPORTED, with the reason in `e`. */
int gci_ladder_choose(enum gci_pace_how how, const struct gci_ladder_facts *f,
	enum gci_pace_how *holds, char why[GCI_LADDER_WHY], struct gci_error *e);

/* Who paces sockets on this rung. */
enum gci_paced_by gci_ladder_paced_by(enum gci_pace_how holds);

#endif
