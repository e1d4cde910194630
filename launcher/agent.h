/* SPDX-License-Identifier: MIT
 * The agent: starts one or more ranks on its host for a launcher that may be anywhere, connects
 * them to it, and leaves nothing behind. It is the same for a local job, a network namespace and
 * a remote host: `gridcoll-run --agent`, spoken to in frames (agent_msg.h) over standard input and
 * output. */
#ifndef GCI_LAUNCHER_AGENT_H
#define GCI_LAUNCHER_AGENT_H

/* Runs until the launcher is done or gone. `netns` (may be NULL) is a network namespace of
 * /run/netns to enter first. Returns the exit status. */
int gci_agent_main(const char *netns);

#endif
