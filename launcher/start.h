/* SPDX-License-Identifier: MIT
 * What agents and their ranks have to know to begin: told to agents as they are started, or shown. */
#ifndef GCI_LAUNCHER_START_H
#define GCI_LAUNCHER_START_H

#include "launcher/agents.h"

/* Of the control server. */
struct gci_start {
	uint16_t port;
	uint64_t dead_ns;      /* longest silence */
	const uint8_t *secret; /* GCI_SECRET_NBYTES */
};

/* Starts the agents of all places, as all->v[0 ... n), and tells them what to run. */
int gci_agents_start(struct gci_agents *all, const struct gci_options *o,
	const struct gci_placement *p, const struct gci_start *s, struct gci_error *e);

/* Whether the ranks' connections to gridcoll-run are encrypted. */
int gci_start_tls(const struct gci_options *o, const struct gci_placement *p);

/* For people: which rank would run where, and by which commands. */
void gci_dry_run(const struct gci_placement *p, const struct gci_options *o, struct gci_buf *out);

#endif
