/* SPDX-License-Identifier: MIT
 * A rank's part in showing a job's traffic: samples and reports while the launcher wants to know.
 *
 *	gci_telemetry_init(&t);
 *	gci_telemetry_watch(&t, &m);		// from the control thread: the launcher's wish
 *	gci_telemetry_open(&t, engine, ctl);	// from now on it is done
 *	...
 *	gci_telemetry_end(&t);		// a last report; before BYE, and before `ctl` is freed
 */
#ifndef GCI_COMM_TELEMETRY_H
#define GCI_COMM_TELEMETRY_H

#include "comm/control_client.h"
#include "comm/sampler.h"

struct gci_telemetry {
	pthread_mutex_t lock;
	struct gci_control *ctl;
	struct gci_engine *engine; /* NULL: not open yet, or over */
	struct gci_sampler *sampler;
	struct gci_ctl_watch wish;
};

void gci_telemetry_init(struct gci_telemetry *t);
void gci_telemetry_watch(struct gci_telemetry *t, const struct gci_ctl_watch *m);
void gci_telemetry_open(struct gci_telemetry *t, struct gci_engine *e, struct gci_control *ctl);
/* Any number of times. */
void gci_telemetry_end(struct gci_telemetry *t);

#endif
