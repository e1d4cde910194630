/* SPDX-License-Identifier: MIT
 * Watching the job's traffic: while somebody asks for it (gridcoll top), or a file is wanted
 * (--stats), the ranks are told to report; else nothing happens at all.
 *
 *	rc = gci_watch_open(&w, o, p, &loop, on_drained, &e);	// config.report = gci_watch_report
 *	...
 *	gci_watch_start(&w, &server);
 *	gci_watch_want(&w, GCI_WATCH_LEASE_NS, 0);		// somebody asks
 *	gci_watch_end(&w);					// the job is over
 */
#ifndef GCI_LAUNCHER_WATCH_H
#define GCI_LAUNCHER_WATCH_H

#include "launcher/options.h"
#include "launcher/placement.h"
#include "launcher/server.h"
#include "launcher/sink.h"
#include "launcher/traffic_text.h"

/* Ranks report for so long after the last question. Prometheus asks seldom. */
#define GCI_WATCH_LEASE_NS      (5 * GCI_NS_PER_S)
#define GCI_WATCH_LONG_LEASE_NS (150 * GCI_NS_PER_S)

struct gci_watch {
	const struct gci_placement *plan;
	struct gci_server *server;
	struct gci_traffic *traffic;
	uv_timer_t timer;
	uint64_t until_ns, flows_until_ns; /* of the leases, gci_now_ns() */
	struct gci_ctl_watch told;         /* to the ranks */
	uint32_t period_ms;
	struct gci_sink file;
	int has_file;
	uint64_t written_bin; /* bins before this one are in the file */
};

/* The file is opened, if there is to be one. */
int gci_watch_open(struct gci_watch *w, const struct gci_options *o, const struct gci_placement *p,
	uv_loop_t *loop, void (*on_drained)(struct gci_sink *s), struct gci_error *e);

/* The plan knows now where ranks are that others have started. */
void gci_watch_settle(struct gci_watch *w);

/* Ranks may be told of it. */
void gci_watch_start(struct gci_watch *w, struct gci_server *server);

/* For struct gci_rdv_config; `user` is the watch. */
void gci_watch_report(void *user, uint32_t rank, const struct gci_ctl_report *m);
void gci_watch_flows(void *user, uint32_t rank, const struct gci_ctl_flows *m);
void gci_watch_renewed(void *user, uint32_t rank);

/* Somebody asks, and would ask again within lease_ns; `flows`: for single connections, too. */
void gci_watch_want(struct gci_watch *w, uint64_t lease_ns, int flows);

/* What is known now. */
struct gci_traffic_view gci_watch_view(struct gci_watch *w);

/* The last lines of the file. */
void gci_watch_end(struct gci_watch *w);

#endif
