/* SPDX-License-Identifier: MIT
 * Watching a job's traffic, and what the job can be asked and told over its control socket. While somebody
 * asks for the traffic (gridcoll top), or a file is wanted (--stats), the ranks are told to report; else
 * nothing happens at all.
 *
 *	rc = gci_watch_open(&w, o, p, &loop, on_drained, &e);	// config.reports = gci_watch_reports(&w)
 *	...
 *	gci_watch_start(&w, &server);
 *	gci_jobctl_open(&ctl, &loop, gci_watch_commands, &w, &e);	// somebody may ask
 *	gci_watch_end(&w);					// the job is over
 *	...							// all is written
 *	if (gci_watch_failed(&w))
 *		status = 1;
 */
#ifndef GCI_LAUNCHER_WATCH_H
#define GCI_LAUNCHER_WATCH_H

#include "launcher/ctl.h"
#include "launcher/options.h"
#include "launcher/output.h"
#include "launcher/placement.h"
#include "launcher/server.h"
#include "launcher/traffic.h"

struct gci_watch {
	struct gci_placement *plan;
	char **argv;
	struct gci_server *server;
	struct gci_traffic *traffic;
	uv_timer_t timer;
	uint64_t until_ns, flows_until_ns; /* of the leases, gci_now_ns() */
	struct gci_ctl_watch told;         /* to the ranks */
	uint32_t period_ms;
	struct gci_sink file;
	int has_file;
	const char *path;     /* of the file, for messages */
	uint64_t written_bin; /* bins before this one are in the file */
	int is_partial;       /* and something is not, which was said */
};

/* The file is opened, if there is to be one. */
int gci_watch_open(struct gci_watch *w, const struct gci_options *o, struct gci_placement *p,
	uv_loop_t *loop, void (*on_drained)(struct gci_sink *s), struct gci_error *e);

/* The plan knows now where ranks are that others have started. */
void gci_watch_settle(struct gci_watch *w);

/* Ranks may be told of it. */
void gci_watch_start(struct gci_watch *w, struct gci_server *server);

/* For struct gci_rdv_config. */
struct gci_rdv_reports gci_watch_reports(struct gci_watch *w);

/* What the job can be asked; `user` is the watch. */
extern const struct gci_jobctl_command gci_watch_commands[];

/* The last lines of the file. */
void gci_watch_end(struct gci_watch *w);

/* When they are written: true if not all of what was to be in the file is there. */
int gci_watch_failed(const struct gci_watch *w);

#endif
