/* SPDX-License-Identifier: MIT */
#include "tools/tools.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"cp", gct_cp, "copy files to every rank of a job"},
	{"bench", gct_bench, "measure collective operations and verify their results"},
	{"lab", gct_lab, "bring up an emulated grid and run a command in it"},
	{NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	const struct command *c;

	fprintf(out, "usage: gridcoll COMMAND ... | gridcoll --version\n");
	for (c = commands; c->name; c++)
		fprintf(out, "  %-8s %s\n", c->name, c->help);
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

int main(int argc, char **argv)
{
	const struct command *c;

	gci_log_init("gridcoll");
	if (argc < 2) {
		usage(stderr);
		return GCT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return flushed(GCT_OK);
	}
	if (!strcmp(argv[1], "--version")) {
		printf("gridcoll %s\n", GCT_VERSION);
		return flushed(GCT_OK);
	}
	for (c = commands; c->name; c++)
		if (!strcmp(argv[1], c->name))
			return flushed(c->run(argc - 1, argv + 1));
	fprintf(stderr, "gridcoll: unknown command \"%s\", expected one of these:\n", argv[1]);
	usage(stderr);
	return GCT_USAGE;
}
