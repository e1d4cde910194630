/* SPDX-License-Identifier: MIT
 * Asking a running gridcoll-run over its control socket (launcher/ctl.h).
 *
 *	struct gct_ctl c;
 *
 *	if (gct_ctl_open(&c, job, &e))		// a process id, a socket's path, NULL: the only job
 *		...
 *	reply = gct_ctl_ask(&c, json_pack("{s:s}", "cmd", "job"), &e);
 *	if (!reply)
 *		...
 *	json_decref(reply);
 *	gct_ctl_close(&c);
 *
 * Blocks until the reply is there: a launcher answers at once, or is dead. */
#ifndef GCT_CTL_CLIENT_H
#define GCT_CTL_CLIENT_H

#include "launcher/ctl.h"

#include <jansson.h>

#define GCT_CTL_REPLY_NBYTES (64u << 20) /* the longest that is taken */

struct gct_ctl {
	char path[GCI_JOBCTL_PATH_NBYTES];
	struct gci_buf in;
	int fd;
};

/* 0, or GCOLL_ERR_INVAL: there is no such job, or with NULL, not exactly one; the text lists those
 * that there are. gct_ctl_close() is due only after success. */
int gct_ctl_open(struct gct_ctl *c, const char *job, struct gci_error *e);

/* Takes `request` over. The reply, an object that is the caller's; or NULL with the launcher's
 * reason or that of the connection: GCOLL_ERR_ABORTED when the job has ended meanwhile. */
json_t *gct_ctl_ask(struct gct_ctl *c, json_t *request, struct gci_error *e);

void gct_ctl_close(struct gct_ctl *c);

#endif
