/* SPDX-License-Identifier: MIT
 * The ssh command that starts an agent on another host. What else ssh needs to know, ssh_config(5)
 * says, on the host that runs it.
 *
 *	struct gci_ssh s;
 *
 *	rc = gci_ssh_make(&s, "k2", "gridcoll-run", 12 * GCI_NS_PER_S);
 *	execvp(s.argv[0], s.argv);
 *	gci_ssh_free(&s);
 */
#ifndef GCI_LAUNCHER_SSH_H
#define GCI_LAUNCHER_SSH_H

#include "base/buf.h"
#include "base/clock.h"

#define GCI_SSH_TIMEOUT_NS (12 * GCI_NS_PER_S) /* the default of --ssh-timeout */

/* Of the time limit for a host, how much an ssh on another host has: this one may try afterwards. */
static inline uint64_t gci_ssh_elsewhere_ns(uint64_t timeout_ns)
{
	return timeout_ns / 12 * 5;
}

struct gci_ssh {
	char *argv[12];
	char timeout[32];
	struct gci_buf far; /* what the shell there gets; argv has it */
};

/* `host` stays the caller's. It gives up an address that does not answer a second before timeout_ns
 * are over, and writes a line to standard output as soon as it has logged in: what else may take
 * long (several addresses of a name, a host that hangs) the caller has to end.
 * 0 or GCOLL_ERR_NOMEM, to be freed either way. */
int gci_ssh_make(struct gci_ssh *s, const char *host, const char *remote_path, uint64_t timeout_ns);
void gci_ssh_free(struct gci_ssh *s);

/* For people: the command as a shell would take it. */
void gci_ssh_print(
	struct gci_buf *out, const char *host, const char *remote_path, uint64_t timeout_ns);

/* In a shell's quotes, where it takes some. */
void gci_quote_if_needed(struct gci_buf *out, const char *s);

/* The local address by which `host` is reached ("user@" before it does not matter), and whether the
 * host's address is this machine's own. 0; or GCOLL_ERR_SYS when its name is not known or no route
 * leads there; or GCOLL_ERR_TIMEOUT when who should know the name was waited for and did not answer.
 */
int gci_route_to(const char *host, char *ip, size_t size, int *is_own);

#endif
