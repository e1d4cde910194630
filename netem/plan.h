/* SPDX-License-Identifier: MIT
 * What the lab has to do to bring up a grid: the exact commands, before any is run.
 *
 *	struct gci_lab_plan plan;
 *	if (gci_lab_plan_make(&plan, &grid, k, how, &e))	// grid is dilated by k already
 *		return ...;
 *	for (i = 0; i < plan.nsteps; i++)
 *		...					// netem/apply.h does it
 *	gci_lab_plan_free(&plan);
 *
 * Pure: a model in, text out.
 *
 * A cluster is one namespace with a bridge that is also the cluster's router; each host is a
 * namespace on one of its ports. Two clusters are joined by a wire through the namespace gcl-wan,
 * with a device for each direction:
 *
 *	gcl-k1            gcl-sw-kyoto              gcl-wan               gcl-sw-tokyo      gcl-t1
 *	eth0 ------ in0, p0 = br0 = w1 ------ wan-1-0 = wan-0-1 ------ w0 = br0 = p0 ------ eth0
 *	NIC rate, LAN delay,       WAN rate,            WAN delay,           NIC rate
 *	fq        own time         queue                loss
 *
 * (qdiscs of the way from left to right; the way back has its own. What comes in at p0 takes a turn
 * through in0, an ifb, where every packet is delayed by its own length.)
 *
 * Kernels without netem have neither gcl-wan nor in0: w1 and w0 are TAP devices, and what is between
 * them is netem/emulator.h's. */
#ifndef GCI_NETEM_PLAN_H
#define GCI_NETEM_PLAN_H

#include "collectives/grid/grid.h"
#include "netem/wires.h"

#define GCI_LAB_MAX_CLUSTERS 250             /* one byte of the address */
#define GCI_LAB_LEAST_BPS    1000            /* tc counts in bytes per second */
#define GCI_LAB_MAX_DELAY_NS 200000000000ull /* tc counts in 32 bits */
#define GCI_LAB_MAX_PORTS    1000            /* a Linux bridge has 1023 */

enum gci_lab_tool { GCI_LAB_SYSCTL, GCI_LAB_IP, GCI_LAB_TC };

/* Lines for `ip -batch`, `tc -batch`, or "sysctl.name value", to be done in one namespace. */
struct gci_lab_step {
	enum gci_lab_tool tool;
	char *netns; /* NULL: the one we are in */
	char *lines;
};

struct gci_lab_host {
	char *name, *netns;
	char addr[16], gateway[16], mac[20];
	char *port_netns; /* the switch's end of its cable */
	char port[16], entry[16];
	int cluster;
	uint64_t nic_bps; /* 0: no limit */
};

struct gci_lab_wire {
	int from, to; /* clusters */
	/* The device, and which of its counters ("tx" or "rx") has what has crossed. */
	char *netns;
	char dev[16];
	const char *counter;
	char entry[16]; /* in the switch of `from`: packets leave by it */
	char *entry_netns;
};

/* What links are made of, and what else depends on the kernel. */
struct gci_lab_how {
	int taps;   /* 1: TAP devices and gci_emulator; 0: netem */
	int has_fq; /* 1 wherever there is netem */
	/* 1: connections use cubic, whatever the machine's default is: BBR, which pauses every 10 s,
	 * undilated, would pause k times as often. 0: the kernel has none. */
	int has_cubic;
};

/* What a LAN's delay may be, undilated, where there is nothing to emulate it: the kernel's own is
 * shorter, but of that order. */
#define GCI_LAB_LAN_OF_TAPS_NS 100000

struct gci_lab_plan {
	struct gci_lab_step *steps;
	size_t nsteps, steps_cap;
	char **netns; /* all namespaces, in the order they are made */
	size_t nnetns, netns_cap;
	struct gci_lab_host *hosts; /* in rank order */
	int nhosts;
	struct gci_lab_wire *wires; /* in the order of the grid's links */
	int nwires;
};

/* GCOLL_ERR_INVAL with a sentence when the lab cannot hold this grid, or GCOLL_ERR_NOMEM; then
 * `plan` is empty. */
int gci_lab_plan_make(struct gci_lab_plan *plan, const struct gci_grid *g, uint32_t dilation,
	struct gci_lab_how how, struct gci_error *e);

/* What the emulator is to do for a wire of the grid. */
struct gci_wire_model gci_lab_wire_model(const struct gci_grid *g, const struct gci_link *w);

void gci_lab_plan_free(struct gci_lab_plan *plan);

struct gci_buf;
/* The plan as text, each line with its namespace and its tool in front. */
void gci_lab_plan_print(const struct gci_lab_plan *plan, struct gci_buf *out);

/* What all NICs of a lab together may send where one processor has to do all of it, a guest's, at
 * less than 70 % of its time. */
#define GCI_LAB_GUEST_BPS 1000000000

/* How many times to slow the grid down so that its NICs together send at most `bps`, and that packets
 * which are `late_ns` late under full load are a tenth of the shortest delay late at most (for that,
 * no more than 20 times), while its round trips stay below TCP's first time-out. At least 1. */
uint32_t gci_lab_choose_dilation(const struct gci_grid *g, uint64_t bps, uint64_t late_ns);

#endif
