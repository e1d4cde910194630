/* SPDX-License-Identifier: MIT
 * This host's addresses, and which of them this process takes connections at.
 *
 *	struct gci_own own;
 *	rc = gci_own_choose(&own, "eth1, eth2", "10.0.0.3", &e);
 *	gci_tcp_listen(own.at, own.n, ...);
 */
#ifndef GCI_TRANSPORT_OWN_H
#define GCI_TRANSPORT_OWN_H

#include "base/nics.h"
#include "transport/reach.h"

/* Chooses by `rules` (base/nics.h; NULL or "": none) among the addresses of the interfaces that are
 * up. `usual` is the one by which the launcher is reached: the choice without rules.
 * GCOLL_ERR_INVAL: no rules, or no address that they choose; `e` names those that there are. */
int gci_own_choose(struct gci_own *own, const char *rules, const char *usual, struct gci_error *e);

/* All addresses of the interfaces that are up, *have to be freed. GCOLL_ERR_*. */
int gci_own_list(struct gci_nic_addr **have, unsigned *n, struct gci_error *e);

#endif
