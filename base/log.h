/* SPDX-License-Identifier: MIT
 * Log lines to standard error: "gridcoll: warning: ...". Level by GRIDCOLL_LOG
 * (error, warn, info, debug; default warn). Safe from any thread: one write per line. */
#ifndef GCI_BASE_LOG_H
#define GCI_BASE_LOG_H

enum gci_log_level { GCI_LOG_ERROR, GCI_LOG_WARN, GCI_LOG_INFO, GCI_LOG_DEBUG };

/* Reads GRIDCOLL_LOG; `who` (copied, may be NULL) stands in every line. Call before threads. */
void gci_log_init(const char *who);

int gci_log_enabled(enum gci_log_level level);

void gci_log(enum gci_log_level level, const char *fmt, ...)
	__attribute__((cold, format(printf, 2, 3)));

#endif
