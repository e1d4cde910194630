/* SPDX-License-Identifier: MIT
 * The line on a terminal that says how far a command is. It ends in '\r', by which gridcoll-run knows
 * it, too. */
#include "tools/lib/progress.h"

#include "base/clock.h"
#include "base/terminal.h"
#include "tools/lib/tools.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVERY_NS (100 * GCI_NS_PER_MS)

static uint64_t shown_ns; /* 0: it does not stand there */
static size_t stage, nstages;

/* gridcoll-run says it of its own. */
static int has_terminal(void)
{
	const char *told = getenv("GRIDCOLL_PROGRESS");

	if (told && !strcmp(told, "1"))
		return gct_is_first();
	return !getenv("GRIDCOLL_RANK") && gci_is_terminal(STDERR_FILENO);
}

void gct_progress_line(const char *line)
{
	int columns = gci_terminal_columns(STDERR_FILENO) - 1, width = columns < 78 ? columns : 78;

	fprintf(stderr, "%-*.*s\r", width, width, line);
	fflush(stderr);
}

void gct_progress_stage(size_t i, size_t n)
{
	stage = i;
	nstages = n;
}

int gct_progress_is_due(void)
{
	return gci_now_ns() - shown_ns >= EVERY_NS && has_terminal();
}

void gct_progress(const char *fmt, ...)
{
	char line[79];
	va_list ap;
	int n = 0;

	if (!gct_progress_is_due())
		return;
	shown_ns = gci_now_ns();
	if (nstages > 1)
		n = snprintf(line, sizeof(line), "%zu/%zu ", stage, nstages);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	gct_progress_line(line);
}

void gct_progress_end(void)
{
	if (!shown_ns)
		return;
	shown_ns = 0;
	fputs("\033[K\r", stderr);
	fflush(stderr);
}
