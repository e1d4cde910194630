/* SPDX-License-Identifier: MIT
 * The lab as a guest of user-mode Linux: an ordinary process, no root needed.
 *
 *	struct gci_uml *u = gci_uml_boot(&options, wake_fd, &e);
 *	int id = gci_uml_start(u, &job, (int[]){0, 1, 2}, &e);
 *	while (!gci_uml_ended(u, id, &end))
 *		if (gci_uml_pump(u, &extra, 1, -1, &e))
 *			break;				// the guest is gone
 *	gci_uml_stop(u);
 *
 * Owned by one thread. Nothing of it is left when our process ends, also by SIGKILL. */
#ifndef GCI_NETEM_UML_H
#define GCI_NETEM_UML_H

#include "base/error.h"
#include "netem/guest_msg.h"

#include <poll.h>
#include <stddef.h>

struct gci_uml;

struct gci_uml_options {
	const char *grid; /* text of the dilated grid; "": a guest without one */
	uint32_t dilation;
	uint64_t mem_nbytes;
};

/* How a job ended. */
struct gci_uml_end {
	int status;
	uint64_t busy, total; /* CPU ticks of the guest meanwhile */
};

/* Why this machine cannot: GCOLL_ERR_UNSUPPORTED with a sentence and the command that helps. */
int gci_uml_check(struct gci_error *e);

/* Boots and builds the grid's network. NULL and `e` when it cannot, or (GCOLL_ERR_ABORTED) when
 * `wake_fd` becomes readable meanwhile; -1 for none. */
struct gci_uml *gci_uml_boot(
	const struct gci_uml_options *options, int wake_fd, struct gci_error *e);

/* Nanoseconds that the boot took: to the guest's first process, to its network, in all. */
void gci_uml_boot_times(const struct gci_uml *u, uint64_t *network_ns, uint64_t *all_ns);

/* Starts a job with `stdio`, of which stdio[0] may be -1: no input. They stay the caller's. The
 * job's number, or GCOLL_ERR_*. */
int gci_uml_start(
	struct gci_uml *u, const struct gci_job *job, const int stdio[3], struct gci_error *e);

/* Ended? Then its number is free again. */
int gci_uml_ended(struct gci_uml *u, int id, struct gci_uml_end *end);

void gci_uml_signal(struct gci_uml *u, int id, int sig);

/* Waits for the guest, for jobs' input, for `extra` (whose revents it sets), and moves data. Blocks
 * while a job's output is not taken. GCOLL_ERR_IO and why when the guest has ended. */
int gci_uml_pump(
	struct gci_uml *u, struct pollfd *extra, int nextra, int timeout_ms, struct gci_error *e);

/* Ends the guest and all in it. NULL is allowed. */
void gci_uml_stop(struct gci_uml *u);

/* Path of our own program into `out`. */
int gci_self_path(char *out, size_t size, struct gci_error *e);

#endif
