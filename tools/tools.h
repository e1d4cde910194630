/* SPDX-License-Identifier: MIT
 * The subcommands of `gridcoll`: one file each, named in one table in main.c. */
#ifndef GCI_TOOLS_H
#define GCI_TOOLS_H

/* Exit statuses of all our commands. */
#define GCT_OK     0
#define GCT_FAILED 1
#define GCT_USAGE  2 /* wrong arguments, environment or input file */

/* argv[0] is the subcommand's name. Returns the exit status. */
int gct_lab(int argc, char **argv);
int gct_cp(int argc, char **argv);
int gct_bench(int argc, char **argv);

#endif
