/* SPDX-License-Identifier: MIT
 * gridcoll-run's command line. */
#ifndef GCI_LAUNCHER_OPTIONS_H
#define GCI_LAUNCHER_OPTIONS_H

#include "base/error.h"
#include "base/units.h"

#include <stdint.h>
#include <stdio.h>

#define GCI_OPTIONS_BUDGETS 64
#define GCI_SERVE_EXPECTED  "PORT, IP:PORT or [IP]:PORT (0: any port)"

/* Of how hosts are reached; NULL and 0: not said. */
struct gci_options_ssh {
	const char *remote_path;
	uint32_t fanout;
	uint64_t limit_ns; /* longest wait for ssh to log in */
};

/* Of ranks' connections, and of what they send; NULL: not said. */
struct gci_options_net {
	const char *interfaces; /* rules, base/nics.h */
	struct gci_ports ports; /* to listen at */
	const char *address;    /* by which ranks elsewhere reach this machine */
	const char *data_path, *congestion, *security, *pace;
	const char *budgets[GCI_OPTIONS_BUDGETS];
	unsigned nbudgets;
};

/* Of a job whose ranks others start; NULL and 0: not said. */
struct gci_options_guests {
	const char *serve; /* where, as it was given */
	char serve_ip[64]; /* "": at all addresses */
	uint16_t serve_port;
	const char *join;                  /* HOST:PORT */
	const char *secret_file;           /* "-": standard input */
	const char *rank_from, *size_from; /* variables of the environment */
	int rank_0_serves;
	int slurm; /* Slurm says who we are, and where rank 0 is */
};

struct gci_options {
	uint32_t nranks;   /* 0: as many as there are hosts */
	uint32_t per_host; /* 0: not said */
	const char *grid, *hosts, *lab;
	const char *
		grid_text; /* of `grid`, where it is known and the file may not be there; or NULL */
	int lab_from_environment;
	const char *table; /* of decisions; NULL: none */
	int table_from_environment;
	const char *params; /* what was measured of the grid; NULL: nothing */
	int fast_timers, quiet_prefix, dry_run;
	struct gci_options_net net;
	struct gci_options_ssh ssh;
	struct gci_options_guests guests;
	uint64_t start_ns;
	int survives;       /* the job does failures of its ranks */
	uint64_t shrink_ns; /* from the first rank that shrinks to the last */
	const char *chdir;  /* NULL: not said */
	const char *stats;  /* a file for the traffic; NULL: none */
	char **argv;        /* the command, ends in NULL */
	/* Instead of a job: */
	int help, version, agent, new_secret;
	const char *netns; /* of the agent */
};

/* GCOLL_ERR_INVAL: `e` names the option, what is wrong, and what was expected. */
int gci_options_parse(struct gci_options *o, int argc, char **argv, struct gci_error *e);

void gci_options_help(FILE *out);

#endif
