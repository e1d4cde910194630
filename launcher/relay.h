/* SPDX-License-Identifier: MIT
 * In an agent: other agents that it starts on other hosts, by a command that it is given, and whose
 * bytes it passes on. One agent's only, as all else of it.
 *
 *	gci_relay_start(&frame);	// RELAY_START
 *	gci_relay_data(&frame);	// RELAY_DATA, as often as it comes
 *	gci_relay_reaped(pid, status);	// tells of its end
 *	gci_relay_end();	// the end of all their inputs; each ends itself, and its ranks
 *
 * What the launcher says is as much as its flow control lets it (agent_msg.h). What an agent says waits
 * in its pipe while more than GCI_RELAY_BEHIND bytes wait for the launcher, which always reads. */
#ifndef GCI_LAUNCHER_RELAY_H
#define GCI_LAUNCHER_RELAY_H

#include "launcher/agent_msg.h"

#include <sys/types.h>

#define GCI_RELAY_BEHIND (1u << 20)

/* What is malformed ends this agent by gci_agent_send_error. Data for one that has ended are
 * dropped. */
void gci_relay_start(struct gci_agent_msg *f);
void gci_relay_data(struct gci_agent_msg *f);

/* Not ours: 0. */
int gci_relay_reaped(pid_t pid, int status);

/* Less waits for the launcher than before. */
void gci_relay_resume(void);

/* How many have not been reaped. */
int gci_relay_end(void);

/* Whether it is one of the commands. */
int gci_relay_is(pid_t pid);

#endif
