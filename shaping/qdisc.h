/* SPDX-License-Identifier: MIT
 * The queues of a device, as `tc qdisc` shows them, and what they mean for pacing.
 *
 *	struct gci_qdisc q[GCI_QDISCS];
 *	int n = gci_qdisc_list(if_nametoindex("eth0"), q, &e);
 *	char why[GCI_QDISC_WHY];
 *
 *	if (n >= 0 && !gci_qdisc_has_fq(q, (unsigned)n, "eth0", why))
 *		puts(why);
 *
 * Listing needs no rights. */
#ifndef GCI_SHAPING_QDISC_H
#define GCI_SHAPING_QDISC_H

#include "base/error.h"

#include <stdint.h>

#define GCI_QDISCS    256 /* of one device: one per hardware queue, as a rule; others are not seen */
#define GCI_QDISC_WHY 200

struct gci_qdisc {
	char kind[16];
	uint32_t handle, parent; /* as the kernel has them: major << 16 | minor */
	uint64_t nbytes;         /* sent, on the wire: with the headers of every packet */
	uint64_t horizon_ns;     /* fq: what should leave later than that is dropped; 0: not told */
};

/* Those of an interface in this network namespace. Returns how many, or GCOLL_ERR_SYS. */
int gci_qdisc_list(int ifindex, struct gci_qdisc out[GCI_QDISCS], struct gci_error *e);

/* 1 where all that the device sends goes through fq, which earliest departure times need and
 * SO_MAX_PACING_RATE is best with: every queue that is seen, and has none below it, is one. Else 0,
 * and `why` has what there is instead, and what would help. Pure. */
int gci_qdisc_has_fq(
	const struct gci_qdisc *q, unsigned n, const char *dev, char why[GCI_QDISC_WHY]);

/* The shortest horizon of the device's fq queues; 0: none told. Pure. */
uint64_t gci_qdisc_horizon_ns(const struct gci_qdisc *q, unsigned n);

/* 1 where filters are attached to the device's clsact qdisc, 0 where none, or GCOLL_ERR_SYS. */
int gci_qdisc_has_filters(int ifindex, struct gci_error *e);

#endif
