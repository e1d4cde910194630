/* SPDX-License-Identifier: MIT
 * The lab on a running kernel without netem: hosts are namespaces as in netem/host.h, what is between
 * clusters are threads of this process (netem/emulator.h), in real time and on all processors. Needs
 * root, or leave to make user namespaces and to open /dev/net/tun.
 *
 *	struct gci_tap *t = gci_tap_up(&grid, dilation, &e);
 *	pid = gci_tap_fork();		// GCI_HOST_LAB is there, for it and for this process
 *	...
 *	gci_tap_end(t, &gauge);
 *
 * All of it lives in a mount namespace that this process enters, and never leaves: labs do not see
 * each other, and nothing of one is left when its processes are gone. */
#ifndef GCI_NETEM_TAP_H
#define GCI_NETEM_TAP_H

#include "base/buf.h"
#include "collectives/grid/grid.h"
#include "netem/emulator.h"
#include "netem/weather.h"

#include <sys/types.h>

struct gci_tap;

/* Why this kernel or user cannot: GCOLL_ERR_UNSUPPORTED with what to do about it. */
int gci_tap_check(struct gci_error *e);

/* Builds the (dilated) grid, from a process without other threads. NULL and `e`. */
struct gci_tap *gci_tap_up(const struct gci_grid *g, uint32_t dilation, struct gci_error *e);

/* As fork(): a child whose own children, and theirs, end with it, or when this process does. Between it
 * and this one is the first process of their namespace, which passes signals on and ends as the child
 * does: its id is the one returned. */
pid_t gci_tap_fork(struct gci_error *e);

/* For a child that signals are passed on to: where no terminal sends them it leaves our group of
 * processes, or it would hear those for the whole group twice. */
void gci_leave_group(void);

/* Now. */
void gci_tap_change(struct gci_tap *t, const struct gci_weather_change *c);

/* Readable where a program in the lab wants something of its links (gci_tap_ask): then serve it. */
int gci_tap_fd(const struct gci_tap *t);
void gci_tap_serve(struct gci_tap *t);

/* From a program in the lab: a change of links as a line of netem/weather.h without its time, or "" for
 * what they have counted so far. *answer is appended to. GCOLL_ERR_UNSUPPORTED where the lab has no
 * such links. */
int gci_tap_ask(const char *request, struct gci_buf *answer, struct gci_error *e);

/* Takes it down; then *gauge tells how true the links were. */
void gci_tap_end(struct gci_tap *t, struct gci_emulator_gauge *gauge);

#endif
