/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {"error", "warn", "info", "debug"};
static enum gci_log_level threshold = GCI_LOG_WARN;
static char prefix[64] = "gridcoll";

void gci_log_init(const char *who)
{
	const char *want = getenv("GRIDCOLL_LOG");
	size_t i;

	if (who)
		snprintf(prefix, sizeof(prefix), "%s", who);
	if (!want || !*want)
		return;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(want, names[i])) {
			threshold = (enum gci_log_level)i;
			return;
		}
	}
	gci_log(GCI_LOG_WARN, "GRIDCOLL_LOG=%s: expected error, warn, info or debug; using warn",
		want);
}

int gci_log_enabled(enum gci_log_level level)
{
	return level <= threshold;
}

void gci_log(enum gci_log_level level, const char *fmt, ...)
{
	char line[1024];
	size_t used, room;
	int error = errno;
	va_list ap;

	if (!gci_log_enabled(level))
		return;
	used = (size_t)snprintf(line, sizeof(line), "%s: %s: ", prefix, names[level]);
	room = sizeof(line) - used - 1;
	va_start(ap, fmt);
	vsnprintf(line + used, room, fmt, ap);
	va_end(ap);
	used = strlen(line);
	line[used++] = '\n';
	while (write(STDERR_FILENO, line, used) < 0 && errno == EINTR)
		; /* of any other failure there is nowhere left to say it */
	errno = error;
}
