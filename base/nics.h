/* SPDX-License-Identifier: MIT
 * Rules that choose among a host's addresses, as "eth1, 10.2.0.0/16, !docker*": pure, the
 * addresses are handed in.
 *
 *	struct gci_nics rules;
 *	struct gci_error e = {0};
 *	if (gci_nics_parse(&rules, "10.1.0.0/16, ib*, !ib3", &e))
 *		puts(e.text);
 *	n = gci_nics_choose(&rules, have, nhave, usual, chosen, 4);
 *	... have[chosen[0]] is the first choice
 *
 * A rule is a network (10.1.0.0/16, fd00::/8), an address, or the name of an interface, in which
 * * and ? stand for any characters; ! before it excludes. What any rule excludes is out. The
 * others choose, the first rule first; one address of each interface and family for each rule,
 * IPv4 before IPv6 and the lower address first. Loopback and link-local addresses are meant only
 * by who says so: by the interface's full name or a network of such addresses only. Of an
 * interface that has no other address its name or pattern means a link-local one.
 *
 * Where all rules exclude, only one address is chosen: the usual one or, if that is excluded, the
 * first that is left. Several are used only when asked for, since networks that lead nowhere (of
 * containers, say) look like all others. */
#ifndef GCI_BASE_NICS_H
#define GCI_BASE_NICS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define GCI_NICS_MAX 32 /* rules */
#define GCI_NIC_NAME 16
#define GCI_NICS_EXPECTED \
	"interfaces or networks such as eth1, ib*, 10.1.0.0/16, fd00::/8, !docker0"

struct gci_nic_rule {
	uint8_t exclude;
	uint8_t six;  /* 4 or 6 of a network; 0: a name */
	uint8_t bits; /* of `ip` that count */
	uint8_t ip[16];
	char name[GCI_NIC_NAME];
};

struct gci_nics {
	struct gci_nic_rule rules[GCI_NICS_MAX];
	unsigned n; /* 0: no rules */
};

/* One address of a host. */
struct gci_nic_addr {
	char nic[GCI_NIC_NAME];
	uint8_t six;  /* 4 or 6 */
	uint8_t bits; /* of its network */
	uint8_t ip[16];
	uint32_t scope; /* of a link-local IPv6 address: the interface's number */
};

/* Rules with commas, blanks or both between. GCOLL_ERR_INVAL with the rule and what was expected
 * in `e`; "" has no rules. */
int gci_nics_parse(struct gci_nics *r, const char *text, struct gci_error *e);

/* Numbers of the chosen ones into chosen[max]; returns how many. Without rules, `usual` alone.
 * `usual` is a number, or -1: not among them. */
unsigned gci_nics_choose(const struct gci_nics *r, const struct gci_nic_addr *have, unsigned nhave,
	int usual, unsigned *chosen, unsigned max);

/* Whether two addresses are alike in their first `bits`. */
int gci_same_net(const uint8_t *a, const uint8_t *b, unsigned bits);

/* "eth0 10.0.0.5/24, eth0 fd00::5/64", for people; cut with "..." where `out` ends. Returns it. */
char *gci_nics_list(const struct gci_nic_addr *have, unsigned n, char *out, size_t size);

#endif
