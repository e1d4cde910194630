/* SPDX-License-Identifier: MIT */
#include "tools/lib/tools.h"

#include "base/log.h"
#include "base/mem.h"
#include "collectives/coll.h"
#include "version.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
	int in_ranks; /* every rank of a job runs it */
} commands[] = {
	{"cp", gct_cp_command, "copy files to every rank of a job", 1},
	{"bench", gct_bench_command, "measure collective operations and verify their results", 1},
	{"tune", gct_tune_command, "find the best algorithm and parameters of operations", 1},
	{"probe", gct_probe_command, "measure the links of a job's grid", 1},
	{"plan", gct_plan_command, "predict how long an operation takes, and say why", 0},
	{"report", gct_report_command, "make a page of what was measured and predicted", 0},
	{"doctor", gct_doctor_command, "check this host, and say what to change", 0},
	{"shape", gct_shape_command, "limit what this host sends to a cluster", 0},
	{"top", gct_top_command, "show the traffic of a running job", 0},
	{"ctl", gct_ctl_command, "ask a running job, and change its budgets", 0},
	{"lab", gct_lab_command, "bring up an emulated grid and run a command in it", 0},
	{NULL, NULL, NULL, 0},
};

static void usage(FILE *out)
{
	const struct command *c;

	fprintf(out, "usage: gridcoll COMMAND ... | gridcoll --version\n");
	for (c = commands; c->name; c++)
		fprintf(out, "  %-8s %s\n", c->name, c->help);
	fprintf(out, "gridcoll COMMAND --help says more of each.\n"
		     "example: gridcoll-run -n 4 gridcoll cp FILE '/tmp/out/%%r/'\n");
}

/* What was printed must have got somewhere. */
static int flushed(int status)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "gridcoll: standard output: %s\n",
		errno ? strerror(errno) : "a write failed");
	return status ? status : GCT_FAILED;
}

/* What is simulated needs no ranks. */
static int is_simulated(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--simulated"))
			return 1;
	return 0;
}

/* In a lab the hosts are known: a command for ranks starts itself on all of them. Returns only when
 * that is not so, or fails. */
static void start_in_lab(int argc, char **argv)
{
	static char launcher[] = "gridcoll-run", quietly[] = "--quiet-prefix";
	char **args;

	if (!getenv("GRIDCOLL_LAB") || getenv("GRIDCOLL_RANK"))
		return;
	args = gci_calloc((size_t)argc + 3, sizeof(*args));
	if (!args)
		return;
	args[0] = launcher;
	args[1] = quietly;
	memcpy(args + 2, argv, (size_t)argc * sizeof(*args));
	execvp(args[0], args);
	fprintf(stderr, "gridcoll: %s: %s\n", launcher, strerror(errno));
	gci_free(args);
}

int main(int argc, char **argv)
{
	const struct command *c;

	gci_log_init("gridcoll");
	if (argc < 2) {
		usage(stderr);
		return GCT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return flushed(GCT_OK);
	}
	if (!strcmp(argv[1], "--version")) {
		printf("gridcoll %s\nschedules: %016" PRIx64 "\n", GCI_VERSION,
			gci_build.schedules);
		return flushed(GCT_OK);
	}
	for (c = commands; c->name; c++) {
		if (strcmp(argv[1], c->name))
			continue;
		if (c->in_ranks && !is_simulated(argc, argv))
			start_in_lab(argc, argv);
		return flushed(c->run(argc - 1, argv + 1));
	}
	fprintf(stderr, "gridcoll: unknown command \"%s\", expected one of these:\n", argv[1]);
	usage(stderr);
	return GCT_USAGE;
}
