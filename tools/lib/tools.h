/* SPDX-License-Identifier: MIT
 * The subcommands of `gridcoll`: one file each, named in one table in main.c. */
#ifndef GCI_TOOLS_H
#define GCI_TOOLS_H

#include "base/error.h"
#include "base/options.h"

#include <gridcoll/gridcoll.h>

#include <stdio.h>

/* Exit statuses of all our commands. */
#define GCT_OK      0
#define GCT_FAILED  1
#define GCT_PARTIAL GCI_EXIT_PARTIAL
#define GCT_USAGE   2 /* wrong arguments, environment or input file */

/* argv[0] is the subcommand's name. Returns the exit status. */
int gct_lab_command(int argc, char **argv);
int gct_cp_command(int argc, char **argv);
int gct_bench_command(int argc, char **argv);
int gct_tune_command(int argc, char **argv);
int gct_probe_command(int argc, char **argv);
int gct_plan_command(int argc, char **argv);
int gct_report_command(int argc, char **argv);
int gct_doctor_command(int argc, char **argv);
int gct_shape_command(int argc, char **argv);
int gct_top_command(int argc, char **argv);
int gct_ctl_command(int argc, char **argv);

/* A subcommand's command line. --help is `usage`, its options, and `examples`. */
struct gct_usage {
	const char *tool;
	const char *usage, *examples;
	const struct gci_option *options;
};

/* Reads options of a subcommand that may run as a rank, where they may stand anywhere or in front of
 * operands; argv[*first] is the first operand. 0; an exit status after saying what is wrong; or
 * GCT_HELPED. */
#define GCT_HELPED (-1)
int gct_options(const struct gct_usage *u, void *settings, int argc, char **argv,
	enum gci_options_order order, int *first);

/* For subcommands that run as ranks; `tool` is the subcommand's name. */

/* True on rank 0, and without a launcher: on whom to print what all ranks know. */
int gct_is_first(void);

/* gcoll_init; 0, or an exit status after saying why. */
int gct_join(const char *tool, gcoll_comm **comm);

/* Ends the job with this message, which the launcher prints; once, where all ranks say the same. */
void gct_abort(gcoll_comm *comm, const char *text);

/* Wrong arguments, which all ranks see: says so once, before gct_join. GCT_USAGE. */
int gct_wrong(const char *tool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
