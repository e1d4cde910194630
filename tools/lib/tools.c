/* SPDX-License-Identifier: MIT
 * Subcommands run as ranks of a job: what goes wrong is said once, not by each of them. What one
 * rank says last, the launcher prints, with the rank's number and its host. */
#include "tools/lib/tools.h"

#include "comm/comm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gct_is_first(void)
{
	const char *rank = getenv("GRIDCOLL_RANK");

	return !rank || !strcmp(rank, "0");
}

static void print_help(const struct gct_usage *u)
{
	fputs(u->usage, stdout);
	gci_options_print(u->options, stdout);
	fputs(u->examples, stdout);
}

int gct_options(const struct gct_usage *u, void *settings, int argc, char **argv,
	enum gci_options_order order, int *first)
{
	struct gci_error e = {0};
	char program[32];

	snprintf(program, sizeof(program), "gridcoll %s", u->tool);
	*first = gci_options_read(u->options, settings, argc, argv, order, program, &e);
	if (*first == GCI_OPTIONS_WRONG)
		return gct_wrong(u->tool, "%s", e.text);
	if (*first != GCI_OPTIONS_HELP)
		return 0;
	if (gct_is_first())
		print_help(u);
	return GCT_HELPED;
}

int gct_join(const char *tool, gcoll_comm **comm)
{
	int rc = gcoll_init(comm);

	switch (rc) {
	case 0:
		return 0;
	case GCOLL_ERR_NOLAUNCHER:
		fprintf(stderr,
			"gridcoll %s: not started by gridcoll-run, see gridcoll %s --help\n", tool,
			tool);
		return GCT_USAGE;
	case GCOLL_ERR_PEER:
	case GCOLL_ERR_TIMEOUT:
	case GCOLL_ERR_ABORTED:
		return GCT_FAILED; /* the launcher's own word: it tells the user, too */
	default:
		fprintf(stderr, "gridcoll %s: %s\n", tool, gcoll_last_error());
		return rc == GCOLL_ERR_INVAL ? GCT_USAGE : GCT_FAILED;
	}
}

/* The launcher's line has the rank and its host, too. */
#define LINE (GCI_CTL_TEXT - 80)

void gct_abort(gcoll_comm *comm, const char *text)
{
	struct gci_error line = {0};

	gci_error_set(&line, GCOLL_ERR_ABORTED, "%s", text);
	gci_shorten(line.text, LINE);
	gcoll_comm_abort(comm, line.text);
	/* Who is gone before the others have heard why looks dead to them. */
	gci_engine_await_verdict(comm->engine, GCI_NEVER);
}

int gct_wrong(const char *tool, const char *fmt, ...)
{
	char text[GCI_ERROR_WHOLE];
	gcoll_comm *comm;
	va_list ap;
	int n;

	n = snprintf(text, sizeof(text), "gridcoll %s: ", tool);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	if (!gcoll_init(&comm)) {
		gct_abort(comm, text);
		gcoll_finalize(comm);
	} else if (gct_is_first()) {
		fprintf(stderr, "%s\n", text);
	}
	return GCT_USAGE;
}
