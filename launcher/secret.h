/* SPDX-License-Identifier: MIT
 * The job's secret, from where the options say. */
#ifndef GCI_LAUNCHER_SECRET_H
#define GCI_LAUNCHER_SECRET_H

#include "launcher/options.h"
#include "transport/secret.h"

/* A new one, or that of --secret-file; --serve makes the file if there is none. GCOLL_ERR_*. */
int gci_job_secret(
	const struct gci_options *o, uint8_t secret[GCI_SECRET_NBYTES], struct gci_error *e);

/* Prints a new one. GCOLL_ERR_*. */
int gci_new_secret(struct gci_error *e);

#endif
