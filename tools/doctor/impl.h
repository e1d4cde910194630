/* SPDX-License-Identifier: MIT
 * What the groups of checks share: tcp.c (sysctls of TCP, buffers against the
 * grid), host.c (the rest of the machine).
 *
 *	struct gct_finding *f = gct_finding(r, GCT_PROBLEM, "tcp_sack", "net.ipv4.tcp_sack");
 *
 *	gct_say(r, &f->is, "%" PRIu64, value);
 *	gct_say_sysctl(r, f, "1"); */
#ifndef GCT_DOCTOR_IMPL_H
#define GCT_DOCTOR_IMPL_H

#include "tools/doctor/doctor.h"

/* A new finding at the end; never NULL: without memory it is one that nobody sees. */
struct gct_finding *gct_finding(
	struct gct_report *r, enum gct_level level, const char *id, const char *what);

/* Sets one of its strings. */
void gct_say(struct gct_report *r, char **at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Takes one back. */
void gct_unsay(char **at);

/* Sets should, command and line for the sysctl of its name. */
void gct_say_sysctl(struct gct_report *r, struct gct_finding *f, const char *value);

void gct_check_tcp(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r);
void gct_check_buffers(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r);
void gct_check_nics(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r);
void gct_check_host(const struct gct_facts *f, const struct gct_needs *n, struct gct_report *r);

#endif
