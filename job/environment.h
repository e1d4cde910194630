/* SPDX-License-Identifier: MIT
 * What the launcher, or whatever else starts a rank, tells it: GRIDCOLL_* in the environment, and
 * the job's secret in a pipe or a file.
 *
 *	struct gci_environment env = {0};
 *
 *	rc = gci_environment_read(&env, &e);
 *	...
 *	explicit_bzero(&env.secret, sizeof(env.secret)); */
#ifndef GCI_JOB_ENVIRONMENT_H
#define GCI_JOB_ENVIRONMENT_H

#include "base/error.h"
#include "base/units.h"
#include "shaping/ladder.h"
#include "transport/control.h"
#include "transport/secret.h"
#include "transport/transport.h"

#define GCI_ENVIRONMENT_HOST 254 /* with the zero */

struct gci_environment {
	int rank, size; /* size 0: not said */
	const char *rendezvous;
	char host[GCI_ENVIRONMENT_HOST]; /* GRIDCOLL_HOST, else the machine's own name */
	char cluster[GCI_CTL_CLUSTER];   /* GRIDCOLL_CLUSTER; "": not said */
	uint64_t join_ns;                /* so long may whoever serves the job take to come up */
	uint8_t secret[GCI_SECRET_NBYTES];
	struct gci_ports ports;
	enum gci_data_path data_path;
	enum gci_pace_how pace;
	enum gci_security security;
	int control_tls;        /* to the launcher */
	const char *congestion; /* "": the kernel's */
};

/* GCOLL_ERR_NOLAUNCHER where no launcher has started this process; GCOLL_ERR_INVAL names what is
 * wrong, and what was expected. The secret can be read once. */
int gci_environment_read(struct gci_environment *env, struct gci_error *e);

#endif
