/* SPDX-License-Identifier: MIT
 * lab.json: what a running lab tells the programs in it, by its name in GRIDCOLL_LAB.
 *
 *	{"version": 1, "backend": "uml", "dilation": 20,
 *	 "grid": "[cluster kyoto]\n...",			the grid as it is there: dilated
 *	 "hosts": [{"name": "k1", "netns": "gcl-k1", "addr": "10.1.0.1",
 *		    "port_netns": "gcl-sw-kyoto", "port": "p0"}, ...],	in rank order
 *	 "links": [{"from": "kyoto", "to": "tokyo", "netns": "gcl-wan", "dev": "wan-0-1",
 *		    "counter": "tx"}, ...]}
 *
 * What `dev` has sent ("tx") or received ("rx") is what has crossed the link in this direction. */
#ifndef GCI_NETEM_LABFILE_H
#define GCI_NETEM_LABFILE_H

#include "netem/plan.h"

#define GCI_LABFILE_VERSION 1

int gci_labfile_write(const char *path, const struct gci_lab_plan *plan,
	const struct gci_grid *dilated, uint32_t dilation, const char *backend,
	struct gci_error *e);

/* So that programs find the lab's hosts by name: a file of its own in the place of /etc/hosts, for those
 * who see our mounts. */
void gci_labfile_name_hosts(const struct gci_lab_plan *plan);

/* Where a host is plugged in. */
struct gci_lab_port {
	char netns[256];
	char dev[16];
};

/* Finds a host's port in the lab.json at `path`. */
int gci_labfile_port(
	const char *path, const char *host, struct gci_lab_port *port, struct gci_error *e);

#endif
