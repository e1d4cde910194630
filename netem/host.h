/* SPDX-License-Identifier: MIT
 * The lab on the running kernel: needs root and sch_netem. One lab at a time; what it made is
 * written down in GCI_HOST_DIR before it is made, so that it can be taken down also after a crash.
 *
 *	struct gci_host h;
 *	if (!gci_host_up(&h, &grid, dilation, 0, &e)) {
 *		...				// GCI_HOST_LAB is there
 *		gci_host_end(&h, &e);
 *	} */
#ifndef GCI_NETEM_HOST_H
#define GCI_NETEM_HOST_H

#include "collectives/grid/grid.h"

#define GCI_HOST_DIR "/run/gridcoll"
#define GCI_HOST_LAB GCI_HOST_DIR "/lab.json"

struct gci_host {
	int lock;
};

/* Why this kernel or user cannot: GCOLL_ERR_UNSUPPORTED with what to do about it. Tries each queue
 * discipline in a namespace of its own. */
int gci_host_check(struct gci_error *e);

/* Whether this kernel has the queue discipline of this name, tried in a namespace of its own: 1 or
 * 0; -1: it cannot be tried (needs root and tc). */
int gci_host_has_qdisc(const char *name);

/* Builds the (dilated) grid. `standing`: it stays when we end; otherwise the next lab takes what
 * we leave behind for a crash's. On failure nothing is left. */
int gci_host_up(struct gci_host *h, const struct gci_grid *g, uint32_t dilation, int standing,
	struct gci_error *e);

/* Takes it down, and all processes in it. */
int gci_host_end(struct gci_host *h, struct gci_error *e);

/* Lets a standing lab stand. */
void gci_host_leave(struct gci_host *h);

/* Takes down a standing lab, or what a crash left; *found tells whether there was one. */
int gci_host_down(int *found, struct gci_error *e);

#endif
