/* SPDX-License-Identifier: MIT
 * Between agents.c (their processes, and what they are told) and agents_hear.c (what they say). */
#ifndef GCI_LAUNCHER_AGENTS_INTERNAL_H
#define GCI_LAUNCHER_AGENTS_INTERNAL_H

#include "launcher/agents.h"

/* agents_hear.c: bytes of its standard output, and of its standard error. */
void gci_agent_hear(struct gci_agent *a, const uint8_t *data, size_t nbytes);
void gci_agent_hear_complaint(struct gci_agent *a, const char *data, size_t nbytes);

/* It is of no more use, and those that it started are neither. */
void gci_agent_lose(struct gci_agent *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* agents.c: the process of one that another had started. */
void gci_agent_relayed_one_ended(struct gci_agent *a, const struct gci_frame_ended *m);

#endif
