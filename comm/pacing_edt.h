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

#endif
