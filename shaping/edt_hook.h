/* SPDX-License-Identifier: MIT
 * Where a device's outgoing packets meet our program: a TCX link where the kernel has those (6.6),
 * else a filter of the clsact qdisc. Only our own program is ever replaced or removed; others'
 * filters, qdiscs and programs stay, and a clsact qdisc goes only if we made it and nobody else
 * uses it.
 *
 *	struct gci_edt_hook h;
 *
 *	rc = gci_edt_hook_find(&h, ifindex, &e);
 *	if (!rc && h.prog_fd < 0)
 *		rc = gci_edt_hook_attach(&h, prog_fd, 0, &e);
 *	...
 *	gci_edt_hook_detach(&h, h.made_clsact);
 *	gci_edt_hook_close(&h);
 *
 * The loader has the lock of shaping/hold.h meanwhile. */
#ifndef GCI_SHAPING_EDT_HOOK_H
#define GCI_SHAPING_EDT_HOOK_H

#include "base/error.h"

#include <stdint.h>

enum gci_edt_at { GCI_EDT_NOWHERE, GCI_EDT_TCX, GCI_EDT_CLSACT };

struct gci_edt_hook {
	int ifindex;
	enum gci_edt_at at;
	int prog_fd;     /* what is attached there, or -1 */
	int link_fd;     /* TCX: while anybody has it open, the program is attached. Or -1 */
	int made_clsact; /* gci_edt_hook_attach() had to */
};

/* Looks for our program. 0, found or not. */
int gci_edt_hook_find(struct gci_edt_hook *h, int ifindex, struct gci_error *e);

/* `standing`: beyond the life of this process; elsewhere than with TCX it is anyhow. Another
 * attachment of ours is replaced. */
int gci_edt_hook_attach(struct gci_edt_hook *h, int prog_fd, int standing, struct gci_error *e);

/* Nobody's packets meet it any more. */
void gci_edt_hook_detach(struct gci_edt_hook *h, int made_clsact);

void gci_edt_hook_close(struct gci_edt_hook *h);

#endif
