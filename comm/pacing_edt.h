/* SPDX-License-Identifier: MIT
 * Pacing by earliest departure times (shaping/edt.h), for a rank: a class for each other cluster,
 * named as the grid does, of all addresses that its ranks have. Ranks and jobs of one host share
 * them.
 *
 *	rc = gci_pacing_edt_open(&p, engine, ranks, "eth0", &e);
 *	...
 *	n = gci_pacing_edt_senders(engine, senders);
 *	gci_pacing_edt_rate(p, to, bps);	(of this host, to cluster `to`; 0: at will)
 *	...
 *	gci_pacing_edt_close(p);
 */
#ifndef GCI_COMM_PACING_EDT_H
#define GCI_COMM_PACING_EDT_H

#include "base/error.h"

#include <stdint.h>

struct gci_ctl_rank;
struct gci_engine;
struct gci_pacing_edt;

/* `ranks`: where each rank of the world is reached. GCOLL_ERR_UNSUPPORTED with the reason. */
int gci_pacing_edt_open(struct gci_pacing_edt **p, const struct gci_engine *engine,
	const struct gci_ctl_rank *ranks, const char *device, struct gci_error *e);

/* NULL is legal. */
void gci_pacing_edt_close(struct gci_pacing_edt *p);

/* On how many hosts of this rank's cluster so many senders are, at most: a rate is a host's. */
unsigned gci_pacing_edt_senders(
	const struct gci_engine *engine, const struct gci_ctl_rank *ranks, int senders);

void gci_pacing_edt_rate(struct gci_pacing_edt *p, int to, uint64_t bps);

#endif
