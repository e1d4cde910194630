/* SPDX-License-Identifier: MIT
 * Looks at this process's connections a hundred times a second, from a thread of its own: also
 * while the program computes, since the kernel goes on sending. It exists only while somebody wants
 * to know.
 *
 *	const struct gci_sampler_config c = {.engine = e, .period_ms = 500, .report = on_report,
 *		.user = me};
 *	rc = gci_sampler_start(&s, &c);
 *	... on_report(me, &report) for each cluster, each period, from the thread ...
 *	gci_sampler_stop(s);		// after a last report of each
 */
#ifndef GCI_COMM_SAMPLER_H
#define GCI_COMM_SAMPLER_H

#include "comm/engine.h"
#include "transport/report.h"

struct gci_sampler;

struct gci_sampler_config {
	struct gci_engine *engine; /* its world is made already */
	uint32_t period_ms;
	void (*report)(void *user, const struct gci_ctl_report *m);
	/* Connections to other clusters, after the reports; NULL: nobody wants them. */
	void (*flows)(void *user, const struct gci_ctl_flows *m);
	void *user;
};

/* GCOLL_ERR_NOMEM or GCOLL_ERR_SYS. */
int gci_sampler_start(struct gci_sampler **s, const struct gci_sampler_config *config);

/* NULL is legal. */
void gci_sampler_stop(struct gci_sampler *s);

#endif
