/* SPDX-License-Identifier: MIT
 * Wires between TAP devices, in real time: threads of this process read what is sent into a device,
 * and write it to another when its wires (netem/wires.h) let go of it. TCP's packets of up to 64 KiB
 * pass whole.
 *
 *	struct gci_emulator *m = gci_emulator_start(&config, &e);
 *	...
 *	gci_emulator_gauge(m, &gauge);
 *	gci_emulator_stop(m);
 *
 * All calls from one thread. */
#ifndef GCI_NETEM_EMULATOR_H
#define GCI_NETEM_EMULATOR_H

#include "base/error.h"
#include "netem/wires.h"

/* A device that is there: made by `ip tuntap add dev DEV mode tap vnet_hdr` in its namespace. */
struct gci_emulator_tap {
	const char *netns; /* NULL: the one we are in */
	const char *dev;
};

/* What is sent into one device comes out of another, through these wires. */
struct gci_emulator_way {
	int from, to; /* devices; of a device there is one way at most */
	int wires[GCI_WIRES_MAX_HOPS], nwires;
};

struct gci_emulator_config {
	const struct gci_emulator_tap *taps;
	const struct gci_emulator_way *ways;
	const struct gci_wire_model *models; /* of the wires */
	int ntaps, nways, nwires;
	uint64_t seed;
};

/* How far to trust what was measured over it: how late packets left, against what their wires
 * computed. */
struct gci_emulator_gauge {
	uint64_t npackets;
	uint64_t late_p50_ns, late_p99_ns, late_max_ns;
	uint64_t no_room; /* segments dropped for want of memory, or by the device they went to */
	int is_realtime;  /* 0: the threads run like others, not by SCHED_FIFO */
};

struct gci_emulator;

/* Copies what it needs. NULL and `e`. */
struct gci_emulator *gci_emulator_start(const struct gci_emulator_config *c, struct gci_error *e);

/* Packets under way are lost. NULL is legal. */
void gci_emulator_stop(struct gci_emulator *m);

void gci_emulator_set(struct gci_emulator *m, int wire, const struct gci_wire_model *model);
struct gci_wire_counts gci_emulator_counts(struct gci_emulator *m, int wire);
void gci_emulator_gauge(struct gci_emulator *m, struct gci_emulator_gauge *gauge);

#endif
